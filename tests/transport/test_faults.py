"""Lines that break, disks that fail, processes that die, and servers that are somebody else's."""

import hashlib
import os
import random
import shutil
import socket
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count

import httpx
import pytest
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from cobasis.errors import CertificateError, DiskError, RequestError, UnreachableError
from cobasis.transport import client, server
from cobasis.transport.certificate import Statement, certificate_at, make_certificate
from cobasis.transport.inbox import Sent, prune, waiting
from cobasis.transport.index import MOST_OPEN, Index, forget_index
from faults import BROKEN, FULL, at_call, calls_of, deaths
from transport.serving import PARTIES, STEP, free_port

DATA = random.Random(0).randbytes(300_000)  # noqa: S311 -- bytes of a test
DIGEST = hashlib.sha256(DATA).hexdigest()


def sent_to(folder, digest=DIGEST):
    return Sent(inbox=folder / "icu.inbox", party="north", what="1-upload", digest=digest)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "sealed").write_bytes(DATA)
    return tmp_path / "sealed"


def arrived(world):
    path = sent_to(world.lab).place()
    found = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    return found


class Line:
    """What leads from a port to a server's, and is cut after so many bytes of each connection."""

    def __init__(self, port, *, to, after):
        self.to, self.after, self.carried, self.cuts = to, after, 0, 0
        self.listening = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            while True:
                near, _ = self.listening.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
                for ends in ((near, far, self.after()), (far, near, None)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, target, most):
        seen = 0
        with source, target, suppress(OSError):
            while data := source.recv(8192):
                seen += len(data)
                self.carried += 0 if most is None else len(data)
                if most is not None and seen > most:
                    self.cuts += 1
                    break
                target.sendall(data)
            for end in (source, target):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def broken(world, *, after):
    world.worker().step()
    line = Line(world.port, to=free_port(), after=after)
    with world.serving(port=line.to), line.listening:
        yield line
        line.listening.shutdown(socket.SHUT_RDWR)  # or a thread keeps the port that others have


@pytest.mark.usefixtures("quickly")
def test_what_is_cut_goes_on_and_nothing_is_sent_twice_but_a_part(fresh, file):
    draw = random.Random(1)  # noqa: S311 -- where a line is cut
    cut = broken(fresh, after=lambda: draw.randrange(30_000, 100_000))
    with cut as line, fresh.remote("north") as remote:
        for _ in range(20):
            with suppress(UnreachableError):
                remote.upload(file, "1-upload")
                break
    assert arrived(fresh) == DATA
    assert line.cuts >= 3
    # of each cut connection a part at most is lost, and some kilobytes of TLS and fields
    assert line.carried < len(DATA) + (line.cuts + 1) * (STEP + 12_000)


@pytest.mark.usefixtures("quickly")
def test_behind_a_proxy_that_knows_no_patch_parts_go_by_post(fresh, file, monkeypatch):
    app, seen = server.Server.app, []

    def proxied(served):
        async def answer(scope, receive, send):
            seen.append(scope.get("method"))
            away = PlainTextResponse("", httpx.codes.METHOD_NOT_ALLOWED)
            await (away if seen[-1] == "PATCH" else app(served))(scope, receive, send)

        return answer

    monkeypatch.setattr(server.Server, "app", proxied)
    fresh.worker().step()
    with fresh.serving(), fresh.remote("north") as remote:
        remote.upload(file, "1-upload")
    assert arrived(fresh) == DATA
    assert seen.count("PATCH") == len(DATA) / STEP


@pytest.mark.usefixtures("quickly")
def test_two_clients_of_a_party_bring_one_file(world, file):
    done = []

    def bring():
        with world.remote("north") as remote, suppress(RequestError):  # one may end the other
            remote.upload(file, "1-upload")
            done.append(remote)

    other = threading.Thread(target=bring)
    other.start()
    bring()
    other.join()
    assert done
    assert arrived(world) == DATA


