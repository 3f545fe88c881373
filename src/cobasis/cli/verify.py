"""``cobasis verify`` and ``inspect``: what anybody can check of a round, and of one file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from cobasis.analyst_side.verify import verify as check
from cobasis.bundle.agreement_file import read_agreement, text_of
from cobasis.bundle.envelope import PLAIN, open_manifest, plain_kind
from cobasis.bundle.seal import look
from cobasis.cli.options import Owner, Screen, agreed, grouped, progress, the_one
from cobasis.cli.words import picked, wrapped
from cobasis.errors import RemoteError
from cobasis.protocol.signatures import signers


@grouped
def verify(
    screen: Screen,
    words: Annotated[
        list[Path] | None,
        Argument(metavar="[AGREEMENT] [FOLDER]", help="With transcripts, news and sealed files."),
    ] = None,
) -> None:
    """Check signatures, hash chains, receipts, digests, and the fits where they are.

    No key is needed. Where the analyst's work folder is, the fits are checked as well.

    Example: cobasis verify icu.toml transcript/
    """
    agreement, more = agreed(words)
    folder = the_one(more, what="one folder") if more else agreement.parent
    with progress() as report:
        found = check(agreement, folder, report=report)
    lines = []
    for each in found.findings:
        lead = f"{'holds' if each.holds else 'FAILS'}  {each.what:<10} "
        failure = "" if each.holds else f": {each.reason} [{each.code}]"
        lines += wrapped(f"{each.name}{failure}", lead=lead)
    heads = {path: chain[-1].hash for path, chain in found.chains.items()}
    for path, head in heads.items():
        lines += [f"Last hash of {path}:", f"  {head}"]
    failed, n = len(found.failed), len(found.findings)
    told = ("what", "name", "holds", "code", "reason")
    screen.say(
        [*lines, f"{n - failed} of {n} hold."],
        command="verify",
        round=found.agreement.round_id,
        holds=not failed,
        findings=[picked(each, *told) for each in found.findings],
        heads=heads,
    )
    if failed:
        raise typer.Exit(RemoteError.exit_code)


@grouped
def inspect(
    owner: Owner,
    file: Annotated[Path, Argument(metavar="FILE", help="A sealed file.")],
    agreement: Annotated[Path | None, Option(help="Its agreement, to check the signature.")] = None,
    name: Annotated[str | None, Option("--as", help="Whose key opens it; else nobody's.")] = None,
) -> None:
    """Say what a bundle is, for whom, and what it tells; with --as also what stands inside.

    Nothing is unpacked. What is inside is only to be believed when its signature is good.

    Example: cobasis inspect icu.north.2-upload --as lab --agreement icu.toml
    """
    told: dict[str, Any] = {"round": None, "manifest": None, "signature": "not checked"}
    if (plain := plain_kind(file)) is not None:
        kind, n_bytes = PLAIN[plain], file.stat().st_size
        told |= {"kind": kind, "n_bytes": n_bytes, "n_recipients": 0}
        whole = text_of(file).splitlines() if plain == "agreement" else []
        lines = [f"{file}: {n_bytes:,} bytes, not sealed: {kind}", *whole]
    else:
        known = None if agreement is None else signers(read_agreement(agreement).agreement)
        n_recipients, n_bytes = look(file), file.stat().st_size
        told |= {"kind": "a sealed file", "n_recipients": n_recipients, "n_bytes": n_bytes}
        lead = f"{file}: {n_bytes:,} bytes, sealed for {n_recipients} recipient(s)"
        lines = [lead, "More can only be said with a recipient's key: --as NAME."]
        if name is not None:
            unseal = owner.identity(name).unseal
            found, told["signature"] = open_manifest(file, unseal=unseal, signers=known)
            manifest = json.loads(found.encoded())
            told |= {"manifest": manifest, "round": found.round_id}
            shown = json.dumps(manifest, indent=2, sort_keys=True).splitlines()
            lines = [lead, f"signature: {told['signature']}", *shown]
    owner.say(lines, command="inspect", path=file, **told)
