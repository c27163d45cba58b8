"""The suite ``speed``: cost of learning, predicting, suggesting, memory and starting up.

Other suites of costs use its clock and its rows.
"""
