"""What must never travel, as types: they can be used, and not printed, pickled or copied.

Party side only: ``protocol.analyst`` and ``protocol.messages`` cannot import this; a contract
checks it. Here are also the public rows that a party may need.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.anchors import (
    FROM_PUBLIC_ROWS,
    Anchor,
    HeldColumns,
    WholeAnchor,
    draw_anchor,
)
from cobasis.errors import AgreementError, CommitmentError, OrthonormalityError
from cobasis.features.encoder import encode
from cobasis.linalg.arrays import ORTHONORMAL, Hidden, Matrix, Places, as_matrix, is_orthonormal
from cobasis.linalg.rng import KEY_BYTES, KeyStream, require_key
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.terms import places_of


class SecretKey(Hidden):
    """Thirty-two secret bytes and whether they came from a seed."""

    __slots__ = ("_key", "_simulated")

    def __init__(self, key: bytes | None = None, *, simulated: bool = False) -> None:
        fresh = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._key = require_key(fresh, name=f"the {type(self).__name__}")
        self._simulated = simulated

    @property
    def simulated(self) -> bool:
        """Whether it came from a seed; nobody can take the mark off."""
        return self._simulated

    def stream(self, label: str) -> KeyStream:
        """Return numbers that nobody without the key can draw."""
        return KeyStream(self._key, label)


class ConsortiumSecret(SecretKey):
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
        self._anchors: WeakValueDictionary[bytes, WholeAnchor] = WeakValueDictionary()

    def commitment(self, round_id: str) -> str:
        """Return what the agreement holds of the secret: 64 hexadecimal digits."""
        return self._mac(b"commitment", round_id.encode()).hex()

    def anchor_tag(self, agreement: Agreement) -> bytes:
        """Return what shows, to whoever compares two, that they used one anchor."""
        return self._mac(b"anchor", agreement.anchor_recipe())

    def anchor(self, agreement: Agreement, *, public_rows: Matrix | None = None) -> Anchor:
        """Draw the round's anchor, of the columns that a party holds; one process draws it once."""
        recipe = agreement.anchor_recipe()
        found = self._anchors.get(recipe)  # weakly: an anchor of 8,192 features is 512 MB
        if found is None:
            found = self._anchors[recipe] = draw_anchor(
                agreement.anchor,
                key=self._mac(b"draw", recipe),
                n_rows=agreement.n_anchor_rows,
                n_features=agreement.whole.n_features,
                public_rows=public_rows if agreement.anchor in FROM_PUBLIC_ROWS else None,
            )
        if agreement.holdings and agreement.holding:
            return HeldColumns(whole=found, places=places_of(agreement))
        return found

    def order(self, agreement: Agreement, people: Sequence[str]) -> tuple[Places, bytes]:
        """Return an order of people that all parties of a block have, and a tag of who they are."""
        # whoever holds the secret can hold a list of people against the tag; others cannot
        block = agreement.holding and agreement.holding.block
        words = [json.dumps([agreement.round_id, block, str(each)]).encode() for each in people]
        marks = [self._mac(b"link", each) for each in words]
        order = np.array(sorted(range(len(marks)), key=marks.__getitem__), dtype=np.intp)
        return order, self._mac(b"linked", b"".join(sorted(marks)))

    def check_opens(self, agreement: Agreement, *, party: str) -> None:
        """Raise CommitmentError unless this is the secret that the agreement commits to."""
        if not hmac.compare_digest(self.commitment(agreement.round_id), agreement.commitment):
            raise CommitmentError(
                f"the consortium secret of party '{party}' does not open the commitment of round "
                f"'{agreement.round_id}', so its anchor would not be the others'. Ask the party "
                "that made the secret to send it again."
            )

    def _mac(self, use: bytes, message: bytes) -> bytes:
        # each use has its own prefix: the tag that travels must say nothing of the anchor's key
        return hmac.digest(self._key, b"cobasis/1/" + use + b"\0" + message, "sha256")


class PartyKey(SecretKey):
    """The 32 bytes from which one party draws its rotation and its row order.

    Parameters
    ----------
    key : bytes of length 32, optional
        Kept from an earlier round on the same rows; drawn from the system by default.
    simulated : bool
        Marks a key that came from a seed.

    Notes
    -----
    **Who sees what.** One party only. **Cost.** None.

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
        if not (oblique or is_orthonormal(table)):
            raise OrthonormalityError(
                f"the basis of party '{party}' is not orthonormal (F'F differs from I by more than "
                f"{ORTHONORMAL:.0e}): orthogonal alignment would distort its rows. Orthonormalise "
                "it: take the Q of a QR factorisation."
            )
        self._columns, self.oblique = table, oblique
        self.shape = (table.shape[0], table.shape[1])  # features and components

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


def public_rows_digest(rows: npt.ArrayLike) -> str:
    table = as_matrix(rows, name="public_rows")
    header = f"{table.shape[0]}x{table.shape[1]}\0".encode()
    return hashlib.sha256(header + np.ascontiguousarray(table, dtype="<f8").tobytes()).hexdigest()


def check_public_rows(
    rows: npt.ArrayLike | None, agreement: Agreement, *, party: str
) -> Matrix | None:
    """Return public rows on the agreed scale, if they are the agreement's."""
    expected, encoded, given = agreement.public_rows_sha256, None, None
    if rows is not None:
        features = agreement.whole.features
        encoded = encode(rows, features, party=party, table="table of public rows")
        words = any(each.kind == "category" for each in features)
        given = public_rows_digest(encoded if words else rows)
        encoded = agreement.whole.mapped(encoded)
    if given != expected:
        have = "no public rows" if given is None else f"public rows with digest {given[:12]}..."
        want = "none" if expected is None else f"{expected[:12]}..."
        raise AgreementError(
            f"party '{party}' has {have}, the agreement says {want}: with other public rows its "
            "anchor or basis would not be the others'. Take the file that was agreed on."
        )
    return encoded
