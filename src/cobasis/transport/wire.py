"""What client and server agree on: fields, limits, and who signed a request.

The subset of the IETF's draft on resumable uploads is on the page ``docs/reference/https.md``.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
)
from http_message_signatures.algorithms import ED25519

from cobasis.errors import ClockError, RequestError
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.enrolment import PublicIdentity

PART_BYTES = 2**23  # most that one request carries
SMALL_BYTES = 2**16  # most of a signature, a secret, a word or a statement
MOST_BYTES = 2**34 + 2**25  # most of a sealed file
WAIT_SECONDS = 25  # for how long a server keeps a question open that it cannot answer yet
APART_SECONDS = 300  # how far the clocks of client and server may be apart

WELL_KNOWN = "/.well-known/cobasis"
PARTIAL = "application/partial-upload"
PROBLEM = "application/problem+json"
FILE = "application/octet-stream"

_TAG = "cobasis/1"
_ALWAYS = ("@method", "@target-uri")
FIELDS = (
    "content-digest",
    "content-type",
    "repr-digest",
    "upload-complete",
    "upload-length",
    "upload-offset",
    "x-http-method-override",
)
"""Fields that change what a request does: each that a request has is signed."""


def sign_request(request: Any, *, name: str, sign: Callable[[bytes], bytes]) -> None:  # noqa: ANN401
    """Sign a request, which has method, url and headers, in somebody's name as RFC 9421 says."""
    signer = HTTPMessageSigner(signature_algorithm=ED25519)
    covered = (*_ALWAYS, *(each for each in FIELDS if each in request.headers))
    prepared = signer.prepare(
        request,
        key_id=name,
        label="cobasis",
        tag=_TAG,
        covered_component_ids=covered,
        use_existing_digest="content-digest" in request.headers,
    )
    signer.apply(request, prepared, sign(prepared.signature_base))


class _Keys(HTTPSignatureKeyResolver):
    def __init__(self, people: Mapping[str, PublicIdentity]) -> None:
        self._people = people

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(self._people[key_id].signing_key))


def signer_of(request: Any, people: Mapping[str, PublicIdentity]) -> str:  # noqa: ANN401
    """Return who signed a request; RequestError where nobody did who is enrolled, or ClockError.

    No nonces are kept. A request that somebody repeats within the five minutes brings bytes that
    are here already, to an offset that is signed, or asks for what its party may have.
    """
    needed = (*_ALWAYS, *(each for each in FIELDS if each in request.headers))
    verifier = HTTPMessageVerifier(signature_algorithm=ED25519, key_resolver=_Keys(people))
    # times are compared below, where an answer tells ours
    verifier.max_clock_skew = timedelta(days=10_000)
    try:
        [found] = verifier.verify(request, max_age=None, expect_tag=_TAG, require_components=needed)
    except (InvalidSignature, ValueError):
        raise nobody() from None
    name, created = str(found.parameters["keyid"]), int(found.parameters["created"])
    now = datetime.now(UTC)
    if abs(now.timestamp() - created) > APART_SECONDS:
        told = moment_text(datetime.fromtimestamp(created, UTC))
        raise ClockError(
            f"the request of '{name}' was made at {told} by its own clock, and it is "
            f"{moment_text(now)} here: more than 5 minutes apart. Set the clock, then try again."
        )
    return name


def nobody() -> RequestError:
    """Return the one answer to whoever is not in a round, whether there is one or not."""
    told = "there is no such round here, or the request is not signed by a key that it enrols."
    return RequestError(f"{told} Compare the agreement with the analyst's.", status=404)


def digest_field(digest: str) -> str:
    return f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:"


def digest_in(field: str) -> str:
    with suppress(ValueError):
        found = base64.b64decode(field.removeprefix("sha-256=:").removesuffix(":"), validate=True)
        if len(found) == hashlib.sha256().digest_size and digest_field(found.hex()) == field:
            return found.hex()
    raise RequestError(f"{field[:100]!r} is no SHA-256 as RFC 9530 writes it. Send one.")


def whole_number(text: str | None, *, field: str) -> int:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= len(str(2**40))):
        raise RequestError(f"the field {field} has to be a whole number of bytes. Send one.")
    return int(text)


def is_last(text: str | None) -> bool:
    if text not in {"?0", "?1"}:
        raise RequestError("the field Upload-Complete has to be ?0 or ?1. Send one of them.")
    return text == "?1"
