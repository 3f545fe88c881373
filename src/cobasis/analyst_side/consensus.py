"""``analyst consensus``: from parties' proposals to one common span, sealed to each of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cobasis.algorithms.bases import BASES
from cobasis.analyst_side.forget import require_enough
from cobasis.analyst_side.history import CONSENSUS, History
from cobasis.analyst_side.receive import FileVerdict
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.envelope import Limits, write_bundle
from cobasis.bundle.messages import enclose_consensus, proposal_in
from cobasis.disk.tensors import read_tables, write_tables
from cobasis.disk.whole import make_folder, remove_tree
from cobasis.errors import AnotherRunError, CobasisError, DiskError, OptionError, StepError
from cobasis.progress import Report, silent
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.messages import ConsensusSpan, SpanProposal
from cobasis.protocol.refusals import refuse_second

PATTERN = "*.span"
MIN_PARTIES = 3
"""With two, each computes the other's span; the protocol refuses fewer as well."""
_LIMITS = Limits(n_bytes=2**31)


@dataclass(frozen=True, kw_only=True)
class CommonSpan:
    """The common span of a round, and where it was written to.

    Attributes
    ----------
    contributors : tuple of str
        Whose proposals shaped it.
    missing : tuple of str
        Enrolled parties without a proposal in it; they get the span as well.
    files : tuple of FileVerdict
        What became of each proposal; none are looked at once the span is made.
    written : mapping of str to Path
        The sealed file of each party.
    """

    contributors: tuple[str, ...]
    missing: tuple[str, ...]
    files: tuple[FileVerdict, ...]
    written: Mapping[str, Path]


def consensus(
    session: AnalystSession, spans: Path, *, to: Path, report: Report = silent
) -> CommonSpan:
    """Make the common span once, and seal it to every enrolled party.

    Once made it stays as it is: a second one would split the round into two. The same command
    writes the same span again, whatever is in the folder by then.
    """
    if BASES[session.agreement.basis].exchanges == 1:
        raise StepError(
            f"basis='{session.agreement.basis}' of round '{session.agreement.round_id}' takes no "
            "common span, so there is none to make. Parties go on with 'cobasis party prepare'."
        )
    with session.at_work() as history:
        verdicts: tuple[FileVerdict, ...] = ()
        span = _kept(session, history)
        if span is None:
            proposals, verdicts = _proposals(session, spans, report=report)
            span = _made(session, proposals, verdicts)
        written = _send_all(session, span, to=to, report=report)
    away = tuple(name for name in session.agreement.parties if name not in span.contributors)
    return CommonSpan(contributors=span.contributors, missing=away, files=verdicts, written=written)


def _proposals(
    session: AnalystSession, spans: Path, *, report: Report
) -> tuple[dict[str, SpanProposal], tuple[FileVerdict, ...]]:
    """Open every proposal; one that cannot be used blocks no other."""
    if not spans.is_dir():
        raise OptionError(f"there is no folder '{spans}' with proposals. Check the path.")
    found: dict[str, SpanProposal] = {}
    verdicts = []
    paths = sorted(spans.glob(PATTERN))
    for done, path in enumerate(paths):
        report("opening proposals", done, len(paths))
        try:
            proposal = _proposal(session, path)
            refuse_second(proposal.party, found)
        except (DiskError, AnotherRunError):
            raise
        except CobasisError as error:
            reason = str(error.args[0])
            verdicts.append(
                FileVerdict(file=path.name, verdict="refused", code=error.code, reason=reason)
            )
        else:
            found[proposal.party] = proposal
            verdicts.append(FileVerdict(file=path.name, verdict="accepted", party=proposal.party))
    report("opening proposals", len(paths), len(paths))
    return dict(sorted(found.items())), tuple(verdicts)


def _proposal(session: AnalystSession, path: Path) -> SpanProposal:
    try:
        bundle = session.opened(path, kind="proposal", limits=_LIMITS)
        return proposal_in(bundle, agreement=session.agreement)
    finally:
        remove_tree(session.work.incoming)


def _made(
    session: AnalystSession,
    proposals: Mapping[str, SpanProposal],
    verdicts: tuple[FileVerdict, ...],
) -> ConsensusSpan:
    """Make the span and keep it, before anybody gets it."""
    refused = [f"{each.file} ({each.code})" for each in verdicts if each.verdict == "refused"]
    away = [name for name in session.agreement.parties if name not in proposals]
    if len(proposals) < MIN_PARTIES:
        raise StepError(
            f"{len(proposals)} proposal(s) can be used ({', '.join(proposals) or 'none'}), and a "
            f"common span needs {MIN_PARTIES}. Missing: {', '.join(away) or 'nobody'}; refused: "
            f"{', '.join(refused) or 'none'}. Collect them first."
        )
    require_enough(session, proposals, missing=away)
    span = Analyst(session.agreement).consensus(proposals.values())
    told = {"contributors": json.dumps(span.contributors), "anchor_tag": span.anchor_tag.hex()}
    write_tables(session.work.consensus, {"rows": span.rows}, metadata=told)
    session.transcript.append(CONSENSUS, {"contributors": list(span.contributors)})
    return span


def _kept(session: AnalystSession, history: History) -> ConsensusSpan | None:
    """Return the span that was made before; None when there was none yet."""
    if not history.contributors:
        return None
    tables, header = read_tables(session.work.consensus)
    return ConsensusSpan(
        agreement_digest=session.agreement.digest(),
        anchor_tag=bytes.fromhex(header.metadata["anchor_tag"]),
        rows=tables["rows"],
        contributors=history.contributors,
        simulated=False,
    )


def _send_all(
    session: AnalystSession, span: ConsensusSpan, *, to: Path, report: Report
) -> dict[str, Path]:
    """Seal the span for each enrolled party by itself."""
    make_folder(to)
    draft, parts = enclose_consensus(span, agreement=session.agreement, sender=session.name)
    written = {}
    for done, (party, identity) in enumerate(session.enrolled.items()):
        report("sealing", done, len(session.enrolled))
        path = to / f"{party}.consensus"
        write_bundle(
            path, draft=draft, parts=parts, sign=session.identity.sign, recipients=[identity]
        )
        written[party] = path
    report("sealing", len(written), len(written))
    return written
