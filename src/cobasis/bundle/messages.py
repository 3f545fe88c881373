"""The protocol's messages as the parts of bundles, and back: ``incoming.py`` reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cobasis.bundle.incoming import (
    consensus_in,
    noise_of,
    proposal_in,
    return_in,
    told_of,
    upload_in,
)
from cobasis.bundle.manifest import Draft
from cobasis.bundle.payload import open_payload
from cobasis.bundle.precision import check_precision
from cobasis.disk.tensors import make_header
from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan, Return, SpanProposal

__all__ = [
    "Enclosed",
    "consensus_in",
    "enclose_consensus",
    "enclose_proposal",
    "enclose_return",
    "enclose_upload",
    "proposal_in",
    "return_in",
    "upload_in",
]


class Enclosed(NamedTuple):
    """What `write_bundle` takes for a message: ``draft=`` and ``parts=``."""

    draft: Draft
    parts: Mapping[str, Path | bytes]


def enclose_upload(
    path: Path, *, agreement: Agreement, audit: Mapping[str, str] | None = None
) -> Enclosed:
    """Return draft and part for an upload file in the agreed precision."""
    payload = open_payload(path)
    check_precision(payload, precision=agreement.precision, int8_range=agreement.int8_range)
    draft = Draft(
        kind="upload",
        round_id=agreement.round_id,
        agreement=payload.agreement_digest.hex(),
        sender=payload.party,
        anchor_tag=payload.anchor_tag.hex(),
        simulated=payload.simulated,
        told=told_of(payload),
        audit=audit,
        dp=noise_of(agreement),
    )
    return Enclosed(draft, {"upload.safetensors": path})


def enclose_proposal(proposal: SpanProposal, *, agreement: Agreement) -> Enclosed:
    """Return draft and part for a party's proposal of a span, for `write_bundle`."""
    draft = Draft(
        kind="proposal",
        round_id=agreement.round_id,
        agreement=proposal.agreement_digest.hex(),
        sender=proposal.party,
        anchor_tag=proposal.anchor_tag.hex(),
        simulated=proposal.simulated,
        told=_shape(proposal.image),
    )
    return Enclosed(draft, {"span.safetensors": _table_file("image", proposal.image)})


def enclose_consensus(span: ConsensusSpan, *, agreement: Agreement, sender: str) -> Enclosed:
    """Return draft and part for the analyst's common span, for `write_bundle`."""
    draft = Draft(
        kind="consensus",
        round_id=agreement.round_id,
        agreement=span.agreement_digest.hex(),
        sender=sender,
        anchor_tag=span.anchor_tag.hex(),
        simulated=span.simulated,
        told={**_shape(span.rows), "contributors": list(span.contributors)},
    )
    return Enclosed(draft, {"span.safetensors": _table_file("rows", span.rows)})


def enclose_return(made: Return, *, agreement: Agreement, sender: str, upload: str) -> Enclosed:
    """Return draft and parts for what one party gets back."""
    told: dict[str, Any] = {
        **_shape(made.change_of_basis),
        "party": made.party,
        "upload": upload,
        "evidence": made.evidence,
        "trained_on": list(made.trained_on),
        "target_carries": list(made.target_carries),
    }
    parts: dict[str, Path | bytes] = {
        "fit.safetensors": _table_file("change_of_basis", made.change_of_basis)
    }
    if made.model is not None:
        if not isinstance(made.model, Chain):
            raise OptionError(
                f"the model for party '{made.party}' is an object in memory, and only chains "
                "travel. Turn it into one with cobasis.models.sources.read_chain."
            )
        parts["model.safetensors"] = encode_chain(made.model)
    draft = Draft(
        kind="return",
        round_id=agreement.round_id,
        agreement=made.agreement_digest.hex(),
        sender=sender,
        simulated=made.simulated,
        told=told,
    )
    return Enclosed(draft, parts)


def _shape(table: Matrix) -> dict[str, Any]:
    return {"n_rows": table.shape[0], "n_columns": table.shape[1]}


def _table_file(name: str, table: npt.NDArray[Any]) -> bytes:
    """Return a safetensors file of one float64 table."""
    whole = np.ascontiguousarray(table, dtype="<f8")
    start, _ = make_header([(name, whole.dtype, whole.shape)], metadata={})
    return start + whole.tobytes()
