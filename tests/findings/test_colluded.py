"""What a party that helps the analyst finds out, and what the audit says of it (R1, R8)."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from experiments.attacks.models import by_span

from cobasis.algorithms.consensus import consensus_span, weighted_directions
from cobasis.features.contract import CategoryFeature, NumericFeature
from cobasis.features.encoder import encode
from cobasis.linalg.directions import leading_directions
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.party_side.what_if import Setting, as_set
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.known_records import read_through
from cobasis.privacy.attacks.scores import score_content, told_apart
from cobasis.privacy.audit.attackers import colluded
from cobasis.privacy.audit.counted import BITS, bits_agreed, bits_of_record, bits_sent, tried
from cobasis.privacy.audit.report import graded_bits
from cobasis.privacy.audit.subject import Subject
from privacy.attacks.constructions import anchor, cancer, digits


def discrete(levels, size, precision, *, features=()):
    """Return an upload of 600 people, of whom low values are the more frequent."""
    rng = np.random.default_rng(1)
    draws = [(each * rng.random(600) ** 2).astype(int) for each in levels]
    if features:
        words = [np.array(tuple("abcdef"))[each] for each in draws]
        table = pl.DataFrame({f"w{at}": each for at, each in enumerate(words)})
        rows = encode(table, features, party="north")
    else:
        rows = np.stack(draws, axis=1).astype(float)
        features = tuple(
            NumericFeature(name=f"c{at}", centre=5.0, scale=most - 1.0, low=4.0, high=most + 3.0)
            for at, most in enumerate(levels)
        )
        rows = (rows - 1.0) / (np.array(levels) - 1.0)
    basis = haar_columns(KeyStream(bytes(32), "b"), n_rows=rows.shape[1], n_columns=size)
    people = Subject(rows=rows, release=Release(rows=rows), basis=basis, features=features)
    setting = Setting(n_components=size, basis="haar", precision=precision)
    return as_set(people, basis=basis, setting=setting, key=bytes(32))


SEVEN = (57, 4, 4, 4, 3, 3, 4)  # 131,328 valid rows


@pytest.mark.parametrize(
    ("size", "precision", "grade", "least", "most"),
    [
        (1, "fp32", "red", 1, 1),
        (1, "fp16", "amber", 0.01, 0.33),
        (1, "int8", "green", 0, 0.09),
        (2, "fp16", "red", 0.9, 1),
    ],
)
def test_r1_records_of_few_values_count_as_rebuilt_where_enough_bits_leave(
    size, precision, grade, least, most
):
    """A colluder who tries all valid rows gets everybody back, however few the components."""
    found = colluded(discrete(SEVEN, size, precision))
    assert least <= found.figures["exact"] <= most
    assert found.figures["bits_of_record"] == pytest.approx(np.log2(131_328))
    assert graded_bits(found.figures["bits_sent"], np.log2(131_328)) == grade
    assert found.grade == "red" or grade != "red"


def test_r1_words_beside_each_other_and_decimals_are_counted_as_they_are():
    told = {"values": tuple("abcdef"), "base": "c"}
    words = tuple(CategoryFeature(name=f"w{at}", **told) for at in range(4))
    found = colluded(discrete((6,) * 4, 1, "fp64", features=words))  # of 1,296 rows
    assert (found.grade, found.figures["exact"]) == ("red", 1)
    assert "enough to give records back whole" in found.words
    assert found.figures["bits_of_record"] == pytest.approx(4 * np.log2(6))
    fine = discrete((101, 101), 1, "int8")
    tenths = replace(fine, features=tuple(NumericFeature(name=each, scale=10) for each in "ab"))
    assert bits_of_record(tenths) == pytest.approx(2 * np.log2(np.ptp(fine.rows[:, 0]) * 100 + 1))
    ranges = {"low": -1e3, "high": 1e3}
    wide = replace(tenths, features=tuple(x.model_copy(update=ranges) for x in tenths.features))
    assert bits_of_record(wide) == pytest.approx(2 * np.log2(20_001))
    assert bits_agreed([NumericFeature(name="a", low=0.0, high=7.0)]) == 3
    assert bits_agreed([NumericFeature(name="a", low=0.0)]) == np.log2(600)
    turned = replace(tenths, rows=np.sqrt(2) * fine.rows)  # no decimal is the last
    steps = np.ptp(turned.rows, axis=0) / np.spacing(np.abs(10 * turned.rows).max(axis=0)) * 10
    assert bits_of_record(turned) == pytest.approx(np.log2(steps + 1).sum())
    for unit, counted in ((1e-6, turned), (1e-6 / np.sqrt(2), fine)):  # mol, say, and not umol
        feature = NumericFeature(name="a", scale=unit)
        small = replace(turned, features=(feature, feature))
        assert bits_of_record(small) == pytest.approx(bits_of_record(counted), abs=5)
        assert (colluded(small).figures["exact"] is None) == (counted is turned)
    noisy = replace(fine, noisy=True, precision="fp64")
    blurred = noisy.release.rows + np.random.default_rng(0).normal(size=(600, 1))
    exact = noisy.listed @ noisy.basis
    right = np.log2(1 + exact.var() / (blurred - exact).var()) / 2
    assert bits_sent(replace(noisy, release=Release(rows=blurred))) == pytest.approx(right)
    assert bits_sent(replace(noisy, release=Release(rows=exact))) == 53
    spline = NumericFeature(name="a", knots=(0.0, 0.5, 1.0))  # of two columns
    assert tried(noisy) is tried(replace(fine, features=(spline,))) is None
    rows, told = np.column_stack([fine.rows, 3 * fine.rows[:, 1]]), (spline, tenths.features[1])
    right = np.log2(600) + np.log2(np.ptp(rows[:, 2]) * 100 + 1)
    behind = replace(fine, rows=rows, features=told, basis=np.eye(3)[:, :1])
    assert bits_of_record(behind) == pytest.approx(right)
    assert [bits_sent(replace(fine, precision=each)) for each in BITS] == [53, 24, 11, 8]


def dealt(rows, n_rows, *, parties=4):
    order = np.random.default_rng(0).permutation(len(rows))
    parts = np.split(rows[order], [n_rows * (each + 1) for each in range(parties)])
    return parts[:-1], parts[-1]


def span_of(kind, parties, others, *, size, drawn):
    """Return the basis of the first party, and what of a party's own directions is told."""
    width = drawn.shape[1]
    if kind == "haar":
        return haar_columns(KeyStream(bytes(32), "b"), n_rows=width, n_columns=size), None
    leading = [leading_directions(each, n_wanted=size) for each in (*parties, others[:100])]
    if kind in {"svd", "public"}:
        found = leading[0 if kind == "svd" else -1].directions
        return found, None if kind == "public" else found
    weighted = kind == "weighted_consensus"
    proposed = {
        str(at): drawn
        @ (weighted_directions(each, n_rows=len(parties[0])) if weighted else each.directions)
        for at, each in enumerate(leading[:-1])
    }
    told = np.linalg.lstsq(drawn, proposed["0"], rcond=None)[0]
    own = leading[0].directions
    np.testing.assert_allclose(told / np.linalg.norm(told, axis=0), own, atol=1e-9)
    return drawn.T @ consensus_span(proposed, n_components=size, weighted=weighted), told


