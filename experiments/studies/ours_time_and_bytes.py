"""Time and bytes to an accuracy, against FedAvg.

{PARTIES} parties of {ROWS} rows, the same for all: images in [0, 1] of two labels each (four
parties share a label), persons at random; {TESTS:,} random test rows. The same network everywhere:
256 ReLU, Adam at 1e-3, batches of 32, the same code. **One exchange**: ODC under an isometric
anchor (a = m), l = 50, {EPOCHS} epochs at the analyst, accuracy as mean over all parties. **Masked
sums**: random Fourier features of three bandwidths, 1,000 each, and ridge, as by default.
**FedAvg**: 40 rounds, full participation, Adam afresh in each round, on raw rows. Bytes are those
of one party's arrays in float64, up and down (float32 would halve both). Seconds of computing are
of one core, parties side by side, each step as long as its slowest party; with the network each
party's line has 100 Mbit/s, and a message takes 50 ms. An accuracy that a method does not reach in
some repeats has a mean of the others, one that it never reaches has no row.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import cobasis
from experiments.harness.fedavg import After, FedAvg, federated
from experiments.harness.models import Table
from experiments.harness.study import Study, Values
from experiments.harness.systems import Dealt, generator
from experiments.studies._ours import tabled

PARTIES, ROWS, TESTS = 20, 300, 5000
EPOCHS = 20  # of the analyst, on aligned rows
BITS_A_SECOND, DELAY = 100e6, 0.05
"""Of each party's line, and of a message: the ODC paper's example below its eq. (18)."""

COMPONENTS = 50
TARGETS = {"mnist": (85, 90, 93), "fashion-mnist": (70, 80, 84), "adult": (82, 83, 84)}
"""Accuracies, in percent."""


@dataclass(frozen=True, kw_only=True)
class Point:
    accuracy: float  # on the test set, in percent
    n_bytes: float  # that one party sent and was sent so far
    seconds: float  # of computing so far, parties side by side, one core each
    messages: int  # one after the other so far, to and fro


def deal(data: str, *, repeat: int) -> Dealt:
    """Deal rows: images so that each party has two labels, persons at random."""
    rows, labels = tabled(data)
    scale = 1.0 if data == "adult" else 1 / 255
    order = generator(repeat).permutation(len(labels))
    test, rest = order[:TESTS], order[TESTS:]
    chosen = [rest[number * ROWS : (number + 1) * ROWS] for number in range(PARTIES)]
    if data != "adult":  # half of a party's rows have one label; four parties share it
        half, of = ROWS // 2, [rest[labels[rest] == label] for label in range(10)]
        for number in range(PARTIES):
            two, turn = (number, number + (1 if number < 10 else 3)), number // 10
            parts = (of[label % 10][(2 * n + turn) * half :][:half] for n, label in enumerate(two))
            chosen[number] = np.concatenate([*parts])
    held = {f"party-{number:02d}": each for number, each in enumerate(chosen)}
    return Dealt.of(lambda at: rows[at] * scale, labels, held=held, test=test, repeat=repeat)


def once(dealt: Dealt, *, basis: Any, size: int) -> Iterator[Point]:
    """Run one exchange, and yield where the analyst's model stands after each epoch."""
    exchange = Exchange(dealt, basis=basis, size=size)
    exchange.upload()
    started = time.process_time()
    changes = exchange.analyst.align().changes_of_basis
    uploads = [exchange.analyst.uploads[name] for name in dealt.parties]
    rows = np.vstack([each.rows[:] @ changes[each.party] for each in uploads])
    labels = np.concatenate([each.labels for each in uploads if each.labels is not None])
    aligning = time.process_time() - started
    parties = exchange.parties.items()
    judges = [each.basis.project(dealt.test_rows) @ changes[name] for name, each in parties]
    data = {"analyst": (rows, labels)}
    for after in federated(data, options=FedAvg(rounds=EPOCHS), rng=generator(dealt.repeat, 2)):
        yield Point(
            accuracy=float(np.mean([_accuracy(after, seen, dealt) for seen in judges])),
            n_bytes=exchange.n_bytes + changes[exchange.first].nbytes + after.network.n_bytes,
            seconds=exchange.seconds + aligning + after.seconds,
            messages=exchange.messages + 1,
        )


