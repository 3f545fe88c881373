"""The model of a run as the file that every party gets: trained once, kept, and reused."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from cobasis.algorithms.base import Alignment
from cobasis.bundle.incoming import model_in
from cobasis.bundle.payload import Payload
from cobasis.bundle.uploads import read_upload
from cobasis.disk.whole import make_folder, remove_tree, write_whole
from cobasis.engine.partitioning import write_aligned
from cobasis.engine.training import train_partitions
from cobasis.errors import AgreementError
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.models.families import ModelName
from cobasis.models.sources import read_chain
from cobasis.models.training import TrainedModel
from cobasis.progress import Report
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.returns import train_together

IN_MEMORY_CELLS = 2**27
"""Numbers of all rows together that are trained on in memory: 1 GiB."""


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
    report: Report,
) -> Chain:
    """Return the model of a run; it is trained unless its file is there already.

    All returns carry one and the same file, also those that are written after a crash.
    """
    if not path.exists():
        trained = _trained(
            path, alignment, uploads=uploads, agreement=agreement, family=family, report=report
        )
        chain = read_chain(trained, task=agreement.task, n_classes=len(agreement.classes))
        data = encode_chain(chain)
        make_folder(path.parent)
        write_whole(path, data)
    return model_in(path.read_bytes(), agreement)


def _trained(
    path: Path,
    alignment: Alignment,
    *,
    uploads: Mapping[str, Payload],
    agreement: Agreement,
    family: ModelName,
    report: Report,
) -> TrainedModel:
    """Train in memory where rows fit, else block by block."""
    cells = sum(each.n_rows * each.n_components for each in uploads.values())
    if cells <= IN_MEMORY_CELLS:
        report("training", 0, 1)
        read = {name: read_upload(each.path) for name, each in uploads.items()}
        done = train_together(read, alignment.changes_of_basis, agreement=agreement, model=family)
        report("training", 1, 1)
        return done
    rows, state = path.with_suffix(".rows"), path.with_suffix(".state")
    aligned = write_aligned(uploads, alignment, to=rows, report=report)
    done = train_partitions(
        aligned,
        model=family,
        task=agreement.task,
        seed=int.from_bytes(agreement.digest()[:4]),
        work=state if family == "mlp" else None,
        report=report,
    )
    for folder in (rows, state):
        remove_tree(folder)
    return done


def model_digest(model: Chain) -> str:
    """Return the SHA-256 of a model's file, 64 hexadecimal digits."""
    return hashlib.sha256(encode_chain(model)).hexdigest()
