import csv
import re
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.stats.meta_analysis import combine_effects

from cobasis.errors import EstimateError, OptionError, ShapeError
from cobasis.features.contract import NumericFeature
from cobasis.report.estimates import forest, write_coefficients
from cobasis.statistics.coefficients import p_value, table_of
from regressions.cohort import FEATURES, columns, fitted, gap, people, table

RAW, LABELS = people()
X = sm.add_constant(columns(RAW))
FOUR = LABELS.assign(owner=[f"clinic-{at}" for at in np.arange(len(LABELS)) % 4])
COMPARED = {"model": "logit", "compare_parties": True}


def logit(some, columns=X):
    binomial = sm.families.Binomial()
    return sm.GLM(some["class"], columns.loc[some.index], family=binomial).fit(tol=1e-13)


@cache
def compared():
    return table(RAW, FOUR, "class", **COMPARED)


@pytest.mark.parametrize("names", [("age",), ("ward",), ("age", "ward=other"), ()])
def test_a_joint_test_is_the_pooled_fits(names):
    asked = {"ward": ["ward=surgery", "ward=other"]}
    of = [each for name in names for each in asked.get(name, [name])] or list(X)[1:]
    picks = np.eye(X.shape[1])[[list(X).index(name) for name in of]]
    near = X / X.abs().max()  # no scale changes a test, but as they are statsmodels loses digits
    ols, glm = sm.OLS(LABELS.number, near).fit(), logit(LABELS, near)
    lines = {"ols": ("number", ols), "logit": ("class", glm)}
    for model, (value, found) in lines.items():
        theirs = found.wald_test(picks, scalar=True)
        made = table(RAW, LABELS, value, model=model)
        ours = made.wald(*names)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-7)
        assert ours.p == pytest.approx(float(theirs.pvalue), rel=1e-6)
        assert set(ours.names) == set(of)
        assert made.tests == {"all columns": made.wald(), "ward": made.wald("ward")}
        assert ours.free == ((len(of), 594) if model == "ols" else (len(of),))


def test_what_gives_no_table_or_test_is_refused():
    fit, turn = fitted(RAW, LABELS, "number", model="ols")
    for width, features in ((4, FEATURES), (5, FEATURES[:2])):
        with pytest.raises(ShapeError, match="as many components as columns"):
            table_of(fit, turn=turn[:, :width], features=features)
    with pytest.raises(OptionError, match=r"no line is called 'weight'; there are .*'ward=other'"):
        compared().wald("weight")
    rng = np.random.default_rng(0)
    raw = RAW.assign(**{f"x{at}": rng.normal(size=len(RAW)) for at in range(9)})
    features = (*FEATURES, *(NumericFeature(name=f"x{at}") for at in range(9)))
    made = table(raw, LABELS, "number", model="ols", errors="party", features=features)
    assert made.wald("age").p < 0.05
    with pytest.raises(EstimateError, match="14 coefficients cannot be tested together"):
        made.wald()


def test_parties_are_compared_as_statsmodels_combines_effects():
    made = compared()
    parts = [FOUR.owner == name for name in sorted(set(FOUR.owner))]
    fits = [logit(FOUR[mine]) for mine in parts]
    for at, line in enumerate(made.lines):
        own = [(fit.params.iloc[at], fit.bse.iloc[at]) for fit in fits]
        assert np.array([*line.across.estimates.values()]) == pytest.approx(np.array(own), rel=1e-6)
        theirs = combine_effects(*np.transpose(own) ** [[1], [2]], method_re="dl")
        # Where its tau squared is below 0, which no variance is, ours is 0: as fixed effects are.
        model = "re" if theirs.tau2 > 0 else "fe"
        mean, error = getattr(theirs, f"mean_effect_{model}"), getattr(theirs, f"sd_eff_w_{model}")
        assert line.across.mean == pytest.approx(mean, rel=1e-6)
        assert line.across.standard_error == pytest.approx(error, rel=1e-6)
        assert line.across.tau_squared == pytest.approx(max(theirs.tau2, 0), rel=1e-5, abs=1e-12)
        assert line.across.i_squared == pytest.approx(max(theirs.i2, 0), rel=1e-5, abs=1e-12)
    assert {line.across.tau_squared > 0 for line in made.lines} == {False, True}
    alone = table(RAW, FOUR, "class", model="logit")
    assert gap(made, [line.estimate for line in alone.lines], alone.covariance) < 1e-12
    assert alone.lines[1].across is None


