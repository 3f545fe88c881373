"""How exchange 1 ends where the basis is a consensus: one common span, sealed to each party."""

import json
from collections.abc import Collection
from pathlib import Path

from cobasis.analyst_side.history import CONSENSUS, History, Received
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.enclosure import write_bundle
from cobasis.bundle.messages import enclose_consensus, proposal_in
from cobasis.disk.tensors import read_tables, write_tables
from cobasis.disk.whole import make_folder, remove_tree
from cobasis.errors import RetentionError
from cobasis.progress import Report, silent
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.messages import ConsensusSpan, SpanProposal

MIN_PARTIES = 3
"""With two, each computes the other's span; the protocol refuses fewer as well."""


def end_exchange(
    session: AnalystSession,
    history: History,
    *,
    members: Collection[str],
    without: Collection[str],
    to: Path,
    report: Report = silent,
) -> dict[str, Path]:
    """Make the common span once, and write the sealed files that are not there.

    It is on the disk, and in the transcript, before anybody gets it: a second one would split the
    round into two. Every party gets it that was not removed, so that one may still come late.
    """
    exchange = session.exchanges[0]
    if history.contributors:
        span = _kept(session, history)
    else:
        span = _made(session, history, members=members, without=without, report=report)
    names = [name for name in session.enrolled if name not in history.removed]
    lost = names if not history.contributors else lost_spans(session, history, to=to)
    make_folder(to)
    draft, parts = enclose_consensus(span, agreement=session.agreement, sender=session.name)
    written = {}
    for done, party in enumerate(lost):
        report("sealing", done, len(lost))
        written[party] = to / session.reply(party, exchange)
        write_bundle(
            written[party],
            draft=draft,
            parts=parts,
            sign=session.identity.sign,
            recipients=[session.enrolled[party]],
        )
    report("sealing", len(lost), len(lost))
    return written


def lost_spans(session: AnalystSession, history: History, *, to: Path) -> tuple[str, ...]:
    """Return the parties whose span was made, and is not in a folder."""
    if not history.contributors:
        return ()
    return tuple(
        name
        for name in session.enrolled
        if name not in history.removed
        and not (to / session.reply(name, session.exchanges[0])).exists()
    )


def _made(
    session: AnalystSession,
    history: History,
    *,
    members: Collection[str],
    without: Collection[str],
    report: Report,
) -> ConsensusSpan:
    """Make the span of those proposals and keep it."""
    received = history.taken("proposal")
    proposals = []
    for done, party in enumerate(members):
        report("opening proposals", done, len(members))
        proposals.append(_proposal(session, received[party]))
    span = Analyst(session.agreement).consensus(proposals)
    told = {"anchor_tag": span.anchor_tag.hex(), "contributors": json.dumps(span.contributors)}
    write_tables(session.work.span, {"rows": span.rows}, metadata=told)
    facts = {"contributors": list(span.contributors), "without": list(without)}
    session.transcript.append(CONSENSUS, facts)
    return span


def _proposal(session: AnalystSession, received: Received) -> SpanProposal:
    path = session.work.sealed(received.party, session.exchanges[0])
    try:
        bundle = session.opened(path)
        if bundle.digest == received.file:
            return proposal_in(bundle, agreement=session.agreement)
    finally:
        remove_tree(session.work.incoming)
    raise RetentionError(
        f"'{path}' is not the proposal of party '{received.party}' that was received "
        f"({received.file[:16]}). Restore the folder from a copy."
    )


def _kept(session: AnalystSession, history: History) -> ConsensusSpan:
    """Return the span that was made before."""
    tables, header = read_tables(session.work.span)
    return ConsensusSpan(
        agreement_digest=session.agreement.digest(),
        anchor_tag=bytes.fromhex(header.metadata["anchor_tag"]),
        rows=tables["rows"],
        contributors=history.contributors,
        simulated=False,
    )
