import numpy as np
import pytest

from aligners import (
    EPS,
    Toy,
    haar,
    make_anchor,
    make_toy,
    on_every_aligner,
    on_every_anchor,
    spread,
)
from cobasis import GOPP, ODC, Imakura, Kawakami, Whitened, align
from cobasis.errors import (
    AnchorImageError,
    CobasisError,
    ConditionError,
    DimensionError,
    DtypeError,
    NotFiniteError,
    OptionError,
    OrthonormalityError,
    ShapeError,
    UndeterminedFitError,
    UnknownPartyError,
)

WIDTHS = {"p0": 3, "p1": 5, "p2": 4}


def uneven(anchor: str, widths: dict[str, int] = WIDTHS) -> Toy:
    """Nested spans of one Haar basis, each behind its own rotation."""
    frame = haar(30, 12)
    bases = {p: frame[:, :width] @ haar(40 + width, width) for p, width in widths.items()}
    return Toy(anchor=make_anchor(anchor, n_rows=30, n_features=12), bases=bases)


@on_every_anchor
@pytest.mark.parametrize("aligner", [ODC(reference="p1"), GOPP()], ids=["odc", "gopp"])
def test_procrustes_takes_narrower_parties_under_any_anchor(aligner, anchor):
    toy = uneven(anchor)
    found = align(aligner, toy.images)
    for party, change in found.changes_of_basis.items():
        assert change.shape == (WIDTHS[party], 5)
        np.testing.assert_allclose(change @ change.T, np.eye(WIDTHS[party]), rtol=0, atol=100 * EPS)
    if anchor == "isometric":
        products, narrow = toy.products(found), toy.bases["p0"]
        projected = narrow @ narrow.T @ products["p1"]
        np.testing.assert_allclose(products["p0"], projected, rtol=0, atol=toy.rounding())


@pytest.mark.parametrize("aligner", [ODC(), Whitened()], ids=["odc", "whitened"])
def test_rotations_take_wider_parties_under_an_isometric_anchor(aligner):
    toy = uneven("isometric")
    found = align(aligner, toy.images)
    assert {change.shape[1] for change in found.changes_of_basis.values()} == {3}
    assert spread(toy.products(found)) < toy.rounding()


@on_every_aligner
@pytest.mark.parametrize("width", [2, 6])
def test_a_late_party_of_another_width_is_taken_or_refused_as_claimed(row, width):
    toy = make_toy("samespan_orth", anchor="gaussian")
    found = toy.align(row)
    late = toy.anchor.apply(haar(50, 12)[:, :width])
    if width > 4 and row.turns:
        reason = r"party 'late' has 6 components, the target 4.*anchor='isometric'.*\[CB106\]"
        with pytest.raises(DimensionError, match=reason):
            align(found.aligner, {"late": late}, target=found.target)
        return
    taken = align(found.aligner, {"late": late}, target=found.target)
    assert taken.changes_of_basis["late"].shape == (width, 4)


@pytest.mark.parametrize("aligner", [ODC(), Whitened(), GOPP()], ids=repr)
@pytest.mark.parametrize("common", [0, 2])
def test_features_in_common_with_nobody_are_undetermined(aligner, common):
    """Each agrees with a mean that contains it, too: only the others can determine it."""
    axes, anchor = np.eye(12), make_anchor("isometric", n_rows=30, n_features=12)
    bases = {"north": axes[:, :3] @ haar(3, 3), "south": axes[:, 3 - common : 6 - common]}
    reason = rf"party '\w+' has {3 - common} of 3 directions undetermined.*\[CB205\]"
    with pytest.raises(UndeterminedFitError, match=reason):
        align(aligner, Toy(anchor=anchor, bases=bases).images)


@pytest.mark.parametrize("place", range(4))
def test_a_stranger_among_parties_that_agree_is_undetermined_wherever_it_stands(place):
    axes, anchor = np.eye(12), make_anchor("isometric", n_rows=30, n_features=12)
    bases = [axes[:, :3] @ haar(seed, 3) for seed in range(3)]
    bases.insert(place, axes[:, 6:9])
    with pytest.raises(UndeterminedFitError, match=rf"party 'p{place}'"):
        align(GOPP(), {f"p{index}": anchor.apply(basis) for index, basis in enumerate(bases)})


