"""Who signed the agreement, and whether that is everybody."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from cobasis.errors import (
    AgreementError,
    ForeignBundleError,
    SignatureError,
    UnknownPartyError,
    UnsignedError,
)
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.agreement_fields import Digest, missing_fields
from cobasis.protocol.enrolment import IdentityName, OneLine, PublicIdentity, verify

FORMAT = "cobasis/signature/1"
PREFIX = b"cobasis/agreement/1\0"


class Signature(OneLine):
    """One signature under an agreement: it travels as a small file, and stands in the TOML."""

    form = FORMAT
    what = "signature of an agreement"
    ask = "Ask for the .sig file that 'cobasis sign' writes."

    name: IdentityName
    agreement: Digest  # the digest of what was signed
    signature: Annotated[str, Field(pattern="^[0-9a-f]{128}$")]


def refuse_gaps(agreement: Agreement) -> None:
    """Raise AgreementError while something is left to be filled."""
    empty = missing_fields(agreement)
    if empty:
        raise AgreementError(
            f"the agreement of round '{agreement.round_id}' cannot be signed yet: "
            f"{', '.join(empty)} must be filled, since everybody answers for it. Fill them by "
            "hand; 'cobasis agreement new' enrols parties and analyst, and makes the secret."
        )


def sign_agreement(agreement: Agreement, *, name: str, sign: Callable[[bytes], bytes]) -> Signature:
    """Sign an agreement, if there is nothing left to fill in it."""
    refuse_gaps(agreement)
    signer = signers(agreement).get(name)
    if signer is None:
        raise UnknownPartyError(
            f"'{name}' is not enrolled in the agreement of round '{agreement.round_id}', so there "
            "is no key to hold a signature against. It takes a new agreement that enrols it."
        )
    message = _message(agreement)
    made = sign(message)
    if not verify(signer, message, signature=made):
        raise AgreementError(
            f"the key at hand is not the one that is enrolled for '{name}' (fingerprint "
            f"{signer.fingerprint}). Use that key; a new one takes a new agreement."
        )
    return Signature(name=name, agreement=agreement.digest().hex(), signature=made.hex())


def signers(agreement: Agreement) -> dict[str, PublicIdentity]:
    """Return everybody who has to sign, by name: the parties in order, then the analyst."""
    analyst = () if agreement.analyst is None else (agreement.analyst,)
    return {each.name: each for each in (*agreement.enrolled, *analyst)}


def check_signature(agreement: Agreement, signature: Signature) -> None:
    """Raise unless it is somebody's who has to sign, of this very text, and good."""
    who = signers(agreement).get(signature.name)
    if who is None:
        raise SignatureError(
            f"this is a signature of '{signature.name}', who is not enrolled in round "
            f"'{agreement.round_id}'. Look which agreement it belongs to."
        )
    if signature.agreement != (digest := agreement.digest().hex()):
        raise ForeignBundleError(
            f"'{signature.name}' signed another agreement, or another version of this one "
            f"({signature.agreement[:16]}, and this is {digest[:16]}). Send '{signature.name}' the "
            "text as it is now, and ask for a signature of that."
        )
    if not verify(who, _message(agreement), signature=bytes.fromhex(signature.signature)):
        raise SignatureError(
            f"this signature is not made with the key that is enrolled for '{signature.name}' "
            f"({who.fingerprint}). Ask '{signature.name}', over another channel, who sent it."
        )


def signed_by(agreement: Agreement, signatures: Iterable[Signature]) -> tuple[str, ...]:
    """Return whose signatures are good."""
    found = []
    for each in signatures:
        with suppress(SignatureError, ForeignBundleError):
            check_signature(agreement, each)
            found.append(each.name)
    return tuple(found)


def check_sealed(agreement: Agreement, *, signatures: Iterable[Signature]) -> None:
    """Raise UnsignedError unless all parties and the analyst signed this very agreement."""
    needed, digest, message = signers(agreement), agreement.digest().hex(), _message(agreement)
    signed: set[str] = set()
    findings: dict[str, list[str]] = {}
    for each in signatures:
        who = needed.get(each.name)
        if who is None:
            findings.setdefault("not enrolled", []).append(each.name)
        elif each.agreement != digest:
            findings.setdefault("signed another version", []).append(each.name)
        elif not verify(who, message, signature=bytes.fromhex(each.signature)):
            findings.setdefault("signature not valid", []).append(each.name)
        else:
            signed.add(each.name)
    told = {name for names in findings.values() for name in names}
    absent = [name for name in needed if name not in signed | told]
    if absent:
        findings["missing"] = absent
    if not needed:
        findings["nobody enrolled"] = ["no party and no analyst"]
    if findings:
        reasons = "; ".join(f"{reason}: {', '.join(who)}" for reason, who in findings.items())
        raise UnsignedError(
            f"the agreement of round '{agreement.round_id}' is not signed by everybody ({reasons}; "
            f"{len(signed)} of {len(needed)} are good), so nobody is bound by it. Whoever "
            "seals it collects these signatures of the text as it is now; others wait for the "
            "sealed one."
        )


def _message(agreement: Agreement) -> bytes:
    """Return the bytes that are signed."""
    return PREFIX + agreement.digest()
