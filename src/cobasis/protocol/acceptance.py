"""What a party checks before it uses what the analyst sent."""

import hmac

import numpy as np

from cobasis.errors import MessageError
from cobasis.linalg.arrays import as_matrix
from cobasis.models.chain import Chain
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan, Return
from cobasis.protocol.refusals import as_message_error


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
    wanted = agreement.task != "representation"
    width = change.shape[1] if returned.model is None else returned.model.n_components
    if (
        (returned.model is not None) != wanted
        or width != change.shape[1]
        or (isinstance(returned.model, Chain) and not _agreed(returned.model, agreement))
    ):
        raise MessageError(
            f"the model in the return to party '{party}' does not go with task='{agreement.task}' "
            f"and {change.shape[1]} aligned columns. Ask the analyst for another."
        )


def _agreed(model: Chain, agreement: Agreement) -> bool:
    """Whether a model is for this agreement's task, and gives as many scores as it has classes."""
    n_outputs = 1 if agreement.task == "regression" else len(agreement.classes)
    return (model.task, model.n_outputs) == (agreement.task, n_outputs)


def _refuse_foreign(digest: bytes, agreement: Agreement, *, what: str, party: str) -> None:
    """Raise MessageError unless the digest is the agreement's."""
    if not hmac.compare_digest(digest, agreement.digest()):
        raise MessageError(
            f"this {what} belongs to another agreement than round '{agreement.round_id}' of party "
            f"'{party}'. Ask the analyst for this round's."
        )
