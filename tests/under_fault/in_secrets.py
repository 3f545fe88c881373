"""Vectors: consortium secrets that are none, or somebody else's."""

from party_side.sites import KEY
from under_fault.vectors import Vector


def secret_vector(name, expect, *, key=KEY, **options):
    """A secret to north that it must not keep."""
    part = options.pop("part", "secret.bin")

    def make(site, path):
        digest = site.made.agreement.digest().hex()
        kept = {"by": "south", "kind": "secret", "agreement": digest, **options}
        site.sealed(path, {part: key}, **kept)

    return Vector(name=name, expect=expect, make=make, of="join")


def secrets():
    """Secrets of other lengths, rounds, senders and recipients."""
    for length in (1, 16, 31, 33, 64, 65):
        yield secret_vector(f"a secret of {length} bytes", "CB302", key=b"k" * length)
    for word, key in {
        "of zeros": bytes(32),
        "of another round": b"k" * 32,
        "with one bit changed": bytes([KEY[0] ^ 1]) + KEY[1:],
        "backwards": KEY[::-1],
    }.items():
        yield secret_vector(f"a secret {word}", "CB302", key=key)
    for word, (expect, options) in {
        "from the analyst": ("CB802", {"by": "lab"}),
        "from a stranger": ("CB802", {"by": "stranger"}),
        "signed by another": ("CB802", {"sender": "east"}),
        "for another round": ("CB804", {"round_id": "icu-2025"}),
        "for another party": ("CB804", {"recipients": ["east"]}),
        "sealed for another": ("CB801", {"to": "east", "recipients": ["north"]}),
        "sealed for the analyst": ("CB801", {"to": "lab", "recipients": ["north"]}),
        "of another kind": ("CB803", {"kind": "receipt"}),
        "under another name": ("CB803", {"part": "secret.txt"}),
        "drawn from a seed": ("CB804", {"simulated": True}),
        "from the year 2038": ("CB806", {"created": "2038-01-19T03:14:08Z"}),
        "too large": ("CB803", {"key": b"k" * 2**16}),
    }.items():
        yield secret_vector(f"a secret {word}", expect, **options)
