"""Survival curves of one masked sum are those of the pooled rows, on times rounded up to a grid."""

import numpy as np
import polars as pl
import pytest
from lifelines import KaplanMeierFitter
from lifelines.datasets import load_lung, load_rossi
from lifelines.statistics import multivariate_logrank_test
from lifelines.utils import median_survival_times, restricted_mean_survival_time

from cobasis import NumericFeature, SumsTerms
from cobasis.errors import AgreementError, MessageError
from cobasis.features.outcome import Outcome, times_of
from cobasis.protocol.baseline import BaselineTable, table_of
from cobasis.protocol.sums_terms import table_layout
from cobasis.report import table
from cobasis.statistics.survival import halved
from protocol.summed import agree, dealt, party, summing

FIELDS = {
    "features": (NumericFeature(name="age", low=0.0, high=100.0),),
    "task": "table",
    "sums": SumsTerms(n_bins=4, most_rows=900, most_rows_in_all=2000),
}


def ties(seed):
    """Three groups on few times, the last of which nobody is lost or has an event in for long."""
    rng = np.random.default_rng(seed)
    time = np.ceil(rng.exponential([20, 30, 60], (120, 3)).T.ravel())
    group, event = np.repeat([0, 1, 2], 120), rng.random(360) < 0.6
    return pl.DataFrame({"age": 50.0, "time": time, "event": event * 1, "group": group})


def frame(data, time, event, group):
    """A data set of lifelines; its groups are numbers."""
    some = {"age": 50.0, "time": data[time].to_numpy(float), "event": data[event].to_numpy(int)}
    return pl.DataFrame({**some, "group": data[group].to_numpy(int)})


LUNG = frame(load_lung(), "time", "status", "sex")
ROSSI = frame(load_rossi(), "week", "arrest", "race")
CASES = {  # rows, grid, floor
    "lung, monthly, with a floor": (LUNG, times_of("grid", "30/60/../1050"), 5),
    "lung, each day of its own": (LUNG, tuple(np.unique(LUNG["time"]).tolist()), 1),
    "rossi, weekly, with a floor": (ROSSI, times_of("grid", "1/2/../52"), 5),
    "ties, with a floor": (ties(1), times_of("grid", "2.5/5/../90"), 10),
}


def agreed(rows, grid, floor=5, **changes):
    told = {"time": "time", "event": "event", "grid": grid, "fewest_leavers": floor}
    outcome = Outcome(**told | changes)
    return agree(**FIELDS, outcome=outcome, label="group", classes=tuple(sorted({*rows["group"]})))


def counted(agreement, rows):
    """The table of everybody's masked sums, of rows that are dealt to three parties."""
    made = summing(agreement, dealt(rows.select("age"), rows))
    found = made.count()
    assert BaselineTable.read(found.model_dump_json().encode()) == found
    return found, made


def rounded(rows, times):
    """Times rounded up to others; whoever has a later one is still followed at the last."""
    place = np.searchsorted(times, rows["time"].to_numpy())
    late = place == len(times)
    return np.array(times)[np.where(late, -1, place)], rows["event"].to_numpy() * ~late


def largest_gap(found, rows):
    """How far curves, intervals, medians, means and the test are from those of lifelines."""
    curves, gaps = found.survival, []
    time, event = rounded(rows, curves.times)
    groups, times = rows["group"].to_numpy(), np.array(curves.times)[:, None]
    for name, each in zip(found.groups, curves.groups, strict=True):
        mine = (groups.astype(str) == name) | (name == "all")
        oracle = KaplanMeierFitter().fit(time[mine], event[mine])
        assert each.at_risk == tuple((time[mine] >= times).sum(axis=1))
        assert each.events == tuple((time[mine] == times) @ event[mine])
        told = np.array([each.shares, each.low, each.high], dtype=float)
        np.testing.assert_array_equal(np.isnan(told[0]), np.array(each.at_risk) == 0)
        shares = oracle.survival_function_at_times(curves.times)
        ends = oracle.confidence_interval_.reindex(curves.times, method="ffill").to_numpy().T
        gaps.append(np.nanmax(np.abs(told - [shares, *ends])))
        assert (each.median or np.inf) == oracle.median_survival_time_
        if min(shares) > 0:  # where all had the event, lifelines takes 0 for the interval
            (bounds,) = median_survival_times(oracle.confidence_interval_).to_numpy()
            assert (each.median_low or np.inf, each.median_high or np.inf) == tuple(bounds)
        means = [restricted_mean_survival_time(oracle, t=mean.until) for mean in each.means]
        gaps += [one.mean / two - 1 for one, two in zip(each.means, means, strict=True)]
    oracle, test = multivariate_logrank_test(time, groups, event), curves.log_rank
    assert test.degrees == len(found.groups) - 2
    gaps += [test.chi_squared / oracle.test_statistic - 1, test.p - oracle.p_value]
    return np.abs(gaps).max()


