"""The model of the others: what a party chooses its local fit by, for it has not seen its rows."""

from typing import cast

from cobasis.errors import LabelError
from cobasis.models.chain import Chain
from cobasis.models.local import FAMILIES, MOST_PARTIES
from cobasis.models.trainer import train
from cobasis.protocol.aligned import AlignedRows
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.messages import Return


def model_without(analyst: Analyst, returned: Return) -> Chain | None:
    """Train a return's family on everybody's rows but its party's.

    None under noise, for other families, for fewer than two others or too many, and for rows that
    are more than one block.
    """
    agreed, like = analyst.agreement, returned.model
    rest = {name: each for name, each in analyst.uploads.items() if name != returned.party}
    family = FAMILIES.get(like.family) if isinstance(like, Chain) else None
    if family is None or agreed.dp is not None or not 1 < len(rest) < MOST_PARTIES:
        return None
    rows = AlignedRows(rest, analyst.alignment.changes_of_basis)
    seed, n_classes = int.from_bytes(agreed.digest()[:4]), len(agreed.classes)
    if rows.n_blocks > 1:
        return None
    try:
        made = train(rows, model=family, task=agreed.task, seed=seed, n_classes=n_classes)
    except LabelError:  # all of the others are of one class
        return None
    return cast("Chain", made)
