"""One thread for small matrices: tests run in several processes at a time."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def single_threaded_blas():
    with threadpool_limits(1):
        yield
