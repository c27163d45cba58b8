"""Held-out perplexity of online latent Dirichlet allocation over its three learning settings."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from mondrian_bo.benchmarks.tables.corpus import standard_library_docstrings
from mondrian_bo.benchmarks.tables.measured import MeasuredTable

__all__ = ["lda_table"]

GRID: dict[str, tuple[float, ...]] = {
    "kappa": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "tau": (1, 4, 16, 64, 256, 1024),
    "batch_size": (2, 4, 8, 16, 32, 64, 128, 256),
}
"""Levels of the axes: 288 cells, as many as the table of Lakshminarayanan2016."""

_TOPICS = 10
"""Topics of the model, few because documents are short."""

_VOCABULARY = 1000
"""Words of the vocabulary, the most frequent ones."""

_SHORTEST = 10
"""Fewest words of the vocabulary in a document: shorter docstrings carry no topics."""

_HELD_OUT = 400
"""Documents on which perplexity is measured."""


def lda_table() -> MeasuredTable:
    """Prepare the table ``lda_grid``: the grid of Hoffman et al. (2010) on another corpus.

    The axes are learning decay ``kappa``, learning offset ``tau`` and ``batch_size`` of one online
    pass over the docstrings of the standard library. The objective is the perplexity of held-out
    docstrings.

    Returns
    -------
    MeasuredTable
        The table, whose cells are measured during iteration.
    """
    docstrings = standard_library_docstrings()
    vectorizer = CountVectorizer(
        stop_words="english", max_features=_VOCABULARY, min_df=5, token_pattern=r"[A-Za-z]{3,}"
    )
    counts = vectorizer.fit_transform(docstrings)
    counts = counts[np.asarray(counts.sum(axis=1)).ravel() >= _SHORTEST]
    order = np.random.default_rng(0).permutation(counts.shape[0])
    held_out, training = counts[order[:_HELD_OUT]], counts[order[_HELD_OUT:]]
    digest = hashlib.sha256("\0".join(docstrings).encode()).hexdigest()
    return MeasuredTable(
        name="lda_grid",
        columns=tuple(GRID),
        objective="perplexity",
        n_cells=int(np.prod([len(levels) for levels in GRID.values()])),
        cells=_cells(training, held_out),
        facts={
            "corpus": "docstrings of the Python standard library",
            "corpus_docstrings": len(docstrings),
            "corpus_sha256": digest,
            "training_documents": training.shape[0],
            "held_out_documents": held_out.shape[0],
            "vocabulary": counts.shape[1],
            "topics": _TOPICS,
        },
    )


def _cells(training: Any, held_out: Any) -> Iterator[tuple[float, ...]]:
    for kappa, tau, batch_size in product(*GRID.values()):
        started = time.perf_counter()
        model = LatentDirichletAllocation(
            n_components=_TOPICS,
            learning_method="online",
            learning_decay=kappa,
            learning_offset=tau,
            batch_size=int(batch_size),
            max_iter=1,
            max_doc_update_iter=20,
            random_state=0,
        ).fit(training)
        perplexity = float(model.perplexity(held_out))
        yield kappa, tau, batch_size, perplexity, time.perf_counter() - started
