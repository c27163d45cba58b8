"""The online learners, and the probabilities that they predict for the next sample's class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import SGDClassifier

from mondrian_bo.benchmarks.suites.streams.data import Stream
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates import AMFClassifier, MondrianForestClassifier, OnlineDummyClassifier

__all__ = ["LEARNERS", "ONELEARN", "OURS", "PUBLISHED", "Learner", "forecast", "log_losses"]


OURS = "amf"
"""Key of the learner that is compared with onelearn."""

ONELEARN = "onelearn"
"""Name of onelearn in tasks and tables; it runs in another process and is no key of `LEARNERS`."""

PUBLISHED = {
    "car": 0.4615,
    "letter": 0.8992,
    "satimage": 0.3681,
    "spambase": 0.2784,
    "adult": 0.3923,
    "digits": 0.618,
}
"""Average online log-losses of onelearn 0.3.0 by stream, shown if onelearn is not run."""


class Learner(NamedTuple):
    """An online classifier.

    Attributes
    ----------
    title : str
        Name in tables.
    make : callable
        Takes a seed and returns an estimator.
    seeded : bool, default=True
        Whether results depend on the seed; if not, one run is enough.
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
"""Learners that run in this interpreter, by the names that are saved with runs."""


def forecast(model: Any, stream: Stream) -> FloatArray:
    """Predict each sample, then learn it.

    Parameters
    ----------
    model : estimator
        Unfitted, with ``predict_proba`` and ``partial_fit``.
    stream : Stream
        The samples.

    Returns
    -------
    float64 array of shape (n - 1,)
        The predicted probability of the class of each sample but the first.
    """
    X, y, n_classes = stream
    model.partial_fit(X[:1], y[:1], classes=np.arange(n_classes))
    probabilities = np.empty(len(y) - 1)
    for i in range(1, len(y)):
        probabilities[i - 1] = model.predict_proba(X[i : i + 1])[0, y[i]]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return probabilities


def log_losses(probabilities: FloatArray) -> FloatArray:
    """Return the log-losses; probabilities are clipped as in scikit-learn's ``log_loss``."""
    epsilon = np.finfo(np.float64).eps
    losses: FloatArray = -np.log(np.clip(probabilities, epsilon, 1.0 - epsilon))
    return losses