def times(*factors):
    return lambda image: image @ np.diag(factors)


BROKEN = {
    "zero": (lambda image: 0 * image, AnchorImageError, "is zero"),
    "rank-deficient": (times(1, 1, 1, 0), AnchorImageError, "has rank 3 of 4 components, so 1 d"),
    "ill-conditioned": (times(1, 1, 1, 1e-12), ConditionError, r"condition number .*e\+1[123]"),
    "not finite": (lambda image: np.where(image > 1, np.nan, image), NotFiniteError, "NaN or inf"),
    "of other rows": (lambda image: image[:-1], ShapeError, "the round's anchor has 30 rows"),
    "transposed": (lambda image: image.T, ShapeError, "the round's anchor has 30 rows"),
    "flat": (lambda image: image[:, 0], ShapeError, "1 dimensions"),
    "complex": (lambda image: image + 0j, DtypeError, "Complex"),
}


@on_every_aligner
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_image_is_one_error_that_names_the_party_in_time_or_late(row, case):
    breakage, kind, reason = BROKEN[case]
    toy = make_toy("samespan_orth")
    images = {**toy.images, "p2": breakage(toy.images["p2"])}
    pattern = rf"(?s)anchor image of party 'p2'.*{reason}.*\[{kind.code}\]"
    with pytest.raises(kind, match=pattern):
        align(row.make(4), images)
    found = toy.align(row)
    with pytest.raises(kind, match="anchor image of party 'late'"):
        align(found.aligner, {"late": breakage(toy.images["p2"])}, target=found.target)


OPTIONS = [
    (ODC(rotation=2 * np.eye(4)), OrthonormalityError, r"is not orthogonal.*\[CB202\]"),
    (ODC(rotation=np.eye(5)[:, :4]), OrthonormalityError, r"is not orthogonal.*\[CB202\]"),
    (ODC(rotation=np.eye(3)), ShapeError, "rotation has 3 columns"),
    (ODC(reference="p9"), UnknownPartyError, r"reference 'p9' is not among .*\[CB304\]"),
    (Imakura(factor=np.ones((5, 4))), OptionError, r"shape \(5, 4\) and rank 1.*\[CB107\]"),
    (Imakura(factor=np.diag([1.0, 1, 1, 0])), OptionError, r"shape \(4, 4\) and rank 3.*\[CB107\]"),
    (Kawakami(weighting="eigne"), OptionError, r"weighting='eigne' is not known.*\[CB107\]"),
    (Kawakami(scale="papers"), OptionError, r"scale='papers' is no scale.*\[CB107\]"),
    (Imakura(scale=-1.0), OptionError, r"scale=-1.0 is no scale.*\[CB107\]"),
    (Imakura(scale=float("nan")), OptionError, r"scale=nan is no scale.*\[CB107\]"),
]


@pytest.mark.parametrize(("aligner", "error", "match"), OPTIONS)
def test_an_option_that_cannot_be_is_refused(aligner, error, match):
    with pytest.raises(error, match=match):
        align(aligner, make_toy("samespan_orth").images)


@pytest.mark.parametrize("first", [3.0, [[1.0], [1.0, 2.0]], None])
def test_no_image_and_a_first_one_that_is_no_table_are_refused(first):
    """The first sets the number of rows, so it may not get by unchecked."""
    images = {} if first is None else {"p0": first, "p1": np.ones((2, 1))}
    with pytest.raises(CobasisError, match=r"(no anchor image|party 'p0').*\[CB102\]"):
        align(ODC(), images)


@on_every_aligner
def test_a_common_unit_of_the_anchor_does_not_matter_and_images_are_not_changed(row):
    toy = make_toy("samespan_orth")
    for unit in (1e-6, 1e6):
        images = {party: unit * image for party, image in toy.images.items()}
        kept = {party: image.copy() for party, image in images.items()}
        found = align(row.make(4), images)
        assert spread(toy.products(found)) < toy.rounding()
        align(found.aligner, {"late": images["p1"]}, target=found.target)
        for party, image in images.items():
            np.testing.assert_array_equal(image, kept[party])
