"""What saves minutes: where coverage is counted, and which tests share one process.

Coverage is counted where the packages that it gates are tested. Two whole rounds, made by
typing the tutorials, are made once for all tests of the walk.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
COUNTED = ("algorithms", "linalg", "protocol", "analyst_side", "vault", "bundle/test_receipts.py")


def pytest_collection_modifyitems(items):
    counted = [HERE / each for each in COUNTED]
    for item in items:
        if not any(item.path.is_relative_to(each) for each in counted):
            item.add_marker("no_cover")
        if item.path.is_relative_to(HERE / "walk") and item.path.name != "test_hospitals.py":
            item.add_marker(pytest.mark.xdist_group("walk"))
        if item.path.name == "test_cluster.py":  # two clusters at a time want one port
            item.add_marker(pytest.mark.xdist_group("cluster"))
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "walk"))  # the longest first
