"""An age file under a passphrase, written from its specification, with cheap guesses.

What `cobasis` writes costs two seconds and half a gigabyte per try; tests try often.
"""

import base64
import hmac
import os

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

LOG_N = 4


def _plain64(data):
    return base64.b64encode(data).rstrip(b"=").decode()


def _derived(key, info, *, salt=None):
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(key)


def under_passphrase(data, passphrase):
    """Return data of at most one chunk as the age tool would encrypt them."""
    file_key, salt, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    slow = Scrypt(
        salt=b"age-encryption.org/v1/scrypt" + salt, length=32, n=2**LOG_N, r=8, p=1
    ).derive(passphrase.encode())
    body = ChaCha20Poly1305(slow).encrypt(bytes(12), file_key, None)
    stanza = f"-> scrypt {_plain64(salt)} {LOG_N}\n{_plain64(body)}\n---"
    header = f"age-encryption.org/v1\n{stanza}".encode()
    mac = hmac.digest(_derived(file_key, b"header"), header, "sha256")
    last = bytes(11) + b"\1"
    payload = ChaCha20Poly1305(_derived(file_key, b"payload", salt=nonce)).encrypt(last, data, None)
    return header + b" " + _plain64(mac).encode() + b"\n" + nonce + payload
