"""One thread for linear algebra, and what it was before afterwards."""

from __future__ import annotations

import threading

from mondrian_bo.surrogates.gaussian_process.one_thread import _controller, one_thread


def n_threads():
    # Of the libraries that numpy and scipy call; torch may have brought another one.
    return [pool["num_threads"] for pool in _controller().info() if pool["user_api"] == "blas"]


def test_overlapping_blocks_restore_what_was():
    before = n_threads()
    assert before
    first_is_in, second_is_in, seen = threading.Event(), threading.Event(), []

    def first():
        with one_thread():
            first_is_in.set()
            second_is_in.wait(10)
        seen.append(n_threads())

    thread = threading.Thread(target=first)
    thread.start()
    first_is_in.wait(10)
    with one_thread(), one_thread():
        second_is_in.set()
        thread.join()
        assert set(n_threads()) <= {1}
    # The first block had ended while this one had not.
    assert set(seen[0]) <= {1}
    assert n_threads() == before
