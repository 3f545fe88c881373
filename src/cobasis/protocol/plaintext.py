"""How a party's secrets become bytes, so that its vault can keep them. The only door there is.

``cobasis.vault`` alone may import this module; a contract checks it. The way back needs no door:
keys and ``SecretBasis`` are made from bytes and columns anyway.
"""

import numpy as np

from cobasis.errors import OrthonormalityError, SecretError
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.secrets import SecretBasis, SecretKey


def secret_bytes(secret: SecretKey) -> bytes:
    if secret.simulated:
        raise SecretError(
            f"this {type(secret).__name__} came from a seed, so whoever knows the seed has it. A "
            "vault keeps secrets of real rounds only; simulations need none."
        )
    return secret._key  # noqa: SLF001 -- this module is the door


def basis_columns(basis: SecretBasis) -> Matrix:
    if basis.oblique:
        raise OrthonormalityError(
            "this basis is not orthonormal, which only simulations of the papers' conditions "
            "accept. A vault keeps bases of real rounds only."
        )
    return np.array(basis._columns, order="C")  # noqa: SLF001 -- this module is the door
