"""A growing array holds the same rows as a list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mondrian_bo.shared.growing_array import GrowingArray

CHANGES = st.lists(st.tuples(st.sampled_from(["extend", "shorten", "replace"]), st.integers(0, 90)))


@given(changes=CHANGES, shape=st.sampled_from([(), (3,)]))
def test_it_holds_the_same_rows_as_a_list(changes, shape):
    array, expected = GrowingArray(*shape), []
    for k, (change, number) in enumerate(changes):
        rows = np.full((number, *shape), float(k))
        if change == "extend":
            array.extend(rows)
            expected.extend(rows)
        elif change == "shorten":
            length = min(number, len(expected))
            array.shorten(length)
            del expected[length:]
        else:
            array.replace(rows)
            expected = list(rows)
        assert len(array) == len(expected)
        np.testing.assert_array_equal(array.rows, np.array(expected).reshape(-1, *shape))


def test_rows_are_seldom_copied():
    array, n_copies = GrowingArray(2), 0
    for _ in range(10_000):
        before = array.rows.base
        array.extend(np.zeros((1, 2)))
        n_copies += array.rows.base is not before
    # The capacity grows by half at each copy, from 64 rows to 10,000.
    assert n_copies <= 15


def test_a_row_after_a_large_batch_copies_nothing():
    array = GrowingArray(2)
    array.extend(np.zeros((1000, 2)))
    before = array.rows.base
    for _ in range(100):
        array.extend(np.zeros((1, 2)))
    assert array.rows.base is before
