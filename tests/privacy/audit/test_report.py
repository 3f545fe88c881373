"""The whole audit: one object, in fixed words, and nothing of it travels but three words."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cobasis.errors import SecretError
from cobasis.party_side.what_if import Setting, effects, settings_of
from cobasis.privacy.audit.report import as_json, first_of, seal_of
from cobasis.privacy.audit.subject import sample_size
from privacy.attacks.constructions import audited, cancer, subject
from protocol.consortium import NONE, terms

ROWS, LABELS = cancer(100)
UPLOAD = subject(ROWS, LABELS, n_components=6)
OWN = Setting(n_components=6, basis="svd")


@pytest.fixture(scope="module")
def report():
    upload = replace(UPLOAD, sensitive={"age": ROWS[:, 0]})
    return audited(upload, settings=settings_of(UPLOAD, OWN))


def test_every_metric_stands_in_its_order_under_a_verdict_in_plain_json_and_under_a_salt(report):
    metrics = [f"{kind}{at}" for kind in "PH" for at in range(1, 7)]
    assert [each.id for each in report.findings] == [*metrics, "D1"]
    assert report["P5"].figures["column"] == "age"
    told = json.loads(json.dumps(as_json(report), allow_nan=False))
    assert told["verdict"] == "pseudonymised"
    assert {"id", "title", "grade", "action", "words", "figures"} == set(told["findings"][12])
    assert told["to_sign"] == [each.id for each in report.to_sign]
    assert repr(report) == "<AuditReport, hidden>"
    assert report.verdict_words == "Pseudonymised personal data. Treat as personal data."
    assert report["D1"].words.startswith("No formal guarantee")
    assert "ifferential" not in json.dumps(told)
    assert not any("sensitive" in each for each in report.untested)

    private = audited(UPLOAD, n_rows=5000, basis="haar", dp=terms(epsilon=4.0))
    assert private.verdict == "differentially-private"
    assert "eps=4, delta=1e-06, per record, features only" in private.verdict_words
    assert "4,900 of 5,000 rows" in private.untested[0]
    assert "sensitive" in private.untested[1]

    seals = {seal_of(as_json(each), salt=bytes(32)) for each in (report, report, private)}
    assert len(seals | {seal_of(as_json(report), salt=b"1" * 32)}) == 3
    with pytest.raises(SecretError):
        seal_of(as_json(report), salt=b"short")


def test_four_sentences_hold_this_tables_figures(report):
    rebuilt = round(100 * report["P1"].figures["explained"])
    helped, alone, known, back = report.sentences
    assert f"{rebuilt} % of the information in each record" in helped
    assert "An analyst with 50 records of other people of the same kind" in alone
    assert f"takes the records of {report['P4'].figures['named_from']} of your people" in known
    assert back == "The model you get back contains no records."
    few = subject(ROWS[:12], LABELS[:12], n_components=3)
    carrying = ({"model": "boosted_trees"}, "trees carry single values")
    for changes, told in ((NONE, "no model"), carrying):
        assert told in audited(few, **changes).sentences[3]


def test_what_would_change_it_is_measured_and_the_cheapest_that_can_be_agreed_on_is_said(report):
    names = ", ".join(each.name for each in report.effects)
    assert names == "as it is, 3 components, 1 component, random basis, numbers as int8"
    assert report.effects[0].alone == report["P2"].figures["linked"]
    assert report.first.startswith("Random basis: picked out of a list by an analyst alone 100 %")
    assert "points of right answers" in report.first
    upload = subject(np.random.default_rng(3).normal(size=(120, 1)), n_components=1)
    own = replace(OWN, n_components=1)
    found = audited(upload, settings=settings_of(upload, own))
    assert found.first.startswith("No single change")


def test_a_change_costs_a_model_of_numbers_points_of_r2_and_no_larger_consensus_is_measured():
    rows = np.random.default_rng(0).normal(size=(120, 5))
    upload = subject(rows, np.rint(np.exp(rows[:, 0])), n_components=5)
    asked = settings_of(upload, replace(OWN, n_components=5), sizes=(1,))
    for task in ("regression", "count", "survival", "effect"):
        measured = effects(upload, settings=asked, task=task, seed=0)
        assert "points of R2" in first_of(measured, task=task)
    # a party alone cannot make a larger consensus
    own = replace(OWN, basis="consensus")
    asked = tuple(replace(own, n_components=each) for each in (6, 3, 9))
    found = audited(UPLOAD, settings=asked, basis="consensus")
    assert [each.name for each in found.effects] == ["as it is", "3 components"]


def test_the_same_rows_give_the_same_findings_whatever_the_rotation():
    one, two = (
        audited(subject(ROWS, LABELS, n_components=6, seed=seed), seed=5) for seed in (1, 2)
    )
    for first, second in zip(one.findings, two.findings, strict=True):
        assert (first.id, first.grade, first.words) == (second.id, second.grade, second.words)


@pytest.mark.parametrize(
    "upload",
    [
        subject(ROWS, np.ones(len(ROWS), np.int64), n_components=3),
        subject(ROWS, ROWS[:, 0] * 3, n_components=3),
        subject(ROWS[:60, :6], LABELS[:60], n_components=6),
        subject(np.repeat(ROWS[:3], 20, axis=0), n_components=1),
        subject(ROWS[:, :1], LABELS, n_components=1),
    ],
)
def test_odd_tables_are_audited_all_the_same(upload):
    numbers = upload.labels is not None and upload.classes is None
    asked = settings_of(upload, replace(OWN, n_components=upload.n_components))
    found = audited(
        upload, settings=asked, **({"task": "regression", "model": "ridge"} if numbers else {})
    )
    assert found["P3"].figures["linked"] == 1
    assert json.dumps(as_json(found), allow_nan=False)


def test_samples_are_never_larger_than_the_table():
    sizes = [(100, 10), (10**6, 30), (10**6, 4000), (50, 4000)]
    assert [sample_size(*each) for each in sizes] == [100, 2000, 400, 50]
