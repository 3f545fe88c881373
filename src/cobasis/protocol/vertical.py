"""Vertical partition: parties that hold different columns of the same people, as one.

Analyst's side. The bases of a block's parties stand on different columns of one anchor: side by
side they are one basis, and their uploads are one upload, which is aligned as a party's is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from cobasis.algorithms.images import View
from cobasis.errors import MessageError
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import Upload
from cobasis.protocol.terms import blocks_of


class _Beside:
    """Tables side by side, as ``[X_1 F_1, X_2 F_2]``, of which rows are read as of one."""

    def __init__(self, tables: Iterable[Matrix]) -> None:
        self._tables = [*tables]
        self.shape = (self._tables[0].shape[0], sum(each.shape[1] for each in self._tables))

    def __getitem__(self, rows: slice) -> Matrix:
        return np.hstack([each[rows] for each in self._tables])


def linked_parts(uploads: Mapping[str, Upload], agreement: Agreement) -> dict[str, Upload]:
    """Return uploads of whole units, once a block's are of the same people, with one's labels."""
    found = {name: uploads[name] for name in complete(uploads, agreement)}
    for block, holdings in blocks_of(agreement).items():
        parts = [found[each.party] for each in holdings if each.party in found]
        told = [each.labels[:] for each in parts if each.labels is not None]
        alike = all(np.array_equal(each, told[0]) for each in told)
        if len({each.linked for each in parts}) > 1 or not alike:
            counts = ", ".join(f"{each.rows.shape[0]:,} of '{each.party}'" for each in parts)
            raise MessageError(
                f"the uploads that form block '{block}' ({counts}) are not of the same people, or "
                "not with the same labels, so they cannot be joined. Have the parties agree on "
                "whom all hold and how they are labelled, and agree on a new round."
            )
    return found


def unit_of(party: str, agreement: Agreement) -> str:
    """Return as what a party's upload is aligned: its block, or itself."""
    return _blocks(agreement).get(party, party)


def complete(parties: Iterable[str], agreement: Agreement) -> list[str]:
    """Return the parties without those of a block that lacks one of its own."""
    blocks, names = _blocks(agreement), dict.fromkeys(parties)
    lacking = {block for party, block in blocks.items() if party not in names}
    return [name for name in names if blocks.get(name) not in lacking]


def units_of(uploads: Mapping[str, Upload], agreement: Agreement) -> Mapping[str, Upload]:
    """Return uploads as they are aligned: those of a block that is whole as one, by its name."""
    units, blocks = _blocks(agreement), blocks_of(agreement)

    def read(unit: str) -> Upload:
        if unit not in blocks:
            return uploads[unit]
        parts = [uploads[each.party] for each in blocks[unit]]
        return replace(
            parts[0],
            party=unit,
            simulated=any(each.simulated for each in parts),
            rows=cast("Matrix", _Beside(each.rows for each in parts)),
            labels=next((each.labels for each in parts if each.labels is not None), None),
            anchor_image=cast("Matrix", _Beside(each.anchor_image for each in parts)),
        )

    whole = complete(uploads, agreement)
    return View(dict.fromkeys(units.get(name, name) for name in whole), read=read)


def _blocks(agreement: Agreement) -> dict[str, str]:
    return {each.party: each.block for each in agreement.holdings if each.block}


def members_of(units: Iterable[str], agreement: Agreement) -> dict[str, tuple[str, slice]]:
    """Return the parties of units, each with its unit, and where in that its own columns stand."""
    blocks, found = blocks_of(agreement), dict[str, tuple[str, slice]]()
    for unit in units:
        at = 0
        for each in blocks.get(unit, ()):
            stop = at + cast("int", each.n_components)
            found[each.party] = unit, slice(at, stop)
            at = stop
        if unit not in blocks:
            found[unit] = unit, slice(None)
    return found
