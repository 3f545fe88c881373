"""A black-box attack on sums with noise: what is promised holds, and each wrong mechanism breaks.

The attacker knows all rows but one, which is one of two that are as far apart as rows can be. It
has the total and the help of as many parties as are agreed on, which subtract their own noise. The
noise is that of real parties; its coordinates are alike, so one table of them is many trials.
"""

import numpy as np
import pytest

from cobasis import RandomFourier, SumsTerms, numeric_features, simulate
from cobasis.errors import CobasisError, MessageError
from cobasis.privacy.discrete import zcdp_scale
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.sums_party import SumsParty
from cobasis.protocol.sums_terms import layout_of, noise_of
from cobasis.protocol.totals import cut
from privacy.test_falsifiers import epsilon_at_least
from protocol import summed
from protocol.summed import DP

N_WAVES, N_CLASSES, DRAWS = 60, 100, 60
WAVES = RandomFourier(n_waves=N_WAVES, bandwidth=1.0)


def agree(**changes):
    fields = {"features": numeric_features("ab"), "model": "ridge", "dp": DP}
    fields |= {"task": "classification", "classes": tuple(range(N_CLASSES))}
    fields["sums"] = SumsTerms(maps=(WAVES,), most_rows=3, most_rows_in_all=9)
    return summed.agree(**fields | changes)


LAYOUT = layout_of(agree())
ROWS, COLUMNS = LAYOUT.places(*LAYOUT.widths)
OF_LABELS = LAYOUT.n_features[0] <= COLUMNS
TWICE = (ROWS != COLUMNS) & ~OF_LABELS
"""Products that count twice, for they stand twice in the table."""


@pytest.fixture(scope="module")
def noise():
    """Each honest party's noise, in units of Z'Z: a row for each draw."""
    agreement, rng = agree(), np.random.default_rng(0)
    keys = {name: MaskKey(rng.bytes(32)) for name in summed.NAMES}
    found, nothing = [], np.zeros(LAYOUT.n_words, np.int64)
    for name in summed.NAMES[:2]:
        party = summed.party(name, agreement, keys)
        drawn = [party._noise(nothing, at.to_bytes(32)) for at in range(DRAWS)]
        found.append(np.array(drawn) / 4.0**LAYOUT.bits)
    return found


