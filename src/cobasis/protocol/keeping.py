"""How a party's secrets become bytes, so that its vault can keep them. The only door there is.

``cobasis.vault`` alone may import this module; a contract checks it. The way back needs no door:
``ConsortiumSecret``, ``PartyKey`` and ``SecretBasis`` are made from bytes and columns anyway.
"""

import numpy as np

from cobasis.errors import OrthonormalityError, SecretError
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis


def secret_bytes(secret: ConsortiumSecret | PartyKey) -> bytes:
    """Return the 32 bytes of a secret.

    Parameters
    ----------
    secret : ConsortiumSecret or PartyKey
        A real one.

    Returns
    -------
    bytes of length 32
        What the same class makes the secret of again.

    Raises
    ------
    SecretError
        It came from a seed.

    Notes
    -----
    **Who sees what.** Nobody but the vault may call this, which seals what it gets.

    **Cost.** None.

    Examples
    --------
    >>> secret_bytes(ConsortiumSecret(bytes(32))) == bytes(32)
    True
    """
    if secret.simulated:
        msg = (
            f"this {type(secret).__name__} came from a seed, so whoever knows the seed has it. A "
            "vault keeps secrets of real rounds only; simulations need none."
        )
        raise SecretError(msg)
    return secret._key  # noqa: SLF001 -- this module is the door


def basis_columns(basis: SecretBasis) -> Matrix:
    """Return a copy of F_i.

    Parameters
    ----------
    basis : SecretBasis
        An orthonormal one.

    Returns
    -------
    ndarray of shape (n_features, n_components)
        What `SecretBasis` makes the same basis of again, bit for bit.

    Raises
    ------
    OrthonormalityError
        It is oblique, which only simulations of the papers' conditions are.

    Notes
    -----
    **Who sees what.** As `secret_bytes`.

    **Cost.** One copy.

    Examples
    --------
    >>> basis_columns(SecretBasis([[0.6], [0.8]], party="north")).tolist()
    [[0.6], [0.8]]
    """
    if basis.oblique:
        msg = (
            "this basis is not orthonormal, which only simulations of the papers' conditions "
            "accept. A vault keeps bases of real rounds only."
        )
        raise OrthonormalityError(msg)
    return np.array(basis._columns, order="C")  # noqa: SLF001 -- this module is the door
