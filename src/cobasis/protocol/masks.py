"""Masks that hide a party's sums and cancel in everybody's total. A party's side only.

Each pair of parties shares a stream of words that nobody else can make. The first of the two adds
it, the second subtracts it. Whoever lacks one party's file sees random words; with all files, the
sum. A stream covers one content only, so a masked file is made once, and a retry sends its bytes.
"""

from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cobasis.errors import MessageError, StepError
from cobasis.linalg.arrays import Integers
from cobasis.linalg.rng import KEY_BYTES, KeyStream
from cobasis.protocol.secrets import SecretKey
from cobasis.protocol.totals import FORMAT, Words


class MaskKey(SecretKey):
    """A party's key for one round's masks; it is erased after the round's last exchange."""

    __slots__ = ("_own",)

    def __init__(self, key: bytes | None = None, *, simulated: bool = False) -> None:
        super().__init__(key, simulated=simulated)
        self._own = X25519PrivateKey.from_private_bytes(self._key)

    @property
    def public(self) -> str:
        return self._own.public_key().public_bytes_raw().hex()

    def masked(
        self,
        sums: Integers,
        *,
        name: str,
        keys: Mapping[str, str],
        salt: bytes,
        occasion: tuple[str | int, ...],
    ) -> Words:
        """Hide a party's sums; another salt or occasion gives other masks.

        `occasion` is round, exchange and attempt; `keys` are all participants' public keys in the
        order that all agreed on, one's own too.
        """
        if keys.get(name) != self.public:
            raise StepError(
                f"the roster does not hold the mask key that party '{name}' has, so nothing would "
                "cancel. Sign the agreement of this round again before anything is sent."
            )
        words: Words = sums.astype(np.int64).view(np.uint64).copy()
        for other in keys:
            if other != name:
                pair = [each for each in keys if each in {name, other}]  # in the agreed order
                parts = [str(each).encode() for each in (FORMAT, *occasion, *pair)]
                parts += [bytes.fromhex(keys[each]) for each in pair]
                info = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
                shared = self._shared(other, keys[other])
                seed = HKDF(SHA256(), KEY_BYTES, salt=salt, info=info).derive(shared)
                mask = KeyStream(seed, "mask").words(len(words))
                (np.add if name == pair[0] else np.subtract)(words, mask, out=words)
        return words

    def _shared(self, other: str, key: str) -> bytes:
        try:
            return self._own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(key)))
        except ValueError as error:  # a point of low order, or no point: everybody could guess it
            raise MessageError(
                f"the mask key of party '{other}' is none: what it gives would hide nothing. Ask "
                f"'{other}' to sign again with a new key."
            ) from error
