"""Groups with analysts of their own: references aligned above give everybody one frame (FedDCL)."""

import numpy as np
import pytest

from cobasis import ODC, Analyst, ConsortiumSecret, Imakura, align
from protocol.consortium import NAMES, WIDTH, consortium

GROUPS = (NAMES[:2], NAMES[2:])


@pytest.mark.parametrize("aligner", [ODC(), Imakura()], ids=repr)
def test_every_party_of_every_group_sees_a_person_alike(aligner):
    """Two analysts' alignments under one round name and secret; all rows lie in one span."""
    rng, secret, groups = np.random.default_rng(0), ConsortiumSecret(), []
    span = rng.normal(size=(3, WIDTH))
    for names in GROUPS:
        rows = {x: (rng.normal(size=(40, 3)) @ span, rng.integers(0, 2, 40)) for x in names}
        group = consortium(secret=secret, rows=rows, parties=names)
        group.analyst = Analyst(group.agreement, aligner=aligner)
        group.received().align()
        groups.append(group)
    targets = {each.agreement.parties[0]: each.analyst.alignment.target.rows for each in groups}
    above = align(aligner, targets).changes_of_basis
    new = rng.normal(size=(23, 3)) @ span
    first, *others = (
        group.parties[name].basis.project(new) @ change @ above[group.agreement.parties[0]]
        for group in groups
        for name, change in group.analyst.alignment.changes_of_basis.items()
    )
    for each in others:
        assert np.allclose(each, first, atol=1e-9 * np.linalg.norm(first))
