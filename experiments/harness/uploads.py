"""What parties send, made once and aligned by as many methods as a table compares."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np

from cobasis import ODC, align
from cobasis.errors import UndeterminedFitError
from experiments.harness import systems
from experiments.harness.models import Make, Table, mlp
from experiments.harness.study import Values

Models = Mapping[str, Make]
MLP: Models = {"": mlp}
ROWS_STREAM = 2  # what tells the generator of noise on rows from the others


UNDETERMINED = "refused as undetermined, measured without the check (1 = yes)"
"""What stands beside ODC's figures where `AsPrinted` took over from `cobasis.ODC`."""


@dataclass(frozen=True, kw_only=True)
class AsPrinted:
    """ODC by the letter of Algorithm 4, which refuses nothing.

    `cobasis.ODC` refuses where the smallest singular value of ``A_i' Z`` is below 1e-8 of the
    largest. With E_i from U[0, 1], as in two of the four conditions, that is most images with
    100 components: E_i alone has a condition number of 1e3 to 1e5, and the product squares it.
    """

    fit_kind: ClassVar[Literal["rotation", "whitened rotation", "least squares"]] = "rotation"

    rotation: Table | None = None

    def target(self, images: Mapping[str, Table], **options: Any) -> Any:
        return ODC(rotation=self.rotation).target(images, **options)

    def fits(self, images: Mapping[str, Table], target: Any) -> dict[str, Any]:
        """Rotate images onto the target; determination is the smallest over the largest value."""
        found = {}
        for party, image in images.items():
            left, values, right = np.linalg.svd(image.T @ target.rows)
            told = {"change_of_basis": left @ right, "determination": values[-1] / values[0]}
            found[party] = SimpleNamespace(**told)
        return found


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """One round's uploads, whose bases and anchor are the same for all aligners."""

    images: Mapping[str, Table]  # ``A F_i`` and ``X_i F_i``, by party name
    rows: Mapping[str, Table]
    tests: Mapping[str, Table]  # the projected test rows of the parties that judge
    dealt: systems.Dealt  # what was projected

    def changes(self, aligner: Any) -> Mapping[str, Table]:
        return align(aligner, self.images).changes_of_basis

    def aligned(self, aligner: Any) -> systems.Shared:
        """Align by an aligner, or by what makes it of uploads: what a model is trained on."""
        return aligner(self) if callable(aligner) else self.turned(self.changes(aligner))

    def turned(self, changes: Mapping[str, Table], *, noise: float = 0.0) -> systems.Shared:
        """Return what a model is trained on; a repeat's noise is one draw for all methods."""
        rows, rng = self.rows, systems.generator(self.dealt.repeat, ROWS_STREAM)
        if noise:
            rows = {n: own + noise * rng.standard_normal(own.shape) for n, own in rows.items()}
        return systems.Shared(
            rows=np.vstack([own @ changes[party] for party, own in rows.items()]),
            labels=self.dealt.labels,
            tests=systems.told_apart(table @ changes[party] for party, table in self.tests.items()),
            dealt=self.dealt,
        )


def uploads(dealt: systems.Dealt, *, judges: int = systems.JUDGES, **options: Any) -> Uploads:
    """Run one round for its uploads; options as in `simulate`, but for the aligner."""
    done = systems.a_round(dealt.parties, repeat=dealt.repeat, aligner=AsPrinted(), **options)
    bases = {name: party.basis for name, party in done.parties.items()}
    return Uploads(
        images={name: done.analyst.uploads[name].anchor_image[:] for name in bases},
        rows={name: basis.project(dealt.parties[name][0]) for name, basis in bases.items()},
        tests={name: bases[name].project(dealt.test_rows) for name in list(bases)[:judges]},
        dealt=dealt,
    )


def by_gopp(sent: Uploads, **how: Any) -> Values:
    """Measure GOPP, in a cell of its own: it takes long, and may find nothing to turn by."""
    try:
        shared = sent.aligned(systems.PAPERS["gopp"])
    except UndeterminedFitError:
        return {"refused": 1.0}
    return systems.judged(shared, **how)


def by_each(
    sent: Uploads, methods: Mapping[str, Any], *, models: Models = MLP, **how: Any
) -> Values:
    """Align by each method, train and judge; what ODC refuses Algorithm 4 does, and says so."""
    found: Values = {}
    for method, aligner in methods.items():
        try:
            shared = sent.aligned(aligner)
        except UndeterminedFitError:
            if method != "odc":
                raise
            shared = sent.aligned(AsPrinted())
            found[f"odc {UNDETERMINED}"] = 1.0
        for name, make in models.items():
            values = systems.judged(shared, make=make, **how)
            found |= systems.prefixed(values, method, *([name] if name else []))
    return found
