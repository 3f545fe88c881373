"""Images that are read one by one: the same fits, few in memory, and never two versions."""

import numpy as np
import pytest

from aligners import EPS, make_toy, on_every_aligner
from cobasis import ODC, align
from cobasis.algorithms.images import BATCH_BYTES, View, batches
from cobasis.errors import FileChangedError


class Lazy(View):
    """Images that exist while they are looked at, and a note of every look."""

    def __init__(self, images, dtype=np.float64):
        super().__init__(images, read=self.look)
        self.images, self.dtype, self.looks = images, dtype, []

    def look(self, party):
        self.looks.append(party)
        return self.images[party].astype(self.dtype)


class Noted(dict):
    """A sink that remembers in which order it was filled."""

    def __init__(self, *args):
        super().__init__(*args)
        self.order = []

    def update(self, fits):
        self.order += fits
        super().update(fits)


@on_every_aligner
def test_lazy_images_give_the_fits_of_arrays_in_float64(row):
    toy = make_toy("diffspan_orth", n_parties=7)
    plain = toy.align(row)
    found = align(row.make(4), Lazy(toy.images), workers=3)
    assert list(found.fits) == list(plain.fits)
    single = align(row.make(4), Lazy(toy.images, np.float32))
    for party, change in plain.changes_of_basis.items():
        near = found.changes_of_basis[party]
        np.testing.assert_allclose(near, change, rtol=0, atol=10 * toy.rounding())
        assert single.changes_of_basis[party].dtype == np.float64


PASSES = {"odc": 1, "whitened": 1, "imakura": 2, "kawakami": 2}


@on_every_aligner
def test_a_method_reads_each_image_as_often_as_it_says(row):
    toy = make_toy("samespan_orth", n_parties=40)
    images = Lazy(toy.images)
    found = align(row.make(4), images)
    name = row.name.split("-")[0]
    extra = 3.1 if name == "gopp" else 0.1
    expected = PASSES.get(name, found.target.iterations)
    assert expected <= len(images.looks) / 40 <= expected + extra


def test_a_batch_is_some_megabytes_of_one_shape():
    width = 50
    wide = np.zeros((1000, width))
    images = {f"p{i}": wide for i in range(25)} | {"q": np.zeros((1000, 20)), "r": wide}
    found = [(len(batch), sum(x.nbytes for x in batch.values())) for batch in batches(images)]
    assert [count for count, _ in found] == [10, 10, 5, 1, 1]
    assert max(size for _, size in found) <= BATCH_BYTES
    assert len(next(batches(dict.fromkeys(map(str, range(400)), wide)))) == 20
    large = np.zeros((BATCH_BYTES // 8, 2))
    assert [list(batch) for batch in batches({"a": large, "b": large})] == [["a"], ["b"]]


def test_what_the_sink_has_is_not_fitted_again():
    toy = make_toy("diffspan_orth", n_parties=6)
    whole = align(ODC(), toy.images)
    sink = Noted({party: whole.fits[party] for party in ("p1", "p4")})
    images = Lazy(toy.images)
    found = align(ODC(), images, target=whole.target, sink=sink)
    assert sink.order == images.looks == ["p0", "p2", "p3", "p5"]
    assert found.fits["p1"] is whole.fits["p1"]


def test_what_was_fitted_before_an_interrupt_is_in_the_sink():
    toy = make_toy("diffspan_orth", n_parties=30, n_anchor_rows=60_000, n_features=12)

    class Interrupted(Lazy):
        def look(self, party):
            if party == "p20":
                raise KeyboardInterrupt
            return super().look(party)

    sink = Noted()
    with pytest.raises(KeyboardInterrupt):
        align(ODC(), Interrupted(toy.images), sink=sink, workers=2)
    assert 10 <= len(sink.order) <= 20
    assert sink.order == [f"p{i}" for i in range(len(sink.order))]


CHANGES = [
    lambda image: image[::-1],
    lambda image: image * (1 + 4 * EPS),
    lambda image: image[:, :3],
    lambda image: image.astype(np.float32),
]


@pytest.mark.parametrize("change", CHANGES, ids=["order", "last bit", "width", "type"])
@on_every_aligner
def test_an_image_that_changes_between_two_readings_is_refused(row, change):
    """Every method reads p0 twice: as the reference, as the frame, or in two passes."""
    toy = make_toy("samespan_orth")

    class Changing(Lazy):
        def look(self, party):
            image = super().look(party)
            return change(image) if party == "p0" and self.looks.count("p0") > 1 else image

    with pytest.raises(FileChangedError, match=r"party 'p0' is not the same.*\[CB603\]$"):
        align(row.make(4), Changing(toy.images))


def test_a_view_has_the_names_that_it_was_given_and_no_others():
    below = {"a": 1, "b": 2, "c": 3}
    view = View({"b", "c"}, read=below.__getitem__)
    assert dict(view) == {"b": 2, "c": 3}
    assert "a" not in view
    with pytest.raises(KeyError):
        view["a"]
