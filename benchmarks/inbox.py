"""The HTTPS inbox under load: crowds, stalled lines, kills, and lines that are cut.

The server is a process of its own, as ``cobasis serve --only web`` starts it; TLS, signatures and
syncs are on. Clients share the cores with it, so every figure has in it what they cost.
"""

import asyncio
import hashlib
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import numpy as np

from benchmarks import goals, machine
from benchmarks.goals import written
from benchmarks.timing import seconds
from cobasis import ConsortiumSecret, numeric_features
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.agreement_text import new_text
from cobasis.disk.whole import PART, file_digest, write_whole
from cobasis.errors import UnreachableError
from cobasis.keys.identity import Identity
from cobasis.transport.certificate import Statement, certificate_at, make_certificate
from cobasis.transport.client import Remote
from cobasis.transport.inbox import STATEMENT, STATEMENTS
from cobasis.transport.index import MOST_OPEN
from cobasis.transport.wire import FILE, PART_BYTES, PARTIAL, digest_field, sign_request
from cobasis.transport.worker import Worker

PARTIES, PER_SECOND, STALLED, INSISTING, TRIES, LINES, PIECE = 1000, 50, 300, 20, 1000, 4, 2**16
WHAT, HOST, LAB = "1-upload", "127.0.0.1", Identity.new("lab", role="analyst")
Figures = dict[str, Any]
Server = subprocess.Popen[bytes]