def scores(noise, gaps, *, honest=2):
    """What the attacker makes of each trial, of the one row and of the other.

    `gaps` are how far the two rows are apart: in products that count twice, and in the others.
    """
    total, found, square = sum(noise[:honest]), 0.0, 0.0
    pools, gaps = [total[:, TWICE], total[:, ~TWICE]], [each[each != 0] for each in gaps]
    n_trials = min(pool.size // len(each) for pool, each in zip(pools, gaps, strict=True))
    for each, pool, weight in zip(gaps, pools, (2.0, 1.0), strict=True):
        drawn = pool.ravel()[: len(each) * n_trials].reshape(len(each), n_trials)
        found, square = found + weight * (each @ drawn), square + weight * float(each @ each)
    return found + square, found


def gap(one, other, *, one_label=0, other_label=0, counts=False, intercept=False):
    parts = []
    for features, label in ((one, one_label), (other, other_label)):
        phi = np.append(features, 1.0) if intercept else np.array(features)
        hot = np.eye(2)[label]
        rows, columns = np.triu_indices(len(phi), 1)
        once = [phi**2, np.outer(phi, hot).ravel(), hot if counts else []]
        parts.append((phi[rows] * phi[columns], np.concatenate(once)))
    return [first - second for first, second in zip(*parts, strict=True)]


def at(angle):
    return np.array([np.cos(angle), np.sin(angle)])


FARTHEST = gap(at(0.0), at(2 * np.pi / 3))  # a cosine of -1/2, one label
COUNTS = gap(at(0.0), at(np.pi / 2), other_label=1, counts=True)
MUTANTS = {
    "an intercept appended": (2, gap(at(0.0), at(np.pi), intercept=True)),
    "two bandwidths": (2, [np.tile(each, 2) for each in FARTHEST]),
    "a bandwidth taken from rows, so that all three move": (2, [3 * each for each in FARTHEST]),
    "one honest party's noise missing": (1, FARTHEST),
}
"""How many parties' noise there is, and how far two rows are apart."""


def rho_of(gaps, *, spread):
    """Zero-concentrated privacy's rho of a gap under noise, which is half its square."""
    twice, once = gaps
    return (2 * twice @ twice + once @ once) / (2 * spread**2)


def test_noise_is_what_rows_as_far_apart_as_can_be_take_and_less_is_too_little():
    promised = 1 / (2 * zcdp_scale(epsilon=DP.epsilon, delta=DP.delta, sensitivity=1.0) ** 2)
    spread = noise_of(agree()).scale  # of two honest parties
    assert 0.999 * promised < rho_of(FARTHEST, spread=spread) <= promised
    assert rho_of(FARTHEST, spread=spread * 2 / np.sqrt(4.5)) > 1.1 * promised  # a Delta of 2
    assert rho_of(COUNTS, spread=spread) > 1.3 * promised


def test_two_rows_as_far_apart_as_rows_can_be_are_told_apart_no_better_than_promised(noise):
    """The mutants' noise is too small by sqrt(2) or more."""
    right = epsilon_at_least(*scores(noise, FARTHEST), delta=DP.delta)
    assert right < DP.epsilon
    for kind, (honest, gaps) in MUTANTS.items():
        first, second = scores(noise, gaps, honest=honest)
        assert len(first) > 90_000
        assert epsilon_at_least(first, second, delta=DP.delta) > DP.epsilon, kind


def test_without_a_grid_one_look_at_the_fraction_tells_the_rows(noise):
    """Rows that are not cut, or noise between the integers: no scale of noise helps."""
    grid, rows = noise[0][0, :1000] * 4**LAYOUT.bits, np.array([0.3, 0.7])
    told = [{*np.mod(grid + each * 2**20, 1.0).round(6)} for each in rows]
    assert not told[0] & told[1]
    assert {*np.mod(np.add.outer(grid, cut(rows, bits=LAYOUT.bits)), 1.0).flat} == {0.0}


def test_nothing_is_summed_that_counts_people_and_a_regression_is_in_its_own_units():
    assert LAYOUT.widths == (2 * N_WAVES + N_CLASSES,)
    assert ROWS.max() < 2 * N_WAVES  # no product of classes
    assert len(ROWS) == LAYOUT.n_words
    rows = {name: (table, 50 + 10 * table[:, 0]) for name, (table, _) in dealt(6000).items()}
    done = played(rows, bandwidth=3.0, most_rows=2000, delta=1e-6, epsilon=8.0)
    assert layout_of(done.agreement).n_words == 21 * 22 // 2
    assert done.score(*rows["north"])["east"] > 0.8


def test_what_a_party_sends_has_whole_noise_of_its_own_and_of_the_agreed_scale(noise):
    together = np.corrcoef(*(each.ravel() for each in noise))[0, 1]
    assert abs(together) < 5 / np.sqrt(noise[0].size)
    own, whole = noise_of(agree()).own, np.array(noise) * 4**LAYOUT.bits
    for places, scale in ((ROWS == COLUMNS, own), (OF_LABELS, own), (TWICE, own / np.sqrt(2))):
        spreads = np.std(whole[:, :, places], axis=(1, 2))
        assert spreads == pytest.approx([scale] * 2, rel=0.05)
    assert {*np.unique(whole % 2)} == {0.0, 1.0}  # on no coarser grid than rows
    scale = noise_of(agree()).scale
    assert scale * 4**LAYOUT.bits == pytest.approx(own * np.sqrt(2))  # two honest parties of three


def test_the_same_sums_have_the_same_noise_and_others_another():
    """The difference of two files with one noise would show what changed."""
    sums, salt, given = np.zeros(LAYOUT.n_words, np.int64), bytes(32), {"agreement": agree()}
    given |= {"key": summed.KEYS["north"], "keys": summed.PUBLIC}
    one, later = (SumsParty("north", attempt=at, **given) for at in (1, 2))
    drawn = [one._noise(sums, salt), one._noise(sums, salt), later._noise(sums, salt)]
    drawn += [one._noise(sums, bytes(31) + b"1"), one._noise(sums + 1, salt)]
    assert np.array_equal(drawn[0], drawn[1])
    assert len({each.tobytes() for each in drawn}) == 4


REFUSED = {
    "two maps": ({"maps": agree().sums.maps * 2}, {}, "takes one map 'rff'"),
    "no colluders": ({}, {"colluders": 0}, "a party subtracts its own noise"),
    "all collude": ({}, {"colluders": 3}, "from 1 to below minimum_parties=3"),
    "a radius": ({}, {"radius": 2.0}, "has radius=1 and no centre"),
    "labels in the clear": ({}, {"labels": "public"}, "covers labels too"),
    "rows that come or go": ({}, {"adjacency": "add-remove"}, "adjacency='replace-one'"),
    "a delta for fewer people": ({}, {"delta": 0.02}, "is above 1/"),
    "other rows": ({"most_rows": 2}, {}, r"most_rows=3 is not that of \[sums\]"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_terms_under_which_nothing_is_proven_are_refused(kind):
    sums, dp, words = REFUSED[kind]
    base = agree()
    with pytest.raises(CobasisError, match=words):
        agree(sums=base.sums.model_copy(update=sums), dp=DP.model_copy(update=dp))


def dealt(n_rows=90):
    table = np.random.default_rng(3).normal(size=(n_rows, 2))
    return summed.dealt(table, (table.sum(axis=1) > 0).astype(int))


def played(rows, *, seed=0, n_waves=10, bandwidth=2.0, **dp):
    dp["lifetime_epsilon"] = dp.get("epsilon", DP.epsilon)
    given = {"release": "sums", "dp": DP.model_copy(update=dp)}
    if np.issubdtype(rows["north"][1].dtype, np.floating):
        given["task"] = "regression"
    maps = [RandomFourier(n_waves=n_waves, bandwidth=bandwidth)]
    return simulate(rows, rng=np.random.default_rng(seed), maps=maps, **given)


def test_noise_that_is_small_beside_the_rows_leaves_a_model_that_follows_from_the_keys():
    rows = dealt(3000)
    done, again = (played(rows, most_rows=1000, delta=1e-5, epsilon=4.0) for _ in range(2))
    assert done.result.total.n_rows == 0
    assert done.score(*rows["north"])["south"] > 0.9
    for one, two in zip(done.result.model.layers, again.result.model.layers, strict=True):
        assert isinstance(one, str) or np.array_equal(one.weights, two.weights)
    table, model = rows["north"][0], done.result.model
    scores = model.scores(table, method="decision_function")
    assert np.array_equal(scores > 0, model.predict(table) == 1)  # the second of two classes


def test_a_total_with_noise_is_read_by_the_noise_of_all_and_void_where_masks_stay():
    analyst, noise = summed.summing(agree(), dealt(9)), noise_of(agree())
    scale = noise.own * np.sqrt(3) / 4**LAYOUT.bits
    assert analyst.run().found[0].penalty == pytest.approx(scale / 4 * np.sqrt(4 * N_WAVES))
    analyst._words += summed.KEYS["north"].stream("mask").words(LAYOUT.n_words)
    with pytest.raises(MessageError, match="what no rows have"):
        analyst.run()
