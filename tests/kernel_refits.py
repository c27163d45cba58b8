"""Plain dense models of the cells at one lifetime, from scratch."""

import numpy as np

from mondrian_bo.trees.partition import label_points


def labels_at(partitions, lifetime):
    labels = np.empty((partitions.n_points, partitions.n_trees), dtype=np.int32)
    n_cells = label_points(partitions.arrays, lifetime, labels)
    return labels, n_cells


def indicators(labels, n_cells):
    features = np.zeros((len(labels), n_cells))
    np.put_along_axis(features, labels.astype(int), labels.shape[1] ** -0.5, axis=1)
    return features


def log_evidence(targets, covariance):
    _, determinant = np.linalg.slogdet(covariance)
    quadratic = targets @ np.linalg.solve(covariance, targets)
    return -0.5 * (len(targets) * np.log(2.0 * np.pi) + determinant + quadratic)


def rms(values):
    return np.sqrt(np.mean(values**2))


def refit_kernel(data, lifetime, noise, prior):
    """Errors, evidence, weights and number of training cells of the joint fit."""
    n = len(data.targets)
    labels, n_cells = labels_at(data.partitions, lifetime)
    features = indicators(labels, n_cells)
    train = features[:n]
    gram = train.T @ train + noise / prior * np.eye(n_cells)
    weights = np.linalg.solve(gram, train.T @ data.targets)
    predicted = features @ weights
    evidence = log_evidence(data.targets, prior * train @ train.T + noise * np.eye(n))
    return (
        rms(predicted[:n] - data.targets),
        rms(predicted[n:] - data.validation),
        evidence,
        weights,
        len(np.unique(labels[:n])),
    )


def refit_forest(data, lifetime, noise, prior):
    """Errors and evidence of trees with independent leaves."""
    n = len(data.targets)
    labels, _ = labels_at(data.partitions, lifetime)
    predicted = np.zeros(len(labels))
    evidence = np.zeros(labels.shape[1])
    for t, column in enumerate(labels.T):
        for label in np.unique(column):
            inside = column == label
            own = data.targets[inside[:n]]
            predicted[inside] += own.sum() / (len(own) + noise / prior) / labels.shape[1]
            covariance = np.full((len(own), len(own)), prior) + noise * np.eye(len(own))
            evidence[t] += log_evidence(own, covariance) if len(own) else 0.0
    return (
        rms(predicted[:n] - data.targets),
        rms(predicted[n:] - data.validation),
        np.log(np.mean(np.exp(evidence - evidence.max()))) + evidence.max(),
    )
