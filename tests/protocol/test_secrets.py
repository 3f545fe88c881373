"""Secrets can be used; they cannot be printed, pickled, copied or guessed."""

import copy
import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobasis import ConsortiumSecret, Party, PartyKey, SecretBasis, numeric_features, simulate
from cobasis.errors import CommitmentError, OrthonormalityError, SecretError, ShapeError
from protocol.consortium import COMPONENTS, NAMES, WIDTH, agree, consortium, tables

BASIS = np.linalg.qr(np.random.default_rng(8).normal(size=(WIDTH, COMPONENTS)))[0]
KEY = bytes(range(100, 132))

HIDDEN = {
    "basis": lambda: SecretBasis(BASIS, party="north"),
    "consortium secret": lambda: ConsortiumSecret(KEY),
    "party key": lambda: PartyKey(KEY),
}

TRAVELS = {
    "pickle": pickle.dumps,
    "pickle, protocol 0": lambda value: pickle.dumps(value, protocol=0),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def written(text):
    """Whether some entry of the basis, or the key in any spelling, stands in `text`."""
    digits = [np.format_float_positional(abs(each), precision=4) for each in BASIS.ravel()]
    spelled = [KEY.hex(), repr(KEY)[2:-1], str(list(KEY))[1:-1], *digits]
    return [each for each in spelled if each in text]


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("say", [repr, str, lambda v: f"{v}", lambda v: f"{v!r}", "{}".format])
def test_no_way_of_writing_a_secret_shows_it(kind, say):
    shown = say(HIDDEN[kind]())
    assert "hidden" in shown
    assert written(shown) == []


def test_the_search_for_written_secrets_finds_one():
    assert written(repr(BASIS))
    assert written(f"key={KEY!r}")
    assert written(KEY.hex())


def holders():
    """Every protocol object that holds the basis or a key, by name."""
    secret, key = ConsortiumSecret(KEY, simulated=True), PartyKey(KEY, simulated=True)
    made = consortium(secret=secret, keys=dict.fromkeys(NAMES, key))
    north = made.parties["north"]
    upload = north.prepare(*made.rows["north"], basis=SecretBasis(BASIS, party="north"))
    made.analyst.receive(upload)
    north.accept(made.analyst.run()["north"])
    done = simulate(tables(), rng=np.random.default_rng(0), n_components=2)
    return {
        "party": north,
        "parties": made.parties,
        "chooser": north._chooser,
        "upload": upload,
        "return": north._return,
        "analyst": made.analyst,
        "alignment": made.analyst.alignment,
        "agreement": made.agreement,
        "anchor": north._anchor,
        "stream": key.stream("rotation"),
        "round": done,
    }


def test_no_protocol_object_shows_a_basis_or_a_key_inside_its_own_representation():
    shown = {name: f"{held!r} {held}" for name, held in holders().items()}
    assert {name: written(text) for name, text in shown.items() if written(text)} == {}
    assert "hidden" in shown["chooser"]


def test_messages_show_no_array_in_their_representation():
    """A log line with a message in it holds nothing that was computed from rows."""
    held = holders()
    upload, returned = held["upload"], held["return"]
    arrays = [
        upload.rows,
        upload.anchor_image,
        returned.change_of_basis,
        returned.model.layers[0].weights,
    ]
    shown = f"{upload!r} {returned!r}"
    assert not any(repr(array).split("],")[0] in shown for array in arrays)
    assert "labels" not in shown
    assert "anchor_tag" in shown


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("way", TRAVELS)
def test_a_secret_refuses_to_be_pickled_and_copied(kind, way):
    with pytest.raises(SecretError, match=r"does not travel.*\[CB301\]$"):
        TRAVELS[way](HIDDEN[kind]())


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
@pytest.mark.parametrize("holder", ["party", "chooser", "round"])
def test_what_holds_a_secret_cannot_travel_either(holder, way):
    with pytest.raises(SecretError, match="does not travel"):
        TRAVELS[way](holders()[holder])


def test_a_chooser_cannot_be_turned_into_a_dictionary():
    with pytest.raises(SecretError):
        dataclasses.asdict(holders()["chooser"])


def test_a_secret_has_no_dictionary_to_look_into():
    for make in HIDDEN.values():
        with pytest.raises(TypeError):
            vars(make())


@pytest.mark.parametrize("kind", [ConsortiumSecret, PartyKey])
@pytest.mark.parametrize(
    "guess",
    [0, 42, -1, True, 3.5, "a" * 32, b"", b"short", bytes(31), bytes(33), bytearray(32), [0] * 32],
)
def test_what_is_not_thirty_two_bytes_is_no_secret(kind, guess):
    with pytest.raises(SecretError, match=rf"the {kind.__name__} is .*\[CB301\]$") as caught:
        kind(guess)
    assert "aaaa" not in str(caught.value)


@given(st.binary(max_size=80).filter(lambda key: len(key) != 32))
def test_no_other_length_is_a_secret(key):
    with pytest.raises(SecretError):
        ConsortiumSecret(key)


def test_secrets_made_without_a_key_differ():
    assert len({ConsortiumSecret().commitment("r") for _ in range(50)}) == 50


def test_a_wrong_secret_is_refused_when_a_party_joins():
    agreement = agree(ConsortiumSecret())
    with pytest.raises(CommitmentError, match=r"party 'east'.*'icu-2026'.*\[CB302\]$"):
        Party("east", agreement=agreement, secret=ConsortiumSecret())


def test_the_right_secret_of_another_round_is_refused_too():
    secret = ConsortiumSecret()
    agreement = agree(secret, commitment=secret.commitment("another-round"))
    with pytest.raises(CommitmentError):
        Party("east", agreement=agreement, secret=secret)


def test_the_agreement_holds_no_byte_of_the_secret():
    secret = ConsortiumSecret(KEY)
    text = agree(secret).model_dump_json()
    raw = text.encode()
    assert KEY.hex() not in text
    assert not any(KEY[i : i + 4] in raw for i in range(29))
    assert not any(KEY[i : i + 4].hex() in text for i in range(29))


def test_commitment_tag_and_anchor_are_under_different_uses_of_the_secret():
    secret = ConsortiumSecret(KEY)
    agreement = agree(secret)
    tag = secret.anchor_tag(agreement).hex()
    assert tag != agreement.commitment
    assert tag not in agreement.model_dump_json()
    recipe = agreement.anchor_recipe().decode()
    uses = {secret._mac(use, recipe.encode()).hex() for use in (b"anchor", b"draw")}
    assert len(uses | {secret.commitment(recipe)}) == 3


def test_parties_of_one_process_share_the_anchor_that_their_secret_draws():
    secret, twin = ConsortiumSecret(KEY), ConsortiumSecret(KEY)
    agreement, directions = agree(secret), np.eye(WIDTH)
    north, south = (Party(name, agreement=agreement, secret=secret) for name in NAMES[:2])
    assert north._anchor is south._anchor
    elsewhere = twin.anchor(agreement)
    assert elsewhere is not north._anchor
    np.testing.assert_array_equal(elsewhere.apply(directions), north._anchor.apply(directions))
    longer = secret.anchor(agree(secret, n_anchor_rows=9))
    assert longer.shape == (9, WIDTH)


def test_a_secret_does_not_keep_an_anchor_that_nobody_holds():
    secret = ConsortiumSecret(KEY)
    drawn = weakref.ref(secret.anchor(agree(secret)))
    gc.collect()
    assert drawn() is None


def test_equal_secret_and_recipe_give_an_equal_tag():
    one, two = (ConsortiumSecret(KEY) for _ in range(2))
    assert one.anchor_tag(agree(one)) == two.anchor_tag(agree(two))
    other = ConsortiumSecret(KEY[::-1])
    assert other.anchor_tag(agree(one)) != one.anchor_tag(agree(one))


@pytest.mark.parametrize(
    "changes",
    [
        {"round_id": "icu-2027"},
        {"n_anchor_rows": 9},
        {"anchor": "gaussian"},
        {"features": numeric_features("abcde")},
        {"basis": "public", "public_rows_sha256": "0" * 64},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_tag_changes_with_everything_that_determines_the_anchor(changes):
    secret = ConsortiumSecret(KEY)
    assert secret.anchor_tag(agree(secret, **changes)) != secret.anchor_tag(agree(secret))


@pytest.mark.parametrize("use", [{"basis": "public"}, {"anchor": "public"}, {"anchor": "smote"}])
def test_other_public_rows_give_another_tag(use):
    secret = ConsortiumSecret(KEY)
    one, two = (agree(secret, **use, public_rows_sha256=digit * 64) for digit in ("0", "1"))
    assert secret.anchor_tag(one) != secret.anchor_tag(two)


@pytest.mark.parametrize(
    "changes",
    [
        {"parties": NAMES[::-1]},
        {"parties": (*NAMES, "late")},
        {"aligner": "whitened"},
        {"scale_band": 5.0},
        {"n_components": 2},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_party_list_and_the_method_do_not_enter_the_tag(changes):
    secret = ConsortiumSecret(KEY)
    assert secret.anchor_tag(agree(secret, **changes)) == secret.anchor_tag(agree(secret))


@pytest.mark.parametrize("shape", [(WIDTH + 1, COMPONENTS), (WIDTH, COMPONENTS - 1)])
def test_a_kept_basis_of_other_sizes_is_refused_before_it_is_used(shape):
    made = consortium()
    kept = SecretBasis(np.eye(*shape), party="north")
    with pytest.raises(ShapeError, match=r"party 'north' kept has shape .*\[CB102\]$"):
        made.parties["north"].prepare(*made.rows["north"], basis=kept)
    assert made.parties["north"]._basis is None


def test_an_oblique_basis_is_for_simulated_parties_only():
    secret = ConsortiumSecret()
    oblique = SecretBasis(2 * BASIS, party="north", oblique=True)
    real = Party("north", agreement=agree(secret), secret=secret)
    with pytest.raises(OrthonormalityError, match=r"'north' kept is not orthonormal.*\[CB202\]$"):
        real.prepare(*tables()["north"], basis=oblique)
    key = PartyKey(KEY, simulated=True)
    simulated = Party("north", agreement=agree(secret), secret=secret, key=key)
    assert simulated.prepare(*tables()["north"], basis=oblique).simulated