def measure(*, quick: bool) -> Figures:
    n_uploads, rounds, lasts, beside = (100, 1, 3, 3) if quick else (1000, 3, 20, 10)
    n_small, kills, large, cuts = (300, 3, 16, 3) if quick else (10_000, 50, 1000, 20)
    with tempfile.TemporaryDirectory(prefix="cobasis-bench-") as name:
        place = Place(Path(name, "many"), parties=PARTIES)
        most = crowd(place, n_uploads=n_uploads, rounds=rounds)
        rate = steady(place, lasts=lasts, n_bytes=10**6)
        small = partial(steady, place, lasts=beside, n_bytes=10**5)
        both = [(small(), small(slow=STALLED)) for _ in range(rounds)]
        place = Place(Path(name, "killed"), parties=-(-n_small // MOST_OPEN))
        dead = asyncio.run(killed(place, n_uploads=n_small, kills=kills))
        large = min(large, int(shutil.disk_usage(name).free / 1.2e6 / (LINES + 1)))
        torn = asyncio.run(cut(Path(name, "cut"), megabytes=large, cuts=cuts))
    slow = [stalled["p99"] / alone["p99"] for alone, stalled in both]
    many = f"{n_uploads:,} uploads of 1 MB at once"
    die = f"{kills} kills of server and worker during {n_small:,} uploads"
    lines = f"{LINES} uploads of {large:,} MB over a line cut {torn['cuts']} times"
    table: list[tuple[str, list[float], float, str]] = [
        (many, most["inbox"], 15, " s"),
        (f"{many}, against a plain TLS server", most["inbox / plain"], 3, "x"),
        (f"{many}: the server's peak memory", [most["peak"]], 200, " MB"),
        (f"{PER_SECOND} of them a second: 99th percentile", [rate["p99"]], 1, " s"),
        (f"the same of 100 kB beside {STALLED} stalled lines, against alone", slow, 2, "x"),
        (f"{die}: acknowledged, and not on the disk", [dead["lost"]], 0, ""),
        (f"{die}: whole names over other bytes", [dead["torn"]], 0, ""),
        (f"{die}: never acknowledged", [dead["never"]], 0, ""),
        (f"{lines}: parts of 8 MiB sent twice, a cut", [torn["twice"]], 1.1, ""),
        (f"{lines}: the server's peak memory", [torn["peak"]], 200, " MB"),
    ]
    said = [
        goals.goal(what, median(each), most=most, unit=unit, where=", ".join(map(written, each)))
        for what, each, most, unit in table
    ]
    return {"crowd": most, "rate": rate, "beside": both, "killed": dead, "cut": torn, "goals": said}


class Place:
    """A folder that is served: the agreement of a round with many parties, and a certificate."""

    def __init__(self, folder: Path, *, parties: int, named: int = 0) -> None:
        self.folder, self.port, path = folder, free_port(), folder / f"icu{named}.toml"
        self.people = [Identity.new(f"p{number:04d}") for number in range(parties)]
        fields: Figures = {"round_id": "bench", "task": "representation", "analyst": LAB.public}
        fields |= {"features": numeric_features("abc"), "n_components": 2, "n_anchor_rows": 9}
        fields |= {"commitment": ConsortiumSecret(bytes(32)).commitment("bench")}
        fields |= {"enrolled": tuple(each.public for each in self.people)}
        fields |= {"server": f"https://localhost:{named or self.port}"}
        self.certificate, _ = make_certificate(folder / STATEMENTS)
        path.write_text(new_text(fields), encoding="utf-8")
        self.agreement, self.inbox = read_agreement(path).agreement, path.with_suffix(".inbox")
        self.url = f"{self.agreement.server}/rounds/{self.agreement.digest().hex()}/{WHAT}"
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.load_verify_locations(self.certificate)

    def uploads(self, count: int, n_bytes: int) -> "list[Upload]":
        """Return uploads of one size, of one party after the other; what came before is deleted."""
        shutil.rmtree(self.inbox, ignore_errors=True)
        os.sync()  # else what came before still goes to the disk
        start, people = random.Random(0).randbytes(n_bytes - 8), self.people  # noqa: S311 -- no key
        return [Upload(self, who=people[at % len(people)], start=start) for at in range(count)]

    def serving(self) -> AbstractContextManager[Server]:
        words = ("cobasis", "serve", str(self.folder), "--only", "web", "--listen")
        return running(*words, f"{HOST}:{self.port}", port=self.port)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Let the worker judge what comes, in a process of its own; kill it in the end."""
        worker = Worker(folder=self.folder, identity=LAB, runs=True, certificate=self.certificate)
        act = partial(worker.work, every=0.02, goes_on=lambda: True)
        child = get_context("fork").Process(target=act)  # to open the key takes longer than a life
        child.start()
        try:
            yield
        finally:
            child.kill()
            child.join()


class Upload:
    """One file of a party: random bytes that all share, and an end of its own."""

    def __init__(self, place: Place, *, who: Identity, start: bytes) -> None:
        self.place, self.who, self.content = place, who, start + os.urandom(8)
        self.digest = hashlib.sha256(self.content).hexdigest()
        self.stored = place.inbox / who.public.name / f"{WHAT}~{self.digest}"
        self.judged = self.stored.with_name(f"{self.stored.name}.json")

    def head(self, offset: int) -> bytes:
        """Sign the request that brings all of it, or what is behind a place."""
        rest = self.content[offset:]
        fields = {"repr-digest": digest_field(self.digest), "upload-length": f"{len(self.content)}"}
        told = hashlib.sha256(rest).hexdigest() if offset else self.digest
        fields |= {"content-digest": digest_field(told)}
        fields |= {"content-length": f"{len(rest)}", "upload-complete": "?1", "content-type": FILE}
        asked = httpx.Request("POST", self.place.url, headers=fields)
        if offset:
            fields |= {"content-type": PARTIAL, "upload-offset": f"{offset}"}
            asked = httpx.Request("PATCH", f"{self.place.url}/{self.digest}", headers=fields)
        sign_request(asked, name=self.who.public.name, sign=self.who.sign)
        lines = [f"{name}: {value}" for name, value in asked.headers.items()]
        return "\r\n".join((f"{asked.method} {asked.url.path} HTTP/1.1", *lines, "", "")).encode()

    async def ask(
        self, port: int, *, after: float = 0, offset: int = 0, piece: int = PIECE, pause: float = 0
    ) -> tuple[str, float]:
        """Bring it over a line of its own; return the answer, and the seconds from connecting."""
        await asyncio.sleep(after)
        began = time.perf_counter()
        tls: Figures = {"ssl": self.place.context, "server_hostname": "localhost"}
        reader, writer = await asyncio.open_connection(HOST, port, **tls)
        try:
            # not before: all of a crowd would sign here, one by one, while the server had no work
            writer.write(self.head(offset))
            for at in range(offset, len(self.content), piece):
                writer.write(self.content[at : at + piece])
                await writer.drain()
                await asyncio.sleep(pause * random.uniform(0, 2))  # noqa: S311 -- out of step
            answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            return answer, time.perf_counter() - began
        finally:
            writer.transport.abort()

    async def insist(self) -> bool:
        """Try until the server says that it has all of it; return whether it did so in the end."""
        offset = 0
        for _ in range(TRIES):
            answer = ""
            with suppress(OSError, EOFError):
                answer, _ = await self.ask(self.place.port, offset=offset)
            if field_of(answer, "upload-complete") == "?1":
                return True
            offset = int(field_of(answer, "upload-offset") or 0)  # so much is there from before
            await asyncio.sleep(0.05)
        return False


def field_of(head: str, name: str) -> str:
    """Return a field of a request or an answer in small letters."""
    return head.partition(f"\r\n{name}: ")[2].partition("\r\n")[0]


def free_port() -> int:
    with socket.create_server((HOST, 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def running(*words: str, port: int) -> Iterator[Server]:
    """Run a module in a process of its own once it listens on a port; kill it in the end."""
    line, quiet = [sys.executable, "-m", *words], subprocess.DEVNULL
    with subprocess.Popen(line, cwd=machine.ROOT, stdout=quiet, stderr=quiet) as process:  # noqa: S603
        try:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection((HOST, port)):
                    break
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


def peak(server: Server) -> float:
    """Return the most megabytes of memory that a process has had."""
    return int(machine.read(f"/proc/{server.pid}/status").split("VmHWM:")[1].split()[0]) * 1.024e-3


async def brought(uploads: list[Upload], *, port: int, every: float = 0) -> list[float]:
    """Bring all at once, or one each so many seconds; return how long each took."""
    found = await asyncio.gather(*(up.ask(port, after=every * at) for at, up in enumerate(uploads)))
    if bad := [answer for answer, _ in found if field_of(answer, "upload-complete") != "?1"]:
        raise RuntimeError(f"{len(bad)} of {len(found)} uploads failed; one was told {bad[0]}")
    return [took for _, took in found]


def plain(port: int, folder: str) -> None:
    """Take what comes and sync it, unsigned and unlooked at: what the inbox is held against."""

    async def take(reader: StreamReader, writer: StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        content = await reader.readexactly(int(field_of(head, "content-length")))
        await asyncio.to_thread(write_whole, Path(folder, os.urandom(8).hex()), content)
        writer.write(b"HTTP/1.1 201 Created\r\nupload-complete: ?1\r\n\r\n")
        writer.close()

    async def serve() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*make_certificate(Path(folder).parent / STATEMENTS))
        server = await asyncio.start_server(take, HOST, port, ssl=context, backlog=2048)
        await server.serve_forever()

    asyncio.run(serve())


def crowd(place: Place, *, n_uploads: int, rounds: int) -> Figures:
    """Bring many files at once, to the inbox and to the plain server in turn."""
    port, runs = free_port(), {"inbox": list[float](), "plain": list[float]()}
    options = json.dumps({"port": port, "folder": tempfile.mkdtemp(dir=place.folder)})
    other = running("benchmarks.machine", "inbox:plain", options, port=port)
    with place.serving() as server, other:
        for name, to in (("inbox", place.port), ("plain", port)) * rounds:
            act = brought(place.uploads(n_uploads, 10**6), port=to)
            runs[name].append(seconds(partial(asyncio.run, act)))
        most = peak(server)
    return {**runs, "inbox / plain": np.divide(runs["inbox"], runs["plain"]).tolist(), "peak": most}


def steady(place: Place, *, lasts: int, n_bytes: int, slow: int = 0) -> Figures:
    """Bring so many files a second, beside lines that send about a byte a second."""

    async def act() -> list[float]:
        uploads = place.uploads(slow + lasts * PER_SECOND, n_bytes)
        asks = [each.ask(place.port, piece=1, pause=1) for each in uploads[:slow]]
        stalled = list(map(asyncio.create_task, asks))
        while len(list(place.inbox.glob(f"*/*{PART}"))) < slow:  # noqa: ASYNC110 -- files tell nobody
            await asyncio.sleep(5)  # until the server has done with their coming, too
        took = await brought(uploads[slow:], port=place.port, every=1 / PER_SECOND)
        if any(each.done() for each in stalled):
            raise RuntimeError("the server ended a stalled line")
        return took

    with place.serving() as server:
        asyncio.run(brought(place.uploads(1, 1000), port=place.port))  # reads the agreement
        low, high, most = np.percentile(asyncio.run(act()), [50, 99, 100]).tolist()
        return {"p50": low, "p99": high, "most": most, "peak": peak(server)}


async def killed(place: Place, *, n_uploads: int, kills: int) -> Figures:
    """Kill server and worker again and again while clients insist; look at the disk each time."""
    draw, uploads = random.Random(1), place.uploads(n_uploads, 4000)  # noqa: S311 -- when it dies
    left, done, torn = iter(uploads), dict[Upload, bool](), set[Path]()

    async def client() -> None:
        for upload in left:
            done[upload] = await upload.insist()

    clients = [asyncio.create_task(client()) for _ in range(INSISTING)]
    for life in range(1, kills + 2):
        with place.working(), place.serving():  # whose end is the kill
            until = min(life - draw.random(), kills) * n_uploads / kills
            while len(done) < until:  # noqa: ASYNC110 -- an event for each number is no help
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02 * draw.random())
        named = [path for path in place.inbox.glob("*/*") if path.suffix != PART]
        whole = [path for path in named if path.suffix != ".json"]
        torn |= {path for path in whole if not path.name.endswith(file_digest(path))}
        said = {*named} - {*whole}  # the worker's verdicts, each a JSON object
        torn |= {path for path in said if not path.read_bytes().endswith(b"}")}
    await asyncio.gather(*clients)
    sure, known = [each for each, whole in done.items() if whole], {*named}
    kept = sum(bool({each.stored, each.judged} & known) for each in sure)
    told = {"judged": len(said), "never": n_uploads - len(sure)}
    return {"lost": len(sure) - kept, "torn": len(torn), **told}


async def carry(near: StreamReader, back: StreamWriter, *, to: int, line: Figures) -> None:
    """Carry both ways between a line and a port, until an end hangs up or the line is cut."""
    far, forth = await asyncio.open_connection(HOST, to)

    async def pour(source: StreamReader, target: StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(PIECE):
                line["carried"] += len(data) if source is near else 0
                if line["cuts"] and line["carried"] >= line["cuts"][0]:
                    del line["cuts"][0]
                    break
                target.write(data)
                await target.drain()
        for end in (back, forth):
            end.transport.abort()

    await asyncio.gather(pour(near, forth), pour(far, back))


async def cut(folder: Path, *, megabytes: int, cuts: int) -> Figures:
    """Send files at once through a line that is cut, and count what was sent twice."""
    draw, source, port = random.Random(2), folder.with_name("sealed"), free_port()  # noqa: S311
    with source.open("wb") as file:
        file.writelines(draw.randbytes(10**6) for _ in range(megabytes))
    n_bytes, wanted = LINES * megabytes * 10**6, file_digest(source)
    line: Figures = {"carried": 0, "cuts": sorted(draw.choices(range(n_bytes), k=LINES * cuts))}
    listening = await asyncio.start_server(partial(carry, to=port, line=line), HOST, 0)
    place = Place(folder, parties=LINES, named=listening.sockets[0].getsockname()[1])
    place.port = port
    made = Statement.made(certificate_at(place.certificate), analyst="lab", sign=LAB.sign)
    place.certificate.with_name(f"lab{STATEMENT}").write_text(made.text(), encoding="utf-8")

    def bring(who: Identity) -> None:
        with Remote(place.agreement, name=who.public.name, sign=who.sign) as remote:
            while not (place.inbox / who.public.name / f"{WHAT}~{wanted}").exists():
                with suppress(UnreachableError):
                    remote.upload(source, WHAT)

    with place.serving() as server:
        await asyncio.gather(*(asyncio.to_thread(bring, each) for each in place.people))
        most = peak(server)
    done = LINES * cuts - len(line["cuts"])
    return {"cuts": done, "twice": (line["carried"] - n_bytes) / PART_BYTES / done, "peak": most}
