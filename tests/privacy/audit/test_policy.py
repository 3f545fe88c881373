"""H1 to H6 and who has to answer: from what is agreed and was uploaded before."""

import numpy as np
import pytest

from cobasis.features.outcome import VALUE
from cobasis.party_side.checks import checked
from cobasis.party_side.preview import NONE
from cobasis.party_side.sums_audit import cells
from cobasis.privacy.aggregate import light_of
from cobasis.privacy.audit.report import (
    LINKAGE,
    TITLES,
    Finding,
    graded,
    graded_bits,
    graded_known,
    per_cent,
    worst,
)
from cobasis.vault.datasets import Asked, Changes, Choice
from protocol.consortium import NONE as UNLABELLED
from protocol.consortium import RANDOMISED, SEEDED, agree, terms

IMAGE = np.eye(8, 5)
DP = {"basis": "haar", "dp": terms(**RANDOMISED)}


def classes(*counts):
    return np.repeat(range(len(counts)), counts)


def marked(*counts):
    events = classes(*counts)
    told = np.zeros(len(events), [(VALUE, float), ("event", int)])
    told["event"] = events
    return told


def found(which, *, n_rows=200, changes=None, span="fresh", renamed=0.0, **options):
    own = {"image": IMAGE, "sent": classes(100, 100), "sensitive": ()}
    told = {name: options.pop(name, usual) for name, usual in own.items()}
    asked = Asked(message="upload", rows=np.arange(n_rows, dtype=np.uint64), shape=(8, 5))
    moved = changes and Changes(same=n_rows, added=changes[0], gone=changes[1])
    choice = Choice(asked=asked, span=span, changes=moved, renamed=renamed)
    agreement = agree(SEEDED, **{"label": "died", **options})
    return {each.id: each for each in checked(agreement, choice, **told, guarantee=NONE)}[which]


GRADES = [
    ("H1", {"anchor": "isometric"}, "green"),
    ("H1", {"anchor": "uniform"}, "red"),
    ("H1", {"anchor": "public", "public_rows_sha256": "0" * 64}, "red"),
    ("H1", {"image": IMAGE[:, [0, 0, 2, 3, 4]]}, "red"),
    # rows per component
    ("H2", {"n_rows": 101}, "green"),
    ("H2", {"n_rows": 100}, "amber"),
    ("H2", {"n_rows": 25}, "amber"),
    ("H2", {"n_rows": 24}, "red"),
    ("H2", {"n_rows": 10, "basis": "haar"}, "green"),  # no basis of the rows
    ("H2", {"n_rows": 10, "basis": "consensus"}, "red"),
    # eleven people of a class
    ("H3", {"sent": classes(11, 90)}, "green"),
    ("H3", {"sent": classes(10, 90)}, "red"),
    ("H3", {"sent": None}, "green"),
    ("H3", {"sent": marked(10, 90), "task": "regression", "classes": ()}, "red"),
    # one to ten rows came or went, or less than a twentieth
    ("H4", {}, "green"),
    ("H4", {"renamed": 0.05}, "green"),
    ("H4", {"renamed": 0.06}, "red"),
    ("H4", {"span": "kept", "changes": (1, 0)}, "red"),
    ("H4", {"span": "kept", "changes": (0, 10)}, "red"),
    ("H4", {"span": "kept", "changes": (11, 11)}, "green"),
    ("H4", {"span": "kept", "changes": (49, 0), "n_rows": 1000}, "amber"),
    ("H4", {"span": "kept", "changes": (50, 0), "n_rows": 1000}, "green"),
    ("H4", {"span": "forced"}, "red"),
    # models that carry rows
    ("H5", {"model": "mlp", "models": ("logistic", "mlp")}, "green"),
    ("H5", {"models": ("ridge", "boosted_trees")}, "amber"),
    ("H5", {**UNLABELLED, "label": ""}, "green"),
    # how labels leave
    ("H6", {}, "amber"),
    ("H6", {"sensitive": ("died",)}, "red"),
    ("H6", DP, "green"),
    ("H6", {"sent": None}, "green"),
]


@pytest.mark.parametrize(("which", "changes", "grade"), GRADES)
def test_a_check_has_the_grade_of_the_policy(which, changes, grade):
    each = found(which, **changes)
    assert each.grade == grade
    blocks = "block" if which in {"H1", "H4"} else "sign"
    assert each.action == (blocks if grade == "red" else "none")


def test_bounds_are_those_of_the_policy_and_only_two_reds_block():
    actions = {each: Finding(each, "red", "").action for each in TITLES if each != "D1"}
    assert {each for each, action in actions.items() if action == "block"} == {"H1", "H4"}
    assert set(actions.values()) == {"block", "sign"}
    grades = [graded(share, LINKAGE) for share in (0.09, 0.0901, 1 / 3, 0.34)]
    assert grades == ["green", "amber", "amber", "red"]
    assert worst("told", "green", "amber") == "amber"
    known = [(None, 100), (None, 99), (101, 200), (100, 200), (20, 200), (19, 200)]
    found = [graded_known(*each) for each in known]
    assert found == ["green", "amber", "green", "amber", "amber", "red"]
    grades = [graded_bits(sent, 10) for sent in (10, 9, 5, 4)]
    assert grades == ["red", "amber", "amber", "green"]
    lights = {0.9: "red red", 4.9: "red amber", 14.9: "amber amber", 19.9: "amber green"}
    for rate, words in (lights | {20: "green green"}).items():
        assert " ".join(light_of(rate, table=each) for each in (False, True)) == words
    assert [cells("table", each).grade for each in (0, 1)] == ["green", "amber"]


def test_the_model_of_the_others_is_told_of_where_one_comes_back():
    changes = {"model": "mlp", "models": ("rff", "mlp")}, {"model": "mlp"}, {**DP, "model": "rff"}
    told = ["gets the model of the others" in found("H5", **each).words for each in changes]
    assert told == [True, False, False]


def test_a_share_in_words_never_says_all_or_nothing_where_it_is_not():
    words = "0 %, 0 %, less than 0.1 %, 0.4 %, 42 %, 100 %, 99.6 %, more than 99.9 %, 100 %"
    shares = (-1, 0, 0.0004, 0.004, 0.42, 0.995, 0.9962, 0.99999, 1)
    assert ", ".join(map(per_cent, shares)) == words
