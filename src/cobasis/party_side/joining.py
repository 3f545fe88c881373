"""A party joins: the consortium secret goes from its sealed file into the vault; and forgets it."""

from pathlib import Path

from cobasis.bundle.envelope import Bundle, Expected
from cobasis.disk.whole import remove_tree
from cobasis.errors import CommitmentError
from cobasis.party_side.alone import alone
from cobasis.party_side.desk import PartyDesk
from cobasis.party_side.opening import opened_bundle
from cobasis.protocol.secrets import ConsortiumSecret

_PART = "secret.bin"
_BYTES = 32


def join(desk: PartyDesk, secret: Path) -> str:
    """Open the consortium secret, hold it against the commitment, and keep it.

    A secret goes with the very agreement that was signed. Were it taken under another text,
    whoever wrote the parties' keys could have it sealed for a key of their own first, and then
    put the right keys back and seal it for their owners again: the maker's signature would stand.
    """
    with alone(desk):
        parties = {each.name: each for each in desk.agreement.enrolled}
        expected = Expected(
            kind="secret",
            round_id=desk.agreement.round_id,
            agreement=desk.agreement.digest().hex(),
            recipient=desk.name,
        )
        with opened_bundle(desk, secret, signer=parties, expected=expected) as bundle:
            found = ConsortiumSecret(_key_of(bundle, desk))
            maker, digest = bundle.manifest.sender, bundle.digest
        desk.round.join(found)
        desk.transcript.append("joined", {"secret_from": maker, "bundle": digest})
        return maker


def forget(desk: PartyDesk) -> str:
    """Destroy what the vault has of a round: the consortium secret, the common span, the return.

    The basis and the history of uploads stay: a later round on the same rows needs them. So do
    files that were exported, and the sealed secret as it was sent.
    """
    with alone(desk):
        time = desk.transcript.append("forgotten", {}).time
        desk.vault.forget_round(desk.agreement)
        remove_tree(desk.work)
        return time


def _key_of(bundle: Bundle, desk: PartyDesk) -> bytes:
    """Return the part's 32 bytes."""
    key = bundle.parts[_PART].read_bytes()
    if len(key) != _BYTES:
        raise CommitmentError(
            f"what '{bundle.manifest.sender}' sent to party '{desk.name}' as the consortium secret "
            f"has {len(key)} bytes, not {_BYTES}. Ask for the file that 'cobasis secret new' makes."
        )
    return key
