"""AMES, with the evaluation data: what the certificate's evidence tells apart."""

import warnings
from dataclasses import replace

import pytest
from experiments.data.molecules import deal_molecules
from experiments.harness.systems import a_round
from experiments.studies import ames

from cobasis import Analyst, ConsortiumSecret, PrivacyWarning

pytestmark = [pytest.mark.data("tdc/ames.tab.gz"), pytest.mark.soak]


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
    rows = deal_molecules("ames", repeat=0).parties
    done = a_round(rows, repeat=0, n_components=ames.N_COMPONENTS)
    certificate = done.analyst.certificate
    assert {each.evidence for each in certificate.parties.values()} == {"not a random turn"}
    analyst = with_a_wrong_secret(done)
    analyst.run()
    assert analyst.certificate.parties["label-1-1"].evidence == "cannot tell"
