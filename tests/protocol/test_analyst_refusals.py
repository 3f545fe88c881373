"""What the analyst refuses: one coded error each, and nothing half done."""

import dataclasses

import numpy as np
import pytest

from cobasis import Analyst, ConsortiumSecret, PartyKey, SecretBasis, simulate
from cobasis.errors import (
    AnchorImageError,
    AnchorTagError,
    ConditionError,
    DuplicatePartyError,
    FitCheckError,
    LabelError,
    MessageError,
    RemoteError,
    ScaleError,
    UndeterminedFitError,
    UnknownPartyError,
)
from cobasis.protocol import analyst as analyst_module
from protocol.consortium import COMPONENTS, NAMES, WIDTH, agree, consortium, state, tables, trained


@pytest.fixture(scope="module")
def made():
    return consortium()


@pytest.fixture(scope="module")
def uploads(made):
    return made.uploads()


def nan_in(table):
    spoilt = table.copy()
    spoilt[1, 1] = np.nan
    return spoilt


FORGERIES = {
    "another's digest": (lambda _: {"agreement_digest": bytes(32)}, MessageError, "another agree"),
    "a name nobody enrolled": (lambda _: {"party": "ghost"}, UnknownPartyError, "'ghost'"),
    "NaN in the rows": (lambda u: {"rows": nan_in(u.rows)}, MessageError, "used: "),
    "NaN in the image": (
        lambda u: {"anchor_image": nan_in(u.anchor_image)},
        MessageError,
        "used: ",
    ),
    "infinite rows": (lambda u: {"rows": u.rows * np.inf}, MessageError, "used: "),
    "huge rows": (lambda u: {"rows": u.rows * 1e60}, MessageError, "1e\\+50"),
    "rows too wide": (
        lambda u: {"rows": np.hstack([u.rows, u.rows])},
        MessageError,
        r"rows of shape \(30, 6\)",
    ),
    "rows transposed": (lambda u: {"rows": u.rows.T}, MessageError, r"rows of shape \(3, 30\)"),
    "no rows": (lambda u: {"rows": u.rows[:0], "labels": u.labels[:0]}, MessageError, "used: "),
    "rows of text": (lambda u: {"rows": u.rows.astype(str)}, MessageError, "used: "),
    "complex rows": (lambda u: {"rows": u.rows + 0j}, MessageError, "used: "),
    "byte-swapped image": (
        lambda u: {"anchor_image": u.anchor_image.astype(">f8")},
        MessageError,
        "used: ",
    ),
    "rows missing": (lambda _: {"rows": None}, MessageError, "used: "),
    "image too wide": (
        lambda _: {"anchor_image": np.linalg.qr(np.ones((8, 4)) + np.eye(8, 4))[0]},
        MessageError,
        "an anchor image of shape .*4",
    ),
    "image too short": (
        lambda u: {"anchor_image": u.anchor_image[:-1]},
        MessageError,
        r"image of shape \(7, 3\)",
    ),
    "image one-dimensional": (lambda _: {"anchor_image": np.ones(8)}, MessageError, "used: "),
    "image zero": (lambda u: {"anchor_image": 0 * u.anchor_image}, AnchorImageError, "is zero"),
    "image of rank two": (
        lambda u: {"anchor_image": u.anchor_image @ np.diag([1, 1, 0])},
        AnchorImageError,
        "rank 2 of 3",
    ),
    "image ill-conditioned": (
        lambda u: {"anchor_image": u.anchor_image @ np.diag([1, 1, 1e-12])},
        ConditionError,
        "condition number",
    ),
    "a label too few": (lambda u: {"labels": u.labels[1:]}, MessageError, "29 labels"),
    "no labels": (lambda _: {"labels": None}, MessageError, "None labels"),
    "labels of no dimension": (lambda _: {"labels": np.array(1)}, MessageError, "1 labels"),
    "labels in two columns": (
        lambda u: {"labels": np.stack([u.labels, u.labels], axis=1)},
        MessageError,
        "labels of party 'north'",
    ),
    "labels that are no integers": (
        lambda u: {"labels": u.labels.astype(float)},
        MessageError,
        "task='classification'",
    ),
    "labels of text": (lambda u: {"labels": u.labels.astype(str)}, MessageError, "labels of party"),
    "a class too high": (lambda u: {"labels": u.labels + 1}, MessageError, "labels of party"),
    "a negative class": (lambda u: {"labels": u.labels - 1}, MessageError, "labels of party"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_upload_is_refused_and_changes_nothing(made, uploads, forgery):
    change, error, words = FORGERIES[forgery]
    analyst = Analyst(made.agreement)
    analyst.receive(uploads["south"])
    before = state(analyst)
    forged = dataclasses.replace(uploads["north"], **change(uploads["north"]))
    with pytest.raises(error, match=words) as caught:
        analyst.receive(forged)
    assert str(caught.value).endswith(f"[{error.code}]")
    assert caught.value.exit_code == (3 if issubclass(error, RemoteError) else 2)
    assert state(analyst) == before
    analyst.receive(uploads["north"])
    assert tuple(analyst.uploads) == ("south", "north")


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_late_upload_leaves_the_alignment_alone(made, uploads, forgery):
    change, error, _ = FORGERIES[forgery]
    analyst = Analyst(made.agreement)
    for name in NAMES[1:]:
        analyst.receive(uploads[name])
    analyst.align()
    analyst.certify()
    before = state(analyst)
    with pytest.raises(error):
        analyst.receive(dataclasses.replace(uploads["north"], **change(uploads["north"])))
    assert state(analyst) == before


def test_a_second_upload_of_one_name_is_refused(made, uploads):
    analyst = Analyst(made.agreement)
    analyst.receive(uploads["north"])
    before = state(analyst)
    impostor = dataclasses.replace(uploads["south"], party="north")
    with pytest.raises(DuplicatePartyError, match=r"party 'north' is in already.*\[CB307\]$"):
        analyst.receive(impostor)
    assert state(analyst) == before


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_regression_labels_that_are_not_finite_are_refused(wrong):
    rows = {name: (X, X[:, 0]) for name, (X, _) in tables().items()}
    regression = consortium(rows=rows, task="regression", classes=())
    upload = regression.uploads()["north"]
    labels = upload.labels.copy()
    labels[0] = wrong
    with pytest.raises(MessageError, match="task='regression'"):
        regression.analyst.receive(dataclasses.replace(upload, labels=labels))


def test_unequal_anchor_tags_are_found_before_any_residual(made, uploads, monkeypatch):
    """The error names the groups; nothing was aligned, though each image alone is fine."""

    def never(*_arguments, **_options):
        pytest.fail("images were compared before the tags")

    monkeypatch.setattr(analyst_module, "align", never)
    analyst = Analyst(made.agreement)
    for name, upload in uploads.items():
        tag = b"another" if name in {"south", "west"} else upload.anchor_tag
        analyst.receive(dataclasses.replace(upload, anchor_tag=tag))
    before = state(analyst)
    with pytest.raises(AnchorTagError, match=r"2 different anchors: north, east \| south, west"):
        analyst.align()
    assert state(analyst) == before


def test_a_late_party_with_another_tag_is_refused(made, uploads):
    analyst = Analyst(made.agreement)
    for name in NAMES[:3]:
        analyst.receive(uploads[name])
    analyst.align()
    before = state(analyst)
    with pytest.raises(AnchorTagError, match=r"\| west"):
        analyst.receive(dataclasses.replace(uploads["west"], anchor_tag=b"another"))
    assert state(analyst) == before


@pytest.mark.parametrize("of_image", [1.0, 1000.0, 1e-3])
@pytest.mark.parametrize("of_rows", [1000.0, 1e-3, 0.0])
def test_another_scale_is_refused_by_name(made, uploads, of_rows, of_image):
    analyst, east = Analyst(made.agreement), uploads["east"]
    scaled = {"rows": east.rows * of_rows, "anchor_image": east.anchor_image * of_image}
    for upload in {**uploads, "east": dataclasses.replace(east, **scaled)}.values():
        analyst.receive(upload)
    with pytest.raises(ScaleError, match=r"of party 'east' (are|is) more than 10 times.*CB309"):
        analyst.run()
    assert set(analyst.run(exclude=["east"])) == {"north", "south", "west"}


def test_the_scale_band_is_a_field_of_the_agreement():
    wide = consortium(scale_band=1e4)
    for name, upload in wide.uploads().items():
        factor = 1000.0 if name == "east" else 1.0
        wide.analyst.receive(dataclasses.replace(upload, rows=upload.rows * factor))
    assert set(wide.analyst.run()) == set(NAMES)


def with_wrong_anchor(*, liar="east", names=NAMES):
    """The liar's image comes from another secret, never a random one: 1 in 400 is near enough."""
    how = {"rows": tables(names=names), "keys": dict.fromkeys(names, PartyKey(bytes(32)))}
    made, other = (consortium(**how, secret=ConsortiumSecret(bytes([i] * 32))) for i in (1, 2))
    for name, upload in made.uploads().items():
        image = other.uploads()[name].anchor_image if name == liar else upload.anchor_image
        made.analyst.receive(dataclasses.replace(upload, anchor_image=image))
    return made


def test_a_wrong_anchor_under_the_right_tag_stops_nothing_and_reads_cannot_tell():
    """Only a party that lies makes one: a wrong secret shows in the tag."""
    made = with_wrong_anchor()
    returns = made.analyst.run()
    assert set(returns) == set(NAMES)
    assert made.analyst.certificate.parties["east"].evidence == "cannot tell"
    assert returns["east"].evidence == "cannot tell"


def test_a_party_left_out_by_name_leaves_no_trace():
    made = with_wrong_anchor(liar="north")
    for returned in made.analyst.run(exclude=["north"]).values():
        assert "north" not in returned.trained_on
        assert "north" not in returned.target_carries
    rows, labels = tables(n_rows=100)["south"]
    party = made.parties["south"]
    party.accept(trained(made.analyst)["south"])
    assert np.mean(party.predict(rows) == labels) > 0.9


def test_a_change_of_basis_that_is_not_the_fit_is_refused_by_name(made, uploads):
    analyst = Analyst(made.agreement)
    for upload in uploads.values():
        analyst.receive(upload)
    fits = analyst.align().fits
    turned = dataclasses.replace(fits["south"], change_of_basis=-fits["south"].change_of_basis)
    forged = fits.having("south", turned)
    analyst._alignment = dataclasses.replace(analyst.alignment, fits=forged)
    analyst.certify()
    with pytest.raises(FitCheckError, match=r"of party 'south' is not the fit.*CB207"):
        analyst.train()


@pytest.mark.parametrize("excluded", [["ghost"], ["north", "ghost"]])
def test_excluding_a_party_that_is_not_in_changes_nothing(made, uploads, excluded):
    analyst = Analyst(made.agreement)
    for upload in uploads.values():
        analyst.receive(upload)
    analyst.run()
    before = state(analyst)
    with pytest.raises(UnknownPartyError, match="'ghost'"):
        analyst.run(exclude=excluded)
    assert state(analyst) == before


def test_an_undetermined_fit_is_refused():
    """Disjoint features under an isometric anchor: nothing corresponds to anything."""
    made = consortium()
    directions = np.eye(WIDTH)
    for name, party in made.parties.items():
        half = directions[:, COMPONENTS:] if name == "west" else directions[:, :COMPONENTS]
        basis = SecretBasis(half, party=name)
        made.analyst.receive(party.prepare(*made.rows[name], basis=basis))
    with pytest.raises(UndeterminedFitError, match=r"3 of the 3 directions of party 'west'"):
        made.analyst.run()


def test_all_labels_of_one_class_are_refused():
    made = consortium(rows={name: (X, 0 * y) for name, (X, y) in tables().items()})
    made.received()
    with pytest.raises(LabelError, match=r"all 120 rows are of one class"):
        made.analyst.run()


def test_a_party_that_holds_one_class_only_is_legal():
    rows = tables()
    rows["north"] = (rows["north"][0], np.zeros(30, dtype=int))
    assert set(consortium(rows=rows).received().run()) == set(NAMES)


def test_real_uploads_never_train_a_model_that_carries_rows():
    analyst = consortium(model="svm").received()
    with pytest.raises(ValueError, match=r"SVC stores training rows.*\[CB401\]$"):
        analyst.run()
    with pytest.raises(ValueError, match=r"allow_row_carrying is for simulations.*\[CB401\]$"):
        analyst.run(allow_row_carrying=True)


def test_simulated_uploads_may_train_one_behind_the_flag():
    options = {"n_components": COMPONENTS, "model": "svm"}
    done = simulate(tables(), rng=np.random.default_rng(0), allow_row_carrying=True, **options)
    assert hasattr(done.parties["north"]._return.model.estimator, "support_vectors_")
    with pytest.raises(ValueError, match=r"\[CB401\]$"):
        simulate(tables(), rng=np.random.default_rng(0), **options)


def test_the_analyst_of_another_round_refuses_everything(uploads):
    other = Analyst(agree(ConsortiumSecret(), round_id="icu-2027"))
    for upload in uploads.values():
        with pytest.raises(MessageError, match="'icu-2027'"):
            other.receive(upload)
    assert tuple(other.uploads) == ()
