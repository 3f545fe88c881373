"""AMES, with the evaluation data: the certificate's evidence and whitened ODC's identities."""

import os
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from experiments.data.molecules import TASKS, deal_molecules
from experiments.harness.systems import a_round as simulated
from experiments.harness.systems import generator
from experiments.studies import ames

from cobasis import Analyst, ConsortiumSecret, PrivacyWarning

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        not (Path(os.environ.get("COBASIS_DATA", "nowhere")) / TASKS["ames"].source.path).is_file(),
        reason="COBASIS_DATA names no folder with tdc/ames.tab.gz",
    ),
]

UNIFORM = {"anchor": "uniform", "n_anchor_rows": ames.UNIFORM_ROWS}


@cache
def rows():
    return deal_molecules("ames", rng=generator(0)).parties


@cache
def a_round(anchor):
    options = UNIFORM if anchor == "uniform" else {"anchor": anchor}
    return simulated(rows(), repeat=0, n_components=ames.N_COMPONENTS, **options)


def with_a_wrong_secret(done):
    """Return an analyst with the same uploads, one of them made with another anchor."""
    agreement = done.agreement
    analyst = Analyst(agreement)
    for name in done.analyst.uploads:
        upload = done.analyst.uploads[name]
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


def test_the_evidence_tells_a_wrong_secret_from_honest_parties_and_stops_nothing():
    done = a_round("isometric")
    certificate = done.analyst.certificate
    assert {each.evidence for each in certificate.parties.values()} == {"not a random turn"}
    analyst = with_a_wrong_secret(done)
    analyst.run()
    assert analyst.certificate.parties["label-1-1"].evidence == "cannot tell"


def all_maps(aligner, condition, **anchor):
    """Return all F_i G_i under each other: what the unit vectors are aligned to."""
    options = {"aligner": aligner, "span_condition": condition, "n_components": 50, **anchor}
    done = simulated(rows(), repeat=0, **options)
    unit = np.eye(2048)
    return np.vstack([party.transform(unit) for party in done.parties.values()])


def distance(first, second):
    """Return how far two stacks of F_i G_i are apart, up to one common rotation, relative."""
    left, _, right = np.linalg.svd(first.T @ second)
    return float(np.linalg.norm(first @ (left @ right) - second) / np.linalg.norm(second))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("oblique", "orthonormal", "anchor"),
    [
        (("whitened", "samespan"), ("odc", "samespan_orth"), {}),
        (("whitened", "diffspan"), ("odc", "diffspan_orth"), {}),
        (("whitened", "samespan"), ("whitened", "samespan_orth"), UNIFORM),
    ],
)
def test_whitened_odc_does_not_see_whether_bases_are_orthonormal(oblique, orthonormal, anchor):
    found = distance(all_maps(*oblique, **anchor), all_maps(*orthonormal, **anchor))
    assert found < 1e-9
