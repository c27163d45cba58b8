"""Plain dense models of the cells at one lifetime, from scratch."""

import numpy as np

from mondrian_bo.trees.lifetime_partitions import assign_cells


def cells_at(partitions, lifetime):
    cells = np.empty((partitions.n_points, partitions.n_trees), dtype=np.int32)
    n_cells = assign_cells(partitions.arrays, lifetime, cells)
    return cells, n_cells


def indicators(cells, n_cells):
    features = np.zeros((len(cells), n_cells))
    np.put_along_axis(features, cells.astype(int), cells.shape[1] ** -0.5, axis=1)
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
    cells, n_cells = cells_at(data.partitions, lifetime)
    features = indicators(cells, n_cells)
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
        len(np.unique(cells[:n])),
    )


def refit_forest(data, lifetime, noise, prior):
    """Errors and evidence of trees with independent leaves."""
    n = len(data.targets)
    cells, _ = cells_at(data.partitions, lifetime)
    predicted = np.zeros(len(cells))
    evidence = np.zeros(cells.shape[1])
    for t, column in enumerate(cells.T):
        for cell in np.unique(column):
            inside = column == cell
            own = data.targets[inside[:n]]
            predicted[inside] += own.sum() / (len(own) + noise / prior) / cells.shape[1]
            covariance = np.full((len(own), len(own)), prior) + noise * np.eye(len(own))
            evidence[t] += log_evidence(own, covariance) if len(own) else 0.0
    return (
        rms(predicted[:n] - data.targets),
        rms(predicted[n:] - data.validation),
        np.log(np.mean(np.exp(evidence - evidence.max()))) + evidence.max(),
    )
