"""A black-box attack on noise and on what a party really releases: the guarantee holds, and wrong
ones break.

The attacker knows two neighbouring tables, the basis, the order of rows and everything but the
noise, and says which table was released. From how often it is right follows a lower bound on the
epsilon at the claimed delta. The right mechanism stays below what it claims; with the papers'
sensitivity, or on a basis that rows shape, it does not.
"""

import math

import numpy as np
import pytest
from scipy import stats

from cobasis import ConsortiumSecret, DPTerms, Party, PartyKey
from cobasis.algorithms.bases import BASES
from cobasis.privacy.gaussian import delta_of
from cobasis.progress import silent
from cobasis.protocol import dp_terms
from cobasis.protocol.projection import InMemory, RowsInMemory
from protocol.consortium import NONE, WIDTH, agree

EPSILON, DELTA, RADIUS = 2.0, 1e-3, 1.0
TRIALS, AT_ONCE, PEOPLE = 30_000, 100, 60_000
SECRET = ConsortiumSecret(b"s" * 32)
SURE = 1 - 1e-3
"""How sure each of the two bounds is."""


def party(*, basis="haar", n_components=2, most_rows=AT_ONCE, **terms):
    """Of as many rows as the delta allows."""
    dp = {"lifetime_epsilon": 16.0, "delta": 1 / (10 * most_rows), **terms}
    dp = DPTerms(epsilon=EPSILON, radius=RADIUS, most_rows=most_rows, **dp)
    labels = {"classes": (0, 1, 2)} if dp.labels else NONE
    how = {"basis": basis, "n_components": n_components, "dp": dp, **labels}
    agreement = agree(SECRET, parties=("north",), **how)
    return Party("north", agreement=agreement, secret=SECRET, key=PartyKey(b"k" * 32))


def released(north, rows, labels=None):
    """An upload's rows and labels in the table's order, which a worst-case attacker knows."""
    made, sink = north.project(RowsInMemory(rows, labels)), InMemory()
    made.write(sink, report=silent)
    back = np.argsort(made.order)
    return sink.upload.rows[back], None if labels is None else sink.upload.labels[back]


def epsilon_at_least(first, second, *, delta, cut=None):
    """Return the bound that scores prove; two times in 1,000 at most it is above what is true.

    A cut that is not given is where two normal laws would differ by exp(EPSILON) in likelihood, by
    a tenth of the scores: there what is promised at EPSILON breaks first.
    """
    if cut is None:
        few = len(first) // 10
        one, other = first[:few], second[:few]
        middle, apart = (one.mean() + other.mean()) / 2, one.mean() - other.mean()
        cut, first, second = middle + EPSILON * other.var() / apart, first[few:], second[few:]
    hits, false = (
        stats.binomtest(int((each > cut).sum()), len(each)).proportion_ci(2 * SURE - 1)
        for each in (first, second)
    )  # Clopper and Pearson's
    return math.log(max(hits.low - delta, 1e-300) / false.high)


def scores_of_rows(north):
    """Every row is a trial: at the two ends of the ball, along what the basis shows most of."""
    north.prepare(np.zeros((1, WIDTH)))
    shown = north.basis.project(np.eye(WIDTH))
    lead = np.linalg.svd(shown)[0][:, 0]
    found = []
    for sign in (1, -1):
        rows = np.tile(sign * lead, (AT_ONCE, 1))
        tables = ((100 + at) * rows for at in range(TRIALS // AT_ONCE))  # all clipped to one table
        found.append(np.vstack([released(north, each)[0] for each in tables]) @ (lead @ shown))
    return found


def test_the_guarantee_holds_for_the_two_rows_that_are_farthest_apart_at_every_cut():
    first, second = scores_of_rows(party())
    assert epsilon_at_least(first, second, delta=DELTA) <= EPSILON
    terms = party().agreement.dp
    for cut in np.linspace(-12, 12, 25):
        hits, false = (first > cut).mean(), (second > cut).mean()
        error = math.sqrt(0.5 / TRIALS)
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            delta = delta_of(
                epsilon=epsilon, noise=terms.calibration.noise, sensitivity=terms.sensitivity
            )
            assert hits <= math.exp(epsilon) * false + delta + 5 * error * math.exp(epsilon)


def test_the_papers_sensitivity_of_one_radius_is_falsified(monkeypatch):
    monkeypatch.setattr(dp_terms, "sensitivity_of", lambda *, radius, **_: radius)
    found = epsilon_at_least(*scores_of_rows(party()), delta=DELTA)
    assert found > EPSILON


def tie():
    """Two neighbours: the last row decides which of two directions leads."""
    few, many = 200, 3200
    rows = np.zeros((few + many + 1, WIDTH))
    rows[:few, 0] = RADIUS
    rows[few:-1, 1] = RADIUS / 4
    tables = []
    for axis in (0, 1):
        table = rows.copy()
        table[-1, axis] = RADIUS
        tables.append(table)
    return tables, few


def scores_of_tables(tables, few, *, basis, trials):
    """Every release is a trial: how much more the few rows say than the many."""
    north = party(basis=basis, n_components=1, most_rows=len(tables[0]))
    found = []
    for table in tables:
        scores = []
        for trial in range(trials):
            again = table.copy()
            again[:, -1] += 1e-12 * trial  # no other basis, and other noise
            rows, _ = released(north, again)
            scores.append(abs(rows[:few].mean()) - 4 * abs(rows[few:-1].mean()))
        found.append(np.array(scores))
    return found


def test_a_basis_that_rows_shape_is_falsified_with_the_right_noise_and_no_other(monkeypatch):
    rule = BASES["svd"]
    monkeypatch.setitem(BASES, "svd", type(rule)(**{**vars(rule), "under_dp": True}))
    found = epsilon_at_least(*scores_of_tables(*tie(), basis="svd", trials=120), delta=DELTA, cut=0)
    assert found > EPSILON
    first, second = scores_of_tables(*tie(), basis="haar", trials=40)
    for cut in np.quantile(first, [0.1, 0.5, 0.9]):
        assert epsilon_at_least(first, second, delta=DELTA, cut=cut) < 0.5


@pytest.mark.parametrize(("rows_per_person", "epsilon"), [(1, 1.0), (2, 0.5)])
def test_randomised_labels_say_no_more_than_they_should(rows_per_person, epsilon):
    """Labels of a person with two rows share it."""
    terms = {"label_epsilon": 1.0, "rows_per_person": rows_per_person, "most_rows": PEOPLE}
    north, rows = party(labels="randomised_response", **terms), np.zeros((PEOPLE, WIDTH))
    first, second = (released(north, rows, np.full(PEOPLE, label))[1] == 0 for label in (0, 1))
    found = epsilon_at_least(first, second, delta=0.0, cut=0)
    assert 0.8 * epsilon < found <= epsilon


def test_noise_of_one_row_says_nothing_of_anothers():
    north = party(most_rows=2000)
    rows = np.random.default_rng(0).normal(size=(2000, WIDTH)) * 1e-9
    found = north.project(RowsInMemory(rows)).noising.projected(0, iter([rows]))[0][0]
    noise = found / north.agreement.dp.calibration.noise
    assert stats.kstest(noise.ravel(), stats.norm.cdf).pvalue > 1e-4
    paired = np.corrcoef(noise[:1000].ravel(), noise[1000:].ravel())[0, 1]
    assert abs(paired) < 5 / math.sqrt(noise[:1000].size)
