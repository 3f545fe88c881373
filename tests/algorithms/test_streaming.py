import numpy as np

from aligners import make_toy, on_every_aligner
from cobasis import align
from cobasis.algorithms.images import BATCH_BYTES, View, batches


class Lazy(View):
    """Images that exist while they are looked at, and a note of every look."""

    def __init__(self, images):
        super().__init__(images, read=self.look)
        self.images, self.looks = images, []

    def look(self, party):
        self.looks.append(party)
        return self.images[party].copy()


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
    wide = np.zeros((1000, 50))
    images = {f"p{i}": wide for i in range(25)} | {"q": np.zeros((1000, 20)), "r": wide}
    assert [len(batch) for batch in batches(images)] == [10, 10, 5, 1, 1]
    large = np.zeros((BATCH_BYTES // 8, 2))
    assert [list(batch) for batch in batches({"a": large, "b": large})] == [["a"], ["b"]]
