"""The protocol's messages as the parts of bundles, and back, checked against the manifest.

Whoever opened a bundle has checked its kind, round and agreement.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from cobasis.algorithms.certificate import Evidence
from cobasis.bundle.envelope import Bundle
from cobasis.bundle.manifest import Kind, refuse
from cobasis.bundle.uploads import Payload, check_precision, open_payload
from cobasis.disk.tensors import read_tables
from cobasis.errors import ForeignBundleError, OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.models import MODELLESS
from cobasis.models.chain import Chain
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.card import ModelCard
from cobasis.protocol.exchanges import Exchange
from cobasis.protocol.messages import ConsensusSpan, MaskedSums, Return, SpanProposal
from cobasis.protocol.span_lines import SpanLine


def upload_in(bundle: Bundle, *, agreement: Agreement) -> Payload:
    """Return the upload of a bundle, checked; its numbers stay on disk."""
    payload, manifest = open_payload(bundle.parts["upload.safetensors"]), bundle.manifest
    digest, tag = payload.agreement_digest.hex(), payload.anchor_tag.hex()
    says = payload.party, digest, tag, payload.simulated
    signed = manifest.sender, manifest.agreement, manifest.anchor_tag, manifest.simulated
    if says != signed or told_of(payload) != manifest.told:
        raise ForeignBundleError(
            f"{bundle.what} holds an upload that says other things of itself than the "
            "manifest: its party, anchor or shapes. Ask for a new one."
        )
    few = agreement.dp is None or payload.rows.shape[0] <= agreement.dp.most_rows
    if manifest.dp != noise_of(agreement) or not few:
        raise ForeignBundleError(
            f"the upload of '{payload.party}' says another thing of its noise than the "
            "agreement does, or has more rows than that covers, so what was promised to its "
            "people may not hold. Ask it to prepare its upload with this agreement and this "
            "version of cobasis."
        )
    check_precision(payload, precision=agreement.precision, int8_range=agreement.int8_range)
    return payload


def proposal_in(bundle: Bundle) -> SpanProposal:
    image = _table(bundle, "span.safetensors", "image")
    return SpanProposal(party=bundle.manifest.sender, image=image, **_anchored(bundle))


def sums_in(bundle: Bundle, *, exchange: Exchange) -> MaskedSums:
    """Return the masked sums of an opened bundle; whom they were masked for, the analyst checks."""
    told = bundle.manifest.told
    roster, attempt = told.get("roster"), told.get("attempt")
    number = told.get("exchange", exchange.number)
    good = isinstance(roster, str) and re.fullmatch("[0-9a-f]{64}", roster)
    if not (good and isinstance(attempt, int) and isinstance(number, int)):
        refuse(bundle.what, "it is not for an attempt and a roster")
    return MaskedSums(
        party=bundle.manifest.sender,
        roster=bytes.fromhex(str(roster)),
        attempt=attempt,
        exchange=number,
        words=_table(bundle, "sums.safetensors", "words", kind=None),
        **_of(bundle),
    )


def consensus_in(bundle: Bundle) -> ConsensusSpan:
    rows, names = _table(bundle, "span.safetensors", "rows"), _names(bundle, "contributors")
    return ConsensusSpan(rows=rows, contributors=names, **_anchored(bundle))


def return_in(bundle: Bundle, *, agreement: Agreement, party: str) -> Return:
    told, manifest = bundle.manifest.told, bundle.manifest
    if told.get("party") != party or manifest.recipients != (party,):
        raise ForeignBundleError(
            f"the bundle '{bundle.path.name}' is the return of '{told.get('party')}', for "
            f"{', '.join(manifest.recipients[:5])}, not of '{party}' alone. Ask the analyst "
            "for your own."
        )
    evidence, task = told.get("evidence"), agreement.task
    if evidence not in get_args(Evidence):
        refuse(bundle.what, "its evidence is none that a certificate has")
    for part, wanted in (
        ("fit", agreement.sums is None),
        ("model", task not in MODELLESS),
        ("total", task == "table"),
    ):
        if (there := f"{part}.safetensors" in bundle.parts) != wanted:
            refuse(bundle.what, f"a return for {task} {'has' if there else 'lacks'} a {part}")
    return Return(
        party=party,
        evidence=cast("Evidence", evidence),
        trained_on=_names(bundle, "trained_on"),
        target_carries=_names(bundle, "target_carries"),
        card=_card(bundle),
        change_of_basis=_table(bundle, "fit.safetensors", "change_of_basis"),
        total=_table(bundle, "total.safetensors", "total", kind=np.int64),
        model=_model(bundle, "model.safetensors", agreement),
        others=_model(bundle, "others.safetensors", agreement),
        **_of(bundle),
    )


def _of(bundle: Bundle) -> dict[str, Any]:
    told = bundle.manifest
    return {"agreement_digest": bytes.fromhex(told.agreement), "simulated": told.simulated}


def _anchored(bundle: Bundle) -> dict[str, Any]:
    return {**_of(bundle), "anchor_tag": bytes.fromhex(bundle.manifest.anchor_tag or "")}


def _card(bundle: Bundle) -> ModelCard | None:
    path = bundle.parts.get("card.json")
    try:
        return None if path is None else ModelCard.read(path.read_bytes())
    except ValueError:
        refuse(bundle.what, "its model card has not the fields of one")


def _model(bundle: Bundle, part: str, agreement: Agreement) -> Chain | None:
    path = bundle.parts.get(part)
    return None if path is None else model_in(path.read_bytes(), agreement)


def model_in(data: bytes, agreement: Agreement, *, n_inputs: int | None = None) -> Chain:
    """Read a model file for an agreement: over its inputs, or over so many columns."""
    size, n_classes = n_inputs or agreement.n_inputs, len(agreement.classes)
    return decode_chain(data, n_components=size, task=agreement.task, n_classes=n_classes)


def told_of(payload: Payload) -> dict[str, Any]:
    labels = payload.labels
    return {
        "n_rows": payload.rows.shape[0],
        "n_components": payload.rows.shape[1],
        "n_anchor_rows": payload.anchor_image.shape[0],
        "rows_dtype": payload.rows.place.dtype.name,
        "image_dtype": payload.anchor_image.place.dtype.name,
        "labels_dtype": "none" if labels is None else labels.place.dtype.name,
    }


def noise_of(agreement: Agreement) -> dict[str, Any] | None:
    return None if agreement.dp is None else agreement.dp.record(basis=agreement.basis)


def _table(bundle: Bundle, part: str, name: str, *, kind: Any = np.float64) -> Any:  # noqa: ANN401 -- a type
    """Read the one table of a part, if it is there; whoever uses its numbers checks them."""
    if (path := bundle.parts.get(part)) is None:
        return None
    told, (tables, _) = bundle.manifest.told, read_tables(path)
    if set(tables) != {name} or kind not in {None, tables[name].dtype.type}:
        of = "" if kind is None else f" of {np.dtype(kind)}"
        refuse(bundle.what, f"its part {part} is not one table '{name}'{of}")
    shape = (told.get("n_rows"), told.get("n_columns"))
    if kind is np.float64 and tables[name].shape != shape:
        refuse(bundle.what, f"its table '{name}' has another shape than its manifest says")
    return tables[name]


def _names(bundle: Bundle, word: str) -> tuple[str, ...]:
    found = bundle.manifest.told.get(word)
    if not isinstance(found, list):
        refuse(bundle.what, f"its manifest does not tell {word}")
    return tuple(found)


class Enclosed(NamedTuple):
    """What `write_bundle` takes for a message: ``draft=`` and ``parts=``."""

    draft: Mapping[str, Any]
    parts: Mapping[str, Path | bytes]


def _enclosed(
    kind: Kind,
    message: Payload | SpanProposal | MaskedSums | ConsensusSpan | Return,
    agreement: Agreement,
    *,
    sender: str,
    parts: Mapping[str, Path | bytes],
    **more: object,
) -> Enclosed:
    unanchored = Return | MaskedSums
    draft = {
        "kind": kind,
        "round_id": agreement.round_id,
        "agreement": message.agreement_digest.hex(),
        "sender": sender,
        "anchor_tag": None if isinstance(message, unanchored) else message.anchor_tag.hex(),
        "simulated": message.simulated,
        **more,
    }
    return Enclosed(draft, parts)


def enclose_upload(
    path: Path, *, agreement: Agreement, audit: Mapping[str, object] | None = None
) -> Enclosed:
    payload, parts = open_payload(path), {"upload.safetensors": path}
    check_precision(payload, precision=agreement.precision, int8_range=agreement.int8_range)
    more: Any = {"told": told_of(payload), "dp": noise_of(agreement), "audit": audit}
    return _enclosed("upload", payload, agreement, sender=payload.party, parts=parts, **more)


def enclose_proposal(
    proposal: SpanProposal, *, agreement: Agreement, audit: Mapping[str, object] | None = None
) -> Enclosed:
    more: Any = {"told": _shape(proposal.image), "audit": audit}
    parts = {"span.safetensors": _table_file("image", proposal.image)}
    return _enclosed("proposal", proposal, agreement, sender=proposal.party, parts=parts, **more)


def enclose_sums(
    sums: MaskedSums,
    *,
    agreement: Agreement,
    exchange: Exchange,
    audit: Mapping[str, object] | None = None,
) -> Enclosed:
    told: dict[str, Any] = {"roster": sums.roster.hex(), "attempt": sums.attempt}
    if agreement.tabular and exchange.number > 1:  # of steps, which are all of one kind
        told["exchange"] = sums.exchange
    parts = {"sums.safetensors": _table_file("words", sums.words)}
    return _enclosed(
        exchange.message, sums, agreement, sender=sums.party, parts=parts, told=told, audit=audit
    )


def enclose_consensus(span: ConsensusSpan, *, agreement: Agreement, sender: str) -> Enclosed:
    told = {**_shape(span.rows), "contributors": list(span.contributors)}
    parts = {"span.safetensors": _table_file("rows", span.rows)}
    return _enclosed("consensus", span, agreement, sender=sender, told=told, parts=parts)


def enclose_return(
    made: Return, *, agreement: Agreement, sender: str, upload: str, lines: Sequence[SpanLine] = ()
) -> Enclosed:
    change, parts = made.change_of_basis, dict[str, Path | bytes]()
    told = {
        **({} if change is None else _shape(change)),
        "party": made.party,
        "upload": upload,
        "evidence": made.evidence,
        "trained_on": list(made.trained_on),
        "target_carries": list(made.target_carries),
    }
    if change is not None:
        parts["fit.safetensors"] = _table_file("change_of_basis", change)
    for name, model in (("model", made.model), ("others", made.others)):
        if isinstance(model, Chain):
            parts[f"{name}.safetensors"] = encode_chain(model)
        elif model is not None:
            raise OptionError(
                f"the model for party '{made.party}' is an estimator in memory, and only chains "
                "travel. Train the family that the agreement names."
            )
    if made.total is not None:
        parts["total.safetensors"] = _table_file("total", made.total)
    if made.card is not None:
        parts["card.json"] = made.card.encoded()
    more: Any = {"told": told, "lines": tuple(lines)}
    return _enclosed("return", made, agreement, sender=sender, parts=parts, **more)


def _shape(table: Matrix) -> dict[str, Any]:
    return {"n_rows": table.shape[0], "n_columns": table.shape[1]}


def _table_file(name: str, table: npt.NDArray[Any]) -> bytes:
    return save({name: np.ascontiguousarray(table)})
