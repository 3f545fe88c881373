"""Figure 3: traffic over the bits of a number.

The hundred hospitals of equations 19 and 20. Computed; GB are decimal.
"""

from cobasis.planning.costs import federated_bytes, round_bytes
from experiments.harness.study import Study, Values
from experiments.studies.traffic import COPIES, GIGA, SECRET, exchange


def run(*, bits: int, **_: int) -> Values:
    """Compute one point."""
    sent, made = (round_bytes(exchange(anchor=each, bits=bits)) for each in (COPIES, SECRET))
    return {
        "one round of ours, anchor sent": sent / GIGA,
        "one round of ours, anchor from a secret": made / GIGA,
        "one federated round": federated_bytes(exchange(bits=bits), rounds=1) / GIGA,
    }


STUDY = Study(
    source="ODC paper, Figure 3 and equation 17; the paper prints the curves only",
    unit="GB",
    cells=[{"bits": bits} for bits in (8, 16, 32, 64)],
    exact=True,
)
