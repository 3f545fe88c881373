"""Whatever is signed in a round: the agreement by all, audits by officers, receipts by the analyst.

Parties sign the common span, too, so that an analyst cannot send each of them another. A receipt
says that a file was taken as it was sent. Three parts have to agree before anybody can say later
what was trained on: the digest that the party wrote down, the receipt, and the analyst's
transcript, whose line the receipt names.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from pydantic import Field

from cobasis.errors import (
    AgreementError,
    ForeignBundleError,
    MessageError,
    SignatureError,
    UnknownPartyError,
    UnsignedError,
)
from cobasis.protocol.agreement import Agreement, Digest, Moment, Name, missing_fields
from cobasis.protocol.enrolment import (
    Approver,
    IdentityName,
    OneLine,
    PublicIdentity,
    Signed,
    SignedLine,
    officers_of,
    verify,
    words_of,
)
from cobasis.protocol.exchanges import MessageName
from cobasis.strict_json import IF_ANY, Strict, canonical_json

if TYPE_CHECKING:
    from cobasis.protocol.messages import ConsensusSpan

PREFIX = b"cobasis/agreement/1\0"
Sign = Callable[[bytes], bytes]
"""Ed25519: 64 bytes for a message."""

# every kind of signed bytes begins with its own prefix, so that none can be taken for another
_RECEIPT, _SPAN = b"cobasis/receipt/1\0", b"cobasis/span-line/1\0"


class Signature(OneLine):
    """One signature under an agreement: it travels as a small file, and stands in the TOML."""

    form = "cobasis/signature/1"
    what = "signature of an agreement"
    ask = "Ask for the .sig file that 'cobasis sign' writes."

    name: IdentityName
    agreement: Digest  # the digest of what was signed
    # a party's public key for the masks of this round, where sums are sent
    mask_key: Annotated[Digest | Literal[""], IF_ANY] = ""
    signature: Signed


def refuse_gaps(agreement: Agreement) -> None:
    empty = missing_fields(agreement)
    if empty:
        raise AgreementError(
            f"the agreement of round '{agreement.round_id}' cannot be signed yet: "
            f"{', '.join(empty)} must be filled, since everybody answers for it. Fill them by "
            "hand; 'cobasis agreement new' enrols parties and analyst, and makes the secret."
        )


def sign_agreement(agreement: Agreement, *, name: str, sign: Sign, mask_key: str = "") -> Signature:
    refuse_gaps(agreement)
    signer = signers(agreement).get(name)
    if signer is None:
        raise UnknownPartyError(
            f"'{name}' is not enrolled in the agreement of round '{agreement.round_id}', so there "
            "is no key to hold a signature against. It takes a new agreement that enrols it."
        )
    digest = agreement.digest().hex()
    signed = sign(PREFIX + bytes.fromhex(digest + mask_key)).hex()
    made = Signature(name=name, agreement=digest, mask_key=mask_key, signature=signed)
    if _flaw(made, agreement):
        raise AgreementError(
            f"the key at hand is not the one that is enrolled for '{name}' (fingerprint "
            f"{signer.fingerprint}). Use that key; a new one takes a new agreement."
        )
    return made


def mask_keys(agreement: Agreement, signatures: Iterable[Signature]) -> dict[str, str]:
    told = {each.name: each.mask_key for each in signatures}
    return {name: told[name] for name in agreement.parties}


def signers(agreement: Agreement) -> dict[str, PublicIdentity]:
    """Return everybody who has to sign, by name: the parties in order, then the analyst."""
    analyst = () if agreement.analyst is None else (agreement.analyst,)
    return {each.name: each for each in (*agreement.enrolled, *analyst)}


def everybody(agreement: Agreement) -> dict[str, PublicIdentity]:
    """Return whose keys an agreement has, by name: who has to sign, and the officers."""
    return {**signers(agreement), **{each.name: each.public for each in agreement.approvers}}


def analyst_of(agreement: Agreement) -> PublicIdentity:
    """Return who seals and signs for the analyst; AgreementError where nobody is enrolled."""
    if agreement.analyst is None:
        raise AgreementError(
            f"the agreement of round '{agreement.round_id}' enrols no analyst, so nothing can be "
            "sealed for one, or checked. Have it made with 'cobasis agreement new --analyst'."
        )
    return agreement.analyst


_OTHER_VERSION, _STRANGER = "signed another version", "not enrolled"


def _hides(mask_key: str) -> bool:
    """Tell whether masks of a key are secret: with a point of low order everybody knows them."""
    with suppress(ValueError):
        public = X25519PublicKey.from_public_bytes(bytes.fromhex(mask_key))
        return bool(X25519PrivateKey.generate().exchange(public))
    return False


def _flaw(signature: Signature, agreement: Agreement) -> str:
    """Say in a few words what is wrong with a signature; nothing if it is good."""
    if (who := signers(agreement).get(signature.name)) is None:
        return _STRANGER
    if signature.agreement != agreement.digest().hex():
        return _OTHER_VERSION
    wanted = agreement.sums is not None and who.role == "party"
    if bool(signature.mask_key) != wanted or (wanted and not _hides(signature.mask_key)):
        return "without a key for masks that hides, or with one where no sums are sent"
    message = PREFIX + bytes.fromhex(signature.agreement + signature.mask_key)
    right = verify(who, message, signature=bytes.fromhex(signature.signature))
    return "" if right else "signature not valid"


def check_signature(agreement: Agreement, signature: Signature) -> None:
    if flaw := _flaw(signature, agreement):
        name, digest = signature.name, agreement.digest().hex()
        kind = ForeignBundleError if flaw == _OTHER_VERSION else SignatureError
        ask = "Ask" if flaw == _STRANGER else f"Send '{name}' the agreement as it is now, and ask"
        if flaw == _OTHER_VERSION:
            ask = f"One for another round is received there. For this one: {ask}"
        raise kind(
            f"what came as the signature of '{name}' in round '{agreement.round_id}' is none: "
            f"{flaw}. It is of a text {signature.agreement[:16]}, and this one is {digest[:16]}. "
            f"{ask} over another channel who sent this, and for a signature of that text."
        )


def signed_by(agreement: Agreement, signatures: Iterable[Signature]) -> tuple[str, ...]:
    return tuple(each.name for each in signatures if not _flaw(each, agreement))


def check_sealed(agreement: Agreement, *, signatures: Iterable[Signature]) -> None:
    """Raise UnsignedError unless all parties and the analyst signed this very agreement."""
    needed, findings = signers(agreement), defaultdict[str, list[str]](list)
    for each in signatures:
        findings[_flaw(each, agreement)].append(each.name)
    told = {name for names in findings.values() for name in names}
    signed = {*findings.pop("", [])}
    findings["missing"] = [name for name in needed if name not in told]
    findings["nobody enrolled"] = [] if needed else ["no party and no analyst"]
    reasons = "; ".join(f"{reason}: {', '.join(who)}" for reason, who in findings.items() if who)
    if reasons:
        raise UnsignedError(
            f"the agreement of round '{agreement.round_id}' is not signed by everybody ({reasons}; "
            f"good: {len(signed)} of {len(needed)}), so nobody is bound by it. Wait "
            "for the sealed agreement; whoever collects the signatures asks for those that are "
            "missing, of the text as it is now."
        )


class Approval(SignedLine):
    """An officer's word that one audited file may leave: how often, and until when.

    It travels as it is: it holds no name, and of the audit a salted hash.
    """

    form = "cobasis/approval/1"
    what = "approval"
    ask = "Ask the officer for the file that 'cobasis approve' writes."

    agreement: Digest
    party: IdentityName
    report: Digest
    exchange: MessageName
    times: Annotated[int, Field(ge=1, le=1000)]
    time: Moment
    expires: Moment
    withdrawn: bool
    # whether the party may say back what the model is worth to it
    word: Annotated[bool, IF_ANY] = False

    @property
    def covers(self) -> str:
        often = "once" if self.times == 1 else f"{self.times} times"
        word = ", and a word on the model," if self.word else ""
        return f"{self.exchange}, {often}{word} until {self.expires}"

    def officer(self, agreement: Agreement) -> Approver | None:
        """Return whose key made it, of those who are enrolled for its party."""
        return next(filter(self.is_by, officers_of(agreement, self.party).values()), None)

    def flaw(self, agreement: Agreement, *, party: str, exchange: MessageName, at: str) -> str:
        """Say in a few words why it lets no file leave; nothing if it does."""
        if (self.party, self.agreement) != (party, agreement.digest().hex()):
            return "one is for another party or agreement"
        if self.officer(agreement) is None:
            return f"one is made with no key that is enrolled to approve for '{party}'"
        if self.withdrawn:
            return "one was withdrawn"
        if self.exchange != exchange:
            return f"one is for the {self.exchange}"
        return f"one ended on {self.expires}" if self.expires < at else ""

    def covers_word(self, agreement: Agreement, *, party: str, at: str) -> bool:
        return self.word and not self.flaw(agreement, party=party, exchange="upload", at=at)


def check_approved(
    told: object, agreement: Agreement, *, party: str, exchange: MessageName, at: str
) -> None:
    if not officers_of(agreement, party):
        return
    for each in told if isinstance(told, list) else []:
        with suppress(AgreementError, TypeError):
            if not Approval(**each).flaw(agreement, party=party, exchange=exchange, at=at):
                return
    raise SignatureError(
        f"the {exchange} of party '{party}' has no approval that holds, of an officer whom the "
        f"agreement enrols for '{party}'. Ask the party to have its file approved, with 'cobasis "
        "approve', and to send it anew."
    )


class Receipt(Strict):
    round_id: Name
    agreement: Digest
    party: IdentityName
    analyst: IdentityName
    exchange: Annotated[int, Field(ge=1)]  # counted from 1
    file: Digest  # SHA-256 of the sealed file as it was received
    history: Digest | Literal[""] = ""  # head of the party's own, as the file says
    time: Moment
    # hash of the analyst's line: whoever keeps it can tell later whether that line, and every line
    # before it, is still as it was
    transcript: Digest

    def message(self) -> bytes:
        return _RECEIPT + canonical_json(self.model_dump())


class SignedReceipt(Strict):
    receipt: Receipt
    signature: Signed  # the analyst's
    countersignature: None = None  # stays in the file; once it was the party's


def sign_receipt(receipt: Receipt, sign: Sign) -> SignedReceipt:
    return SignedReceipt(receipt=receipt, signature=sign(receipt.message()).hex())


def check_receipt(
    signed: SignedReceipt, *, analyst: PublicIdentity, agreement: str, party: str, file: str
) -> None:
    receipt, name = signed.receipt, analyst.name
    right = verify(analyst, receipt.message(), signature=bytes.fromhex(signed.signature))
    if not right or receipt.analyst != name:
        raise SignatureError(
            f"this receipt for party '{party}' is not signed by analyst '{name}', so it proves "
            "nothing. Ask the analyst for it once more."
        )
    wanted = {"agreement": agreement, "party": party, "file": file}
    other = [word for word, value in wanted.items() if getattr(receipt, word) != value]
    if other:
        raise ForeignBundleError(
            f"this receipt of analyst '{name}' is for another {' and '.join(other)} than party "
            f"'{party}' asked about: it is for party '{receipt.party}' in round "
            f"'{receipt.round_id}'. Ask the analyst for the receipt of the file that was sent; or, "
            "where this home folder was copied and its twin has sent, go on there."
        )


class SpanLine(Strict):
    """What a party signs, beside its upload, of the common span that the upload goes through."""

    party: IdentityName
    consensus: Digest
    signature: Signed

    def message(self, agreement: Agreement) -> bytes:
        told = {"agreement": agreement.digest().hex(), "consensus": self.consensus}
        return _SPAN + canonical_json({**told, "party": self.party})


def sign_span(span: "ConsensusSpan", agreement: Agreement, *, party: str, sign: Sign) -> SpanLine:
    line = SpanLine(party=party, consensus=span.digest().hex(), signature="0" * 128)
    return line.model_copy(update={"signature": sign(line.message(agreement)).hex()})


def check_lines(
    lines: Sequence[SpanLine],
    agreement: Agreement,
    *,
    consensus: "ConsensusSpan | None",
    parties: Iterable[str],
) -> None:
    """Raise unless each of some parties has signed that it went through this very span."""
    if consensus is None:  # bases of their own
        return
    wanted, have = sorted(parties), sorted(each.party for each in lines)
    if wanted != have:
        raise MessageError(
            f"lines about the common span are here of {', '.join(have) or 'nobody'}, and one of "
            f"each of {', '.join(wanted)} is needed: without it nobody can tell whether all went "
            "through one span. Ask the analyst for the lines that came with the uploads."
        )
    enrolled, digest = signers(agreement), consensus.digest()
    for line in lines:
        if line.consensus != digest.hex():
            other = words_of(bytes.fromhex(line.consensus))
            raise MessageError(
                f"party '{line.party}' signed that it went through the common span '{other}', "
                f"and the one here is '{words_of(digest)}'. Either file may come from an analyst "
                "that sends unlike spans. Compare these words with the other parties, over "
                "another channel, before anything else is sent."
            )
        signature = bytes.fromhex(line.signature)
        if not verify(enrolled[line.party], line.message(agreement), signature=signature):
            raise SignatureError(
                f"the line of party '{line.party}' about the common span is not signed with its "
                f"key, or is of another round than '{agreement.round_id}', so it proves nothing. "
                f"Ask '{line.party}', over another channel, which span it has."
            )
