"""What uploads have spent of the guarantee that people were given, and what may still be spent.

A charge stands in the upload history, in one record with the data set that it is about, and is
written before noise is drawn: what was begun is spent, whether it became whole or not. The same
release made again is the same numbers, and costs nothing more.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cobasis.errors import BudgetError
from cobasis.privacy.discrete import zcdp_epsilon
from cobasis.privacy.gaussian import epsilon_of
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.sums_terms import noise_of
from cobasis.vault.datasets import Asked, Charge, Dataset

_DISCRETE = "sums/"  # before the digest of a release whose noise is discrete
_CENTRED = "add-remove/"  # of one whose noise hides whether a row is somebody's or the centre


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What was spent on some rows, in all data sets that know one of them."""

    charges: tuple[Charge, ...] = ()  # one of each release
    bare: tuple[str, ...] = ()  # rounds in which something of these rows left without noise
    # digests of those that something of these rows left under
    agreements: frozenset[str] = frozenset()

    def epsilon(self, delta: float, *, centred: bool = False) -> float:
        """Return what all releases together spend at a delta; infinity if one had no noise.

        Of a person whose row is somebody else's, or, `centred`, who gives way to the centre.
        """
        if self.bare:
            return math.inf
        # from one row by way of the centre to another is twice as far as to the centre
        far = 1 if centred else 2
        mus = (each.mu * (far if each.release.startswith(_CENTRED) else 1) for each in self.charges)
        mu = math.hypot(*mus)
        labels = sum(each.labels for each in self.charges)
        if any(each.release.startswith(_DISCRETE) for each in self.charges):
            return labels + zcdp_epsilon(mu=mu, delta=delta)  # which holds of both kinds of noise
        return labels + (epsilon_of(noise=1.0, delta=delta, sensitivity=mu) if mu else 0.0)


def charge_of(agreement: Agreement, release: str) -> Charge | None:
    terms = agreement.dp
    if terms is None:
        return None
    sums, kind = noise_of(agreement), _CENTRED if terms.adjacency == "add-remove" else ""
    return Charge(
        release=f"{kind if sums is None else _DISCRETE}{release}",
        mu=terms.calibration.mu if sums is None else sums.mu,
        labels=terms.spent_on_labels,
        lifetime_epsilon=terms.lifetime_epsilon,
        delta=terms.delta,
    )


def spent_on(datasets: Iterable[Dataset], asked: Asked) -> Spent:
    known = [each for each in datasets if each.knows(asked.rows, asked.people).any()]
    lines = [line for each in known for line in each.history]
    charges = [line.charge for line in lines if line.charge is not None]
    bare = [line.round_id for line in lines if line.charge is None]
    return Spent(
        # The same release made again is the same numbers, so it counts once.
        charges=tuple({each.release: each for each in charges}.values()),
        bare=tuple(dict.fromkeys(bare)),
        agreements=frozenset(line.agreement for line in lines),
    )


def affordable(
    spent: Spent, agreement: Agreement, *, party: str, release: str | None = None
) -> Spent:
    """Return what was spent on rows, if more may be: by a release, or by a round's next one.

    Raises BudgetError where it would break what was promised, or promise what cannot be kept.
    """
    charge = charge_of(agreement, release or "")
    if charge is None:
        if not spent.charges:
            return spent
        raise BudgetError(
            f"rows of party '{party}' were uploaded with noise under a guarantee before, "
            f"{len(spent.charges)} time(s), and this round has no [dp] section: one upload "
            "without noise would take the guarantee back. Agree on [dp], or leave those rows "
            "out."
        )
    if spent.bare:
        rounds = ", ".join(f"'{each}'" for each in spent.bare)
        raise BudgetError(
            f"something of these rows of party '{party}' was begun to be uploaded without "
            f"noise, in round {rounds}, so no noise can promise anything about them now: "
            "epsilon is infinite. Leave those rows out, or agree on a round without [dp]."
        )
    known = release is None and agreement.digest().hex() in spent.agreements
    if known or any(each.release == charge.release for each in spent.charges):
        return spent
    after = Spent(charges=(*spent.charges, charge))
    for promised in after.charges:
        centred = promised.release.startswith(_CENTRED)
        total = after.epsilon(promised.delta, centred=centred)
        if total > promised.lifetime_epsilon:
            raise BudgetError(
                f"this upload of party '{party}' would be release {len(after.charges)} of some "
                f"of its rows and bring what is spent on them to epsilon={total:.4g} at "
                f"delta={promised.delta:g}; a lifetime of {promised.lifetime_epsilon:g} was "
                "promised. Nothing has left. Leave those rows out, or agree on a smaller "
                "epsilon."
            )
    return spent
