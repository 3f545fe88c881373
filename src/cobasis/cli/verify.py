"""``cobasis verify``: what anybody can check of a round."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli.options import Agreed, AsJson, progress, say

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
