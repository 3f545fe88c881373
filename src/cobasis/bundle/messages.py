"""The protocol's messages as the parts of bundles, and back, checked against the manifest.

Whoever opened a bundle has checked its kind, round and agreement.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from pydantic import AfterValidator, TypeAdapter, ValidationError
from safetensors.numpy import save

from cobasis.algorithms.certificate import Evidence
from cobasis.bundle.envelope import Bundle
from cobasis.bundle.manifest import Kind, Whole, refuse
from cobasis.bundle.uploads import Payload, check_precision, open_payload
from cobasis.disk.tensors import read_tables
from cobasis.errors import ForeignBundleError, OptionError
from cobasis.models import MODELLESS
from cobasis.models.chain import Chain
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.protocol.agreement import Agreement, Digest
from cobasis.protocol.card import ModelCard
from cobasis.protocol.exchanges import Exchange, exchanges
from cobasis.protocol.messages import ConsensusSpan, MaskedSums, Message, Return, SpanProposal

_M = TypeVar("_M", bound=Message)
_Names = tuple[str, ...]
_Hex = Annotated[Digest, AfterValidator(bytes.fromhex)]


def upload_in(bundle: Bundle, *, agreement: Agreement) -> Payload:
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
    return _read(SpanProposal, bundle, party=bundle.manifest.sender)


def sums_in(bundle: Bundle, *, exchange: Exchange) -> MaskedSums:
    """Return the masked sums of an opened bundle; whom they were masked for, the analyst checks."""
    number: Any = bundle.manifest.told.get("exchange", exchange.number)
    return _read(MaskedSums, bundle, party=bundle.manifest.sender, exchange=number)


def consensus_in(bundle: Bundle) -> ConsensusSpan:
    return _read(ConsensusSpan, bundle)


def return_in(bundle: Bundle, *, agreement: Agreement, party: str) -> Return:
    told, manifest = bundle.manifest.told, bundle.manifest
    if told.get("party") != party or manifest.recipients != (party,):
        raise ForeignBundleError(
            f"the bundle '{bundle.path.name}' is the return of '{told.get('party')}', for "
            f"{', '.join(manifest.recipients[:5])}, not of '{party}' alone. Ask the analyst "
            "for your own."
        )
    task = agreement.task
    for part, wanted in (
        ("fit", agreement.sums is None),
        ("model", task not in MODELLESS),
        ("total", task == "table"),
    ):
        if (there := f"{part}.safetensors" in bundle.parts) != wanted:
            refuse(bundle.what, f"a return for {task} {'has' if there else 'lacks'} a {part}")
    return _read(
        Return,
        bundle,
        party=party,
        card=_card(bundle),
        model=_model(bundle, "model.safetensors", agreement),
        others=_model(bundle, "others.safetensors", agreement),
    )


class _Form(NamedTuple):
    """How a message stands in a bundle; beside it stand an upload's file, a return's models."""

    kind: Kind
    told: Mapping[str, Any]  # which of its fields the manifest tells, and what they are
    tables: Mapping[str, tuple[str, Any]]  # the part that each is alone in, and of what numbers


_FORMS: dict[type[Any], _Form] = {
    SpanProposal: _Form("proposal", {}, {"image": ("span", np.float64)}),
    ConsensusSpan: _Form("consensus", {"contributors": _Names}, {"rows": ("span", np.float64)}),
    # scores have the same form; what the words are of, the layout says
    MaskedSums: _Form("sums", {"roster": _Hex, "attempt": Whole}, {"words": ("sums", None)}),
    Return: _Form(
        "return",
        {"evidence": Evidence, "trained_on": _Names, "target_carries": _Names},
        {"change_of_basis": ("fit", np.float64), "total": ("total", np.int64)},
    ),
    Payload: _Form("upload", {}, {}),
}


def _read(message: type[_M], bundle: Bundle, **found: Any) -> _M:  # noqa: ANN401 -- its fields
    form, manifest = _FORMS[message], bundle.manifest
    found |= {"agreement_digest": bytes.fromhex(manifest.agreement)}
    found |= {"simulated": manifest.simulated}
    if message in {SpanProposal, ConsensusSpan}:
        found["anchor_tag"] = bytes.fromhex(manifest.anchor_tag or "")
    for name, kind in form.told.items():
        try:
            found[name] = TypeAdapter(kind).validate_python(manifest.told.get(name))
        except ValidationError:
            refuse(bundle.what, f"its manifest does not tell {name}, or wrongly")
    for name, (part, numbers) in form.tables.items():
        found[name] = _table(bundle, f"{part}.safetensors", name, kind=numbers)
    return message(**found)


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


def _table(bundle: Bundle, part: str, name: str, *, kind: Any) -> Any:  # noqa: ANN401 -- a type
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


class Enclosed(NamedTuple):
    """What `write_bundle` takes for a message: ``draft=`` and ``parts=``."""

    draft: Mapping[str, Any]
    parts: Mapping[str, Path | bytes]


def enclose(
    message: Message,
    *,
    agreement: Agreement,
    sender: str,
    told: Mapping[str, Any] = MappingProxyType({}),
    **more: object,
) -> Enclosed:
    """Return a message as a bundle, with what it tells besides the fields of its form."""
    form, said, whole = _FORMS[type(message)], dict(told), dict[str, Path | bytes]()
    kind = form.kind
    if isinstance(message, Payload):
        said, whole = told_of(message), {"upload.safetensors": message.path}
        more["dp"] = noise_of(agreement)
    if isinstance(message, Return):
        said["party"], whole = message.party, _models_of(message)
    if isinstance(message, MaskedSums):
        kind = exchanges(agreement)[message.exchange - 1].message
        if agreement.tabular and message.exchange > 1:  # steps, which are all of one kind
            said["exchange"] = message.exchange
    for name in form.told:
        found = getattr(message, name)
        found = found.hex() if isinstance(found, bytes) else found
        said[name] = [*found] if isinstance(found, tuple) else found
    for name, (part, _) in form.tables.items():
        if (table := getattr(message, name)) is not None:
            whole[f"{part}.safetensors"] = save({name: np.ascontiguousarray(table)})
            if table.ndim > 1:
                said |= {"n_rows": table.shape[0], "n_columns": table.shape[1]}
    tag = getattr(message, "anchor_tag", None)
    draft = {
        "kind": kind,
        "round_id": agreement.round_id,
        "agreement": message.agreement_digest.hex(),
        "sender": sender,
        "anchor_tag": tag and tag.hex(),
        "simulated": message.simulated,
        "told": said,
        **more,
    }
    return Enclosed(draft, whole)


def _models_of(made: Return) -> dict[str, Path | bytes]:
    parts: dict[str, Path | bytes] = {}
    if made.card is not None:
        parts["card.json"] = made.card.encoded()
    for name, model in (("model", made.model), ("others", made.others)):
        if isinstance(model, Chain):
            parts[f"{name}.safetensors"] = encode_chain(model)
        elif model is not None:
            raise OptionError(
                f"the model for party '{made.party}' is an estimator in memory, and only chains "
                "travel. Train the family that the agreement names."
            )
    return parts
