from dataclasses import replace

import pytest
from experiments.data.molecules import deal_molecules
from experiments.harness.systems import a_round
from experiments.studies import ames

from cobasis import Analyst, ConsortiumSecret

pytestmark = [pytest.mark.data("tdc/ames.tab.gz"), pytest.mark.soak]


def test_the_evidence_tells_a_wrong_secret_from_honest_parties_and_stops_nothing():
    rows = deal_molecules("ames", repeat=0).parties
    done = a_round(rows, repeat=0, n_components=ames.N_COMPONENTS)
    certificate = done.analyst.certificate
    assert {each.evidence for each in certificate.parties.values()} == {"not a random turn"}
    party, uploads = "label-1-1", dict(done.analyst.uploads)
    other = ConsortiumSecret(bytes(range(32))).anchor(done.agreement)
    image = done.parties[party]._basis.image(other)
    analyst = Analyst(done.agreement)
    for upload in (uploads | {party: replace(uploads[party], anchor_image=image)}).values():
        analyst.receive(upload)
    analyst.run()
    assert analyst.certificate.parties[party].evidence == "cannot tell"
