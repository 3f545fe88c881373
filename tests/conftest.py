"""Coverage is counted where the packages that it gates are tested: elsewhere it only costs time."""

from pathlib import Path

HERE = Path(__file__).parent
COUNTED = ("algorithms", "linalg", "protocol", "analyst_side", "vault", "bundle/test_receipts.py")


def pytest_collection_modifyitems(items):
    counted = [HERE / each for each in COUNTED]
    for item in items:
        if not any(item.path.is_relative_to(each) for each in counted):
            item.add_marker("no_cover")
