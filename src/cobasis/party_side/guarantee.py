"""What an upload's noise promises, in one line; and people with more rows than it covers."""

import numpy as np

from cobasis.errors import AgreementError
from cobasis.party_side.rows import PartyRows
from cobasis.privacy.audit import Budget
from cobasis.protocol.agreement import Agreement
from cobasis.vault import Spent

NONE = "no formal guarantee"


def guarantee_of(agreement: Agreement, spent: Spent) -> str:
    """Return the guarantee that the round gives, and what was spent before it."""
    terms = agreement.dp
    if terms is None:
        return NONE
    promised = [terms.lifetime_epsilon, *(each.lifetime_epsilon for each in spent.charges)]
    return (
        f"{terms.statement(basis=agreement.basis)}; releases so far {len(spent.charges)}, epsilon "
        f"spent on these rows {spent.epsilon(terms.delta):.4g} of {min(promised):g}"
    )


def budget_of(agreement: Agreement) -> Budget | None:
    """Return what the agreement's noise is made of, for an audit to make other noise like it."""
    terms = agreement.dp
    if terms is None:
        return None
    return Budget(
        epsilon=terms.epsilon,
        delta=terms.delta,
        radius=terms.radius,
        centre=terms.centre,
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        label_epsilon=terms.label_epsilon,
        n_classes=len(agreement.classes),
    )


def refuse_crowds(rows: PartyRows, agreement: Agreement, *, party: str) -> None:
    """Raise AgreementError where somebody has more rows than the guarantee covers."""
    terms = agreement.dp
    if terms is None or rows.ids is None:
        return
    _, counts = np.unique(rows.people, return_counts=True)
    if counts.max(initial=0) > terms.rows_per_person:
        raise AgreementError(
            f"some identifiers of party '{party}' stand in more than rows_per_person="
            f"{terms.rows_per_person} rows, so the noise of [dp] would be too small for these "
            "people. Leave rows of theirs out, or agree on a larger rows_per_person."
        )
