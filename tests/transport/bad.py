"""Bad requests, as a table: what is done to a request, at each door where it can be done.

A door is a request that is right; a case says its door, what is wrong, the status that answers it,
and what `transport.test_requests.Caller.at` is told to change.
"""

import base64
import hashlib
from itertools import product

import httpx

from cobasis.transport.wire import FIELDS, FILE, PART_BYTES, PARTIAL, digest_field

DATA = b"sealed, as far as a server can tell" * 40
DIGEST = hashlib.sha256(DATA).hexdigest()
OTHER = digest_field(hashlib.sha256(b"other").hexdigest())

NOTED = {
    "upload-length": str(len(DATA)),
    "upload-complete": "?0",
    "repr-digest": digest_field(DIGEST),
}
WHOLE = {**NOTED, "upload-complete": "?1", "content-type": FILE}
PART = {"upload-offset": "0", "upload-complete": "?1", "content-type": PARTIAL}
DOORS = {  # method, whether at one file's address, fields, content
    "begin": ("POST", False, NOTED, None),
    "whole": ("POST", False, WHOLE, DATA),
    "part": ("PATCH", True, PART, DATA),
    "part by POST": ("POST", True, {**PART, "x-http-method-override": "PATCH"}, DATA),
    "how much": ("HEAD", True, {}, None),
    "verdict": ("GET", True, {}, None),
    "fetch": ("GET", False, {}, None),
}
FILES = [door for door, (_, at_file, *_) in DOORS.items() if at_file]
BROUGHT = ["whole", "part", "part by POST"]


def put(name, value):
    return lambda request: request.headers.update({name: value})


def put_twice(name, value):
    def spoil(request):
        request.headers = httpx.Headers([*request.headers.multi_items(), (name, value)])

    return spoil


def turn(name, at):
    def spoil(request):
        text = request.headers[name]
        request.headers[name] = f"{text[:at]}{'A' if text[at] != 'A' else 'B'}{text[at + 1 :]}"

    return spoil


def moved(change):
    def spoil(request):
        request.url = request.url.copy_with(raw_path=change(request.url.raw_path))

    return spoil


UNSIGNED = {
    "the key of nobody": {"by": "stranger", "key": "stranger"},
    "the key of somebody else": {"key": "stranger"},
    "the key of another party": {"key": "south"},
    "the analyst's key": {"by": "lab", "key": "lab"},
    "no signature": {"after": lambda it: it.headers.pop("signature")},
    "no word of what is signed": {"after": lambda it: it.headers.pop("signature-input")},
    "a signature of another length": {"after": put("signature", "cobasis=:AA==:")},
    "a signature that is no field": {"after": put("signature", "?")},
    "a signature with one letter changed": {"after": turn("signature", 20)},
    "a signature under another label": {"after": turn("signature", 0)},
    "what is signed under another label": {"after": turn("signature-input", 0)},
    "what is signed changed": {"after": turn("signature-input", 12)},
    "two signatures": {"after": put_twice("signature", "more=:AA==:")},
    "a mark of another program": {"signing": {"_TAG": "cobasis/2"}},
    "the address not signed": {"signing": {"_ALWAYS": ("@method",)}},
    "the method not signed": {"signing": {"_ALWAYS": ("@target-uri",)}},
    "a round that is not here": {"start": "/rounds/" + "0" * 64},
    "a question in the address": {"tail": "?a=b"},
    "a question behind the signature": {"after": moved(lambda it: it + b"?a=b")},
    "the same file in other letters": {"after": moved(lambda it: it[:-1] + b"%%%x" % it[-1])},
}
NUMBERS = (None, "", "-1", "+1", "1e3", "1.0", "0x1", "1 1", "1, 1", "9" * 20)
WORDS = (None, "", "?2", "1", "true", "?1, ?1", "?1;a")
DIGESTS = (
    None,
    "",
    DIGEST,
    "sha-256=:AAAA:",
    "sha-512=:AAAA:",
    f"sha-256={base64.b64encode(bytes.fromhex(DIGEST)).decode()}",
    digest_field(DIGEST).upper(),
    f"{digest_field(DIGEST)}, {digest_field(DIGEST)}",
)
TYPES = (None, "", "text/plain", f"{PARTIAL}; charset=utf-8", f"{FILE}, {PARTIAL}")
VALUES = {  # of a field that is signed as it stands: the status, and what may not be there
    "upload-length": (400, NUMBERS),
    "upload-offset": (400, NUMBERS),
    "upload-complete": (400, WORDS),
    "repr-digest": (400, DIGESTS),
    "content-digest": (400, DIGESTS),
    "content-type": (415, TYPES),
    "x-http-method-override": (400, ("", "DELETE", "PUT", "patch", "PATCH, PATCH")),
}
NO_FILES = (
    "9-upload", "1-return", "1-Upload", "1-upload.part", f"1-upload~{DIGEST}", "news", "word2",
    "..%2f..%2ficu.toml", "%00", "x" * 300, "secret.", "secret.west", "secret.north",
)  # fmt: skip
NO_REPLIES = ("1-upload", "9-return", "..%2ficu.toml", "secret.west", "%00", "icu.news")
NO_DIGESTS = ("0" * 64, "0" * 63, "0" * 65, "z" * 64, DIGEST.upper(), "..%2f" + DIGEST, "%00")
SMUGGLED = (  # behind the signature, in bytes that no client of ours sends
    b"content-length: 1\r\n",
    b"content-length: +1\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"upload-offset : 0\r\n",
    b"upload\x01: 0\r\n",
    b"host: elsewhere\r\n",
)
LARGE = {"upload-length": "70000"}
SIZES = [
    ("begin", "more than any file has", 413, {"upload-length": str(2**40)}),
    ("begin", "a large signature", 413, {"what": "signature", **LARGE}),
    ("begin", "a large secret", 413, {"what": "secret.south", **LARGE}),
    ("begin", "a large word", 413, {"what": "word", **LARGE}),
    ("whole", "bytes of another digest", 400, {"content-digest": OTHER}),
    ("whole", "another file than is named", 400, {"repr-digest": OTHER}),
    ("whole", "less than its length", 400, {"body": DATA[:9]}),
    ("whole", "more than its length", 413, {"body": DATA + b"!"}),
]
OF_PARTS = [
    ("bytes of another digest", 400, {"content-digest": OTHER}),
    ("behind a gap", 409, {"upload-offset": "5"}),
    ("less than its length", 400, {"body": DATA[:-1]}),
    ("more than its length", 413, {"body": DATA + b"!"}),
    ("more than 8 MiB", 413, {"body": bytes(PART_BYTES + 1)}),
    ("other bytes than announced", 400, {"body": DATA[::-1]}),
]


