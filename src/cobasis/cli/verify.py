"""``cobasis verify`` and ``inspect``: what anybody can check of a round, and of one file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import AsJson, Owner, agreed, owned, progress, say, wrapped
from cobasis.errors import OptionError, RemoteError

if TYPE_CHECKING:
    from cobasis.bundle.envelope import Inspected


def verify(
    words: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[AGREEMENT] [FOLDER]",
            help="With transcripts, news, sealed files; by default where the agreement is.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check signatures, hash chains, receipts, digests, and the fits where they are.

    No key is needed. Where the analyst's work folder is, the fits are checked as well.

    Example: cobasis verify icu.toml transcript/
    """
    from cobasis.analyst_side.verify import verify as check
    from cobasis.cli.analyst_answers import FindingAnswer, VerifyAnswer

    agreement, more = agreed(words or [])
    if len(more) > 1:
        raise OptionError(f"verify looks into one folder, and {len(more)} were given. Give one.")
    folder = more[0] if more else agreement.parent
    with progress() as report:
        found = check(agreement, folder, report=report)
    answers = [FindingAnswer.of(each) for each in found.findings]
    lines = [
        line
        for each in answers
        for line in wrapped(
            each.name + ("" if each.holds else f": {each.reason} [{each.code}]"),
            lead=f"{'holds' if each.holds else 'FAILS'}  {each.what:<10} ",
        )
    ]
    for path, head in found.heads.items():
        lines += [f"Last hash of {path}:", f"  {head}"]
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
        raise typer.Exit(RemoteError.exit_code)


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

    Example: cobasis inspect icu.north.2-upload --as lab --agreement icu.toml
    """
    from cobasis.bundle.agreement_file import read_agreement
    from cobasis.bundle.envelope import PLAIN, inspect_bundle, plain_kind
    from cobasis.cli.analyst_answers import InspectAnswer
    from cobasis.protocol.signatures import signers

    if (kind := plain_kind(file)) is not None:
        _say_plain(owner, file, PLAIN[kind])
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
    for part in manifest.parts:
        lines += [f"part: {part.name}, {part.n_bytes:,} bytes, SHA-256", f"  {part.sha256}"]
    if manifest.audit is not None:
        told = (f"  {word} {value}" for word, value in sorted(manifest.audit.items()))
        lines += ["audit:", *told]
    return [*lines, *(f"{word}: {value}" for word, value in sorted(manifest.told.items()))]
