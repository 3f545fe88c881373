"""AMES, with the evaluation data: the certificate's verdicts and whitened ODC's identities."""

import os
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cobasis import Analyst, ConsortiumSecret, PrivacyWarning
from cobasis.errors import FlaggedPartyError

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

import ames
import evaluation_data

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        not (Path(os.environ.get("COBASIS_DATA", "nowhere")) / evaluation_data.AMES.path).is_file(),
        reason="COBASIS_DATA names no folder with tdc/ames.tab.gz",
    ),
]


@cache
def rows():
    return ames.deal(evaluation_data.ames(), np.random.default_rng(0))


@cache
def a_round(anchor):
    options = {"anchor": anchor}
    if anchor == "uniform":
        options["n_anchor_rows"] = ames.UNIFORM_ROWS
    return ames.a_round(rows(), 0, **options)


def with_a_wrong_secret(done):
    """Return an analyst with the same uploads, one of them made with another anchor."""
    agreement = done.agreement
    analyst = Analyst(agreement)
    for name in done.analyst.parties:
        upload = done.analyst.upload(name)
        if name == "label-1-1":
            upload = replace(upload, anchor_image=other_image(done, name))
        analyst.receive(upload)
    return analyst


def other_image(done, name):
    """Return the image of a party's basis under an anchor from another secret."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        anchor = ConsortiumSecret(bytes(range(32))).anchor(done.agreement)
    return done.parties[name]._basis.image(anchor)


@pytest.mark.parametrize(
    ("anchor", "honest", "wrong", "unrelated"),
    [("isometric", 0.40, 0.73, 0.73), ("uniform", 0.37, 0.78, 0.66)],
)
def test_the_certificate_tells_a_wrong_secret_from_honest_parties(anchor, honest, wrong, unrelated):
    done = a_round(anchor)
    certificate = done.analyst.certificate
    worst = max(figures.residual for figures in certificate.parties.values())
    assert certificate.verdict == "aligned"
    assert worst == pytest.approx(honest, abs=0.04)
    assert certificate.unrelated == pytest.approx(unrelated, abs=0.04)
    analyst = with_a_wrong_secret(done)
    with pytest.raises(FlaggedPartyError, match="label-1-1"):
        analyst.run()
    assert analyst.certificate.flagged == ("label-1-1",)
    assert analyst.certificate.parties["label-1-1"].residual == pytest.approx(wrong, abs=0.04)


def test_whitened_odc_does_not_see_whether_bases_are_orthonormal():
    found = ames.identities(rows(), seed=0, n_components=50)
    assert len(found) == 3
    assert max(found.values()) < 1e-9
