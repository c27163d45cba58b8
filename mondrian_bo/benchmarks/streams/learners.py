"""Who learns the streams, and the probabilities that they give to labels in advance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import SGDClassifier

from mondrian_bo.array_types import FloatArray
from mondrian_bo.benchmarks.streams.data import Stream
from mondrian_bo.surrogates import AMFClassifier, MondrianForestClassifier, OnlineDummyClassifier

__all__ = ["LEARNERS", "ONELEARN", "OURS", "PUBLISHED", "Learner", "forecast", "log_losses"]


OURS = "amf"
ONELEARN = "onelearn"
PUBLISHED = {
    "car": 0.4615,
    "letter": 0.8992,
    "satimage": 0.3681,
    "spambase": 0.2784,
    "adult": 0.3923,
    "digits": 0.618,
}
"""Average online log-losses of onelearn 0.3.0 on these streams, where it cannot be run."""


class Learner(NamedTuple):
    """Someone who learns classes online.

    Attributes
    ----------
    title : str
        Name in tables.
    make : callable
        Takes a seed and returns an estimator.
    seeded : bool, default=True
        Whether the seed matters; if not, one run is enough.
    """

    title: str
    make: Callable[[int], Any]
    seeded: bool = True


LEARNERS: dict[str, Learner] = {
    OURS: Learner("AMF", lambda seed: AMFClassifier(random_state=seed)),
    "amf-arithmetic": Learner(
        "AMF, arithmetic", lambda seed: AMFClassifier(pooling="arithmetic", random_state=seed)
    ),
    "mondrian": Learner(
        "Mondrian forest", lambda seed: MondrianForestClassifier(random_state=seed)
    ),
    "sgd": Learner("SGD", lambda seed: SGDClassifier(loss="log_loss", random_state=seed), False),
    "dummy": Learner("dummy", lambda seed: OnlineDummyClassifier(), False),
}
"""Those of this interpreter; onelearn has a process of its own."""


def forecast(model: Any, stream: Stream) -> FloatArray:
    """Predict each sample, then learn it.

    Parameters
    ----------
    model : estimator
        Has ``predict_proba`` and ``partial_fit`` and has learnt nothing yet.
    stream : Stream
        The samples.

    Returns
    -------
    float64 array of shape (n - 1,)
        The probability of each label but the first.
    """
    X, y, n_classes = stream
    model.partial_fit(X[:1], y[:1], classes=np.arange(n_classes))
    probabilities = np.empty(len(y) - 1)
    for i in range(1, len(y)):
        probabilities[i - 1] = model.predict_proba(X[i : i + 1])[0, y[i]]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return probabilities


def log_losses(probabilities: FloatArray) -> FloatArray:
    """Return the logarithmic losses, probabilities clipped like in scikit-learn's ``log_loss``."""
    epsilon = np.finfo(np.float64).eps
    losses: FloatArray = -np.log(np.clip(probabilities, epsilon, 1.0 - epsilon))
    return losses
