"""``cobasis serve``: the analyst's server, and the worker behind it."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from cobasis.cli.options import Folder, Holder, grouped
from cobasis.cli.words import listed
from cobasis.disk.whole import stamp_of
from cobasis.errors import DiskError, IdentityError, OptionError
from cobasis.keys.identity import Identity, names
from cobasis.models import needing
from cobasis.transport.certificate import make_certificate
from cobasis.transport.inbox import STATEMENTS, log_to_stderr
from cobasis.transport.index import forget_index
from cobasis.transport.worker import Worker

_EVERY = 1.0  # seconds between the worker's looks into the folder


@grouped
def serve(
    holder: Holder,
    folder: Folder = Path(),
    listen: Annotated[str, Option(help="Address and port to listen on.")] = "0.0.0.0:8443",
    certificate: Annotated[Path | None, Option(help="The server's, PEM; else one is made.")] = None,
    certificate_key: Annotated[Path | None, Option(help="And its private key.")] = None,
    run: Annotated[
        Literal["when-complete", "by-hand"], Option(help="When an exchange is ended.")
    ] = "when-complete",
    only: Annotated[
        Literal["web", "worker"] | None, Option(help="One half, where they run apart.")
    ] = None,
    rebuild: Annotated[bool, Option("--rebuild", help="Make the index anew.")] = False,
) -> None:
    """Serve all rounds in a folder whose agreement names a server, until Ctrl-C.

    Two processes: one answers the world and has no key; one has the analyst's key and no port.
    It receives what comes, ends exchanges, and writes replies. Everything is files in the folder;
    an index of them is made where there is none, as after --rebuild.

    Example: cobasis serve rounds --listen 0.0.0.0:8443
    """
    if (certificate is None) != (certificate_key is None):
        raise OptionError("--certificate and --certificate-key go together. Give both, or neither.")
    if rebuild and only == "worker":
        raise OptionError(
            "--rebuild is the web half's, whose index it is. Leave out --only worker."
        )
    if not folder.is_dir():
        raise OptionError(f"'{folder}' is no folder. Give the one where the agreements lie.")
    log_to_stderr()
    if certificate is None or certificate_key is None:
        certificate, certificate_key = make_certificate(folder / STATEMENTS)
    web = [] if only == "worker" else _web(folder, listen, certificate, certificate_key)
    identity = None if only == "web" else _analyst(holder)
    if rebuild:
        forget_index(folder)
    if identity is None:
        os.execv(sys.executable, web)  # noqa: S606
    runs = run == "when-complete"
    worker = Worker(folder=folder, identity=identity, certificate=certificate, runs=runs)
    if not web:
        worker.work(every=_EVERY, goes_on=lambda: True)
        return
    while _beside_web(worker, web):
        pass  # a certificate that was renewed is shown by a web half that begins after it
    raise OptionError(f"nothing serves '{listen}' any more; the reason stands above. Mend it.")


def _beside_web(worker: Worker, line: list[str]) -> bool:
    """Work beside a web half until that has ended, or has to begin again: whether so."""

    def unchanged() -> bool:
        with suppress(DiskError):  # away for a moment, while it is renewed
            return web.poll() is None and stamp_of(worker.certificate) == shown
        return web.poll() is None

    shown = stamp_of(worker.certificate)
    # The web half has neither this one's memory nor its surroundings: whoever gets into what the
    # world can reach finds no key there, and no passphrase's file. It ends with the pipe, which
    # leaving the block closes.
    known = ("PATH", "PYTHONPATH", "LANG", "TMPDIR")
    bare = {name: os.environ[name] for name in known if name in os.environ}
    with subprocess.Popen([*line, "beside"], env=bare, stdin=subprocess.PIPE) as web:  # noqa: S603 -- ours
        worker.work(every=_EVERY, goes_on=unchanged)
        return web.poll() is None


def _web(folder: Path, listen: str, certificate: Path, key: Path) -> list[str]:
    """Return the line that answers the world, in a process that imports nothing of a seal."""
    host, _, port = listen.rpartition(":")
    if not (host and port.isdigit()):
        raise OptionError(f"--listen {listen} is no address like 0.0.0.0:8443. Give one.")
    with needing("starlette and uvicorn", extra="serve", what="cobasis serve"):
        import starlette  # noqa: F401, PLC0415 -- an extra
        import uvicorn  # noqa: F401, PLC0415 -- same
    words = map(str, (folder, host.strip("[]"), port, certificate, key))
    return [sys.executable, "-P", "-m", "cobasis.transport.web", *words]


def _analyst(holder: Holder) -> Identity:
    known = [holder.name] if holder.name else names(holder.folder())
    if len(known) != 1:
        raise OptionError(
            f"the home folder '{holder.folder()}' has keys of {listed(known)}. Say whose serves, "
            "the analyst's: --as NAME."
        )
    identity = holder.identity(known[0])
    if identity.public.role != "analyst":
        raise IdentityError(
            f"'{identity.public.name}' is a {identity.public.role}, and a server has an analyst's "
            "key. Give the analyst's home folder with --home, or its name with --as."
        )
    return identity
