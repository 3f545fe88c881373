"""Requests as an enemy, or a broken client, makes them: the right answer, and nothing stored."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from cobasis.keys.identity import Identity
from cobasis.transport import wire
from cobasis.transport.wire import FILE, PART_BYTES, PARTIAL, PROBLEM, digest_field, sign_request

DATA = b"sealed, as far as a server can tell" * 40
DIGEST = hashlib.sha256(DATA).hexdigest()


class Caller:
    """Makes requests by hand; each can be spoiled before or after it is signed."""

    def __init__(self, world):
        self.world, self.stranger = world, Identity.new("stranger")
        self.round = f"/rounds/{world.agreement.digest().hex()}"
        self.client = httpx.Client(
            base_url=world.agreement.server,
            verify=False,  # noqa: S501 -- the certificate is looked at in test_faults
            timeout=20,
        )

    def __call__(self, method, path, *, fields=(), body=None, by="north", key=None, after=None):
        told = dict(fields)
        if body is not None:
            told.setdefault("content-digest", digest_field(hashlib.sha256(body).hexdigest()))
        told = {name: each for name, each in told.items() if each is not None}
        request = self.client.build_request(method, path, headers=told, content=body)
        sign_request(request, name=by, sign=(key or self.world.identity(by)).sign)
        if after is not None:
            after(request)
        return self.client.send(request)

    def begin(self, *, what="1-upload", data=DATA, **changes):
        fields = {
            "upload-length": str(len(data)),
            "upload-complete": "?0",
            "repr-digest": digest_field(hashlib.sha256(data).hexdigest()),
        }
        body = changes.pop("body", None)
        more = {name: changes.pop(name) for name in ("by", "key", "after") if name in changes}
        fields |= {name.replace("_", "-"): each for name, each in changes.items()}
        return self("POST", f"{self.round}/{what}", fields=fields, body=body, **more)

    def part(self, body=DATA, *, digest=DIGEST, what="1-upload", **changes):
        fields = {"upload-offset": "0", "upload-complete": "?1", "content-type": PARTIAL}
        more = {name: changes.pop(name) for name in ("by", "key", "after") if name in changes}
        method = changes.pop("method", "PATCH")
        fields |= {name.replace("_", "-"): each for name, each in changes.items()}
        return self(method, f"{self.round}/{what}/{digest}", fields=fields, body=body, **more)

    def stored(self):
        folder = self.world.lab / "icu.inbox"
        return {str(path): path.stat().st_size for path in folder.glob("*/*")}

    def clear(self):
        for name in self.stored():
            Path(name).unlink()


@pytest.fixture(scope="module")
def calls(world):
    caller = Caller(world)
    with caller.client:
        yield caller


def set_field(name, value):
    def spoil(request):
        request.headers[name] = value

    return spoil


def add_field(name, value):
    def spoil(request):
        request.headers = httpx.Headers([*request.headers.multi_items(), (name, value)])

    return spoil


def later(minutes):
    """Sign as a clock would that is off."""

    def spoil(request):
        del request.headers["signature"], request.headers["signature-input"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wire.HTTPMessageSigner, "prepare", at(minutes))
            sign_request(request, name="north", sign=KEYS["north"].sign)

    return spoil


KEYS = {}
PREPARE = wire.HTTPMessageSigner.prepare


def at(minutes):
    moment = datetime.now(UTC) + timedelta(minutes=minutes)
    return lambda self, request, **told: PREPARE(self, request, created=moment, **told)


BEGUN = {
    "no key that is enrolled": (404, {"by": "stranger", "key": "stranger"}),
    "another's key": (404, {"key": "stranger"}),
    "no signature": (404, {"after": set_field("signature", "cobasis=:AA==:")}),
    "no field of signatures": (404, {"after": lambda it: it.headers.pop("signature-input")}),
    "a field changed behind the signature": (404, {"after": set_field("upload-length", "9")}),
    "a field added behind the signature": (404, {"after": set_field("content-type", FILE)}),
    "a field smuggled in twice": (404, {"after": add_field("upload-length", "9")}),
    "another method than was signed": (404, {"after": lambda it: setattr(it, "method", "GET")}),
    "ten minutes late": (401, {"after": later(10)}),
    "ten minutes early": (401, {"after": later(-10)}),
    "no length": (400, {"upload_length": None}),
    "a length below zero": (400, {"upload_length": "-1"}),
    "a length that is no number": (400, {"upload_length": "1e3"}),
    "more than any file has": (413, {"upload_length": str(2**40)}),
    "a large signature": (413, {"what": "signature", "upload_length": "70000"}),
    "no digest": (400, {"repr_digest": None}),
    "a digest of another kind": (400, {"repr_digest": "sha-512=:AAAA:"}),
    "a digest that is too short": (400, {"repr_digest": "sha-256=:AAAA:"}),
    "no word on the end": (400, {"upload_complete": None}),
    "a word that is none": (400, {"upload_complete": "?2"}),
    "another kind of file": (404, {"what": "9-upload"}),
    "a reply as a message": (404, {"what": "1-return"}),
    "a way out of the folder": (404, {"what": "..%2f..%2ficu.toml"}),
    "a secret for oneself": (404, {"what": "secret.north"}),
    "a secret for nobody": (404, {"what": "secret.west"}),
    "a whole file of another type": (415, {"upload_complete": "?1", "body": DATA}),
    "PATCH by a word that is another": (400, {"x_http_method_override": "DELETE"}),
    "a digest of the part that is wrong": (
        400,
        {
            "upload_complete": "?1",
            "body": DATA,
            "content_type": FILE,
            "content_digest": digest_field(hashlib.sha256(b"other").hexdigest()),
        },
    ),
    "a whole file that is shorter": (
        400,
        {"upload_complete": "?1", "body": DATA[:9], "content_type": FILE},
    ),
    "a whole file that is longer": (
        413,
        {"upload_complete": "?1", "body": DATA + b"!", "content_type": FILE},
    ),
}


@pytest.mark.parametrize("name", BEGUN)
def test_what_cannot_begin_stores_nothing(calls, name):
    KEYS["north"] = calls.world.identity("north")
    status, told = BEGUN[name]
    found = calls.begin(**{**told, "key": calls.stranger} if "key" in told else told)
    assert found.status_code == status, found.text
    if found.headers["content-type"] == PROBLEM:  # not where no route leads at all
        told = found.json()
        assert (told["status"], told["code"]) == (status, "CB806" if status == 401 else "CB903")
    assert all(not size for size in calls.stored().values())
    calls.clear()  # one that was begun, and of which nothing came


PARTS = {
    "a part behind a gap": (409, {"upload_offset": "5"}),
    "no offset": (400, {"upload_offset": None}),
    "no type": (415, {"content_type": None}),
    "the type of a whole file": (415, {"content_type": FILE}),
    "no digest of the part": (400, {"content_digest": None}),
    "another digest of the part": (400, {"content_digest": digest_field("00" * 32)}),
    "a last part that is short": (400, {"body": DATA[:-1]}),
    "a part that is too long": (413, {"body": DATA + b"!"}),
    "a part of more than 8 MiB": (413, {"body": bytes(PART_BYTES + 1)}),
    "another's file": (404, {"by": "south"}),
    "a file that was not begun": (404, {"digest": "0" * 64}),
    "an address that is none": (404, {"digest": "0" * 63}),
    "another kind of file": (404, {"what": "2-upload"}),
    "POST without a word": (405, {"method": "POST"}),
    "PUT": (405, {"method": "PUT"}),
    "bytes that were announced otherwise": (400, {"body": DATA[::-1]}),
}


@pytest.mark.parametrize("name", PARTS)
def test_what_is_no_next_part_changes_nothing(calls, name):
    assert calls.begin().status_code == 201
    status, told = PARTS[name]
    found = calls.part(**told)
    assert found.status_code == status, found.text
    left = calls.stored()
    assert [*left.values()] == ([] if "announced" in name else [0])
    calls.clear()


def test_an_unknown_round_and_a_foreign_one_have_one_answer(calls):
    unknown = calls("GET", f"/rounds/{'0' * 64}/news")
    foreign = calls("GET", f"{calls.round}/news", by="stranger", key=calls.stranger)
    assert unknown.status_code == foreign.status_code == 404
    assert unknown.content == foreign.content
    assert "toml" not in calls.client.get("/healthz").text


def test_a_clock_that_is_off_is_told_the_time(calls):
    KEYS["north"] = calls.world.identity("north")
    found = calls.begin(after=later(10)).json()
    assert found["code"] == "CB806"
    assert f"it is {datetime.now(UTC):%Y-%m-%dT%H:%M}" in found["detail"]


def test_parts_arrive_and_are_asked_about(calls):
    """Every step once more changes nothing; a proxy that knows no PATCH is got around."""
    for _ in range(2):
        assert calls.begin().headers["upload-offset"] == "0"
    first = calls.part(DATA[:500], upload_complete="?0")
    assert (first.status_code, first.headers["upload-offset"]) == (204, "500")
    assert calls.part(DATA[:500], upload_complete="?0").status_code == 409  # a replay
    place = f"{calls.round}/1-upload/{DIGEST}"
    assert calls("HEAD", place).headers["upload-offset"] == "500"
    told = {"method": "POST", "x_http_method_override": "PATCH", "upload_offset": "500"}
    last = calls.part(DATA[500:], **told)
    assert (last.status_code, last.headers["upload-complete"]) == (204, "?1")
    assert calls.begin().headers["upload-complete"] == "?1"
    assert calls("GET", place).json() == {"verdict": None}
    calls.world.worker().step()
    verdict = calls("GET", place).json()["verdict"]
    assert (verdict["verdict"], verdict["code"]) == ("refused", "CB801")
    assert calls.begin().headers["upload-complete"] == "?1"  # it was looked at, and stays so


def test_a_request_that_is_repeated_ends_no_other_one(calls):
    """Whoever has recorded it may send it for five minutes."""
    data = DATA + b"repeated"
    digest = hashlib.sha256(data).hexdigest()
    calls.begin(data=data)
    calls.part(data[:100], digest=digest, upload_complete="?0")
    before = calls.stored()
    assert calls.part(data[:100], digest=digest, upload_complete="?0").status_code == 409
    assert calls.stored() == before
    calls.clear()


def test_no_answer_is_kept_by_what_stands_in_between(calls):
    for path in ("/news", "/1-return", "/9-x"):
        assert calls("GET", f"{calls.round}{path}").headers["cache-control"] == "no-store"


def test_nobody_can_fill_the_disk_with_files_that_never_come(calls):
    for number in range(4):
        assert calls.begin(data=DATA + bytes([number])).status_code == 201
    assert calls.begin(data=DATA + b"4").status_code == 429
    assert calls.begin(data=DATA + b"4", by="south").status_code == 201
    calls.clear()


def test_what_is_not_there_yet_is_waited_for(calls):
    news = calls.world.lab / "icu.news"
    news.unlink(missing_ok=True)
    assert calls("GET", f"{calls.round}/news").status_code == 202
    news.write_text("one")
    found = calls("GET", f"{calls.round}/news")
    assert (found.status_code, found.text) == (200, "one")
    same = {"if-none-match": found.headers["etag"], "prefer": "wait=1"}
    assert calls("GET", f"{calls.round}/news", fields=same).status_code == 304
    assert calls("GET", f"{calls.round}/1-upload").status_code == 404
    news.unlink()


def test_logs_are_one_object_a_line_without_contents(calls, caplog):
    caplog.set_level("INFO", logger="cobasis.server")
    calls.begin(upload_length="9", after=set_field("upload-length", "8"))
    told = json.loads(caplog.records[-1].message)
    assert {"method": "POST", "status": 404, "code": "CB903"}.items() <= told.items()
    assert set(told) == {"code", "method", "path", "seconds", "status"}