def deliver(index, sent):
    """What the server does to the disk for a file in two parts."""
    index.begin(sent, length=len(DATA))
    for end in (len(DATA) // 2, len(DATA)):
        state = index.state(sent)
        if not state.whole and state.n_bytes < end:
            with index.grow(sent, offset=state.n_bytes)[0] as file:
                file.write(DATA[state.n_bytes : end], offset=state.n_bytes)
    if not index.state(sent).whole:
        with index.grow(sent, offset=len(DATA))[0] as file:
            index.finish(sent, file, digest=None)


def test_a_file_is_named_after_it_is_on_the_disk_and_its_name_is_before_anybody_hears(in_memory):
    index, sent = Index(in_memory), sent_to(in_memory)
    made = [call for call, path in calls_of(lambda: deliver(index, sent)) if DIGEST in path.name]
    folder = [name for name, _ in calls_of(lambda: deliver(index, sent), counts=lambda *_: True)]
    assert made[-2:] == ["fsync", "replace"]
    assert "replace" not in folder  # a second time nothing is written
    assert [name for name, _ in calls_of(lambda: index.known(sent))] == ["fsync"]
    shutil.rmtree(sent.inbox)
    every = " ".join(name for name, _ in calls_of(lambda: deliver(index, sent)))
    assert "replace fsync" in every
    shutil.rmtree(sent.inbox)


def test_whenever_the_server_dies_a_file_is_whole_or_goes_on(in_memory):
    index, sent, died = Index(in_memory), sent_to(in_memory), []
    for when, _ in deaths(lambda: deliver(index, sent)):
        died.append(when)
        assert not sent.place().exists() or sent.place().read_bytes() == DATA, when
        deliver(index, sent)
        assert sent.place().read_bytes() == DATA, when
        assert [*waiting(sent.inbox)] == [sent]
        shutil.rmtree(sent.inbox)
    assert len(died) > 8
    shutil.rmtree(sent.inbox)


@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.usefixtures("quickly")
def test_a_disk_that_is_full_is_told_and_the_same_file_comes_later(world, file, number):
    with world.remote("north") as remote:
        full = at_call(number, FULL, counts=lambda _, __, path: "inbox" in str(path))
        with full as clock, suppress(RequestError):
            remote.upload(file, "1-upload")
        assert clock.stopped_at is not None
        remote.upload(file, "1-upload")
    assert arrived(world) == DATA


def test_a_statement_that_is_old_or_somebody_elses_is_none(fresh, monkeypatch):
    with fresh.serving(), monkeypatch.context() as patch:
        patch.setattr("cobasis.transport.certificate._STATEMENT", timedelta(days=-3))
        fresh.worker().step()
        [place] = (fresh.lab / ".server").glob("lab.*.statement")
        patch.undo()
        certificate, sign = certificate_at(fresh.certificate), fresh.identity("south").sign
        made = Statement.made(certificate, analyst="lab", sign=sign)
        for text in (place.read_text(), made.text(), "{", None):
            place.write_text(text) if text else place.unlink()
            with pytest.raises(CertificateError, match="holds today"):
                fresh.remote("north")
        fresh.worker().step()
        fresh.remote("north")


@pytest.mark.usefixtures("quickly")
def test_a_server_with_another_certificate_gets_nothing_until_it_is_signed_for(fresh, tmp_path):
    """A proxy's or an attacker's, for all that anybody knows, or one that was renewed."""
    fresh.worker().step()
    other, key = make_certificate(tmp_path / "other")
    with fresh.serving():
        remote = fresh.remote("north")
    renewed = fresh.serving(certificate=other, key=key)
    with renewed, remote:
        with pytest.raises(CertificateError, match="has signed for"):
            remote.fetch("agreement", tmp_path / "agreement")
        with pytest.raises(CertificateError, match="has signed for"):
            fresh.remote("north")
        # a proxy whose certificate the company gave is let in, since the analyst has signed
        with fresh.remote("north", ca=other) as proxied:
            assert proxied.fetch("secret.south", tmp_path / "secret") is False
        assert not (fresh.lab / "icu.inbox").exists()
        worker = fresh.worker()
        worker.certificate = other
        worker.step()
        assert remote.fetch("agreement", tmp_path / "agreement") is False
    with fresh.serving():  # as long as the web half shows the one before, it is believed
        fresh.remote("north")


@pytest.mark.parametrize("before", [None, b"old"])
def test_whatever_fails_on_a_partys_disk_while_it_fetches_the_next_try_has_it(
    world, tmp_path, before
):
    (world.lab / "outbox").mkdir(exist_ok=True)
    (world.lab / "outbox" / "icu.north.1-return").write_bytes(b"new")
    place = tmp_path / "here" / "return"
    place.parent.mkdir()
    failed = set()
    with world.remote("north") as remote:
        for number in count(1):
            place.unlink(missing_ok=True) if before is None else place.write_bytes(before)
            at = at_call(number, BROKEN, counts=lambda *told: "here" in told[-1].parts)
            with at as clock, suppress(DiskError):
                remote.fetch("1-return", place)
            found = place.read_bytes() if place.exists() else None
            assert found in {before, b"new"}, clock.stopped_at
            remote.fetch("1-return", place)
            assert [place.read_bytes(), *place.parent.iterdir()] == [b"new", place]
            if clock.stopped_at is None:
                break
            failed.add(clock.stopped_at)
    assert failed >= {"pwrite", "fsync", "replace"}


HOSTILE = [
    ("signature", b'{"format":"cobasis/signature/1","self":1,"name":"north"}'),
    ("word", b'{"format":"cobasis/word/1","self":1}'),
    ("1-upload", b'round_id = "x"\nd = 0001-01-01T00:00:00+23:59\n'),
    ("1-upload", b'round_id = "x"\nd' + b".d" * 5000 + b" = 1"),
]


def test_no_file_of_a_party_ends_the_service_of_others(served, tmp_path):
    worker, file = served.worker(), tmp_path / "hostile"
    with served.remote("north") as remote:
        for what, data in HOSTILE:
            file.write_bytes(data)
            remote.upload(file, what)
            worker.step()
            assert bool(remote.refusal(file, what)) == (what != "word")  # which waits its turn
    served.turn(worker, names=["north"])
    assert [sent.what for sent in waiting(served.lab / "icu.inbox")] == ["word"]


def test_what_lies_in_the_folder_or_an_inbox_keeps_no_round_waiting(fresh, caplog):
    caplog.set_level("INFO", logger="cobasis")
    (fresh.lab / ".#icu.toml").symlink_to("nowhere")
    (fresh.lab / "a.toml").symlink_to("nowhere")
    (fresh.lab / "b.toml").write_text("round_id = ")
    worker = fresh.worker()
    worker.step()
    with fresh.serving():
        for name in PARTIES:
            fresh.go(name, code=4)
    for path in fresh.lab.glob("icu.inbox/*/signature~*"):  # as `cp` and `rsync --backup` do it
        for copy in (f"{path.name}~", f"{path.name}.json~", f"{path.name}~99.part~"):
            path.with_name(copy).write_bytes(path.read_bytes())
    worker.step()
    assert (fresh.lab / "icu.sealed.toml").exists()
    fresh.certificate.rename(fresh.certificate.with_suffix(".away"))
    worker.step()
    assert '"file": "server.crt"' in caplog.records[-1].message


def test_a_disk_that_was_full_for_a_moment_is_tried_again(served, monkeypatch):
    monkeypatch.setattr("cobasis.transport.worker._REST", 0.0)
    worker, inbox = served.worker(), served.lab / "icu.inbox"
    served.go("north", code=4)
    with at_call(1, FULL, counts=lambda _, __, path: "icu.round" in str(path)) as clock:
        worker.step()
    assert clock.stopped_at is not None
    assert [*waiting(inbox)]
    worker.step()
    assert not [*waiting(inbox)]


def test_a_part_that_never_came_goes_by_itself(in_memory):
    sent = sent_to(in_memory)
    Index(in_memory).begin(sent, length=9)
    [part] = sent.inbox.glob("*/*")
    prune(sent.inbox, secrets=False)
    assert part.exists()
    os.utime(part, (0, 0))
    prune(sent.inbox, secrets=False)
    assert not part.exists()


def half(index, sent):
    index.begin(sent, length=len(DATA))
    with index.grow(sent, offset=0)[0] as part:
        part.write(DATA[:1000], offset=0)


def test_an_index_that_is_gone_is_made_from_the_files_and_a_broken_one_by_rebuild(in_memory):
    sent = sent_to(in_memory)
    half(Index(in_memory), sent)
    forget_index(in_memory)
    index = Index(in_memory)
    assert index.state(sent).n_bytes == 1000
    deliver(index, sent)
    kept = in_memory / ".server" / "index.sqlite"
    for each in kept.parent.glob("index.sqlite-*"):
        each.unlink()
    kept.write_bytes(b"no index" * 1000)
    with pytest.raises(DiskError, match="serve --rebuild"):
        Index(in_memory)
    forget_index(in_memory)
    index = Index(in_memory)
    others = [sent_to(in_memory, f"{k:064x}") for k in range(MOST_OPEN)]
    for each in others[1:]:
        index.begin(each, length=9)
    with pytest.raises(RequestError, match="has 4 files"):  # the one that waits for the worker, too
        index.begin(others[0], length=9)
    shutil.rmtree(sent.inbox)
    assert index.begin(others[0], length=9).n_bytes == 0


def test_a_part_that_a_backup_put_back_goes_on_though_the_index_does_not_know_it(tmp_path):
    before, sent, index = sent_to(tmp_path / "before"), sent_to(tmp_path), Index(tmp_path)
    half(Index(tmp_path / "before"), before)
    shutil.copytree(before.inbox, sent.inbox)
    assert index.state(sent) is None
    index.begin(sent, length=len(DATA))
    assert index.state(sent).n_bytes == 1000
    deliver(index, sent)
    assert sent.place().read_bytes() == DATA


@pytest.mark.usefixtures("quickly")
def test_what_the_server_gives_is_as_large_as_its_kind_and_whole(served, tmp_path, monkeypatch):
    with served.remote("north") as remote:
        (served.lab / "icu.news").write_bytes(bytes(2**24 + 1))
        with pytest.raises(RequestError, match="'news' has 16,777,216 at most"):
            remote.fetch("news", tmp_path / "news")
        (served.lab / "icu.news").write_bytes(b"right")
        monkeypatch.setattr(server, "_tag", lambda _: '"' + "0" * 64 + '"')
        with pytest.raises(UnreachableError, match="not what the server has"):
            remote.fetch("news", tmp_path / "news")
    assert not (tmp_path / "news").exists()


def test_an_answer_without_end_or_of_another_form_ends_the_command(served, tmp_path, monkeypatch):
    made = tmp_path / "made"
    made.write_bytes(b"a file")

    async def endless(*_):
        return StreamingResponse(iter(lambda: bytes(2**20), None), status_code=400)

    async def packed(*_):
        return Response(b"no gzip", 404, {"content-encoding": "gzip"})

    with served.remote("north") as remote:
        for answer, told in ((endless, "no end"), (packed, "answers 404")):
            monkeypatch.setattr(server.Server, "_when", answer)
            with pytest.raises(RequestError, match=told):
                remote.fetch("news", tmp_path / "news")
        fields = {"upload-offset": "7", "upload-complete": "?0"}
        odd = Response(b'{"verdict":{"verdict":"refused"}}', 200, fields)
        monkeypatch.setattr(server, "_told", lambda *_, **__: odd)
        assert remote.refusal(made, "word") == ""
        with pytest.raises(RequestError, match="7 bytes of a file of 6"):
            remote.upload(made, "word")
    asked, fields = httpx.Request("GET", "https://lab/news"), {"content-length": "3"}
    came = httpx.Response(200, headers=fields, content=iter([b"ab", b"cd"]), request=asked)
    with pytest.raises(httpx.RemoteProtocolError):
        client._write(came, tmp_path / "news")
    assert [*tmp_path.glob("news*")] == []
