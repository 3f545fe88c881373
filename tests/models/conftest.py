"""One thread for each model: the trees' threads fight over a busy machine."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield
