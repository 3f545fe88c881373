"""Figure 6: how alignment time grows.

`./run.sh bench` measures the times; its page on speed has curves, machine and method. Here are its
fits. "As published" is our writing of the paper's algorithms. The paper gives no intervals of its
exponents.
"""

import json
from collections.abc import Mapping

from experiments.data.sources import MissingDataError
from experiments.harness.store import RECORDED
from experiments.harness.study import Study, Values

BENCH = RECORDED / "bench.json"
AXES: Mapping[str, str] = {"components": "l", "anchor rows": "a", "parties": "c"}
CONTENDERS: Mapping[str, str] = {
    "odc, as published": "svd loop",
    "odc, ours": "ours",
    "imakura, as published": "Imakura, randomised SVD + pinv",
    "imakura, ours": "Imakura, ours",
    "kawakami, as published": "Kawakami, randomised SVD",
    "kawakami, ours": "Kawakami, ours",
}

WHY = (
    "Another machine, and one thread where the paper has four: where a fixed part is still "
    "visible the fitted exponent depends on both."
)


def run(*, over: str, **_: int) -> Values:
    if not BENCH.exists():
        msg = f"{BENCH} is not there. Run ./run.sh bench, which writes it."
        raise MissingDataError(msg)
    fitted = json.loads(BENCH.read_text(encoding="utf-8"))["fig_6"]
    axis = AXES[over]
    exponents, slopes = fitted["exponents"][axis], fitted["slopes"] if axis == "c" else {}
    fits = {"exponent": (exponents, "exponent"), "seconds a party": (slopes, "slope")}
    return {
        f"{name}/{what}": of[contender][fit]
        for what, (of, fit) in fits.items()
        for name, contender in CONTENDERS.items()
        if contender in of
    }


STUDY = Study(
    source="ODC paper, Figure 6 and equations 86 to 91",
    unit="exponent of a power law, or seconds",
    cells=[{"over": over} for over in AXES],
    explained=dict.fromkeys(AXES, WHY),
    exact=True,
)
