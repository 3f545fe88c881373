"""Identities of the test consortium: real keys, made anew for each run."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyrage import x25519

from cobasis.protocol.enrolment import PublicIdentity
from protocol.consortium import NAMES

KEYS = {name: Ed25519PrivateKey.generate() for name in (*NAMES, "lab")}


def identity(name, **changes):
    key = KEYS.get(name) or Ed25519PrivateKey.generate()
    fields = {
        "name": name,
        "role": "analyst" if name.startswith("lab") else "party",
        "signing_key": key.public_key().public_bytes_raw().hex(),
        "recipient": str(x25519.Identity.generate().to_public()),
    }
    return PublicIdentity(**fields | changes)


PEOPLE = tuple(identity(name) for name in NAMES)
ANALYST = identity("lab")
REAL = {  # what an agreement says besides before anybody signs it
    "purpose": "Mortality on the ward; the four hospitals only.",
    "threat_model": "semi-honest",
    "retention_days": 90,
    "id": "patient",
    "label": "died",
    "enrolled": PEOPLE,
    "analyst": ANALYST,
}
