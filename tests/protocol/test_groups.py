"""Groups with analysts of their own: references aligned above give everybody one frame (FedDCL)."""

import numpy as np
import pytest

from cobasis import ODC, Agreement, Analyst, Imakura, Party, align
from protocol.consortium import WIDTH, consortium

GROUPS = (("north", "south"), ("east", "west"))


def aligned(aligner):
    """Two analysts' alignments under one round name and secret; all rows lie in one span."""
    rng = np.random.default_rng(0)
    span = rng.normal(size=(3, WIDTH))
    names = [name for group in GROUPS for name in group]
    rows = {name: (rng.normal(size=(40, 3)) @ span, rng.integers(0, 2, 40)) for name in names}
    whole = consortium(rows=rows, parties=tuple(names), n_components=3)
    analysts = []
    for group in GROUPS:
        agreement: Agreement = whole.agreement.model_copy(update={"parties": group})
        analysts.append(Analyst(agreement, aligner=aligner))
        for name in group:
            whole.parties[name] = Party(name, agreement=agreement, secret=whole.secret)
            analysts[-1].receive(whole.parties[name].prepare(*rows[name]))
        analysts[-1].align()
    targets = {
        group[0]: each.alignment.target.rows for group, each in zip(GROUPS, analysts, strict=True)
    }
    above = align(aligner, targets)
    changes = {
        name: each @ above.changes_of_basis[group[0]]
        for group, analyst in zip(GROUPS, analysts, strict=True)
        for name, each in analyst.alignment.changes_of_basis.items()
    }
    return whole, changes


@pytest.mark.parametrize("aligner", [ODC(), Imakura()], ids=repr)
def test_every_party_of_every_group_sees_a_person_alike(aligner):
    whole, changes = aligned(aligner)
    new = np.vstack([rows for rows, _ in whole.rows.values()])[::7]
    seen = [whole.parties[name].basis.project(new) @ change for name, change in changes.items()]
    for each in seen[1:]:
        assert np.allclose(each, seen[0], atol=1e-9 * np.linalg.norm(seen[0]))
