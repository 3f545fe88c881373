"""The analyst's part of the consensus exchange."""

from collections.abc import Iterable

from cobasis.algorithms.bases import BASES
from cobasis.algorithms.consensus import consensus_span
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan, SpanProposal
from cobasis.protocol.refusals import check_envelope, refuse_different_anchors, refuse_second


def make_consensus(proposals: Iterable[SpanProposal], agreement: Agreement) -> ConsensusSpan:
    """Check all proposals against the agreement and each other, and make the common span."""
    received: dict[str, SpanProposal] = {}
    for proposal in proposals:
        check_envelope(proposal, agreement)
        refuse_second(proposal.party, received)
        received[proposal.party] = proposal
    refuse_different_anchors(received)
    rows = consensus_span(
        {name: proposal.image for name, proposal in received.items()},
        n_components=agreement.n_components,
        weighted=BASES[agreement.basis].weighted,
    )
    return ConsensusSpan(
        agreement_digest=agreement.digest(),
        anchor_tag=next(iter(received.values())).anchor_tag,
        rows=rows,
        contributors=tuple(received),
        simulated=any(proposal.simulated for proposal in received.values()),
    )
