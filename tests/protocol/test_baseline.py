"""A baseline table by masked sums is that of the pooled rows, and refuses what no rows have."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from cobasis import CategoryFeature, NumericFeature, SumsTerms
from cobasis.errors import AgreementError, FeatureError, MessageError
from cobasis.features.encoder import encode
from cobasis.features.outcome import Outcome
from cobasis.privacy.aggregate import TABLE
from cobasis.protocol.baseline import BaselineTable, TableLayout, table_of
from cobasis.protocol.sums_terms import table_layout
from cobasis.report.table import write_table
from protocol.summed import NAMES, agree, party, summing

AGE = NumericFeature(name="age", centre=64.0, scale=46.0, low=18.0, high=110.0)
LACTATE = NumericFeature(name="lactate", low=0.0, high=30.0, missing="fill", fill=-30.0)
FEATURES = (
    AGE,
    LACTATE,
    CategoryFeature(name="sex", values=("female", "male"), base="female"),
    CategoryFeature(name="ward", values=("icu", "other"), unknown="other", missing="level"),
)
TERMS = SumsTerms(n_bins=8, most_rows=90, most_rows_in_all=200)
FIELDS = {"features": FEATURES, "task": "table", "sums": TERMS}
WHOLE = agree(**FIELDS)
GROUPED = WHOLE.model_copy(update={"label": "died", "classes": ("no", "yes")})
WEIGHTS = {"outcome": Outcome(weight="w"), "sums": TERMS.model_copy(update={"most_weight": 9.0})}
WEIGHED = GROUPED.model_copy(update=WEIGHTS)


def people(name, *, n_rows=60):
    """An ugly table: blanks, words that are not agreed, an end of a range."""
    rng = np.random.default_rng(NAMES.index(name))
    blank, values = rng.random(n_rows) < 0.2, 30.0 * rng.random(n_rows) ** 3
    lactate = [None if none else value for none, value in zip(blank, values, strict=True)]
    return pl.DataFrame(
        {
            "age": [18.0, 110.0, *rng.uniform(18, 110, n_rows - 2).round(1)],
            "lactate": lactate,
            "sex": rng.choice(["female", "male"], n_rows),
            "ward": rng.choice(["icu", "other", "hall", ""], n_rows),
        }
    )


def labelled(name, *, n_rows=60):
    rng = np.random.default_rng(7 + NAMES.index(name))
    died, weights = rng.choice(["no", "yes"], n_rows), rng.uniform(-4, 9, n_rows).clip(0)
    return people(name).with_columns(died=died, w=weights)


def counted(agreement, *change):
    """The analyst with everybody's masked sums, of rows in which a column is changed before."""
    rows, columns = {}, ["died", "w"] if agreement.outcome else "died"
    for name in NAMES:
        table = labelled(name).with_columns(change)
        rows[name] = table.drop("died", "w"), table[columns] if agreement.label else None
    return summing(agreement, rows)


@pytest.mark.parametrize("agreement", [WHOLE, GROUPED, WEIGHED], ids=["all", "by label", "weighed"])
def test_a_table_is_that_of_the_pooled_rows(agreement):
    found = counted(agreement).count()
    pooled = pl.concat(map(labelled, NAMES))
    wanted = {"all": pooled} | {each: pooled.filter(died=each) for each in agreement.classes}
    assert found.groups == tuple(wanted)
    assert found.n_rows == tuple(map(len, wanted.values()))
    ages, lactates, sexes, wards = found.columns
    for place, rows in enumerate(wanted.values()):
        for summary, width in ((ages, 92), (lactates, 30)):
            column = rows[summary.feature.name]
            known = column.drop_nulls().to_numpy()
            assert summary.blanks[place] == column.null_count()
            assert abs(summary.means[place] - known.mean()) < 1e-9 * width
            assert abs(summary.deviations[place] - known.std(ddof=1)) < 1e-8 * width
            low, high = summary.feature.low, summary.feature.high
            counts = np.histogram(known, bins=8, range=(low, high))[0]
            np.testing.assert_array_equal(summary.bins[place], counts)
            assert abs(summary.quantile(0.5, group=place) - np.median(known)) <= (high - low) / 8
        female = rows.filter(pl.col("sex") == "female").height
        assert sexes.counts[place] == (female, len(rows) - female)
        told = [(rows["ward"] == word).to_numpy() for word in ("icu", "other", "hall", "")]
        assert list(wards.counts[place]) == np.sum(told, axis=1).tolist()
        if not agreement.outcome:
            continue
        w, men = rows["w"].to_numpy(), rows["sex"] == "male"
        assert found.effective_rows[place] == pytest.approx(w.sum() ** 2 / (w @ w))
        for summary in (ages, lactates):
            known = rows.drop_nulls(summary.feature.name)
            mean = np.average(known[summary.feature.name], weights=known["w"])
            assert summary.by_weight.means[place] == pytest.approx((mean,), rel=1e-9)
        for summary, some in ((sexes, [~men, men]), (wards, told)):
            shares = [np.average(each, weights=w) for each in some]
            assert summary.by_weight.means[place] == pytest.approx(shares)
    assert BaselineTable.read(found.model_dump_json().encode()) == found