class Exchange:
    """All parties' halves and the analyst's, with what each costs."""

    def __init__(self, dealt: Dealt, *, basis: Any, size: int) -> None:
        rng, width = generator(dealt.repeat, 1), dealt.test_rows.shape[1]
        secret = cobasis.ConsortiumSecret(rng.bytes(32), simulated=True)
        self.rows = dealt.parties
        self.first = next(iter(self.rows))
        agreement = cobasis.Agreement(
            round_id="time and bytes",
            parties=tuple(self.rows),
            features=cobasis.numeric_features(f"x{column}" for column in range(width)),
            task="classification",
            classes=tuple(np.unique(dealt.pooled()[1]).tolist()),
            n_components=size,
            n_anchor_rows=width,
            basis=basis,
            model="logistic",
            commitment=secret.commitment("time and bytes"),
        )
        self.analyst = cobasis.Analyst(agreement)
        self.seconds, self.n_bytes, self.messages = 0.0, 0, 0
        keys = {name: cobasis.PartyKey(rng.bytes(32), simulated=True) for name in self.rows}
        self.parties = self._side_by_side(
            lambda name: cobasis.Party(name, agreement=agreement, secret=secret, key=keys[name])
        )

    def _side_by_side(self, work: Any) -> dict[str, Any]:
        found, spent = {}, []
        for name in self.rows:
            started = time.process_time()
            found[name] = work(name)
            spent.append(time.process_time() - started)
        self.seconds += max(spent)
        return found

    def upload(self) -> None:
        """Send everything that goes to the analyst; a consensus goes to and fro before."""
        consensus = None
        if self.analyst.agreement.basis == "consensus":
            own = {name: rows for name, (rows, _) in self.rows.items()}
            proposals = self._side_by_side(lambda name: self.parties[name].propose(own[name]))
            started = time.process_time()
            consensus = self.analyst.consensus(proposals.values())
            self.seconds += time.process_time() - started
            self.n_bytes += proposals[self.first].n_bytes + consensus.n_bytes
            self.messages += 2
        uploads = self._side_by_side(
            lambda name: self.parties[name].prepare(*self.rows[name], consensus=consensus)
        )
        self.n_bytes += uploads[self.first].n_bytes
        self.messages += 1
        started = time.process_time()
        for upload in uploads.values():
            self.analyst.receive(upload)
        self.seconds += time.process_time() - started


def again_and_again(dealt: Dealt, *, epochs: int) -> Iterator[Point]:
    """Average models on raw rows, and yield where they stand after each round."""
    options = FedAvg(local_epochs=epochs)
    for after in federated(dealt.parties, options=options, rng=generator(dealt.repeat, 2)):
        yield Point(
            accuracy=_accuracy(after, dealt.test_rows, dealt),
            n_bytes=2 * after.n_bytes / len(dealt.parties),
            seconds=after.seconds,
            messages=2 * after.rounds,
        )


def added_up(dealt: Dealt) -> tuple[Point, float]:
    """Send masked sums once, as by default; return where their model stands, and n/D."""
    started = time.process_time()
    done = cobasis.simulate(dealt.parties, rng=generator(dealt.repeat, 1), release="sums")
    spent, started = time.process_time() - started, time.process_time()
    result = done.analyst.run()  # once more, to know its part of the time
    training = time.process_time() - started
    name = next(iter(dealt.parties))
    point = Point(
        accuracy=100 * done.score(dealt.test_rows, dealt.test_labels)[name],
        n_bytes=done.traffic[name].up + done.traffic[name].down,
        seconds=(spent - training) / len(dealt.parties) + training,  # parties are of one size
        messages=2,
    )
    return point, result.rows_per_feature


def _accuracy(after: After, rows: Table, dealt: Dealt) -> float:
    return 100 * float(np.mean(after.network.predict(rows) == dealt.test_labels))


def run(*, data: str, method: str, repeat: int) -> Values:
    dealt = deal(data, repeat=repeat)
    if method.startswith("fedavg"):
        epochs = 5 if method.endswith("5 local epochs") else 1
        way = list(again_and_again(dealt, epochs=epochs))
    elif method == "masked sums":
        point, share = added_up(dealt)
        return {**measured([point], targets=TARGETS[data]), "n/D": share}
    else:
        way = list(once(dealt, basis=METHODS[method], size=COMPONENTS))
    return measured(way, targets=TARGETS[data])


def measured(way: list[Point], *, targets: tuple[int, ...]) -> Values:
    """Return the end of the way, and what it took to reach each accuracy first."""
    reached = {f"{each} %": [p for p in way if p.accuracy >= each][:1] for each in targets}
    found: Values = {"accuracy at the end": way[-1].accuracy}
    for name, points in {"the end": way[-1:], **reached}.items():
        for point in points:
            on_the_line = 8 * point.n_bytes / BITS_A_SECOND + DELAY * point.messages
            found |= {
                f"MB of a party to {name}": point.n_bytes / 1e6,
                f"messages to {name}": point.messages,
                f"seconds of computing to {name}": point.seconds,
                f"seconds with the network to {name}": point.seconds + on_the_line,
            }
    return found


METHODS: Mapping[str, str | None] = {
    "one exchange, own bases": "svd",
    "one exchange, consensus basis": "consensus",
    "masked sums": None,
    "fedavg, 1 local epoch": None,
    "fedavg, 5 local epochs": None,
}

STUDY = Study(
    source="ours",
    unit="as named (accuracy in %, MB, s)",
    cells=[{"data": data, "method": method} for data in TARGETS for method in METHODS],
    times=("*seconds*",),
    charted=(),
)
