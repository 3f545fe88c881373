"""Training on all aligned rows, and what each party gets back."""

from collections.abc import Mapping

from cobasis.algorithms.base import Alignment
from cobasis.algorithms.certificate import Certificate
from cobasis.errors import RowCarryingError
from cobasis.linalg.arrays import Matrix
from cobasis.models.families import Estimator, ModelName
from cobasis.models.training import Model, train
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.aligned import AlignedRows
from cobasis.protocol.messages import Return, Upload
from cobasis.protocol.refusals import refuse_certificate


def make_returns(
    uploads: Mapping[str, Upload],
    alignment: Alignment,
    *,
    certificate: Certificate,
    agreement: Agreement,
    contributors: tuple[str, ...],
    model: Estimator | None,
    allow_row_carrying: bool,
) -> dict[str, Return]:
    """Train once, unless the certificate forbids it, and make one return per party."""
    refuse_certificate(certificate, agreement)
    if allow_row_carrying and not all(each.simulated for each in uploads.values()):
        raise RowCarryingError(
            "allow_row_carrying is for simulations, and these uploads are real: every party "
            "could read the others' records from the model. Use model='rff'."
        )
    trained, changes, digest = None, alignment.changes_of_basis, agreement.digest()
    if agreement.task != "representation":
        trained = train_together(
            uploads,
            changes,
            agreement=agreement,
            model=model,
            allow_row_carrying=allow_row_carrying,
        )
    return {
        name: Return(
            party=name,
            agreement_digest=digest,
            change_of_basis=changes[name],
            model=trained,
            evidence=certificate.parties[name].evidence,
            trained_on=tuple(uploads),
            target_carries=tuple(dict.fromkeys((*alignment.target.shaped_by, *contributors))),
            simulated=any(each.simulated for each in uploads.values()),
        )
        for name in uploads
    }


def train_together(
    uploads: Mapping[str, Upload],
    changes: Mapping[str, Matrix],
    *,
    agreement: Agreement,
    model: ModelName | Estimator | None = None,
    allow_row_carrying: bool = False,
) -> Model:
    """Train, eq. (8), on ``X_i F_i G_i`` and labels of all parties, eq. (7)."""
    return train(
        AlignedRows(uploads, changes),
        model=agreement.model if model is None else model,
        task=agreement.task,
        n_classes=len(agreement.classes),
        seed=int.from_bytes(agreement.digest()[:4]),
        allow_row_carrying=allow_row_carrying,
    )
