"""Table 12: frameworks compared.

Messages and bytes for {PARTIES} parties of {ROWS} rows and {FEATURES} features, as in Table 11: l =
{COMPONENTS}, an anchor of {ANCHOR:,} rows from a shared secret, {HIDDEN} hidden units, 64 bits a
number. Computed, labels not counted. Bytes depend on the model; the study of traffic has others.
Accuracy is what the studies of Tables 9 and 11 recorded.
"""

from collections.abc import Mapping

from experiments.harness.noise import PAPERS_NOISE
from experiments.harness.statistics import summary
from experiments.harness.store import recorded
from experiments.harness.study import Study, Values, table
from experiments.studies.table_09 import FITS, HONEST
from experiments.studies.traffic import Traffic

PARTIES, ROWS, FEATURES, COMPONENTS, ANCHOR = 50, 400, 25, 20, 3000
ROUNDS, HIDDEN, MEGA = 40, 256, 1e6

NOISE, FEDERATED = "noise on the rows", f"FedAvg, {ROUNDS} rounds"
ONCE, TWICE = "one exchange, own bases", "two exchanges, consensus basis"

SAID = {  # what the paper's Table 12 says: rounds, accuracy, guarantee
    NOISE: ("user to analyst, once", "low", "rigorous"),
    FEDERATED: ("both ways until convergence", "high", "no intrinsic formalism"),
    ONCE: ("user to analyst, once, and one anchor to all", "medium", "rigorous, semi-honest"),
    TWICE: ("not in the paper", "", ""),
}
FOUND = {  # where the measured figures are: a study and a key
    NOISE: (
        ("table_09", f"any/{PAPERS_NOISE}, epsilon 8/mlp"),
        ("table_09", f"{FITS}/one round/{HONEST}, epsilon 8/odc"),
    ),
    FEDERATED: (("table_11", "eicu demo, 4 regions/any/fedavg"),),
    ONCE: (
        ("table_09", f"{FITS}/one round/diffspan_orth/odc"),
        ("table_11", "eicu demo, 4 regions/isometric anchor/odc"),
    ),
    TWICE: (("table_11", "eicu demo, 4 regions/isometric anchor/odc, consensus basis"),),
}
UNITS = {"table_09": "% of faces (Table 9)", "table_11": "days RMSE (Table 11)"}
GUARANTEED = {
    NOISE: "none as the papers set it",
    FEDERATED: "none formal: every round shows the analyst a party's gradients",
    ONCE: "none formal: one helper at a party undoes the projection as far as bases reach",
    TWICE: "the same, and together the others learn the last party's span",
}


def parameters(inputs: int) -> int:
    """Return the numbers in the papers' network with one output."""
    return (inputs + 1) * HIDDEN + HIDDEN + 1


def run(*, framework: str, **_: int) -> Values:
    """Compute what one party sends and is sent until it has a model."""
    size = Traffic(
        n_parties=PARTIES,
        n_rows=ROWS,
        n_anchor_rows=ANCHOR,
        n_features=FEATURES,
        n_components=COMPONENTS,
        n_parameters=parameters(COMPONENTS),
    )
    raw = 8 * parameters(FEATURES)
    if framework == NOISE:
        return _told(1, 1, 8 * ROWS * FEATURES + raw)
    if framework == FEDERATED:
        whole = Traffic(**{**vars(size), "n_parameters": parameters(FEATURES)})
        return _told(ROUNDS, ROUNDS, ROUNDS * whole.federated() / PARTIES)
    once = size.upload + size.reply
    shared = 2 * 8 * ANCHOR * COMPONENTS if framework == TWICE else 0
    messages = 2 if framework == TWICE else 1
    return _told(messages, messages, once + shared)


def _told(sent: int, received: int, n_bytes: float) -> Values:
    return {
        "messages that a party sends": float(sent),
        "messages that a party is sent": float(received),
        "MB of a party, both ways": n_bytes / MEGA,
    }


def analysis(values: Mapping[str, list[float]]) -> list[str]:
    """Return the paper's table with our figures, those of other studies as they are recorded."""
    head = ["", "rounds, the paper", "accuracy, the paper", "measured", "guarantee, the paper"]
    rows = [
        [kind, rounds, accuracy, _measured(kind), guarantee, GUARANTEED[kind]]
        for kind, (rounds, accuracy, guarantee) in SAID.items()
        if any(place.startswith(f"{kind}/") for place in values)
    ]
    return [
        *table([*head, "ours"], rows),
        "",
        "The ranking low, medium, high is the paper's, over different tasks.",
    ]


def _measured(kind: str) -> str:
    found = []
    for name, place in FOUND[kind]:
        repeats = recorded(name).values().get(place)
        if repeats:
            kept = ", honest noise" if HONEST in place else ""
            found.append(f"{summary(repeats)} {UNITS[name]}{kept}")
    return "; ".join(found) or "not measured yet"


STUDY = Study(
    source="ODC paper, Table 12, which has words only",
    unit="in the unit that the row says",
    cells=[{"framework": kind} for kind in SAID],
    exact=True,
    charted=(),
)