@pytest.mark.parametrize(
    ("kind", "name", "explained", "named", "members"),
    [
        ("svd", "digits", 0.87, 1.0, (1, 0.94, 0.71)),
        ("consensus", "digits", 0.85, 0.99, (1, 0.94, 0.71)),
        ("weighted_consensus", "digits", 0.85, 0.99, (1, 0.94, 0.71)),
        ("public", "digits", 0.81, 0.97, (0.5,)),
        ("haar", "digits", 0.64, 0.82, (0.5,)),
        ("svd", "cancer", 0.89, 0.85, (1, 0.78, 0.66)),
        ("consensus", "cancer", 0.87, 0.82, (1, 0.78, 0.66)),
        ("weighted_consensus", "cancer", 0.87, 0.82, (1, 0.78, 0.66)),
        ("public", "cancer", 0.84, 0.72, (0.5,)),
        ("haar", "cancer", 0.54, 0.33, (0.5,)),
    ],
)
def test_r8_what_collusion_shows_under_each_basis(kind, name, explained, named, members):
    """The threat model's table; a proposal gives a party's own directions, in their order."""
    rows, n_rows, size = {"digits": (digits()[0], 150, 16), "cancer": (cancer()[0], 100, 5)}[name]
    drawn = anchor("isometric", 200, rows.shape[1])
    parties, others = dealt(rows, n_rows)
    basis, _ = span_of(kind, parties, others, size=size, drawn=drawn)
    prior = others[100:] if kind == "haar" else None  # what is not spanned follows from the rest
    found = read_through(basis, parties[0] @ basis, prior_rows=prior)
    score = score_content(found, parties[0])
    told = []
    for times in (1, 3, 9)[-len(members) :]:
        tables, strangers = dealt(rows, min(times * size, len(rows) // 5))
        own = span_of(kind, tables, strangers, size=size, drawn=drawn)[1]
        people = np.vstack([tables[0], strangers[100:]])
        seen = by_span(basis if own is None else own, people)
        told.append(told_apart(seen, np.arange(len(people)) < len(tables[0])))
    assert score.explained.value == pytest.approx(explained, abs=0.03)
    assert score.named.value == pytest.approx(named, abs=0.03)
    np.testing.assert_allclose(told, members, atol=0.1 if len(members) == 1 else 0.03)
