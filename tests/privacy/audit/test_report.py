"""The whole audit: one object, in fixed words, and nothing of it travels but three words."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cobasis.errors import SecretError
from cobasis.privacy.audit.report import as_json, audit, seal_of
from cobasis.privacy.audit.subject import Guarantee, Setting, sample_size, settings_of
from privacy.attacks.constructions import ABOUT, cancer, facts, subject

ROWS, LABELS = cancer(100)
UPLOAD = subject(ROWS, LABELS, n_components=6)
OWN = Setting(n_components=6, basis="svd")
GUARANTEE = Guarantee(
    epsilon=8, delta=1e-6, statement="differential privacy, epsilon 8", labels="randomised response"
)


def audited(upload=UPLOAD, *, settings=(), seed=0, **changes):
    return audit(
        upload,
        facts=facts(upload, **changes),
        about=ABOUT,
        rng=np.random.default_rng(seed),
        settings=settings,
    )


@pytest.fixture(scope="module")
def report():
    return audited(
        replace(UPLOAD, sensitive={"age": ROWS[:, 0]}), settings=settings_of(UPLOAD, OWN)
    )


@pytest.fixture(scope="module")
def private():
    return audited(n_rows=5000, guarantee=GUARANTEE)


def test_every_metric_of_the_policy_is_there_in_its_order_and_in_plain_json(report):
    assert [each.id for each in report.findings] == [
        *(f"P{at}" for at in range(1, 7)),
        *(f"H{at}" for at in range(1, 7)),
        "D1",
    ]
    assert report["P1"].id == "P1"
    assert report["P5"].figures["column"] == "age"
    told = json.loads(json.dumps(as_json(report), allow_nan=False))
    assert told["verdict"] == "pseudonymised"
    assert {"id", "title", "grade", "action", "words", "figures"} == set(told["findings"][12])
    assert told["to_sign"] == [each.id for each in report.to_sign]
    assert repr(report) == "<AuditReport, hidden>"


def test_verdict_guarantee_and_what_was_not_tested_are_those_of_this_upload(report, private):
    assert report.verdict_words == "Pseudonymised personal data. Treat as personal data."
    assert report["D1"].words.startswith("No formal guarantee")
    assert "ifferential" not in json.dumps(as_json(report))
    assert private.verdict_words == (
        "Protected by differential privacy: eps=8, delta=1e-06, per record, features only."
    )
    assert private["D1"].words == "Differential privacy, epsilon 8."
    assert (report.verdict, private.verdict) == ("pseudonymised", "differentially-private")
    assert "4,900 of 5,000 rows" in private.untested[0]
    assert "sensitive" in private.untested[1]
    assert not any("sensitive" in each for each in report.untested)


def test_four_sentences_hold_this_tables_figures(report):
    assert len(report.sentences) == 4
    rebuilt = round(100 * report["P1"].figures["explained"])
    assert f"{rebuilt} % of the information in each record" in report.sentences[0]
    assert "50 similar public records" in report.sentences[1]
    assert f"records of {report['P4'].figures['named_from']} of your people" in report.sentences[2]
    assert report.sentences[3] == "The model you get back contains no records."
    few = subject(ROWS[:12], LABELS[:12], n_components=3)
    for models, words in (
        ((), "no model"),
        (("boosted_trees",), "single values as thresholds"),
        (("svm",), "contains records of others"),
    ):
        assert words in audited(few, models=models).sentences[3]


def test_what_would_change_it_is_measured_and_said(report):
    names = ", ".join(each.name for each in report.effects[1:])
    assert names == (
        "3 components, 1 component, noise 0.1, noise 0.4, random basis, numbers as int8, no labels"
    )
    assert report.effects[0].alone == report["P2"].figures["linked"]
    assert report.first.startswith("Random basis: picked out of a list by an analyst alone 100 %")
    assert "points of right answers" in report.first


def test_a_change_that_no_agreement_can_make_is_not_what_to_change_first():
    """Noise without a guarantee, which halves most shares, is measured to compare."""
    upload = subject(np.random.default_rng(3).normal(size=(120, 1)), n_components=1)
    own = replace(OWN, n_components=1)
    found = audited(upload, settings=settings_of(upload, own, noise=[0.4]))
    noisy = next(each for each in found.effects if each.name == "noise 0.4")
    assert noisy.leaked < 0.5 < found.effects[0].leaked
    assert found.first == (
        "No single change that was tried, and can be agreed on, halves the largest share."
    )


@pytest.mark.parametrize("task", ["regression", "count", "survival", "effect"])
def test_what_a_change_costs_a_model_of_numbers_is_points_of_r2(task):
    rows = np.random.default_rng(0).normal(size=(120, 5))
    upload = subject(rows, np.rint(np.exp(rows[:, 0])), n_components=5)
    own = replace(OWN, n_components=5)
    found = audited(upload, task=task, settings=settings_of(upload, own, n_components=[1]))
    assert "it costs a simple model" in found.first
    assert "points of R2" in found.first


def test_settings_that_somebody_asks_for_are_measured_but_no_larger_consensus():
    """Which a party alone cannot make."""
    asked = settings_of(UPLOAD, OWN, n_components=[2, 6], noise=[0.2])
    told = [each.told_beside(OWN) for each in asked]
    assert told == [
        "as it is",
        "2 components",
        "noise 0.2",
        "random basis",
        "numbers as int8",
        "no labels",
    ]
    haar = replace(OWN, basis="haar")
    assert "random basis" not in [each.told_beside(haar) for each in settings_of(UPLOAD, haar)]

    own = replace(OWN, basis="consensus")
    asked = [replace(own, n_components=each) for each in (6, 3, 9)]
    found = audited(settings=asked, basis="consensus")
    assert [each.name for each in found.effects] == ["as it is", "3 components"]


def test_the_same_rows_give_the_same_findings_whatever_the_rotation():
    one, two = (
        audited(subject(ROWS, LABELS, n_components=6, seed=seed), seed=5) for seed in (1, 2)
    )
    for first, second in zip(one.findings, two.findings, strict=True):
        assert (first.id, first.grade, first.words) == (second.id, second.grade, second.words)


def test_the_hash_that_travels_is_of_the_report_and_its_salt(report, private):
    one = seal_of(as_json(report), salt=bytes(32))
    assert one == seal_of(as_json(report), salt=bytes(32))
    assert one != seal_of(as_json(report), salt=b"1" * 32)
    assert one != seal_of(as_json(private), salt=bytes(32))
    with pytest.raises(SecretError):
        seal_of(as_json(report), salt=b"short")


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
    own = replace(OWN, n_components=upload.n_components)
    found = audited(
        upload, settings=settings_of(upload, own), **({"task": "regression"} if numbers else {})
    )
    assert found["P3"].figures["linked"] == 1
    assert json.dumps(as_json(found), allow_nan=False)


def test_samples_are_never_larger_than_the_table():
    assert sample_size(100, 10) == 100
    assert sample_size(10**6, 30) == 2000
    assert sample_size(10**6, 4000) == 400
    assert sample_size(50, 4000) == 50
