"""P1 to P4: what is rebuilt and linked, held against what has to come out."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from cobasis.privacy.attacks.scores import Share
from cobasis.privacy.audit import attackers
from cobasis.privacy.audit.attackers import acquainted, colluded, curious, guessed, linkage, linked
from cobasis.privacy.sensitivity import clip_rows
from privacy.attacks.constructions import cancer, digits, subject

ROWS, LABELS = cancer(200)
UPLOAD = subject(ROWS, LABELS, n_components=5)


def test_p1_is_at_least_what_the_span_holds_more_for_some_and_of_noise_nothing():
    spread, shares = ((ROWS - ROWS.mean(axis=0)) ** 2).sum(), []
    for size in (2, 5, 10, 30):
        upload = subject(ROWS, LABELS, n_components=size)
        kept = ROWS @ upload.basis @ upload.basis.T
        figures = colluded(upload).figures
        shares.append(figures["explained"])
        assert shares[-1] >= 1 - ((ROWS - kept) ** 2).sum() / spread - 1e-12
    assert shares == sorted(shares)
    assert (figures["explained"], figures["cells"]) == (pytest.approx(1, abs=1e-9), 1)
    finding = colluded(UPLOAD)
    assert finding.grade == "red"
    assert finding.figures["explained_worst_percent"] > finding.figures["explained"]
    random = np.random.default_rng(0).normal(size=UPLOAD.release.rows.shape)
    upload = replace(UPLOAD, release=replace(UPLOAD.release, rows=random))
    assert colluded(upload).figures["explained"] < 0.1
    noisy = subject(ROWS, LABELS, n_components=5, noise=0.5)  # read through the basis alone: < 0
    assert colluded(noisy).figures["explained"] > 0.2


def test_p3_is_every_person_and_twins_are_one_whichever_the_last_bit_of_a_product_makes_nearer():
    """A table of words has few unlike rows: P3 fell to green, and P4 named one of twenty twins."""
    assert (linkage(UPLOAD).value, linked(UPLOAD).grade) == (1, "red")
    assert linkage(subject(ROWS, LABELS, n_components=5, noise=5.0)).value < 0.05
    kinds = np.array([[1.0, 0, 0, 1], [0, 1, 1, 0]])
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = kinds[(rng.random(rng.integers(60, 400)) < 0.1).astype(int)]
        assert linkage(subject(rows, n_components=2, seed=seed)).value == 1
    many = np.repeat(rng.normal(size=(20, 30)), 20, axis=0)
    finding = acquainted(subject(many, n_components=18), rng=rng)
    assert finding.figures["named_from"] <= 18


def test_a_list_and_what_is_known_are_moved_into_the_agreed_ball():
    """Somebody who knows a person's true record and the agreement knows the clipped one too."""
    rows, _ = digits(200)
    rows = rows - 0.3
    inside = clip_rows(rows, radius=0.5)
    clipped = subject(inside, n_components=30)
    raw_list = replace(clipped, rows=rows)
    own_list = replace(raw_list, clipped=inside)
    assert linkage(raw_list).value < 0.5 < linkage(own_list).value
    raw, own = (guessed(each, seed=1, quick=True)[1].value for each in (raw_list, own_list))
    assert raw < 0.5 < own
    clipped = clip_rows(ROWS, radius=1.0)
    upload = subject(clipped, LABELS, n_components=5)
    known, true = (
        acquainted(each, rng=np.random.default_rng(0)).figures["named_from"]
        for each in (upload, replace(upload, rows=ROWS, clipped=clipped))
    )
    assert known == true


def test_what_one_search_finds_by_luck_is_not_told(monkeypatch):
    luck = Mock(side_effect=[(None, Share(value=each, chance=0)) for each in (0.3, 0.9, 0.8)])
    monkeypatch.setattr(attackers, "_of_halves", luck)
    assert guessed(UPLOAD, seed=1, quick=True)[1].value == 0.8


def test_p2_links_people_with_nobodys_help_and_nobody_in_rows_that_have_nothing_in_common():
    finding = curious(subject(*digits(130), n_components=16), seed=1)
    assert finding.figures["linked"] > 0.9
    assert finding.figures["explained"] > 0.4
    assert finding.grade == "red"
    rng = np.random.default_rng(0)
    upload = subject(rng.normal(size=(100, 12)), n_components=4)
    strange = replace(upload, rows=rng.normal(size=(100, 12)))
    assert curious(strange, seed=1).figures["linked"] < 0.1


def test_p2_is_never_green_with_few_records_to_try():
    noisy = subject(ROWS[:120], LABELS[:120], n_components=5, noise=100.0)
    finding = curious(noisy, seed=0)
    assert finding.grade == "amber"
    assert "with 100 it does better" in finding.words
    few = curious(subject(ROWS[:30], LABELS[:30], n_components=5), seed=0)
    assert (few.grade, dict(few.figures)) == ("red", {})


def test_p4_falls_to_a_few_known_people_and_is_green_in_noise():
    finding = acquainted(UPLOAD, rng=np.random.default_rng(0))
    assert finding.grade == "red"
    assert finding.figures["named_from"] <= 20
    noisy = subject(ROWS, LABELS, n_components=5, noise=50.0)
    assert acquainted(noisy, rng=np.random.default_rng(0)).grade in {"amber", "green"}
    few = acquainted(subject(ROWS[:30], n_components=5), rng=np.random.default_rng(0))
    assert few.grade == "red"
