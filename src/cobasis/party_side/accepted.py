"""What a party accepted, ready to be used: its own basis, its fit, and the model that all have."""

from dataclasses import dataclass

import numpy as np

from cobasis.bundle.incoming import model_in
from cobasis.errors import StepError
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.models.chain import Chain
from cobasis.party_side.desk import PartyDesk
from cobasis.protocol.secrets import SecretBasis


@dataclass(frozen=True, kw_only=True, repr=False)
class Usable(Hidden):
    """A party's way from encoded rows to predictions.

    Attributes
    ----------
    basis : SecretBasis
        F_i.
    change_of_basis : ndarray of shape (n_components, n_components)
        G_i.
    model : Chain
        Checked again.
    """

    basis: SecretBasis
    change_of_basis: Matrix
    model: Chain

    def aligned(self, rows: Matrix) -> Matrix:
        """Return ``Y F_i G_i`` for rows on the agreed scale."""
        return self.basis.project(rows) @ self.change_of_basis

    def map_in(self) -> Matrix:
        """Return ``F_i G_i``, of shape (n_features, n_components)."""
        return self.aligned(np.eye(self.basis.shape[0]))


def usable(desk: PartyDesk) -> Usable:
    """Return what was accepted; StepError before, or where the round trains no model."""
    agreement, name = desk.agreement, desk.name
    found = desk.round.accepted()
    uploaded = None if found is None else desk.vault.upload_of(agreement, upload=found.upload)
    if uploaded is None or found is None:
        raise StepError(
            f"party '{name}' has accepted no return in round '{agreement.round_id}', so there is "
            "no model to use. Run 'cobasis party accept' with what the analyst sent."
        )
    if found.model is None or agreement.task == "representation":
        raise StepError(
            f"round '{agreement.round_id}' was for a representation and trained no model. Agree on "
            "a task in a new round."
        )
    model = model_in(found.model, agreement)
    return Usable(basis=uploaded.dataset.basis, change_of_basis=found.change_of_basis, model=model)
