"""The consortium secret at a party: opened, held against the agreement, kept, and destroyed.

Nobody but the parties ever has it: with it and an upload, anybody has the party's basis.
"""

from dataclasses import dataclass
from pathlib import Path

from cobasis.bundle.envelope import Bundle, Expected
from cobasis.errors import CommitmentError
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import KEY_BYTES
from cobasis.party_side.session import PartySession, alone, opened_bundle
from cobasis.protocol.secrets import ConsortiumSecret

SUFFIX = ".secret"
PART = "secret.bin"


@dataclass(frozen=True, kw_only=True, repr=False)
class SentSecret(Hidden):
    """A consortium secret that is the agreement's, before it is kept.

    Attributes
    ----------
    secret : ConsortiumSecret
        It opens the commitment.
    maker, bundle : str
        Which party made it, and the digest of the file that it came in.
    """

    secret: ConsortiumSecret
    maker: str
    bundle: str


def read_secret(desk: PartySession, path: Path) -> SentSecret:
    """Open the consortium secret, and hold it against agreement and commitment.

    A secret goes with the very agreement that is signed. Were it taken under another text,
    whoever wrote the parties' keys could have it sealed for a key of their own first, and then
    put the right keys back and seal it for their owners again: the maker's signature would stand.
    """
    parties = {each.name: each for each in desk.agreement.enrolled}
    expected = Expected(
        kind="secret",
        round_id=desk.agreement.round_id,
        agreement=desk.agreement.digest().hex(),
        recipient=desk.name,
    )
    with alone(desk), opened_bundle(desk, path, signer=parties, expected=expected) as bundle:
        found = ConsortiumSecret(_key_of(bundle, desk))
        found.check_opens(desk.agreement, party=desk.name)
        return SentSecret(secret=found, maker=bundle.manifest.sender, bundle=bundle.digest)


def keep_secret(desk: PartySession, sent: SentSecret) -> None:
    """Keep a secret that was read, and say so in the transcript."""
    with alone(desk):
        desk.round.join(sent.secret)
        desk.transcript.append("joined", {"secret_from": sent.maker, "bundle": sent.bundle})


def join(desk: PartySession, secret: Path) -> str:
    """Read the consortium secret and keep it; return which party made it."""
    sent = read_secret(desk, secret)
    keep_secret(desk, sent)
    return sent.maker


def _key_of(bundle: Bundle, desk: PartySession) -> bytes:
    """Return the part's 32 bytes."""
    key = bundle.parts[PART].read_bytes()
    if len(key) != KEY_BYTES:
        raise CommitmentError(
            f"what '{bundle.manifest.sender}' sent to party '{desk.name}' as the consortium secret "
            f"has {len(key)} bytes, not {KEY_BYTES}. Ask for the file that 'cobasis agreement new' "
            "makes."
        )
    return key
