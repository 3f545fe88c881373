import numpy as np
import pytest
from benchmarks.contenders import FORMS
from benchmarks.exactness import difference
from benchmarks.inputs import separated

from cobasis import Imakura, Kawakami, align

OURS = {"Imakura": Imakura(scale="paper"), "Kawakami": Kawakami(scale="paper")}


@pytest.mark.parametrize("c", [5, 3])  # more columns beside each other than anchor rows, or fewer
@pytest.mark.parametrize("name", FORMS)
def test_a_published_form_finds_our_solution_up_to_a_rotation(name, c):
    images = separated(a=16, l=4, c=c, noise=0.3)
    ours = dict(align(OURS[name.split(",")[0]], images).changes_of_basis)
    tolerance = 1e-4 if "randomised" in name else 1e-10
    found = FORMS[name].run(images)
    assert difference(images, found, ours) < tolerance
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert difference(images, {who: each @ turn for who, each in found.items()}, ours) < tolerance
    assert difference(images, {who: 1.01 * each for who, each in found.items()}, ours) > 0.01
