"""Public rows: checked against the digest that the agreement holds."""

import hashlib

import numpy as np
import numpy.typing as npt

from cobasis.errors import AgreementError
from cobasis.features.category import CategoryFeature
from cobasis.features.encoding import encode
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.protocol.agreement import Agreement


def public_rows_digest(rows: npt.ArrayLike) -> str:
    """Return the SHA-256 of public rows, for the agreement.

    Examples
    --------
    >>> public_rows_digest([[0.0, 1.0]])[:8]
    'fe346740'
    """
    table = as_matrix(rows, name="public_rows")
    header = f"{table.shape[0]}x{table.shape[1]}\0".encode()
    return hashlib.sha256(header + np.ascontiguousarray(table, dtype="<f8").tobytes()).hexdigest()


def check_public_rows(
    rows: npt.ArrayLike | None, agreement: Agreement, *, party: str
) -> Matrix | None:
    """Return public rows on the agreed scale, if they are the agreement's."""
    expected = agreement.public_rows_sha256
    encoded = None if rows is None else encode(rows, agreement.features, party=party)
    words = any(isinstance(each, CategoryFeature) for each in agreement.features)
    table = encoded if words else rows
    given = None if table is None else public_rows_digest(table)
    if given != expected:
        have = "no public rows" if given is None else f"public rows with digest {given[:12]}..."
        want = "none" if expected is None else f"{expected[:12]}..."
        raise AgreementError(
            f"party '{party}' has {have}, the agreement says {want}: with other public rows its "
            "anchor or basis would not be the others'. Take the file that was agreed on."
        )
    return encoded