def cases():
    """Yield door, what is wrong, status and changes of every case."""
    for door, what in product(("begin", "whole", *FILES), NO_FILES):
        yield door, f"{what[:20]} is no file", 404, {"what": what}
    for door, digest in product(FILES, NO_DIGESTS):
        yield door, f"{digest[:9]} of {len(digest)} is no file's", 404, {"digest": digest}
    for door, by in product(FILES, ("south", "east")):
        yield door, f"{by} at another's file", 404, {"by": by}
    yield from (("fetch", f"{what} is no reply", 404, {"what": what}) for what in NO_REPLIES)
    for door, method in product(("begin", "part"), ("PUT", "DELETE", "OPTIONS", "TRACE")):
        yield door, method, 405, {"method": method}
    yield "part", "POST without a word", 405, {"method": "POST"}
    yield from ((door, str(line), 400, {"line": line}) for door, line in product(BROUGHT, SMUGGLED))
    yield from SIZES
    yield from ((door, *each) for door, each in product(BROUGHT[1:], OF_PARTS))
    yield from of_all_doors()


def of_all_doors():
    for door, (wrong, change) in product(DOORS, UNSIGNED.items()):
        yield door, wrong, 404, change
    for door, minutes in product(DOORS, (-(10**6), -10, -6, 6, 10, 10**6)):
        yield door, f"a clock {minutes} minutes off", 401, {"minutes": minutes}
    for door, name in product(DOORS, FIELDS):
        yield door, f"{name} set behind the signature", 404, {"after": put(name, "9")}
    for door, (*_, fields, content) in DOORS.items():
        for name in (*fields, *["content-digest"] * bool(content)):
            others = tuple(each for each in FIELDS if each != name)
            yield door, f"{name} not signed", 404, {"signing": {"FIELDS": others}}
            away = lambda request, name=name: request.headers.pop(name)  # noqa: E731
            yield door, f"{name} taken away", 404, {"after": away}
            yield door, f"{name} twice", 404, {"after": put_twice(name, "9")}
            status, values = VALUES[name]
            yield from ((door, f"{name}: {value}", status, {name: value}) for value in values)