@pytest.mark.parametrize("case", CASES)
def test_curves_are_those_of_times_that_are_rounded_up(case):
    rows, grid, floor = CASES[case]
    found, made = counted(agreed(rows, grid, floor), rows)
    assert largest_gap(found, rows) < 1e-10
    assert {*found.survival.times} <= {*grid}
    for name, each in zip(found.groups, found.survival.groups, strict=True):
        left = np.add(each.events, each.censored)
        stayed = found.n_rows[found.groups.index(name)] - left.sum()
        assert all(x == 0 or x >= floor for x in [*left, stayed, *each.at_risk])
    if floor == 1:
        assert found.survival.times == grid
    else:  # the total itself holds each interval
        whole = table_layout(made.agreement).leavers(made.total).sum(axis=1)
        assert ((whole > 0) & (whole < floor)).any()


def test_lung_is_as_published_where_the_grid_has_all_its_times():
    """R's survfit and survdiff print these: mean 376.3 (19.7), median 310, chi-squared 10.3."""
    grid = CASES["lung, each day of its own"][1]
    curves = counted(agreed(LUNG, grid, 1, horizons=(1022.0,)), LUNG)[0].survival
    [mean] = curves.groups[0].means
    assert (round(mean.mean, 1), round(mean.error, 1)) == (376.3, 19.7)
    assert [each.median for each in curves.groups] == [310.0, 270.0, 426.0]
    assert round(curves.log_rank.chi_squared, 1) == 10.3
    assert curves.groups[2].means[0].mean is None  # nobody of it was followed so long


def test_a_group_of_too_few_has_no_curve_and_events_are_told_up_to_when_they_are_counted():
    rows = ROSSI.with_columns(group=pl.Series([1] * 3 + [0] * (len(ROSSI) - 3)))
    found, _ = counted(agreed(rows, (26.0, 52.0)), rows)
    assert (found.survival.times, found.survival.log_rank) == ((), None)
    assert found.n_rows == (432, 429, 3)
    assert ["had 'event'", "", "", "", ""] in [*table.rows_of(found)]
    found, _ = counted(agreed(LUNG, times_of("grid", "30/60/../720")), LUNG)
    assert ["had 'event' up to 720", "158", "109", "49", ""] in [*table.rows_of(found)]  # of 165
    assert "not reached (" in str([*table.rows_of(counted(agreed(LUNG, (180.0,)), LUNG)[0])])


def test_all_rows_make_one_curve_without_a_label():
    found, made = counted(agree(**FIELDS, outcome=agreed(LUNG, (365.0, 730.0)).outcome), LUNG)
    assert found.groups == ("all",)
    assert found.survival.log_rank is None
    [curve], time = found.survival.groups, LUNG["time"]
    assert curve.at_risk == (228, (time > 365).sum())
    assert sum(curve.events + curve.censored) == (time <= 730).sum()  # and the others stayed
    north = party("north", made.agreement)
    north.prepare(LUNG.select("age")[:9], LUNG[:9].with_columns(time=91.0 * np.arange(9) + 1))
    assert north.small_cells == 1  # nine of one age; five by the first time, four by the second
    died = LUNG.with_columns(time=300.0, event=1)  # of all the mean is known, however late
    late = agreed(died, (365.0, 730.0), horizons=(730.0,)).outcome
    found, _ = counted(agree(**FIELDS, outcome=late), died)
    [mean] = found.survival.groups[0].means
    assert (mean.mean, mean.error) == (365, 0)
    assert halved(np.array([1.0, 2.0]), np.array([0.5, 0.2])) == 1  # half is enough


CONTRADICTIONS = {
    "takes time, event and grid": {"grid": ()},
    "outcome.entry is for task='survival' alone": {"entry": "from"},
    "outcome.grid do not rise": {"grid": (2.0, 1.0)},
    "beyond the last time of grid": {"horizons": (31.0,)},
    "not of different columns": {"event": "group"},
}


def test_terms_that_make_no_curves_are_refused():
    for words, changes in CONTRADICTIONS.items():
        with pytest.raises(AgreementError, match=words):
            agreed(LUNG, **{"grid": (30.0,)} | changes)


@pytest.mark.parametrize("change", [-(1 << 52), 1 << 39, 500 << 40])
def test_a_total_of_leavers_that_no_rows_have_is_void(change):
    _, made = counted(agreement := agreed(LUNG, (365.0,)), LUNG)
    words = made.total.copy()
    words[-1] += change
    with pytest.raises(MessageError, match="what no rows have"):
        table_of(words, agreement, layout=table_layout(agreement))


def test_the_page_has_a_histogram_of_age_and_names_with_dollars_as_they_are(tmp_path):
    rows = ties(2).rename({"time": "$\\days$"})
    rows = rows.with_columns(group=pl.Series(["$_$", *"ab"]).gather(rows["group"]))
    agreement = agreed(rows, times_of("grid", "10/20/../60"), time="$\\days$")
    found = counted(agreement, rows)[0]
    page = table.write_table(found, tmp_path).read_text()
    assert page.count("<rect x=") >= len(found.columns[0].bins[0]) > 1
    assert all(page.count(name) > 1 for name in ("$_$", "$\\days$"))
