"""Groups with analysts of their own: what they show each other, and the frame that all share.

A group's reference is its target, which holds no row, sealed to all groups' analysts. Each aligns
all references in the agreed order, and finds the very same changes of basis.
"""

import hashlib
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from cobasis.algorithms.base import align
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.messages import consensus_in, enclose
from cobasis.disk.whole import write_whole
from cobasis.errors import ForeignBundleError, OptionError
from cobasis.features.encoder import encoded_columns
from cobasis.linalg.arrays import Matrix
from cobasis.models import AGREED_AS
from cobasis.models.chain import Affine, Chain, folded
from cobasis.models.chain_file import encode_chain
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.messages import ConsensusSpan, decode_labels
from cobasis.protocol.training import AlignedRows
from cobasis.strict_json import canonical_json

_OWN = {"parties", "enrolled", "approvers", "analyst", "record", "deadline", "minimum_parties"}
"""In what agreements of groups may differ: who takes part, and when."""

Trained = tuple[Agreement, Chain]  # of sums over all groups' aligned rows


def meet(session: AnalystSession, analyst: Analyst, *, trained: Trained | None) -> dict[str, Path]:
    """Write a group's reference; where all are there its aligned rows, and all groups' model."""
    agreement, uploads, alignment = session.agreement, analyst.uploads, analyst.alignment
    own = ConsensusSpan(
        agreement_digest=agreement.digest(),
        anchor_tag=next(iter(uploads.values())).anchor_tag,
        rows=alignment.target.rows,
        contributors=(*uploads,),
        simulated=False,
    )
    told, written = {"terms": _terms(agreement)}, {"reference": session.reference(session.name)}
    made = enclose(own, agreement=agreement, sender=session.name, told=told)
    session.seal(made, written["reference"], to=agreement.groups)
    if trained is None and not all(session.reference(x.name).exists() for x in agreement.groups):
        return written
    spans = {lab.name: _read(session, lab, own) for lab in agreement.groups}
    found = align(agreement.make_aligner(), {name: each.rows for name, each in spans.items()})
    change = found.changes_of_basis[session.name]
    # in the columns' names, so that rows of two frames cannot be summed up together
    mark = hashlib.sha256(b"".join(each.digest() for each in spans.values())).hexdigest()[:8]
    names = [f"aligned_{mark}_{at + 1}" for at in range(agreement.n_components)]
    fits = {party: fit @ change for party, fit in alignment.changes_of_basis.items()}
    written["aligned"] = _write_rows(session, AlignedRows(uploads, fits), names=names)
    if trained is not None:
        model = encode_chain(_model_of(trained, agreement, change=change, names=names))
        written["model"] = session.work.models / f"{mark}.model"
        write_whole(written["model"], model)
    return written


def _read(session: AnalystSession, lab: PublicIdentity, own: ConsensusSpan) -> ConsensusSpan:
    with session.opened(session.reference(lab.name), lab=lab) as bundle:
        span, told = consensus_in(bundle), bundle.manifest.told.get("terms")
    terms = {*_terms(session.agreement)} ^ {*(told if isinstance(told, list) else ())}
    other = sorted({each.partition(" ")[0] for each in terms})[:5]
    if other or (span.anchor_tag, span.rows.shape) != (own.anchor_tag, own.rows.shape):
        raise ForeignBundleError(
            f"the group of '{lab.name}' agreed on, or sent, another {', '.join(other) or 'anchor'} "
            "than this one, so nothing aligns the two. Agree on the same, and begin its round anew."
        )
    return span


def _terms(agreement: Agreement) -> list[str]:
    told = agreement.model_dump(mode="json", exclude=_OWN)
    return [f"{x} {hashlib.sha256(canonical_json({x: told[x]})).hexdigest()}" for x in told]


def _write_rows(session: AnalystSession, rows: AlignedRows, *, names: list[str]) -> Path:
    """Write everybody's aligned rows and labels: the table of one party in a round of sums."""
    agreement, buffer, (aligned, labels) = session.agreement, BytesIO(), rows.sample(rows.n_rows)
    columns = dict(zip(names, aligned.T, strict=True))
    table = pl.DataFrame({**columns, agreement.label: decode_labels(labels, agreement)})
    table.with_row_index(names[0].removesuffix("_1").replace("aligned", "row")).write_parquet(
        buffer
    )
    write_whole(session.work.table, buffer.getvalue())
    return session.work.table


def _model_of(trained: Trained, agreement: Agreement, *, change: Matrix, names: list[str]) -> Chain:
    """Return a model of all groups' frame as one of the group's own."""
    of, model = trained
    columns, words = encoded_columns(of.features), ("task", "label", "classes")
    other = [each for each in words if getattr(of, each) != getattr(agreement, each)]
    other += ["family"] * {*AGREED_AS[model.family]}.isdisjoint(agreement.allowed_models)
    if [each.name for each in columns] != [*names] or other:
        raise OptionError(
            f"--trained: the model of round '{of.round_id}' is of other "
            f"{', '.join(other) or 'columns'} than this group's aligned rows, which are {names[0]} "
            f"to {names[-1]}. Where the mark in these names is another, references or parties have "
            "changed since: sum up anew."
        )
    centre, scale = np.array([(each.centre, each.scale) for each in columns]).T
    first = Affine(weights=change / scale, offset=-centre / scale)
    return replace(model, layers=folded([first, *model.layers]))
