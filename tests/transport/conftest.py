"""A consortium whose agreement names a server, made once for all tests that only ask."""

import pytest

from transport.serving import World


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        made = World(tmp_path_factory.mktemp("world"), patch)
        made.worker().step()
        with made.serving():
            yield made
