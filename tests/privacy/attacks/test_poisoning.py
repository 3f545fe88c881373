"""What a party that lies does to everybody, what the certificate notices, and what it does not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from experiments.attacks.poisoning import AnotherAnchor, OtherScale, TurnedRows, WrongLabels

from cobasis import Analyst, simulate, train
from cobasis.errors import OptionError, ScaleError, ShapeError
from cobasis.privacy.attacks.release import Release
from cobasis.protocol.aligned import AlignedRows
from privacy.attacks.constructions import digits

NAMES = tuple(f"party{number}" for number in range(10))
RNG = np.random.default_rng


@dataclass
class Played:
    """A round in which some parties sent something else."""

    accuracy: float
    certificate: object
    refused: type | None


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


def spoilt(upload, attack):
    """The upload after its party changed it."""
    release = Release(rows=upload.rows, anchor_image=upload.anchor_image, labels=upload.labels)
    sent = attack.spoil(release)
    return replace(upload, rows=sent.rows, anchor_image=sent.anchor_image, labels=sent.labels)


def play(honest, liars=(), attack=None):
    """What the analyst makes of it; trained in any case, to see what refusing prevents."""
    done, uploads = honest
    sent = {**uploads, **{name: spoilt(uploads[name], attack) for name in liars}}
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
    return Played(float(np.mean(right)), certificate, refused)


def evidence(played, *names):
    return {played.certificate.parties[name].evidence for name in names or NAMES}


def test_an_honest_round_is_accurate_and_nobodys_basis_a_random_turn(honest):
    played = play(honest)
    assert played.accuracy == pytest.approx(0.893, abs=0.01)
    assert (evidence(played), played.refused) == ({"not a random turn"}, None)


@pytest.mark.parametrize(("liar", "left"), [("party5", 0.879), ("party0", 0.842)])
def test_another_anchor_passes_and_hurts_most_at_the_reference(honest, liar, left):
    played = play(honest, [liar], AnotherAnchor(rng=RNG(2)))
    assert played.refused is None
    assert evidence(played, liar) == {"cannot tell"}
    assert evidence(played, "party3", "party7") == {"not a random turn"}
    assert played.accuracy == pytest.approx(left, abs=0.02)


def test_rows_on_another_scale_ruin_the_model_and_are_refused(honest):
    played = play(honest, ["party5"], OtherScale(factor=1000))
    assert played.accuracy < 0.2
    assert played.refused is ScaleError


def test_rows_and_image_scaled_together_ruin_the_model_and_are_refused(honest):
    played = play(honest, ["party5"], OtherScale(factor=1000, with_image=True))
    assert played.accuracy < 0.2
    assert played.certificate.parties["party5"].scale == pytest.approx(1, abs=0.1)
    assert played.refused is ScaleError


def test_a_scale_inside_the_band_costs_a_little_and_passes(honest):
    played = play(honest, ["party5"], OtherScale(factor=9))
    assert played.accuracy > 0.85
    assert (evidence(played), played.refused) == ({"not a random turn"}, None)


def test_one_partys_wrong_labels_cost_little_three_parties_much_and_nothing_notices(honest):
    clean, lie = play(honest).accuracy, WrongLabels(share=1, rng=RNG(0))
    one, three = play(honest, ["party5"], lie), play(honest, ["party3", "party5", "party7"], lie)
    assert one.accuracy == pytest.approx(clean - 0.019, abs=0.01)
    assert three.accuracy == pytest.approx(clean - 0.079, abs=0.02)
    for played in (one, three):
        assert (evidence(played), played.refused) == ({"not a random turn"}, None)


def test_turned_rows_cost_as_much_and_pass(honest):
    clean = play(honest).accuracy
    three = play(honest, ["party3", "party5", "party7"], TurnedRows(rng=RNG(0)))
    assert three.accuracy == pytest.approx(clean - 0.076, abs=0.03)
    assert "cannot tell" in evidence(three, "party3", "party5", "party7")
    assert three.refused is None


@dataclass
class Copied:
    """What a party does that sends another one's upload under its own name."""

    other: Release

    def spoil(self, release):
        del release
        return self.other


def test_a_copy_of_another_partys_upload_passes(honest):
    upload = honest[1]["party5"]
    other = Release(rows=upload.rows, anchor_image=upload.anchor_image, labels=upload.labels)
    played = play(honest, ["party6"], Copied(other))
    assert played.accuracy > 0.86
    assert (evidence(played), played.refused) == ({"not a random turn"}, None)


def a_release():
    rng = RNG(5)
    labels = rng.integers(0, 3, 40)
    return Release(rows=rng.normal(size=(40, 4)), anchor_image=np.eye(6)[:, :4], labels=labels)


def test_each_spoils_what_it_says_and_nothing_else():
    before = a_release()
    other = AnotherAnchor(rng=RNG(0)).spoil(before)
    assert other.rows is before.rows
    assert np.linalg.norm(other.anchor_image) == pytest.approx(2)
    assert abs(np.sum(other.anchor_image * before.anchor_image)) < 2.5
    turned = TurnedRows(rng=RNG(0)).spoil(before)
    np.testing.assert_allclose(turned.rows @ turned.rows.T, before.rows @ before.rows.T)
    assert not np.allclose(turned.rows, before.rows)
    both = OtherScale(factor=3, with_image=True).spoil(before)
    np.testing.assert_allclose(both.rows, 3 * before.rows)
    np.testing.assert_allclose(both.anchor_image, 3 * before.anchor_image)
    assert OtherScale(factor=3).spoil(before).anchor_image is before.anchor_image


@pytest.mark.parametrize("share", [0, 0.25, 1])
def test_labels_are_wrong_for_the_share_that_was_asked(share):
    before = a_release()
    after = WrongLabels(share=share, rng=RNG(0)).spoil(before)
    changed = after.labels != before.labels
    assert changed.sum() == share * 40
    assert set(after.labels) <= {0, 1, 2}


def test_what_cannot_be_spoiled_is_refused():
    bare = Release(rows=np.ones((3, 2)))
    for attack in (AnotherAnchor(rng=RNG(0)), OtherScale(factor=2, with_image=True)):
        with pytest.raises(ShapeError, match="anchor_image"):
            attack.spoil(bare)
    for labels in (None, np.zeros(3, dtype=int)):
        with pytest.raises(ShapeError, match="and 2 are needed"):
            WrongLabels(share=1, rng=RNG(0)).spoil(replace(bare, labels=labels))
    with pytest.raises(OptionError, match="no share of the rows"):
        WrongLabels(share=1.5, rng=RNG(0)).spoil(a_release())
