"""Messages go into bundles and come out the same; what a bundle holds is what it says."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from bundle.bundles import ENROLLED, LAB, NORTH, opened
from bundle.payloads import sealed
from cobasis import ConsortiumSecret
from cobasis.bundle import messages
from cobasis.errors import OptionError
from cobasis.models.chain_file import encode_chain
from cobasis.models.trainer import train
from cobasis.protocol.card import make_card
from cobasis.protocol.messages import ConsensusSpan, Return, SpanProposal
from protocol.consortium import agree

RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(40, 3)), RNG.integers(0, 2, size=40)
AGREEMENT = agree(ConsortiumSecret(bytes(32)))
DIGEST, TAG = AGREEMENT.digest(), bytes(range(32))
MODEL = train(ROWS, LABELS, model="logistic", task="classification", seed=0)
PROPOSAL = SpanProposal(
    party="north", agreement_digest=DIGEST, anchor_tag=TAG, image=ROWS[:8, :2], simulated=False
)
SPAN = ConsensusSpan(
    agreement_digest=DIGEST,
    anchor_tag=TAG,
    rows=np.linalg.qr(ROWS[:8])[0],
    contributors=("north", "south", "east"),
    simulated=False,
)
_RETURN = Return(
    party="north",
    agreement_digest=DIGEST,
    change_of_basis=np.linalg.qr(ROWS[:3])[0],
    model=MODEL,
    evidence="cannot tell",
    trained_on=("north", "south"),
    target_carries=("south", "east"),
    simulated=False,
    others=MODEL,
)
CARD = make_card(
    AGREEMENT, _RETURN, consensus=None, anchor_tag=TAG, n_rows=84, evidence="cannot tell"
)
RETURN = replace(_RETURN, card=CARD)


def through(folder, enclosed, *, by, to):
    folder.mkdir(exist_ok=True)
    path = sealed(folder / "a.cb", enclosed, by=by, to=to)
    return opened(path, folder / "in", by=to, signer=ENROLLED)


def return_bundle(folder, made=RETURN):
    enclosed = messages.enclose_return(made, agreement=AGREEMENT, sender="lab", upload="a" * 64)
    return through(folder, enclosed, by=LAB, to=NORTH)


def same(found, sent):
    assert type(found) is type(sent)
    for name in sent.__dataclass_fields__:
        one, other = getattr(found, name), getattr(sent, name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, strict=True)
        elif name in {"model", "others"} and other is not None:
            assert encode_chain(one) == encode_chain(other)
        else:
            assert one == other, name


def test_messages_come_out_as_they_went_in(tmp_path):
    enclosed = messages.enclose(PROPOSAL, agreement=AGREEMENT, sender="north")
    bundle = through(tmp_path / "proposal", enclosed, by=NORTH, to=LAB)
    same(messages.proposal_in(bundle), PROPOSAL)
    enclosed = messages.enclose(SPAN, agreement=AGREEMENT, sender="lab")
    bundle = through(tmp_path / "span", enclosed, by=LAB, to=NORTH)
    same(messages.consensus_in(bundle), SPAN)
    bundle = return_bundle(tmp_path / "return")
    found = messages.return_in(bundle, agreement=AGREEMENT, party="north")
    same(found, RETURN)
    np.testing.assert_array_equal(found.model.predict(ROWS), MODEL.predict(ROWS))
    trained = train(ROWS, LABELS, model=GaussianNB(), task="classification", seed=0)
    with pytest.raises(OptionError, match="only chains travel"):
        return_bundle(tmp_path, replace(RETURN, model=trained))