def test_a_party_with_few_rows_or_one_class_is_left_out_and_named():
    labels = FOUR.assign(owner=FOUR.owner.where(FOUR.index > 14, "small"))
    labels["class"] *= labels.owner != "clinic-2"
    made = table(RAW, labels, "class", **COMPARED)
    assert made.left_out == ("clinic-2", "small")
    assert set(made.lines[0].across.estimates) == {"clinic-0", "clinic-1", "clinic-3"}
    assert "Own rows determine no table: clinic-2, small." in made.summary()


ASKED = {
    "ols": ("number", {"model": "ols"}),
    "logit": ("class", COMPARED),
    "cox": ("time", {"model": "cox", "event": "event", "horizons": (10.0, 30.0)}),
}


def test_a_table_fits_on_80_columns():
    tests = {"ols": "F test of ward: F(2, 594) = ", "logit": "Wald test of ward: chi-squared(2) = "}
    for model, words in tests.items():
        value, told = ASKED[model]
        text = table(RAW, FOUR, value, **told).summary()
        assert max(map(len, text.splitlines())) <= 80
        assert {"(intercept)", "ward=surgery"} <= {*text.split()}
        assert words in text
    assert [*map(p_value, (0.0009, 0.0011, 0.5))] == ["<.001", ".001", ".500"]


EVIL = "=a_b & <i>100 %</i> $x$ {y} \\z\n#"


@pytest.mark.parametrize("model", ASKED)
def test_the_files_hold_the_table_and_obey_no_columns_name(model, tmp_path):
    features = (FEATURES[0].model_copy(update={"name": EVIL, "unit": "years"}), FEATURES[3])
    raw = RAW[["age", "ward"]].rename(columns={"age": EVIL})
    value, told = ASKED[model]
    made = table(raw, FOUR, value, features=features, **told)
    assert write_coefficients(made, tmp_path / "new") == tmp_path / "new" / "coefficients.html"
    read = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    lines = list(csv.DictReader(read["coefficients.csv"].decode().splitlines(keepends=True)))
    found = [float(each["p"]) for each in lines]
    assert found == pytest.approx([line.p for line in made.lines], rel=1e-9)
    assert ("ratio" in lines[0]) == (model != "ols")
    assert lines[-3]["name"] == f"'{EVIL}"  # a formula to no spreadsheet
    page = read["coefficients.html"].decode()
    assert "<i>" not in page
    assert "http" not in page.replace("http://www.w3.org/", "")
    beside = forest(made).axes[0].child_axes[0].get_yticklabels()  # each estimate in words
    assert all(re.fullmatch(r"\S+ \(\S+ to \S+\)", each.get_text()) for each in beside)
    assert len(beside) == len(made.columns)
    assert ET.fromstring(read["forest.svg"]).tag.endswith("svg")  # noqa: S314 -- ours
    assert read["forest.png"].startswith(b"\x89PNG")
    assert ("survival.png" in read) == (page.count("<svg") == 2) == (model == "cox")
    tex = read["coefficients.tex"].decode()
    escaped = r"=a\_b \& $<$i$>$100 \%$<$/i$>$ \$x\$ \{y\} \textbackslash{}z \#"
    assert [line for line in tex.splitlines() if line.startswith(escaped + " & ")]
    assert tex.count(r"\\") == 1 + len(made.lines)
