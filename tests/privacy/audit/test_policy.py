"""H1 to H6 and who has to answer: from what is agreed and was uploaded before."""

from dataclasses import replace

import pytest

from cobasis.privacy.audit.policy import (
    LINKAGE,
    TITLES,
    Finding,
    checked,
    graded,
    graded_bits,
    graded_known,
    per_cent,
    worst,
)
from cobasis.privacy.audit.sums import SumsFacts, _cells
from privacy.attacks.constructions import GUARANTEE, cancer, facts, subject

ROWS, LABELS = cancer(200)
UPLOAD = subject(ROWS, LABELS, n_components=5)
KEPT = {"span": "kept", "n_uploads": 1}


def found(which, **changes):
    sent = {name: changes.pop(name) for name in ("anchor_image", "labels") if name in changes}
    upload = replace(UPLOAD, release=replace(UPLOAD.release, **sent))
    told = replace(facts(upload), **changes)
    [each] = [each for each in checked(upload, told) if each.id == which]
    return each


GRADES = [
    ("H1", {"anchor": "isometric"}, "green"),
    ("H1", {"anchor": "uniform"}, "red"),
    ("H1", {"anchor": "public"}, "red"),
    ("H1", {"anchor_image": UPLOAD.release.anchor_image[:, [0, 0, 2, 3, 4]]}, "red"),
    # rows per component
    ("H2", {"n_rows": 101}, "green"),
    ("H2", {"n_rows": 100}, "amber"),
    ("H2", {"n_rows": 25}, "amber"),
    ("H2", {"n_rows": 24}, "red"),
    ("H2", {"n_rows": 10, "basis": "haar"}, "green"),  # no basis of the rows
    ("H2", {"n_rows": 10, "basis": "consensus"}, "red"),
    # eleven people of a class
    ("H3", {"class_counts": (11, 90)}, "green"),
    ("H3", {"class_counts": (10, 90)}, "red"),
    ("H3", {"class_counts": ()}, "green"),
    ("H3", {"class_counts": (), "marked_counts": (10, 90)}, "red"),
    # one to ten rows came or went, or less than a twentieth
    ("H4", {**KEPT, "added": None, "gone": None}, "green"),
    ("H4", {"renamed": 0.05}, "green"),
    ("H4", {"renamed": 0.06}, "red"),
    ("H4", {**KEPT, "added": 1, "gone": 0}, "red"),
    ("H4", {**KEPT, "added": 0, "gone": 10}, "red"),
    ("H4", {**KEPT, "added": 11, "gone": 11}, "green"),
    ("H4", {**KEPT, "added": 49, "gone": 0, "n_rows": 1000}, "amber"),
    ("H4", {**KEPT, "added": 50, "gone": 0, "n_rows": 1000}, "green"),
    ("H4", {"span": "forced"}, "red"),
    # models that carry rows
    ("H5", {"models": ("logistic", "mlp")}, "green"),
    ("H5", {"models": ("ridge", "boosted_trees")}, "amber"),
    ("H5", {"models": ()}, "green"),
    # how labels leave
    ("H6", {}, "amber"),
    ("H6", {"sensitive_label": True}, "red"),
    ("H6", {"guarantee": GUARANTEE}, "green"),
    ("H6", {"labels": None}, "green"),
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
    sums = {"n_rows": 10**6, "n_features": 10, "n_parties": 3, "small_cells": None}
    lights = {9: "red red", 49: "red amber", 149: "amber amber", 199: "amber green"}
    for least, words in (lights | {200: "green green"}).items():
        told = (SumsFacts(least=least, counted=each, **sums).light for each in ("", "table"))
        assert " ".join(told) == words
    few = ({"small_cells": each} for each in (0, 1))
    cells = [_cells(SumsFacts(least=9, counted="table", **sums | each)).grade for each in few]
    assert cells == ["green", "amber"]


def test_the_model_of_the_others_is_told_of_where_one_comes_back():
    changes = {"models": ("rff", "mlp")}, {"models": ("mlp",)}, {"guarantee": GUARANTEE}
    told = ["gets the model of the others" in found("H5", **each).words for each in changes]
    assert told == [True, False, False]


def test_a_share_in_words_never_says_all_or_nothing_where_it_is_not():
    words = "0 %, 0 %, less than 0.1 %, 0.4 %, 42 %, 100 %, 99.6 %, more than 99.9 %, 100 %"
    shares = (-1, 0, 0.0004, 0.004, 0.42, 0.995, 0.9962, 0.99999, 1)
    assert ", ".join(map(per_cent, shares)) == words
