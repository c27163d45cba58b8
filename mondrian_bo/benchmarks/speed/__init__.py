"""The suite ``speed``: what learning, predicting, suggesting, memory and starting up cost."""
