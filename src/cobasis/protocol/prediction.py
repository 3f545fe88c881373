"""A party after its upload: checks what comes back, aligns, predicts, exports."""

import hmac

import numpy as np
import numpy.typing as npt

from cobasis.errors import MessageError, StepError
from cobasis.features.encoder import encode
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.models.chain import Chain
from cobasis.models.onnx import Precision, raw_graph
from cobasis.models.sources import read_chain
from cobasis.models.trainer import TrainedModel
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan, Return, decode_labels
from cobasis.protocol.refusals import as_message_error
from cobasis.protocol.secrets import SecretBasis


class Predictor:
    """What a party does with its return; `cobasis.Party` adds what comes before.

    Attributes
    ----------
    name : str
        The party's.
    agreement : Agreement
        What everybody signed.

    Notes
    -----
    **Who sees what.** One party only. **Cost.** None.
    """

    name: str
    agreement: Agreement
    _basis: SecretBasis | None
    _return: Return | None

    def accept(self, returned: Return) -> None:
        """Keep what came back, after checking that it is this party's and this round's.

        Parameters
        ----------
        returned : Return
            From the analyst.

        Raises
        ------
        StepError, MessageError
            Nothing has been uploaded yet; it is another party's, round's or shape.

        Notes
        -----
        **Who sees what.** ``F_i G_i`` is a secret of the whole consortium from here on: it
        projects every party's rows back. **Cost.** None.
        """
        n_components = self.basis.shape[1]
        check_return(returned, self.agreement, n_components=n_components, party=self.name)
        self._return = returned

    def transform(self, rows: npt.ArrayLike) -> Matrix:
        """Bring rows into the aligned representation, ``Y_i F_i G_i``.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Aligned rows.

        Raises
        ------
        LocalError
            Nothing has been accepted yet, or the rows are not what the agreement says.

        Notes
        -----
        **Who sees what.** Stays at the party. **Cost.** Two products.
        """
        table = encode(rows, self.agreement.features, party=self.name)
        change = self.returned.change_of_basis
        return self.basis.project(table) @ change

    def predict(self, rows: npt.ArrayLike) -> npt.NDArray[np.generic]:
        """Predict labels with the common model and the party's own basis, eq. (9).

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes of the agreement, or numbers.

        Raises
        ------
        LocalError
            As `transform`, or the round trained no model.

        Notes
        -----
        **Who sees what.** Stays at the party. **Cost.** Two products and the model.
        """
        model = self._model()
        return decode_labels(model.predict(self.transform(rows)), self.agreement)

    def export_graph(self, *, precision: Precision = "float64") -> bytes:
        """Write everything from raw columns to prediction as one ONNX graph, a secret.

        Parameters
        ----------
        precision : {"float32", "float64"}
            Of numbers in, weights and scores.

        Returns
        -------
        bytes
            An ONNX model with the agreement's raw columns as inputs; the reference page on model
            files describes it.

        Raises
        ------
        LocalError
            Nothing has been accepted yet, the round trained no model, the model has no form as a
            graph, or the extra ``onnx`` is not installed.

        Notes
        -----
        **Who sees what.** The graph holds ``F_i G_i``: whoever has it can project every party's
        rows back. Keep it as you keep the basis.

        **Cost.** One copy of the model.
        """
        agreed = self.agreement
        model = read_chain(self._model(), task=agreed.task, n_classes=len(agreed.classes))
        n_features = self.basis.shape[0]
        return raw_graph(
            agreed.features,
            model,
            map_in=self.basis.project(np.eye(n_features)) @ self.returned.change_of_basis,
            classes=agreed.classes,
            precision=precision,
        )

    def _model(self) -> Chain | TrainedModel:
        """Return the common model; StepError where there is none."""
        if self.returned.model is None:
            raise StepError(
                "this round was for a representation and trained no model. Call transform(rows), "
                "or agree on a task."
            )
        return self.returned.model

    @property
    def basis(self) -> SecretBasis:
        """Of the last upload, to keep for a later round on the same rows; StepError before."""
        if self._basis is None:
            raise StepError(
                f"party '{self.name}' has not prepared its upload. Call prepare(rows, labels)."
            )
        return self._basis

    @property
    def returned(self) -> Return:
        """What was accepted; StepError before."""
        if self._return is None:
            raise StepError(
                f"party '{self.name}' has no return yet. Call accept() with the analyst's."
            )
        return self._return


def check_consensus(
    consensus: ConsensusSpan, agreement: Agreement, *, anchor_tag: bytes, party: str
) -> None:
    """Refuse a consensus of another agreement, another anchor or another shape."""
    _refuse_foreign(consensus.agreement_digest, agreement, what="consensus", party=party)
    shape = (agreement.n_anchor_rows, agreement.n_components)
    same = hmac.compare_digest(consensus.anchor_tag, anchor_tag)
    if not same or np.shape(consensus.rows) != shape:
        raise MessageError(
            f"the consensus for party '{party}' was made with another anchor or has shape "
            f"{np.shape(consensus.rows)} instead of {shape}. Ask the analyst for this round's."
        )
    with as_message_error(f"the consensus for party '{party}'"):
        as_matrix(consensus.rows, name="its table")


def check_return(returned: Return, agreement: Agreement, *, n_components: int, party: str) -> None:
    """Refuse a return of another agreement, for another party or of another shape."""
    _refuse_foreign(returned.agreement_digest, agreement, what="return", party=party)
    with as_message_error(f"the return to party '{party}'"):
        change = as_matrix(returned.change_of_basis, name="its change of basis")
    if returned.party != party or change.shape[0] != n_components:
        raise MessageError(
            f"this return is for party '{returned.party}' with {change.shape[0]} components; here "
            f"is party '{party}' with {n_components}. Ask the analyst for yours."
        )
    model, task, width = returned.model, agreement.task, change.shape[1]
    if isinstance(model, Chain):
        regression, widths = task == "regression", model.widths
        n_outputs = 1 if regression else len(agreement.classes)  # none for a representation
        told = model.head == "prediction", widths[0], widths[-1]
        fits = told == (regression, width, n_outputs)
    elif model is None:
        fits = task == "representation"
    else:
        fits = task != "representation" and len(model.axes) == width
    if not fits:
        raise MessageError(
            f"the model in the return to party '{party}' does not go with task='{task}' and "
            f"{width} aligned columns. Ask the analyst for another."
        )


def _refuse_foreign(digest: bytes, agreement: Agreement, *, what: str, party: str) -> None:
    """Raise MessageError unless the digest is the agreement's."""
    if not hmac.compare_digest(digest, agreement.digest()):
        raise MessageError(
            f"this {what} belongs to another agreement than round '{agreement.round_id}' of party "
            f"'{party}'. Ask the analyst for this round's."
        )
