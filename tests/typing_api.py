"""Public calls as users write them, type-checked by mypy and never run."""

import numpy as np
import numpy.typing as npt

from cobasis import (
    GOPP,
    ODC,
    Agreement,
    Analyst,
    ConsortiumSecret,
    Party,
    Whitened,
    align,
    draw_anchor,
    numeric_features,
    simulate,
)


def in_one_process(rows: dict[str, tuple[npt.NDArray[np.float64], list[str]]]) -> None:
    done = simulate(
        rows, rng=np.random.default_rng(0), n_components=3, aligner=GOPP(tolerance=1e-8)
    )
    predicted: npt.NDArray[np.generic] = done.parties["north"].predict(rows["north"][0])
    found = align(ODC(reference="north"), {name: each for name, (each, _) in rows.items()})
    assert predicted.size
    changes: npt.NDArray[np.float64] = found.changes_of_basis["north"]
    align(Whitened(scale=2.0), {"late": changes}, target=found.target, sink=dict(found.fits))


def by_hand() -> None:
    secret = ConsortiumSecret()
    agreement = Agreement(
        round_id="icu-2026",
        parties=("north", "south"),
        features=numeric_features(["age", "pulse"]),
        task="classification",
        classes=("no", "yes"),
        n_components=2,
        n_anchor_rows=2,
        model="logistic",
        commitment=secret.commitment("icu-2026"),
    )
    party = Party("north", agreement=agreement, secret=secret)
    analyst = Analyst(agreement)
    analyst.receive(party.prepare([[1.0, 2.0]], ["no"]))
    party.accept(analyst.run(realign=True)["north"])
    image: npt.NDArray[np.float64] = draw_anchor(
        "gaussian", key=bytes(32), n_rows=4, n_features=2
    ).apply(np.eye(2))
    assert image.size
