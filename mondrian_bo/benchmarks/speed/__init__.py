"""The suite ``speed``: cost of learning, predicting, suggesting, memory and starting up."""