def test_differences_of_groups_are_in_standard_deviations_of_rows_that_count_once(tmp_path):
    found = counted(WEIGHED).count()
    age, _, sex, ward = found.columns
    (_, no, yes), (_, one, two) = age.means, age.deviations
    spread = ((one**2 + two**2) / 2) ** 0.5
    assert age.difference == pytest.approx(abs(no - yes) / spread)
    _, (no,), (yes,) = age.by_weight.means
    assert age.by_weight.difference == pytest.approx(abs(no - yes) / spread)
    share_no, share_yes = (sex.counts[at][1] / found.n_rows[at] for at in (1, 2))
    spread = (share_no * (1 - share_no) + share_yes * (1 - share_yes)) / 2
    assert sex.difference == pytest.approx(abs(share_no - share_yes) / spread**0.5)
    assert min(ward.difference, ward.by_weight.difference, sex.by_weight.difference) > 0
    page = write_table(found, tmp_path).read_text("utf-8")
    assert all(words in page for words in ("Love plot", f">{age.by_weight.difference:.2f}<"))
    assert all(each.difference is None for each in counted(WHOLE).count().columns)


LARGEST = max(people(name)["lactate"].max() for name in NAMES)
DIED = pl.col("died")
FIRST = pl.when(pl.col("lactate").eq_missing(LARGEST)).then(pl.lit("yes")).otherwise(pl.lit("no"))
DEGENERATE = {  # a column in place of that of a table, and in which columns groups compare
    "an empty group": (pl.lit("no").alias("died"), [None] * 4),
    "a group of one": (FIRST.alias("died"), [None, None, ..., ...]),
    "words that do not vary": (
        DIED.replace_strict({"no": "female", "yes": "male"}).alias("sex"),
        [..., ..., None, ...],
    ),
    "a constant": (pl.lit(19.9).alias("age"), [None, ..., ..., ...]),
    "blanks alone": (pl.when(DIED == "no").then("lactate"), [..., None, ..., ...]),
}


@pytest.mark.parametrize("kind", DEGENERATE)
def test_groups_that_cannot_be_compared_have_no_difference(kind):
    change, wanted = DEGENERATE[kind]
    found = counted(GROUPED, change).count()
    assert [each.difference and ... for each in found.columns] == wanted
    if kind == "a constant":
        assert found.columns[0].deviations == (0.0, 0.0, 0.0)
    if kind == "blanks alone":
        assert found.columns[1].quantile(0.5, group=2) is None


def test_a_value_on_an_edge_is_in_the_bin_above_it():
    feature = NumericFeature(name="x", low=0.0, high=100.0, centre=43.1, scale=17.3)
    layout = TableLayout(features=(feature,), n_bins=10, n_groups=1, most_rows=100)
    rows = encode(np.linspace(0, 100, 11)[:, None], (feature,), party="north")
    bins = layout.added(rows, np.zeros(len(rows)))[3:] >> layout.bits
    assert bins.tolist() == [*[1] * 9, 2]


