"""What more parties reveal about each.

Parties of {PEOPLE} people that share a span (the leading directions of all rows, l = {COMPONENTS}),
so that the analyst sees all in one frame after alignment. It lays {PUBLIC} public rows of the same
data set over all releases together, and what it rebuilds of the **first party's** people is
counted: R2, and the share of them that is nearest to their own record among the {PEOPLE} (chance 4
%).
"""

import numpy as np

from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.public_sample import match_sample
from cobasis.privacy.attacks.scores import score_content
from experiments.harness.study import Study, Values
from experiments.harness.systems import generator
from experiments.studies.privacy_content import DIGITS, FASHION, load

PARTIES = (1, 2, 5, 10, 25, 50)
PEOPLE, PUBLIC, COMPONENTS = 25, 400, 16
SCALES = {DIGITS: 1.0, FASHION: 255.0}  # what brings rows to [0, 1] that are not there already


def run(*, data: str, parties: int, repeat: int) -> Values:
    raw, all_labels = load(data)
    total = PUBLIC + max(PARTIES) * PEOPLE
    chosen = generator(repeat).permutation(len(raw))[:total]
    rows, labels = raw[chosen] / SCALES[data], all_labels[chosen]
    held = rows[PUBLIC:]
    basis = np.linalg.svd(held, full_matrices=False)[2][:COMPONENTS].T
    theirs = slice(PUBLIC, PUBLIC + PEOPLE * parties)
    release = Release(rows=rows[theirs] @ basis, labels=labels[theirs])
    found: Values = {}
    for name, given in (("no labels", None), ("labels", labels[:PUBLIC])):
        rng = generator(repeat, parties)
        back = match_sample(release, rows[:PUBLIC], labels=given, rng=rng)
        first = Recovered(rows=back.rows[:PEOPLE], basis=back.basis)
        content = score_content(first, held[:PEOPLE])
        found |= {
            f"{name}: R2": content.explained.value,
            f"{name}: re-id": 100 * content.named.value,
        }
    return found


STUDY = Study(
    source="ours; the ODC paper's section 2.2 says: nothing more",
    unit="R2; re-id in %",
    cells=[{"data": data, "parties": count} for data in (DIGITS, FASHION) for count in PARTIES],
    charted=(),
)
