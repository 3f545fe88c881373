"""What one upload with noise spends, as it stands in the upload history."""

from dataclasses import dataclass

from cobasis.protocol.agreement import Agreement


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one upload with noise spends.

    Attributes
    ----------
    release : str
        Digest of all that the noise was drawn for, 64 hexadecimal digits.
    mu : float
        Sensitivity over noise.
    labels : float
        Epsilon of a person's labels, 0 where they are public.
    lifetime_epsilon, delta : float
        What its agreement promises for all uploads of a data set; each promise is kept.
    """

    release: str
    mu: float
    labels: float
    lifetime_epsilon: float
    delta: float


def charge_of(agreement: Agreement, release: str) -> Charge | None:
    """Return what an upload spends, None where it has no noise."""
    terms = agreement.dp
    if terms is None:
        return None
    return Charge(
        release=release,
        mu=terms.calibration.mu,
        labels=terms.spent_on_labels,
        lifetime_epsilon=terms.lifetime_epsilon,
        delta=terms.delta,
    )
