"""What the scikit-learn estimators of several families share."""
