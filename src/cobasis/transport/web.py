"""The half that the world reaches, as a process of its own: it imports nothing that opens a seal.

Of a crowd, most wait outside: an open line costs a tenth of a megabyte, and about one while a file
comes over it; in the system's queue it costs next to nothing.
"""

import asyncio
import os
import signal
import socket
import sys
from asyncio import constants, sslproto
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from uvicorn.protocols.http import h11_impl

from cobasis.disk.lock import Lock
from cobasis.errors import CobasisError
from cobasis.transport.inbox import log_to_stderr
from cobasis.transport.index import alone
from cobasis.transport.server import Server

_PLACES, _SECOND, _SECONDS, _LEAST, _QUEUE = 24, 1.0, 5, 2**16, 2048
"""So many lines are new at a time: until they end, bring less than so many bytes in a second, or
are so many seconds old. So many wait outside; whoever comes then tries again."""

PLAIN: dict[str, Any] = {
    "http": "h11",
    "ws": "none",
    "lifespan": "off",
    "log_config": None,
    "access_log": False,
    "server_header": False,
}
"""What uvicorn is told wherever it answers for us: no more than it needs."""


class _Line(h11_impl.H11Protocol):
    def __init__(self, server: uvicorn.Server) -> None:
        super().__init__(server.config, server.server_state, server.lifespan.state)
        self.ended, self.n_bytes = asyncio.Event(), 0

    def data_received(self, data: bytes) -> None:
        self.n_bytes += len(data)
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.ended.set()


class WebServer(uvicorn.Server):
    held: Lock | None = None  # let go when nobody new is taken in: who begins next need not wait

    def answer(self) -> None:
        with suppress(KeyboardInterrupt):
            self.run(sockets=[self.config.bind_socket()])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        [listening] = sockets or []
        listening.listen(_QUEUE)
        listening.settimeout(0)
        # lines inherit it. asyncio sets it on sockets only that name their protocol, as uvicorn's
        # does not: an answer's end would wait 40 ms for its beginning to be confirmed
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await super().startup(sockets=[])
        self._accepting = asyncio.create_task(self._accept(listening))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._accepting.cancel()
        if self.held is not None:
            self.held.release()
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        places, held = asyncio.Semaphore(_PLACES), set[asyncio.Task[None]]()
        while True:
            await places.acquire()
            try:
                sock, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError:  # as where no more files can be opened
                places.release()
                await asyncio.sleep(_SECOND)
                continue
            line = _Line(self)
            task = asyncio.create_task(self._answer_on(line, sock))
            held.add(task)  # asyncio itself may forget it
            task.add_done_callback(held.discard)
            new = asyncio.create_task(_hold(line, task))
            new.add_done_callback(lambda _: places.release())

    async def _answer_on(self, line: _Line, sock: socket.socket) -> None:
        with suppress(OSError):  # nobody of ours, or gone
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: line, sock, ssl=self.config.ssl)
            await line.ended.wait()


async def _hold(line: _Line, task: asyncio.Task[None]) -> None:
    for _ in range(_SECONDS):
        before = line.n_bytes
        await asyncio.wait([task], timeout=_SECOND)
        if task.done() or line.n_bytes - before < _LEAST:
            return


def _end_with_worker() -> None:
    """End this process once the worker's has, however that ended: the pipe between them closes."""
    os.read(0, 1)  # not sys.stdin, whose lock would be missed where this half ends first
    signal.raise_signal(signal.SIGTERM)


def _answer(folder: str, host: str, port: str, certificate: str, key: str, *beside: str) -> None:
    """Answer requests until the process is ended; beside a worker, also when that one is."""
    log_to_stderr()
    # pieces of 128 KiB cost a fifth less work than of 32; of asyncio's own 256, more memory
    sslproto.SSLProtocol.max_size = 2**17
    h11_impl.HIGH_WATER_LIMIT = 2**18  # type: ignore[attr-defined]
    constants.FLOW_CONTROL_HIGH_WATER_SSL_READ = 128  # type: ignore[misc]  # KiB
    if beside:
        Thread(target=_end_with_worker, daemon=True).start()
    try:
        held = alone(Path(folder))
        app = Server(Path(folder)).app()
    except CobasisError as error:
        sys.exit(str(error))
    config = uvicorn.Config(
        app,
        host=host,
        port=int(port),
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=5,
        **PLAIN,
    )
    try:
        server = WebServer(config)
        server.held = held
        server.answer()
    except (OSError, OverflowError) as error:  # such as a key of another certificate; a port
        sys.exit(f"{host}:{port} with '{certificate}' and '{key}': {error}")


if __name__ == "__main__":
    _answer(*sys.argv[1:])
