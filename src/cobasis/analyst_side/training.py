"""The model of a run as the file that every party gets: trained once, kept, and reused."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from cobasis.algorithms.base import Alignment
from cobasis.analyst_side.passes import passes_for
from cobasis.bundle.incoming import model_in
from cobasis.bundle.payload import Payload
from cobasis.disk.whole import make_folder, write_whole
from cobasis.errors import AgreementError
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.models.families import ModelName
from cobasis.models.sources import read_chain
from cobasis.models.training import train
from cobasis.progress import Report
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.aligned import AlignedRows


def family_of(agreement: Agreement, model: ModelName | None) -> ModelName | None:
    """Return the family to train: the one that is asked for, if the agreement allows it."""
    chosen = agreement.model if model is None else model
    if model is None or model in agreement.allowed_models:
        return chosen
    allowed = ", ".join(agreement.allowed_models) or "none, since the task is a representation"
    raise AgreementError(
        f"round '{agreement.round_id}' does not allow a model of family '{model}' (allowed: "
        f"{allowed}). Choose one of these, or have another agreement signed."
    )


def model_file(
    path: Path,
    alignment: Alignment,
    *,
    uploads: Mapping[str, Payload],
    agreement: Agreement,
    family: ModelName,
    cluster: str | None,
    report: Report,
) -> Chain:
    """Return the model of a run; it is trained unless its file is there already.

    All returns carry one and the same file, also those that are written after a crash.
    """
    if not path.exists():
        folder = path.with_suffix(".scratch")
        with passes_for(family, folder=folder, cluster=cluster, report=report) as over:
            trained = train(
                AlignedRows(uploads, alignment.changes_of_basis),
                model=family,
                task=agreement.task,
                n_classes=len(agreement.classes),
                seed=int.from_bytes(agreement.digest()[:4]),
                over=over,
                report=report,
            )
        chain = read_chain(trained, task=agreement.task, n_classes=len(agreement.classes))
        data = encode_chain(chain)
        make_folder(path.parent)
        write_whole(path, data)
    return model_in(path.read_bytes(), agreement)


def model_digest(model: Chain) -> str:
    """Return the SHA-256 of a model's file, 64 hexadecimal digits."""
    return hashlib.sha256(encode_chain(model)).hexdigest()
