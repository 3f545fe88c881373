"""Requests as an enemy, or a broken client, makes them: the right answer, and nothing stored."""

import hashlib
import json
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import httpx
import pytest

from cobasis.errors import DiskError
from cobasis.keys.identity import Identity
from cobasis.transport import inbox, server, wire
from cobasis.transport.wire import PROBLEM, digest_field, sign_request
from transport.bad import DATA, DIGEST, DOORS, cases, put

CASES, MORE = [*cases()], {"upload-complete": "?0"}


class Caller:
    """Makes requests by hand; each can be spoiled before or after it is signed."""

    def __init__(self, world):
        self.world, self.round = world, f"/rounds/{world.agreement.digest().hex()}"
        self.keys = {name: world.identity(name) for name in ("north", "south", "east", "lab")}
        self.keys["stranger"] = Identity.new("stranger")
        self.client = httpx.Client(
            base_url=world.agreement.server,
            verify=False,  # noqa: S501 -- the certificate is looked at in test_faults
            timeout=20,
        )

    def __call__(self, method, path, **how):
        return self.client.send(self.made(method, path, **how))

    def made(self, method, path, *, fields=(), body=None, by="north", key=None, minutes=0,
             signing=()):  # fmt: skip
        told = {} if body is None else {"content-digest": field_of(body)}
        told = {name: each for name, each in (told | dict(fields)).items() if each is not None}
        request = self.client.build_request(method, path, headers=told, content=body)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wire.HTTPMessageSigner, "prepare", at(minutes))
            patch.setattr(wire.HTTPMessageSigner.content_digest_class, "prepare", Mock())
            for name, each in dict(signing).items():
                patch.setattr(wire, name, each)
            sign_request(request, name=by, sign=self.keys[key or by].sign)
        return request

    def at(self, door, *, what=None, digest=DIGEST, start=None, tail="", method=None,
           after=lambda _: None, line=None, **changes):  # fmt: skip
        """Go to a door with something, or a field by its name, changed."""
        usual, at_file, fields, body = DOORS[door]
        how = {word: changes.pop(word) for word in HOW if word in changes}
        what = what or ("news" if door == "fetch" else "1-upload")
        path = f"{start or self.round}/{what}{f'/{digest}' * at_file}{tail}"
        told = {"fields": {**fields, **changes}, "body": body, **how}
        request = self.made(method or usual, path, **told)
        after(request)
        return self.client.send(request) if line is None else self.raw(request, line)

    def raw(self, request, line):
        fields = b"".join(b"%s: %s\r\n" % each for each in request.headers.raw)
        head = b"%s %s HTTP/1.1\r\n" % (request.method.encode(), request.url.raw_path)
        context = ssl.create_default_context(cafile=self.world.certificate)
        with (
            socket.create_connection(("localhost", self.world.port), 20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as sock,
        ):
            sock.sendall(head + fields + line + b"\r\n" + request.content)
            return httpx.Response(int(sock.recv(2**16).split()[1]))

    def begin(self, *, data=DATA, **changes):
        told = {"upload-length": str(len(data)), "repr-digest": field_of(data)}
        return self.at("begin", **{**told, **changes})

    def part(self, body=DATA, door="part", **changes):
        return self.at(door, **{"body": body, **changes})

    def stored(self):
        return {path: path.stat().st_size for path in self.world.lab.glob("icu.inbox/*/*")}

    def clear(self):
        for path in self.stored():
            path.unlink()


def field_of(data):
    return digest_field(hashlib.sha256(data).hexdigest())


HOW = ("by", "key", "minutes", "signing", "body")
PREPARE = wire.HTTPMessageSigner.prepare


def at(minutes):
    """Sign as a clock would that is off."""
    moment = datetime.now(UTC) + timedelta(minutes=minutes)
    return lambda self, request, **told: PREPARE(self, request, created=moment, **told)


@pytest.fixture(scope="module")
def calls(world):
    caller = Caller(world)
    with caller.client:
        yield caller


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[1]}"[:60])
def test_a_bad_request_has_the_right_answer_and_stores_nothing(calls, case):
    door, wrong, status, changes = case
    if DOORS[door][1]:
        assert calls.begin().status_code == 201
    before = calls.stored()
    found = calls.at(door, **changes)
    assert found.status_code == status, found.text
    if found.headers.get("content-type") == PROBLEM and found.content:
        told = found.json()
        assert (told["status"], told["code"]) == (status, "CB806" if status == 401 else "CB903")
    after = calls.stored()
    if wrong == "other bytes than announced":  # the last part has come, and the whole is another
        assert after == {}
    else:  # a file that was begun is noted, and has no byte
        assert after == before or (door == "whole" and [*after.values()] == [0])
    calls.clear()


