"""Equations 10 to 20, Table 1: what travels.

100 parties of 1,000 rows, 784 features, l = 100, anchor of 1,000 rows, 32 bits a number. Computed;
GB are decimal. Labels and headers are not counted: labels add 0.4 MB in all as 32-bit numbers. A
ResNet-50 cannot take vectors of 100 numbers; the paper's own MLP can, and there the anchor decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass

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
BITS_PER_SECOND, DELAY = 100e6, 0.05


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What travels in a round, in the paper's terms; properties are bytes."""

    n_parties: int  # c
    n_rows: float  # of one party, as mean over parties
    n_anchor_rows: int  # a
    n_features: int  # m
    n_components: int  # l
    n_parameters: int  # N
    bits: int = 64  # q
    # gamma: c where each party is sent one, 0 where a shared secret makes it
    anchor_copies: float = 0

    @property
    def upload(self) -> float:
        """What one party sends (eq. 10)."""
        return (self.n_rows + self.n_anchor_rows) * self.n_components * self.bits / 8

    @property
    def reply(self) -> float:
        """What one party is sent (eq. 11)."""
        return (self.n_components**2 + self.n_parameters) * self.bits / 8

    @property
    def anchor(self) -> float:
        """What all copies of the anchor take (eqs. 12 and 13)."""
        return self.anchor_copies * self.n_anchor_rows * self.n_features * self.bits / 8

    @property
    def whole(self) -> float:
        """What one whole round takes (eq. 14; eq. 17 is that it is linear in the bits)."""
        return self.n_parties * (self.upload + self.reply) + self.anchor

    def federated(self, participation: float = 1) -> float:
        """Return what one round of federated learning takes (eq. 15)."""
        return 2 * participation * self.n_parties * self.n_parameters * self.bits / 8

    def break_even(self, participation: float = 1) -> float:
        """Return after how many federated rounds one of ours has taken less (eq. 16)."""
        return self.whole / self.federated(participation)


def exchange(model: str = RESNET, anchor: str = COPIES, **changed: float) -> Traffic:
    """Return the paper's example with some of it changed."""
    settings = {"n_parameters": MODELS[model][0], "anchor_copies": ANCHORS[anchor], **COMMON}
    return Traffic(**{**settings, **changed})  # type: ignore[arg-type]


def seconds(n_bytes: float, *, trips: int) -> float:
    """Return how long bytes are on their way through one link of 100 Mbit/s, 50 ms (eq. 18)."""
    return 8 * n_bytes / BITS_PER_SECOND + trips * DELAY


def run(*, model: str, anchor: str, **_: int) -> Values:
    ours, theirs = exchange(model, anchor), exchange(model, n_parameters=MODELS[model][1])
    whole, one_round = ours.whole, theirs.federated()
    copy = ours.anchor / COMMON["n_parties"]
    model_each_way = one_round / 2 / COMMON["n_parties"]
    return {
        "one round of ours, GB (eqs. 14, 19)": whole / GIGA,
        "one round of ours, GiB (Table 1)": whole / GIBI,
        "one federated round, GB (eqs. 15, 20)": one_round / GIGA,
        "saved against one federated round, %": 100 * (1 - whole / one_round),
        "break-even rounds R*, everybody takes part (eq. 16)": whole / one_round,
        "break-even rounds R*, a tenth takes part": whole / (0.1 * one_round),
        "a party sends, MB (eq. 10)": ours.upload / MEGA,
        "a party is sent, MB (eq. 11)": ours.reply / MEGA,
        "a party's copy of the anchor, MB (eq. 12)": copy / MEGA,
        "a party at most in one phase of ours, MB": max(ours.upload, ours.reply, copy) / MEGA,
        "a party each way in each federated round, MB": model_each_way / MEGA,
        "seconds through one link of 100 Mbit/s, 50 ms (eq. 18)": seconds(whole, trips=3),
        "seconds of one federated round through it": seconds(one_round, trips=2),
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
