"""An anchor and an image that do not fit each other are refused before anything is computed."""

import numpy as np
import pytest
from experiments.attacks.anchor_image import anchor_behind, basis_behind, image_of

from cobasis.errors import ShapeError
from cobasis.privacy.attacks.release import Release
from privacy.attacks.constructions import anchor, haar_basis


def test_an_image_is_handed_out_if_it_fits_the_rows():
    image = np.ones((5, 2))
    assert image_of(Release(rows=np.ones((3, 2)), anchor_image=image)) is image
    with pytest.raises(ShapeError, match=r"no anchor image.*\[CB"):
        image_of(Release(rows=np.ones((3, 2))))
    with pytest.raises(ShapeError, match="has 2 columns"):
        image_of(Release(rows=np.ones((3, 4)), anchor_image=image))


def test_an_anchor_of_another_number_of_rows_is_refused():
    with pytest.raises(ShapeError, match=r"the anchor has 4 rows and its image 5.*\[CB"):
        anchor_behind(np.ones((5, 2)), np.ones((4, 3)))
    with pytest.raises(ShapeError, match="the anchor has 6 rows and its image 5"):
        basis_behind(np.ones((5, 2)), np.ones((6, 3)))


@pytest.mark.parametrize("kind", ["isometric", "gaussian", "uniform"])
def test_the_right_anchor_gives_the_basis(kind):
    rows, basis = anchor(kind, 40, 9), haar_basis(9, 4)
    np.testing.assert_allclose(basis_behind(rows @ basis, rows), basis, rtol=0, atol=1e-12)
