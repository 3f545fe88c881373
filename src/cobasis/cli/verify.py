"""``cobasis verify`` and ``inspect``: what anybody can check of a round, and of one file."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Agreed, AsJson, Owner, owned, progress, say

if TYPE_CHECKING:
    from cobasis.bundle.inspecting import Inspected

REMOTE = 3


def verify(
    agreement: Agreed,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="With transcripts, receipts, sealed files.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check signatures, hash chains, receipts, digests, and the fits where they are.

    No key is needed. The analyst gives its work folder, in which the fits are checked as well.

    Example: cobasis verify icu.toml transcript/
    """
    from cobasis.analyst_side.verify import verify as check
    from cobasis.cli.analyst_answers import FindingAnswer, VerifyAnswer

    with progress() as report:
        found = check(agreement, folder, report=report)
    answers = [FindingAnswer.of(each) for each in found.findings]
    lines = [
        f"{'holds' if each.holds else 'FAILS':>5}  {each.what:<10} {each.name}"
        + ("" if each.holds else f": {each.reason} [{each.code}]")
        for each in answers
    ]
    lines += [f"Head of {path}: {head}" for path, head in found.heads.items()]
    failed = len(found.failed)
    lines.append(f"{len(answers) - failed} of {len(answers)} hold.")
    say(
        VerifyAnswer(
            command="verify",
            round=found.agreement.round_id,
            holds=not failed,
            findings=answers,
            heads=dict(found.heads),
        ),
        as_json=as_json,
        lines=lines,
    )
    if failed:
        raise typer.Exit(REMOTE)


_START = 2**16
_FORMAT = re.compile(r'"format": ?"cobasis/(\w+)/1"')
_ROUND = re.compile(r'^round_id *= *"', re.MULTILINE)
_PLAIN = {
    "identity": "a public identity, for cobasis agreement enrol",
    "signature": "a signature of an agreement, for cobasis agreement seal",
    "receipt": "a receipt, for cobasis party receipt",
    "removal": "a certificate of removal",
}


@owned
def inspect(
    owner: Owner,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sealed file.")],
    agreement: Annotated[
        Path | None, typer.Option(help="Its agreement, to check the signature.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", help="With whose key to open it; without one, as anybody.")
    ] = None,
) -> None:
    """Say what a bundle is, for whom, and what it tells; with --as also what stands inside.

    Nothing is unpacked. What is inside is only to be believed when its signature is good.

    Example: cobasis inspect north.upload --as lab --agreement icu.toml
    """
    from cobasis.bundle.agreement_file import read_agreement
    from cobasis.bundle.inspecting import inspect_bundle
    from cobasis.cli.analyst_answers import InspectAnswer
    from cobasis.protocol.signatures import signers

    if (kind := _plain(file)) is not None:
        _say_plain(owner, file, kind)
        return
    unseal = None if name is None else owner.identity(name).unseal
    known = None if agreement is None else signers(read_agreement(agreement).agreement)
    found = inspect_bundle(file, unseal=unseal, signers=known)
    told = None if found.manifest is None else json.loads(found.manifest.encoded())
    owner.say(
        InspectAnswer(
            command="inspect",
            round=None if found.manifest is None else found.manifest.round_id,
            path=str(file),
            kind="a sealed file",
            n_bytes=found.seal.n_bytes,
            n_recipients=found.seal.n_recipients,
            signature=found.signature,
            manifest=told,
        ),
        lines=_in_words(file, found),
    )


def _plain(file: Path) -> str | None:
    """Return what a file of ours is that was never sealed; None where it says nothing of that."""
    from cobasis.disk.files import opened

    with opened(file) as (stream, _):
        start = stream.read(_START).decode("utf-8", errors="replace")
    if start.startswith("{") and (told := _FORMAT.search(start)):
        return _PLAIN.get(told[1])
    return "an agreement; see cobasis agreement show" if _ROUND.search(start) else None


def _say_plain(owner: Owner, file: Path, kind: str) -> None:
    """Say what a file is that was never sealed."""
    from cobasis.cli.analyst_answers import InspectAnswer

    n_bytes = file.stat().st_size
    answer = InspectAnswer(
        command="inspect",
        round=None,
        path=str(file),
        kind=kind,
        n_bytes=n_bytes,
        n_recipients=0,
        signature="not checked",
        manifest=None,
    )
    owner.say(answer, lines=[f"{file}: {n_bytes:,} bytes, not sealed: {kind}"])


def _in_words(file: Path, found: "Inspected") -> list[str]:
    """Return the answer for people."""
    seal, manifest = found.seal, found.manifest
    lines = [f"{file}: {seal.n_bytes:,} bytes, sealed for {seal.n_recipients} recipient(s)"]
    if manifest is None:
        return [*lines, "More can only be said with a recipient's key: --as NAME."]
    lines += [
        f"kind: {manifest.kind}, of round '{manifest.round_id}', made {manifest.created}",
        f"from: {manifest.sender}, for: {', '.join(manifest.recipients)}",
        f"signature: {found.signature}",
        f"agreement: {manifest.agreement}",
        f"anchor tag: {manifest.anchor_tag or 'none'}",
        f"software: {manifest.software}",
    ]
    lines += [
        f"part: {part.name}, {part.n_bytes:,} bytes, SHA-256 {part.sha256}"
        for part in manifest.parts
    ]
    if manifest.audit is not None:
        told = ", ".join(f"{word} {value}" for word, value in sorted(manifest.audit.items()))
        lines.append(f"audit: {told}")
    return [*lines, *(f"{word}: {value}" for word, value in sorted(manifest.told.items()))]
