"""What parties send, made once and aligned by as many methods as a table compares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cobasis import ODC, align
from experiments.models import Labels, Table
from experiments.systems import JUDGES, SAME, Dealt, Shared, a_round


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One party's fit, as `cobasis.align` wants it.

    Attributes
    ----------
    change_of_basis : ndarray of shape (n_components, n_components)
        G_i.
    determination : float
        Smallest over largest singular value of ``A_i' Z``.
    """

    change_of_basis: Table
    determination: float


@dataclass(frozen=True, kw_only=True)
class AsPrinted:
    """ODC by the letter of Algorithm 4, which refuses nothing.

    `cobasis.ODC` refuses where the smallest singular value of ``A_i' Z`` is below 1e-8 of the
    largest. With E_i from U[0, 1], as in two of the four conditions, that is most images with
    100 components: E_i alone has a condition number of 1e3 to 1e5, and the product squares it.

    Attributes
    ----------
    rotation : ndarray of shape (n_components, n_components) or None
        O.
    """

    rotation: Table | None = None

    def target(self, images: Mapping[str, Table], *, workers: int | None = None) -> Any:  # noqa: ANN401
        """Take the first party's image, turned."""
        return ODC(rotation=self.rotation).target(images, workers=workers)

    def fits(self, images: Mapping[str, Table], target: Any) -> dict[str, Turn]:  # noqa: ANN401
        """Rotate images onto the target."""
        found = {}
        for party, image in images.items():
            left, values, right = np.linalg.svd(image.T @ target.rows)
            found[party] = Turn(
                change_of_basis=left @ right, determination=float(values[-1] / values[0])
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """One round's uploads, and test rows as the judging parties would send them.

    Bases and anchor do not depend on the aligner, so that one round serves all of them.

    Attributes
    ----------
    images, rows : mapping of str to ndarray
        ``A F_i`` and ``X_i F_i``, by party name.
    tests : mapping of str to ndarray
        The projected test rows of the parties that judge.
    labels, test_labels : ndarray
        Of everybody's rows in the same order, and of the test rows.
    """

    images: Mapping[str, Table]
    rows: Mapping[str, Table]
    tests: Mapping[str, Table]
    labels: Labels
    test_labels: Labels

    def aligned(self, aligner: Any) -> Shared:  # noqa: ANN401
        """Align, and return what a model is trained on; test rows that agree are kept once."""
        turns = align(aligner, self.images).changes_of_basis
        tests: list[tuple[Table, int]] = []
        for party, projected in self.tests.items():
            seen = projected @ turns[party]
            for index, (known, count) in enumerate(tests):
                if np.linalg.norm(seen - known) <= SAME * np.linalg.norm(known):
                    tests[index] = (known, count + 1)
                    break
            else:
                tests.append((seen, 1))
        rows = np.vstack([table @ turns[party] for party, table in self.rows.items()])
        return Shared(rows=rows, labels=self.labels, tests=tests)


def uploads(
    dealt: Dealt,
    *,
    repeat: int,
    judges: int = JUDGES,
    **options: Any,  # noqa: ANN401
) -> Uploads:
    """Run one round of ODC, whose rotations can be taken back; options as in `simulate`."""
    done = a_round(dealt.parties, repeat=repeat, aligner=AsPrinted(), **options)
    back = {name: turn.T for name, turn in done.analyst.alignment.changes_of_basis.items()}
    judging = list(done.parties)[:judges]
    return Uploads(
        images={name: done.analyst.upload(name).anchor_image for name in done.parties},
        rows={
            name: party.transform(dealt.parties[name][0]) @ back[name]
            for name, party in done.parties.items()
        },
        tests={
            name: done.parties[name].transform(dealt.test_rows) @ back[name] for name in judging
        },
        labels=dealt.pooled()[1],
        test_labels=dealt.test_labels,
    )
