"""Equations 10 to 20, Table 1: what travels.

100 parties of 1,000 rows, 784 features, l = 100, anchor of 1,000 rows, 32 bits a number. Computed
by `cobasis.planning.costs`; GB are decimal. Labels and headers are not counted: labels add 0.4 MB
in all as 32-bit numbers. A ResNet-50 cannot take vectors of 100 numbers; the paper's own MLP can,
and there the anchor decides.
"""

from collections.abc import Mapping

from cobasis.planning import costs
from experiments.harness.study import Study, Values

COMMON = {"n_parties": 100, "n_rows": 1000, "n_anchor_rows": 1000, "n_features": 784}
COMMON |= {"n_components": 100, "bits": 32}
"""The ODC paper's hundred hospitals."""

RESNET, RESNET_EXACT = "ResNet-50, as rounded in the paper", "ResNet-50, exact"
MLP = "the paper's own MLP"
MODELS: Mapping[str, tuple[int, int]] = {
    RESNET: (25_000_000, 25_000_000),
    RESNET_EXACT: (25_557_032, 25_557_032),
    MLP: (100 * 256 + 256 + 256 * 10 + 10, 784 * 256 + 256 + 256 * 10 + 10),
}
"""Parameters that are returned, of a model on l components, and that federated rounds carry."""

COPIES, SECRET = "a copy sent to each party", "made from a shared secret"
ANCHORS = {COPIES: 100.0, SECRET: 0.0}
GIGA, GIBI, MEGA = 1e9, 2.0**30, 1e6
LINK = {"bits_per_second": 100e6, "delay": 0.05}


def exchange(model: str = RESNET, anchor: str = COPIES, **changed: float) -> costs.Traffic:
    """Return the paper's example with some of it changed."""
    settings = {"n_parameters": MODELS[model][0], "anchor_copies": ANCHORS[anchor], **COMMON}
    return costs.Traffic(**{**settings, **changed})  # type: ignore[arg-type]


def run(*, model: str, anchor: str, **_: int) -> Values:
    """Compute one column."""
    ours, theirs = exchange(model, anchor), exchange(model, n_parameters=MODELS[model][1])
    whole, one_round = costs.round_bytes(ours), costs.federated_bytes(theirs, rounds=1)
    copy = costs.anchor_bytes(ours) / COMMON["n_parties"]
    model_each_way = one_round / 2 / COMMON["n_parties"]
    slow = {**LINK, "trips": 3.0}
    return {
        "one round of ours, GB (eqs. 14, 19)": whole / GIGA,
        "one round of ours, GiB (Table 1)": whole / GIBI,
        "one federated round, GB (eqs. 15, 20)": one_round / GIGA,
        "saved against one federated round, %": 100 * (1 - whole / one_round),
        "break-even rounds R*, everybody takes part (eq. 16)": whole / one_round,
        "break-even rounds R*, a tenth takes part": whole / (0.1 * one_round),
        "a party sends, MB (eq. 10)": costs.upload_bytes(ours) / MEGA,
        "a party is sent, MB (eq. 11)": costs.return_bytes(ours) / MEGA,
        "a party's copy of the anchor, MB (eq. 12)": copy / MEGA,
        "a party at most in one phase of ours, MB": (
            max(costs.upload_bytes(ours), costs.return_bytes(ours), copy) / MEGA
        ),
        "a party each way in each federated round, MB": model_each_way / MEGA,
        "seconds through one link of 100 Mbit/s, 50 ms (eq. 18)": costs.transfer_seconds(
            whole, **slow
        ),
        "seconds of one federated round through it": costs.transfer_seconds(
            one_round, **{**slow, "trips": 2.0}
        ),
    }


START = f"{RESNET}/{COPIES}/"

STUDY = Study(
    source="ODC paper, section 2.3",
    unit="in the unit that the row says",
    cells=[{"model": model, "anchor": anchor} for model in MODELS for anchor in ANCHORS],
    explained={f"{START}saved": 'The paper rounds: it says "nearly 50 %".'},
    exact=True,
    charted=(),
)
