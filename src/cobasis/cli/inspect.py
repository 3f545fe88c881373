"""``cobasis inspect``: what a bundle says of itself."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import AsJson, Home, PassphraseFile, passphrase_from, say

if TYPE_CHECKING:
    from cobasis.bundle.inspecting import Inspected


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sealed file.")],
    agreement: Annotated[
        Path | None, typer.Option(help="Its agreement, to check the signature.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", help="With whose key to open it; without one, as anybody.")
    ] = None,
    home: Home = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what a bundle is, for whom, and what it tells; with --as also what stands inside.

    Nothing is unpacked. What is inside is only to be believed when its signature is good.

    Example: cobasis inspect north.upload --as lab --agreement icu.toml
    """
    from cobasis.bundle.agreement_file import read_agreement
    from cobasis.bundle.inspecting import inspect_bundle
    from cobasis.cli.analyst_answers import InspectAnswer
    from cobasis.keys.at_rest import load_identity
    from cobasis.keys.home import home as home_folder
    from cobasis.keys.home import key_path
    from cobasis.protocol.signatures import signers

    unseal = None
    if name is not None:
        path = key_path(home_folder(home), name)
        unseal = load_identity(path, passphrase=passphrase_from(passphrase_file)()).unseal
    known = None if agreement is None else signers(read_agreement(agreement).agreement)
    found = inspect_bundle(file, unseal=unseal, signers=known)
    told = None if found.manifest is None else json.loads(found.manifest.encoded())
    say(
        InspectAnswer(
            command="inspect",
            round=None if found.manifest is None else found.manifest.round_id,
            path=str(file),
            n_bytes=found.seal.n_bytes,
            n_recipients=found.seal.n_recipients,
            signature=found.signature,
            manifest=told,
        ),
        as_json=as_json,
        lines=_in_words(file, found),
    )


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
    return [*lines, *(f"{word}: {value}" for word, value in sorted(manifest.told.items()))]
