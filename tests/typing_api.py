"""Public calls as users write them, type-checked by mypy and never run."""

import numpy as np
import numpy.typing as npt

from cobasis import (
    GOPP,
    ODC,
    Agreement,
    Alignment,
    Analyst,
    ConsortiumSecret,
    Imakura,
    Kawakami,
    Party,
    Round,
    Whitened,
    align,
    draw_anchor,
    numeric_features,
    simulate,
)


def an_alignment(images: dict[str, npt.NDArray[np.float64]]) -> Alignment:
    found = align(ODC(reference="north"), images)
    found = align(Imakura(factor="sigma", scale="paper"), images)
    found = align(Kawakami(weighting="eigen"), images)
    found = align(GOPP(start="odc"), images)
    found = align(Whitened(scale=2.0), images)
    changes: npt.NDArray[np.float64] = found.changes_of_basis["north"]
    return align(found.aligner, {"late": changes}, target=found.target, sink=dict(found.fits))


def a_round(rows: dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]]) -> Round:
    done = simulate(rows, rng=np.random.default_rng(0), n_components=3, aligner=GOPP())
    predicted: npt.NDArray[np.generic] = done.parties["north"].predict(rows["north"][0])
    assert predicted.size
    return done


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