def test_there_are_as_many_bad_requests_as_were_asked_for():
    assert len({(door, wrong) for door, wrong, *_ in CASES}) == len(CASES) >= 400


def test_rounds_unknown_and_foreign_have_one_answer_a_wrong_clock_is_told_the_time_and_none_is_kept(
    calls,
):
    unknown = calls("GET", f"/rounds/{'0' * 64}/news")
    foreign = calls("GET", f"{calls.round}/news", by="stranger")
    assert unknown.status_code == foreign.status_code == 404
    assert unknown.content == foreign.content
    assert "toml" not in calls.client.get("/healthz").text
    for path in ("/news", "/1-return", "/9-x"):  # by what stands in between
        assert calls("GET", f"{calls.round}{path}").headers["cache-control"] == "no-store"
    found = calls.begin(minutes=10).json()
    assert found["code"] == "CB806"
    assert f"it is {datetime.now(UTC):%Y-%m-%dT%H:%M}" in found["detail"]


def test_a_round_whose_agreement_could_not_be_read_once_is_served_again(calls, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "read_agreement", Mock(side_effect=DiskError("a full table of files")))
        inbox._served.cache_clear()
        assert calls("GET", f"{calls.round}/news").status_code == 404
    assert calls("GET", f"{calls.round}/news").is_success


def test_parts_arrive_and_are_asked_about(calls):
    for _ in range(2):
        assert calls.begin().headers["upload-offset"] == "0"
    first = calls.part(DATA[:500], **MORE)
    assert (first.status_code, first.headers["upload-offset"]) == (204, "500")
    assert calls.part(DATA[:500], **MORE).status_code == 409  # a replay
    place = f"{calls.round}/1-upload/{DIGEST}"
    assert calls("HEAD", place).headers["upload-offset"] == "500"
    last = calls.part(DATA[500:], "part by POST", **{"upload-offset": "500"})
    assert (last.status_code, last.headers["upload-complete"]) == (204, "?1")
    assert calls.begin().headers["upload-complete"] == "?1"
    assert calls("GET", place).json() == {"verdict": None}
    calls.world.worker().step()
    verdict = calls("GET", place).json()["verdict"]
    assert (verdict["verdict"], verdict["code"]) == ("refused", "CB801")
    assert calls.begin().headers["upload-complete"] == "?1"  # it was looked at, and stays so


def test_a_request_that_is_repeated_ends_no_other_one_and_another_file_is_deleted(calls):
    """Whoever has recorded it may send it for five minutes."""
    data = DATA + b"repeated"
    digest, earlier = hashlib.sha256(data).hexdigest(), calls.stored()
    calls.begin(data=data)
    calls.part(data[:100], digest=digest, **MORE)
    before = calls.stored()
    assert calls.part(data[:100], digest=digest, **MORE).status_code == 409
    assert calls.stored() == before
    last = calls.part(bytes(len(data) - 100), digest=digest, **{"upload-offset": "100"})
    assert (last.status_code, "It is deleted here" in last.text) == (400, True)
    assert calls.stored() == earlier


class Stalling(httpx.SyncByteStream):
    def __iter__(self):
        yield b"dead "
        time.sleep(0.5)
        yield b"line"


def test_a_line_that_may_be_dead_lets_go_of_its_file(calls, monkeypatch):
    monkeypatch.setattr(server, "_STALL_SECONDS", 0.1)
    data = b"dead line"
    told = {"body": data, "digest": hashlib.sha256(data).hexdigest()}
    calls.begin(data=data)
    stalls = calls.part(**told, after=lambda request: setattr(request, "stream", Stalling()))
    assert (stalls.status_code, calls.part(**told).status_code) == (408, 204)
    calls.clear()


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
    calls.begin(after=put("upload-length", "8"))
    told = json.loads(caplog.records[-1].message)
    assert {"method": "POST", "status": 404, "code": "CB903"}.items() <= told.items()
    assert set(told) == {"code", "method", "path", "seconds", "status"}
