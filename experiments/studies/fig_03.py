"""Figure 3: traffic over the bits of a number.

The hundred hospitals of equations 19 and 20. Computed; GB are decimal.
"""

from experiments.harness.study import Study, Values
from experiments.studies.traffic import COPIES, GIGA, SECRET, exchange


def run(*, bits: int, **_: int) -> Values:
    sent, made = (exchange(anchor=each, bits=bits).whole for each in (COPIES, SECRET))
    return {
        "one round of ours, anchor sent": sent / GIGA,
        "one round of ours, anchor from a secret": made / GIGA,
        "one federated round": exchange(bits=bits).federated() / GIGA,
    }


STUDY = Study(
    source="ODC paper, Figure 3 and equation 17; the paper prints the curves only",
    unit="GB",
    cells=[{"bits": bits} for bits in (8, 16, 32, 64)],
    exact=True,
)
