"""What leaves with an upload and what stays, in words, and how much it weighs."""

from cobasis.party_side.rows import PartyRows
from cobasis.protocol.agreement import Agreement

_BYTES = {"fp64": (8, 8), "fp32": (4, 4), "fp16": (2, 2), "int8": (1, 2)}
"""Of one number of a row, and of one of the anchor's image, by the agreed precision."""


def leaves(agreement: Agreement, rows: PartyRows, *, proposing: bool) -> tuple[str, ...]:
    """Say what leaves, in words."""
    size, labels = agreement.n_components, ""
    told = []
    if agreement.label:
        randomised = agreement.dp is not None and agreement.dp.label_epsilon is not None
        how = "with some labels changed at random" if randomised else "in the clear"
        labels = f", and their column '{agreement.label}' {how}"
    if proposing:
        told.append(
            f"up to {size:,} directions of {rows.n_sent:,} rows, as the secret anchor sees them"
        )
    else:
        noise = "" if agreement.dp is None else " with noise"
        told.append(
            f"{rows.n_sent:,} rows in random order, as {size:,} numbers each{noise}{labels}"
        )
        told.append(
            f"the image of the secret anchor, {agreement.n_anchor_rows:,} x {size:,} numbers"
        )
    return (*told, "the names of party, round and agreement")


def stays(agreement: Agreement, rows: PartyRows, *, proposing: bool) -> tuple[str, ...]:
    """Say what does not leave."""
    told = ["the raw rows, the secret basis, the anchor and the consortium secret"]
    if proposing:
        told.append("every projected row and every label")
    if rows.n_held:
        told.append(f"{rows.n_held:,} rows that are held back, to score the model on")
    if agreement.id:
        told.append(f"the id column '{agreement.id}', and every column that is not agreed on")
    return tuple(told)


def weight(agreement: Agreement, n_rows: int) -> int:
    """Return the bytes of rows, image and labels before they are compressed."""
    row, image = _BYTES[agreement.precision]
    label = 8 if agreement.label else 0
    rows = n_rows * (agreement.n_components * row + label)
    return rows + agreement.n_anchor_rows * agreement.n_components * image
