"""A party that has the anchor helps the analyst, who has the anchor's image."""

from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.leaked_basis import read_through
from experiments.attacks import basis_behind


def collude(release: Release, anchor: Matrix) -> Recovered:
    """Read the basis off the image; a guessed seed, or rows of a public anchor, do the same."""
    return read_through(basis_behind(release, anchor), release.rows)