WRONG = {
    "a count of a half": (0, 1 << 39),
    "no rows": (0, -180 << 40),
    "more rows than agreed": (0, 200 << 40),
    "a mean beyond the range": (1, 181 << 40),
    "squares without values": (2, -181 << 40),
    "squares beyond one": (2, 181 << 40),
    "a word below zero": (22, -181 << 40),
    "half a person in a bin": (3, 1 << 39),
    "more people in a column than rows": (3, 181 << 40),
    "more weight than rows": (27, 181 << 40),
    "values beyond their weight": (30, -181 << 40),
    "weight below zero in a level": (34, -181 << 40),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_total_that_no_rows_have_is_void(kind):
    agreement, (place, change) = WEIGHED if "weight" in kind else WHOLE, WRONG[kind]
    words, layout = counted(agreement).total.copy(), table_layout(agreement)
    table_of(words, agreement, layout=layout)
    words[place] += change
    with pytest.raises(MessageError, match="what no rows have"):
        table_of(words, agreement, layout=layout)


def test_numbers_out_of_range_are_refused_and_small_cells_counted():
    few = pl.Series(["female", *59 * ["male"]])  # the base, which has no column of its own
    wrong, north = people("north").with_columns(sex=few), party("north", WHOLE)
    with pytest.raises(FeatureError, match="'lactate' has values outside"):  # nor is it a blank
        north.prepare(wrong.with_columns(lactate=pl.lit(-29.0)), None)
    north.prepare(wrong, None)
    assert north.small_cells == 1 + sum(
        0 < count < 5
        for column, edges in (("age", (18, 110)), ("lactate", (0, 30)))
        for count in np.histogram(wrong[column].drop_nulls().to_numpy(), bins=8, range=edges)[0]
    )


def small_cells(weight):
    weighing = party("north", WEIGHED)
    weighing.prepare(people("north"), labelled("north").select("died", w=weight))
    return weighing.small_cells


def test_few_rows_with_a_weight_above_0_are_small_cells():
    few = labelled("north")["died"][:3].n_unique()
    first = (pl.int_range(60) < 3) * 1.0
    assert small_cells(first) == small_cells(1.0 - first) == small_cells(pl.lit(1.0)) + few


SPLINE = AGE.model_copy(update={"knots": (20.0, 50.0, 90.0)})
AT_AN_END = LACTATE.model_copy(update={"fill": 30.0})
CONTRADICTIONS = {
    "a model": ({"model": "ridge"}, "these have none"),
    "rows": ({"release": "rows"}, "goes with release='sums'"),
    "no bins": ({"sums": SumsTerms(most_rows=9, most_rows_in_all=9)}, "n_bins goes with"),
    "no range": ({"features": (NumericFeature(name="age"),)}, "has no range"),
    "a spline": ({"features": (SPLINE,)}, "counts columns as they are, and not cr"),
    "a fill at an end": ({"features": (AT_AN_END,)}, "lies in its range"),
    "no largest weight": ({"outcome": WEIGHTS["outcome"]}, "most_weight goes with outcome.weight"),
    "a label without classes": ({"label": "died"}, "at least two classes"),
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_what_cannot_be_counted_is_refused_in_the_agreement(kind):
    changes, words = CONTRADICTIONS[kind]
    with pytest.raises(AgreementError, match=words):
        agree(**FIELDS | changes)


def membership(n_columns, n_rows, *, rng):
    """How well a person is told to be in a table's total, and rows for each sum of it."""
    table = rng.permutation(load_digits().data)[:, rng.permutation(64)[:n_columns]]
    features = tuple(NumericFeature(name=f"x{at}", low=0.0, high=16.0) for at in range(n_columns))
    layout = TableLayout(features=features, n_bins=20, n_groups=1, most_rows=2000)
    rows = encode(table, features, party="north")
    one_each = replace(layout, n_groups=len(rows))
    told = one_each.added(rows, np.arange(len(rows))).reshape(len(rows), -1)[:, 1:] / 2**40
    inside, outside, others = np.split(told, [n_rows, n_rows + 300])
    usual = others.mean(axis=0)
    scores = (inside.mean(axis=0) - usual) / (others.var(axis=0) + 1e-3)
    truth = np.repeat([1, 0], [n_rows, 300])
    told_apart = roc_auc_score(truth, (np.vstack([inside, outside]) - usual) @ scores)
    return told_apart, n_rows / layout.n_features[0]


def test_rows_for_each_sum_decide_whether_a_person_is_told_to_be_in_a_table():
    for n_columns, n_rows, low, high, light in ((4, 100, 0.55, 0.8, 0), (2, 700, 0.48, 0.6, 1)):
        rng = np.random.default_rng(0)
        found = [membership(n_columns, n_rows, rng=rng) for _ in range(5)]
        assert low < np.mean([each for each, _ in found]) < high
        assert found[0][1] > TABLE[light]
