"""What parties sign of the common span, so that an analyst cannot send each of them another."""

from collections.abc import Iterable, Sequence

from cobasis.errors import MessageError, SignatureError
from cobasis.protocol.agreement import Agreement, Digest
from cobasis.protocol.enrolment import IdentityName, Signed, verify, words_of
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.signatures import Sign, signers
from cobasis.strict_json import Strict, canonical_json

_SPAN = b"cobasis/span-line/1\0"


class SpanLine(Strict):
    """What a party signs, beside its upload, of the common span that the upload goes through."""

    party: IdentityName
    consensus: Digest
    signature: Signed

    def message(self, agreement: Agreement) -> bytes:
        told = {"agreement": agreement.digest().hex(), "consensus": self.consensus}
        return _SPAN + canonical_json({**told, "party": self.party})


def sign_span(span: ConsensusSpan, agreement: Agreement, *, party: str, sign: Sign) -> SpanLine:
    line = SpanLine(party=party, consensus=span.digest().hex(), signature="0" * 128)
    return line.model_copy(update={"signature": sign(line.message(agreement)).hex()})


def check_lines(
    lines: Sequence[SpanLine],
    agreement: Agreement,
    *,
    consensus: ConsensusSpan | None,
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
