"""What must never travel, as types: they can be used, and not printed, pickled or copied.

``protocol.analyst`` and ``protocol.messages`` cannot import this module; a contract checks it.
"""

import hashlib
import hmac
import secrets
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS, Anchor, draw_anchor
from cobasis.errors import CommitmentError, OrthonormalityError
from cobasis.linalg.arrays import ORTHONORMAL, Hidden, Matrix, as_matrix, orthonormality_defect
from cobasis.linalg.rng import KEY_BYTES, KeyStream, require_key
from cobasis.protocol.agreement import Agreement


class _Key(Hidden):
    """Thirty-two secret bytes and whether they came from a seed."""

    __slots__ = ("_key", "_simulated")

    def __init__(self, key: bytes | None = None, *, simulated: bool = False) -> None:
        fresh = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._key = require_key(fresh, name=f"the {type(self).__name__}")
        self._simulated = simulated

    @property
    def simulated(self) -> bool:
        """Whether it came from a seed."""
        return self._simulated

    def stream(self, label: str) -> KeyStream:
        """Return the key stream for one use."""
        return KeyStream(self._key, label)


class ConsortiumSecret(_Key):
    """The 32 bytes that parties share and the analyst never sees.

    Parameters
    ----------
    key : bytes of length 32, optional
        As received from the party that made it; drawn from the system by default.
    simulated : bool
        Marks a secret that came from a seed; everything made with it carries the mark.

    Raises
    ------
    SecretError
        The key is an integer, text, or of another length.

    Notes
    -----
    **Who sees what.** Parties only. With it and an upload, anybody has the party's basis.

    **Cost.** None.

    Examples
    --------
    >>> ConsortiumSecret()
    <ConsortiumSecret, hidden>
    """

    __slots__ = ("_anchors",)

    def __init__(self, key: bytes | None = None, *, simulated: bool = False) -> None:
        super().__init__(key, simulated=simulated)
        self._anchors: WeakValueDictionary[bytes, Anchor] = WeakValueDictionary()

    def commitment(self, round_id: str) -> str:
        """Return what the agreement holds of the secret: 64 hexadecimal digits."""
        return self._mac(b"commitment", round_id.encode()).hex()

    def anchor_tag(self, agreement: Agreement) -> bytes:
        """Return what shows, to whoever compares two, that they used one anchor."""
        return self._mac(b"anchor", agreement.anchor_recipe())

    def anchor(self, agreement: Agreement, *, public_rows: Matrix | None = None) -> Anchor:
        """Draw the round's anchor; parties of one process that hold one secret share one."""
        recipe = agreement.anchor_recipe()
        found = self._anchors.get(recipe)
        if found is None:
            found = self._anchors[recipe] = draw_anchor(
                agreement.anchor,
                key=self._mac(b"draw", recipe),
                n_rows=agreement.n_anchor_rows,
                n_features=agreement.n_features,
                public_rows=public_rows if agreement.anchor in FROM_PUBLIC_ROWS else None,
            )
        return found

    def check_opens(self, agreement: Agreement, *, party: str) -> None:
        """Raise CommitmentError unless this is the secret that the agreement commits to."""
        if not hmac.compare_digest(self.commitment(agreement.round_id), agreement.commitment):
            raise CommitmentError(
                f"the consortium secret of party '{party}' does not open the commitment of round "
                f"'{agreement.round_id}', so its anchor would not be the others'. Ask the party "
                "that made the secret to send it again."
            )

    def _mac(self, use: bytes, message: bytes) -> bytes:
        """Return HMAC-SHA256 under the secret."""
        return hmac.digest(self._key, b"cobasis/1/" + use + b"\0" + message, "sha256")


class PartyKey(_Key):
    """The 32 bytes from which one party draws its rotation and its row order.

    Parameters
    ----------
    key : bytes of length 32, optional
        Kept from an earlier round on the same rows; drawn from the system by default.
    simulated : bool
        Marks a key that came from a seed.

    Raises
    ------
    SecretError
        The key is an integer, text, or of another length.

    Notes
    -----
    **Who sees what.** One party only.

    **Cost.** None.

    Examples
    --------
    >>> PartyKey(42)
    Traceback (most recent call last):
    cobasis.errors.SecretError: the PartyKey is a value of type int, it has to be 32 random ...
    """

    __slots__ = ()


class SecretBasis(Hidden):
    """A party's basis F_i: can be applied to rows and to the anchor, and not looked at.

    Parameters
    ----------
    columns : array-like of shape (n_features, n_components)
        F_i.
    party : str
        Whose it is.
    oblique : bool
        Accept columns that are not orthonormal; simulation of the papers' conditions only.

    Attributes
    ----------
    shape : tuple of int
        Features and components.

    Raises
    ------
    OrthonormalityError
        The columns are not orthonormal.

    Notes
    -----
    **Who sees what.** One party only. With F_i, everything it uploads can be read.

    **Cost.** One check of ``2 m l^2`` operations.
    """

    __slots__ = ("_columns", "oblique", "shape")

    def __init__(self, columns: npt.ArrayLike, *, party: str, oblique: bool = False) -> None:
        table = as_matrix(columns, name=f"the basis of party '{party}'")
        if not oblique and orthonormality_defect(table) > ORTHONORMAL:
            raise OrthonormalityError(
                f"the basis of party '{party}' is not orthonormal (F'F differs from I by more than "
                f"{ORTHONORMAL:.0e}): orthogonal alignment would distort its rows. Orthonormalise "
                "it: take the Q of a QR factorisation."
            )
        self._columns, self.oblique = table, oblique
        self.shape = (table.shape[0], table.shape[1])

    def project(self, rows: Matrix) -> Matrix:
        """Return ``X F_i``."""
        # rows of a table on disk lie column by column: so it takes half to two thirds of the time
        return np.ascontiguousarray((self._columns.T @ rows.T).T)

    def digest(self) -> bytes:
        """Return the SHA-256 of F_i, for noise that is drawn for this very basis."""
        return hashlib.sha256(np.ascontiguousarray(self._columns, dtype="<f8").tobytes()).digest()

    def image(self, anchor: Anchor) -> Matrix:
        """Return ``A F_i``."""
        return anchor.apply(self._columns)
