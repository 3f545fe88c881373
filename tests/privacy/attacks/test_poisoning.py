"""What a party that lies does to everybody, what the certificate notices, and what it does not."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from experiments.attacks.poisoning import another_anchor, other_scale, turned_rows, wrong_labels

from cobasis import Analyst, simulate, train
from cobasis.errors import ScaleError
from cobasis.protocol.training import AlignedRows
from privacy.attacks.constructions import digits

NAMES = tuple(f"party{number}" for number in range(10))
THREE = ["party3", "party5", "party7"]
RNG = np.random.default_rng


@pytest.fixture(scope="module")
def honest():
    """Ten parties of 100 digits: the round as it ran, and everybody's upload once more."""
    X, y = digits()
    rows = {
        name: (X[at : at + 100], y[at : at + 100])
        for name, at in zip(NAMES, range(0, 1000, 100), strict=True)
    }
    done = simulate(rows, rng=RNG(1), n_components=16, model="ridge")
    return done, {name: party.prepare(*rows[name]) for name, party in done.parties.items()}


def play(honest, liars=(), attack=None):
    """What the analyst makes of it; trained in any case, to see what refusing prevents."""
    done, uploads = honest
    sent = {**uploads, **{name: attack(uploads[name]) for name in liars}}
    analyst = Analyst(done.agreement)
    for upload in sent.values():
        analyst.receive(upload)
    changes = analyst.align().changes_of_basis
    certificate, refused = analyst.certify(), None
    try:
        analyst.train()
    except ScaleError as error:
        refused = type(error)
    rows = AlignedRows(sent, changes)
    model = train(rows, model="ridge", task="classification", n_classes=10, seed=0)
    X, y = digits()
    right = [
        np.mean(model.predict(party._basis.project(X[1000:]) @ changes[name]) == y[1000:])
        for name, party in done.parties.items()
        if name not in liars
    ]
    accuracy = float(np.mean(right))
    return SimpleNamespace(accuracy=accuracy, certificate=certificate, refused=refused)


def evidence(played, *names):
    return {played.certificate.parties[name].evidence for name in names or NAMES}


@pytest.mark.parametrize(("liar", "left"), [("party5", 0.879), ("party0", 0.842)])
def test_another_anchor_passes_and_hurts_most_at_the_reference(honest, liar, left):
    played = play(honest, [liar], partial(another_anchor, rng=RNG(2)))
    assert played.refused is None
    assert evidence(played, liar) == {"cannot tell"}
    assert evidence(played, "party3", "party7") == {"not a random turn"}
    assert played.accuracy == pytest.approx(left, abs=0.02)


@pytest.mark.parametrize("with_image", [False, True])
def test_rows_and_image_scaled_together_ruin_the_model_and_are_refused(honest, with_image):
    played = play(honest, ["party5"], partial(other_scale, factor=1000, with_image=with_image))
    assert played.accuracy < 0.2
    scale = played.certificate.parties["party5"].scale
    assert (scale == pytest.approx(1, abs=0.1)) is with_image
    assert played.refused is ScaleError


def test_one_partys_wrong_labels_cost_little_three_parties_much_and_nothing_notices(honest):
    clean = play(honest).accuracy
    one, three = (play(honest, liars, wrong_labels) for liars in (["party5"], THREE))
    assert one.accuracy == pytest.approx(clean - 0.019, abs=0.01)
    assert three.accuracy == pytest.approx(clean - 0.079, abs=0.02)
    for played in (one, three):
        assert (evidence(played), played.refused) == ({"not a random turn"}, None)


def test_turned_rows_cost_as_much_and_pass(honest):
    clean = play(honest).accuracy
    three = play(honest, THREE, partial(turned_rows, rng=RNG(0)))
    assert three.accuracy == pytest.approx(clean - 0.076, abs=0.03)
    assert "cannot tell" in evidence(three, *THREE)
    assert three.refused is None


def test_an_honest_round_is_accurate_and_a_copy_or_a_scale_inside_the_band_cost_a_little(honest):
    played = play(honest)
    assert played.accuracy == pytest.approx(0.893, abs=0.01)
    assert (evidence(played), played.refused) == ({"not a random turn"}, None)
    sent = {name: getattr(honest[1]["party5"], name) for name in ("rows", "anchor_image", "labels")}
    copied, larger = partial(replace, **sent), partial(other_scale, factor=9)
    for liar, attack in (("party6", copied), ("party5", larger)):
        played = play(honest, [liar], attack)
        assert played.accuracy > 0.85
        assert (evidence(played), played.refused) == ({"not a random turn"}, None)
