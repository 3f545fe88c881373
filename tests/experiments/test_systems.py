"""What all studies share: versions of test rows, rounds without refused parties, printed tables."""

import numpy as np
import pytest
from experiments.harness.study import Published, in_columns
from experiments.harness.systems import told_apart, without_refused

from cobasis.errors import UndeterminedFitError


def test_test_rows_that_agree_are_kept_once_and_counted():
    first, other = np.eye(3), np.ones((3, 3))
    found = told_apart([first, other, first * (1 + 1e-12), other, other])
    assert [count for _, count in found] == [2, 3]
    assert found[0][0] is first
    assert [count for _, count in told_apart([first, first * (1 + 1e-6)])] == [1, 1]


def refusing(*parties):
    """An attempt that succeeds without these, refused one after the other."""

    def attempt(left_out):
        for name in parties:
            if name not in left_out:
                msg = f"party '{name}' is undetermined"
                raise UndeterminedFitError(msg, (name,))
        return f"without {sorted(left_out)}"

    return attempt


def test_refused_parties_are_left_out_one_after_the_other():
    found, left_out = without_refused(refusing("b", "a"), n_parties=4)
    assert found == "without ['a', 'b']"
    assert left_out == {"a", "b"}


def test_where_most_are_refused_nothing_is_found():
    found, left_out = without_refused(refusing(*"abcd"), n_parties=4)
    assert found is None
    assert left_out == {"a", "b", "c"}


def test_a_refusal_that_names_nobody_new_is_raised():
    def attempt(_):
        msg = "party 'a' again"
        raise UndeterminedFitError(msg, ("a",))

    with pytest.raises(UndeterminedFitError, match="again"):
        without_refused(attempt, n_parties=4)


def test_a_printed_table_is_read_column_after_column():
    found = in_columns({"odc/svm": (95.6, 0.1, 88.8, 0.2)}, ["orth", "not"], start="mnist/")
    assert found == {
        "mnist/orth/odc/svm": Published(value=95.6, margin=0.1),
        "mnist/not/odc/svm": Published(value=88.8, margin=0.2),
    }
    with pytest.raises(ValueError, match="shorter"):
        in_columns({"odc/svm": (95.6, 0.1)}, ["orth", "not"])
