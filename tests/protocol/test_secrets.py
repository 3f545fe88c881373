"""Secrets can be used; they cannot be printed, pickled, copied or guessed."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from aligners import make_anchor
from cobasis import ConsortiumSecret, Party, PartyKey, SecretBasis, numeric_features
from cobasis.errors import (
    AgreementError,
    CommitmentError,
    OrthonormalityError,
    SecretError,
    ShapeError,
)
from cobasis.features.encoder import encode
from cobasis.keys.identity import Identity
from cobasis.privacy.attacks import Recovered, Release
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.projection import RowsInMemory
from cobasis.protocol.secrets import public_rows_digest
from features.frames import MIXED, mixed
from features.frames import WIDTH as ENCODED
from protocol.consortium import (
    COMPONENTS,
    NAMES,
    WIDTH,
    agree,
    consortium,
    joined,
    simulated,
    tables,
    terms,
)

BASIS = np.linalg.qr(np.random.default_rng(8).normal(size=(WIDTH, COMPONENTS)))[0]
KEY = bytes(range(100, 132))
PERSON = Identity.new("north")
SECRET = ConsortiumSecret(bytes(32))

HIDDEN = {
    "basis": lambda: SecretBasis(BASIS, party="north"),
    "consortium secret": lambda: ConsortiumSecret(KEY),
    "party key": lambda: PartyKey(KEY),
    "identity": lambda: PERSON,
    "isometric anchor": lambda: make_anchor("isometric", n_rows=8, n_features=6),
    "gaussian anchor": lambda: make_anchor("gaussian", n_rows=8, n_features=6),
    "projection": lambda: projected(terms()),
    "noising": lambda: projected(terms()).noising,
    "mask key": lambda: MaskKey(KEY),
    "an opened upload": lambda: Release(rows=BASIS),
    "what an attack makes of it": lambda: Recovered(rows=BASIS, basis=BASIS),
}


def projected(dp):
    return joined(SECRET, basis="haar", dp=dp).project(RowsInMemory(*tables()["north"]))


def written(text):
    """Whether some entry of the basis, or the key in any spelling, stands in `text`."""
    digits = [np.format_float_positional(abs(each), precision=4) for each in BASIS.ravel()]
    spelled = [KEY.hex(), repr(KEY)[2:-1], str(list(KEY))[1:-1], *digits]
    spelled += [str(PERSON._age), PERSON._signing.private_bytes_raw().hex()]
    return [each for each in spelled if each in text]


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_secret_is_not_shown_pickled_copied_or_looked_into(kind):
    for say in (repr, str, "{}".format):
        shown = say(HIDDEN[kind]())
        assert "hidden" in shown
        assert written(shown) == []
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretError, match=r"does not travel.*\[CB301\]$"):
            travel(HIDDEN[kind]())
    if kind in {"basis", "consortium secret", "party key", "identity"}:
        with pytest.raises(TypeError):
            vars(HIDDEN[kind]())
    for found in (repr(BASIS), f"key={KEY!r}", KEY.hex(), str(PERSON._age)):
        assert written(found)


def test_no_protocol_object_shows_a_secret_or_an_array_and_what_holds_one_does_not_travel():
    secret, key = ConsortiumSecret(KEY, simulated=True), PartyKey(KEY, simulated=True)
    made = consortium(secret=secret, keys=dict.fromkeys(NAMES, key))
    north, analyst = made.parties["north"], made.analyst
    upload = north.prepare(*made.rows["north"], basis=SecretBasis(BASIS, party="north"))
    analyst.receive(upload)
    returned = analyst.run()["north"]
    north.accept(returned)
    of_party = (north, made.parties, north._anchor, key.stream("rotation"))
    of_analyst = (analyst, analyst.alignment, made.agreement, simulated())
    for each in (*of_party, *of_analyst, upload, returned):
        assert written(f"{each!r} {each}") == []
    weights, sent = returned.model.layers[0].weights, repr(upload)
    for array in (upload.rows, upload.anchor_image, returned.change_of_basis, weights):
        assert repr(array).split("],")[0] not in sent + repr(returned)
    assert "labels" not in sent
    for holder in (north, simulated()):
        for travel in (pickle.dumps, copy.deepcopy):
            with pytest.raises(SecretError, match="does not travel"):
                travel(holder)


def test_what_nobody_gave_is_drawn_from_the_system(monkeypatch):
    """And not from a generator that begins anew; `simulate` gives its own, which are marked."""
    monkeypatch.setattr("secrets.token_bytes", lambda count: KEY[:count])
    for kind in (ConsortiumSecret, PartyKey, MaskKey):
        assert kind()._key == KEY
        assert not kind().simulated


def test_a_wrong_secret_and_the_right_one_of_another_round_are_refused():
    secret = ConsortiumSecret()
    for other in (ConsortiumSecret().commitment("icu-2026"), secret.commitment("x")):
        with pytest.raises(CommitmentError, match=r"party 'east'.*'icu-2026'.*\[CB302\]$"):
            joined(secret, "east", commitment=other)


def test_the_agreement_holds_no_byte_of_the_secret_whose_uses_are_all_unlike():
    secret = ConsortiumSecret(KEY)
    agreement = agree(secret)
    text, tag = agreement.model_dump_json(), secret.anchor_tag(agreement).hex()
    assert not any(KEY[i : i + 4] in text.encode() for i in range(29))
    assert not any(KEY[i : i + 4].hex() in text for i in range(29))
    assert tag not in text
    recipe = agreement.anchor_recipe().decode()
    uses = {secret._mac(use, recipe.encode()).hex() for use in (b"anchor", b"draw")}
    assert len(uses | {agreement.commitment, secret.commitment(recipe)}) == 4


def test_parties_of_one_process_share_the_anchor_while_one_of_them_holds_it():
    secret, twin, directions = ConsortiumSecret(KEY), ConsortiumSecret(KEY), np.eye(WIDTH)
    north, south, elsewhere = joined(secret), joined(secret, "south"), joined(twin)
    assert north._anchor is south._anchor is not elsewhere._anchor
    images = [each._anchor.apply(directions) for each in (north, elsewhere)]
    np.testing.assert_array_equal(*images)
    drawn = weakref.ref(twin.anchor(agree(twin, round_id="later")))
    gc.collect()
    assert drawn() is None


def test_the_tag_changes_with_everything_that_determines_the_anchor_and_with_nothing_else():
    one, two, other = (ConsortiumSecret(key) for key in (KEY, KEY, KEY[::-1]))
    plain = one.anchor_tag(agree(one))
    for same in ({"parties": (*NAMES, "late")}, {"aligner": "whitened"}, {"n_components": 2}):
        assert two.anchor_tag(agree(two, **same)) == plain
    changes = [{"round_id": "2027"}, {"n_anchor_rows": 9}, {"features": numeric_features("abcde")}]
    changes += [{"anchor": "gaussian"}]
    for use in ({"basis": "public"}, {"anchor": "public"}, {"anchor": "smote"}):
        changes += [use | {"public_rows_sha256": digit * 64} for digit in "01"]
    tags = {one.anchor_tag(agree(one, **each)) for each in changes}
    assert len({*tags, plain, other.anchor_tag(agree(one))}) == len(changes) + 2


def test_a_basis_of_other_sizes_and_an_oblique_one_outside_a_simulation_are_refused():
    secret = ConsortiumSecret()
    for shape in ((WIDTH + 1, COMPONENTS), (WIDTH, COMPONENTS - 1)):
        kept = SecretBasis(np.eye(*shape), party="north")
        with pytest.raises(ShapeError, match=r"party 'north' kept has shape .*\[CB102\]$"):
            joined(secret).prepare(*tables()["north"], basis=kept)
    assert SecretBasis(BASIS + 1e-12, party="north").shape == (WIDTH, COMPONENTS)
    for wrong in (2 * BASIS, BASIS + 1e-9, np.zeros((8, 2))):
        with pytest.raises(OrthonormalityError, match=r"'north' is not orthonormal.*1e-10.*CB202"):
            SecretBasis(wrong, party="north")
    oblique = SecretBasis(2 * BASIS, party="north", oblique=True)
    key, noisy = PartyKey(KEY, simulated=True), {"basis": "haar", "dp": terms()}
    for party in (joined(secret), joined(secret, key=key, **noisy)):
        with pytest.raises(OrthonormalityError, match=r"'north' kept is not orthonormal.*CB202\]$"):
            party.prepare(*tables()["north"], basis=oblique)
    assert joined(secret, key=key).prepare(*tables()["north"], basis=oblique).simulated


def test_public_rows_must_be_the_agreed_ones_in_both_directions():
    rows = tables(names=("public",))["public"][0]
    agreement = agree(SECRET, basis="public", public_rows_sha256=public_rows_digest(rows))

    def join(rows, agreement=agreement):
        return Party("north", agreement=agreement, secret=SECRET, public_rows=rows)

    join(rows)
    for other in (None, rows[::-1], rows[:-1], rows + 1e-9):
        with pytest.raises(AgreementError, match=r"party 'north' has .*\[CB303\]$"):
            join(other)
    with pytest.raises(AgreementError, match="the agreement says none"):
        join(rows, agree(SECRET))
    with pytest.raises(ShapeError, match="the table of public rows of party 'north' has 2 columns"):
        join(rows[:, :2])
    frame = mixed(12)  # with categories they are known by their encoding
    digest = public_rows_digest(encode(frame, MIXED, party="public"))
    by = {"features": MIXED, "n_anchor_rows": ENCODED, "basis": "public"}
    join(frame, agree(SECRET, **by, public_rows_sha256=digest))
    with pytest.raises(AgreementError, match="party 'north' has public rows with digest"):
        join(frame[::-1], agree(SECRET, **by, public_rows_sha256=digest))
