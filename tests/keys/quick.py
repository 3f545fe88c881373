"""Keys of people, and key files that are quick to open, and else as people's are."""

import base64
import hmac
import os

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from cobasis.keys.identity import Identity


def keys_of(names):
    made = {name: Identity.new(name) for name in names}
    return {**made, "lab": Identity.new("lab", role="analyst")}


def derived(key, info, *, salt=None):
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(key)


def under_passphrase(data, passphrase):
    """What age makes of one chunk, written from its specification, with cheap guesses.

    What `cobasis` writes costs two seconds and half a gigabyte per try; tests try often.
    """
    file_key, salt, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    salted = b"age-encryption.org/v1/scrypt" + salt
    slow = Scrypt(salt=salted, length=32, n=2**4, r=8, p=1).derive(passphrase.encode())
    body = ChaCha20Poly1305(slow).encrypt(bytes(12), file_key, None)
    plain = [base64.b64encode(each).rstrip(b"=") for each in (salt, body)]
    header = b"age-encryption.org/v1\n-> scrypt %b 4\n%b\n---" % tuple(plain)
    mac = base64.b64encode(hmac.digest(derived(file_key, b"header"), header, "sha256"))
    key, last = derived(file_key, b"payload", salt=nonce), bytes(11) + b"\1"
    payload = ChaCha20Poly1305(key).encrypt(last, data, None)
    return header + b" " + mac.rstrip(b"=") + b"\n" + nonce + payload
