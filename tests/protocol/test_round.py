"""The round: what it is made of, what it marks, and what follows from its keys."""

import inspect

import numpy as np
import pytest

from cobasis import ConsortiumSecret, Party, PartyKey, simulate
from cobasis.linalg.arrays import principal_cosines
from cobasis.protocol import round as round_module
from protocol.consortium import COMPONENTS, NAMES, agree, consortium, tables


def test_every_line_of_algorithm_1_is_named_in_the_round():
    """Each line at which something is made or sent, and running it fits on a screen or two."""
    whole = inspect.getsource(round_module.Round)
    source = whole[: whole.index("def _table")] + whole[whole.index("def _agree_on_a_span") :]
    for marked in ("line 2", "lines 3, 4", "lines 5, 9", "lines 10 to 15", "line 18", "line 19"):
        assert marked in source
    blocks = source.split('"""')[::2]
    code = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert 20 < len(code) < 70


def test_traffic_counts_every_array_that_went_up_and_came_down():
    done = simulate(tables(), rng=np.random.default_rng(0), n_components=COMPONENTS, model="ridge")
    for name in NAMES:
        upload = done.analyst.uploads[name]
        arrays = upload.rows.nbytes + upload.anchor_image.nbytes + upload.labels.nbytes
        assert done.traffic[name].up == arrays
        assert done.traffic[name].down > 8 * COMPONENTS**2
    with_span = simulate(
        tables(), rng=np.random.default_rng(0), n_components=COMPONENTS, basis="consensus"
    )
    assert with_span.traffic["north"].up > done.traffic["north"].up
    assert repr(done).endswith("of north, south, east, west>")


def test_a_weighted_consensus_round_is_the_steps_by_hand():
    """Directions go out by their energy; everybody's basis has the span that came back."""
    made = consortium(basis="weighted_consensus")
    sent = made.proposals()
    rows, _ = made.rows["north"]
    values = np.linalg.svd(rows, compute_uv=False)[:COMPONENTS] / np.sqrt(len(rows))
    np.testing.assert_allclose(np.linalg.svd(sent["north"].image, compute_uv=False), values)
    span = made.agreed(sent)
    for upload in made.analyst.uploads.values():
        assert principal_cosines(span.rows, upload.anchor_image).min() > 1 - 1e-12
    returns = made.analyst.run()
    for name, party in made.parties.items():
        party.accept(returns[name])
    test, labels = tables(0, n_rows=200)["north"]
    assert np.mean(made.parties["north"].predict(test) == labels) > 0.9


MARKED = {
    "nothing": {},
    "the secret": {"secret": ConsortiumSecret(bytes(32), simulated=True)},
    "one key": {
        "keys": {name: PartyKey(bytes([9] * 32), simulated=name == "west") for name in NAMES}
    },
}


@pytest.mark.parametrize("seeded", MARKED)
def test_what_a_seed_has_touched_is_marked_and_nothing_else(seeded):
    made = consortium(basis="consensus", **MARKED[seeded])
    proposals = made.proposals()
    by_secret = seeded == "the secret"
    expected = {name: by_secret or (seeded, name) == ("one key", "west") for name in NAMES}
    assert {name: each.simulated for name, each in proposals.items()} == expected
    assert made.agreed(proposals).simulated == (seeded != "nothing")
    everything = [*made.analyst.uploads.values(), *made.analyst.run().values()]
    assert {each.simulated for each in everything} == {seeded != "nothing"}
    with pytest.raises(AttributeError):
        made.keys["west"].simulated = False


def test_real_parties_differ_and_a_later_round_shows_the_kept_span_in_another_order():
    """Party has no seed: the same rows give another upload with every new key."""
    secret, rows = ConsortiumSecret(), tables()["north"]
    key = PartyKey(bytes(32))
    first, later = (
        Party("north", agreement=agree(secret, round_id=each), secret=secret, key=key)
        for each in ("2026", "2027")
    )
    another = Party("north", agreement=first.agreement, secret=secret).prepare(*rows)
    one = first.prepare(*rows)
    assert np.abs(one.anchor_image - another.anchor_image).max() > 0.01
    two = later.prepare(*rows, basis=first.basis)
    assert not np.allclose(one.rows, two.rows)
    np.testing.assert_allclose(np.sort(one.rows, axis=0), np.sort(two.rows, axis=0))
    again = first.prepare(*rows, basis=first.basis)
    np.testing.assert_array_equal(one.anchor_image, again.anchor_image)


def test_a_new_upload_forgets_the_return_that_belonged_to_the_old_one():
    """G_i of the old basis and F_i of the new one would predict nonsense silently."""
    made = consortium()
    made.parties["north"].accept(made.received().run()["north"])
    made.parties["north"].prepare(*tables(7)["north"])
    with pytest.raises(Exception, match=r"no return yet.*\[CB305\]$"):
        made.parties["north"].predict(tables()["north"][0])
