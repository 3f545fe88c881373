"""``cobasis party``: what comes back to a party."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Agreed, Owner, owned, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cobasis.party_side.receiving import Taken
    from cobasis.party_side.scoring import Scores


@owned
def adopt(
    owner: Owner,
    agreement: Agreed,
    consensus: Annotated[Path, typer.Argument(metavar="CONSENSUS", help="As it was sent.")],
) -> None:
    """Check the common span that the analyst sent, and keep it for prepare.

    Example: cobasis party adopt icu.toml consensus/north.consensus
    """
    from cobasis.cli.answers import AdoptAnswer
    from cobasis.party_side import receiving

    desk = owner.party(agreement)
    contributors = receiving.adopt(desk, consensus)
    owner.say(
        AdoptAnswer(
            command="party adopt",
            round=desk.agreement.round_id,
            party=desk.name,
            contributors=list(contributors),
        ),
        lines=[f"Adopted the common span of {', '.join(contributors)}. Next: party prepare."],
    )


@owned
def accept(
    owner: Owner,
    agreement: Agreed,
    returned: Annotated[Path, typer.Argument(metavar="RETURN", help="As it was sent.")],
    data: Annotated[
        Path | None, typer.Option(help="The table; by default where it stood at prepare.")
    ] = None,
) -> None:
    """Check what the analyst sent, keep it, and score it on the rows that were held back.

    Example: cobasis party accept icu.toml north.return
    """
    from cobasis.cli.answers import AcceptAnswer
    from cobasis.party_side import receiving
    from cobasis.party_side.scoring import score

    desk = owner.party(agreement)
    taken = receiving.accept(desk, returned)
    with progress() as report:
        scores = score(desk, table=data, report=report)
    answer = AcceptAnswer(
        command="party accept",
        round=desk.agreement.round_id,
        party=desk.name,
        evidence=taken.evidence,
        trained_on=list(taken.trained_on),
        target_carries=list(taken.target_carries),
        return_sha256=taken.bundle,
        model_sha256=taken.model_sha256,
        metric=scores.metric,
        n_held=scores.n_rows,
        together=scores.together,
        local=scores.local,
        baseline=scores.baseline,
        remarks=list(scores.remarks),
    )
    owner.say(answer, lines=_in_words(taken, scores))


def _in_words(taken: "Taken", scores: "Scores") -> "Iterator[str]":
    """Yield what was accepted, for people."""
    from cobasis.algorithms.certificate import CAVEAT

    yield f"Accepted. The certificate says of your basis: {taken.evidence}; {CAVEAT}."
    yield f"Trained on {', '.join(taken.trained_on) or 'nobody'}."
    yield f"The target keeps a trace of {', '.join(taken.target_carries) or 'nobody'}."
    if taken.orthogonality is not None:
        yield f"The change of basis is a rotation to {taken.orthogonality:.0e}."
    if taken.model_sha256:
        yield f"SHA-256 of the model, the same at every party: {taken.model_sha256}"
    if scores.together is not None:
        metric = {"r2": "R2"}.get(scores.metric, scores.metric)
        yield f"On {scores.n_rows:,} rows that never left, {metric}:"
        figures = {
            "together": scores.together,
            "a model of your own": scores.local,
            "the best constant": scores.baseline,
        }
        for who, figure in figures.items():
            yield f"  {who:20} {'-' if figure is None else f'{figure:.3f}'}"
    for remark in scores.remarks:
        yield f"Note: {remark}."


@owned
def receipt(
    owner: Owner,
    agreement: Agreed,
    file: Annotated[Path, typer.Argument(metavar="RECEIPT", help="As the analyst sent it.")],
) -> None:
    """Check the analyst's receipt for your upload, countersign it, and note it down.

    Example: cobasis party receipt icu.toml north.receipt
    """
    from cobasis.cli.answers import ReceiptAnswer
    from cobasis.party_side import receiving

    desk = owner.party(agreement)
    signed = receiving.receipt(desk, file)
    told = signed.receipt
    owner.say(
        ReceiptAnswer(
            command="party receipt",
            round=told.round_id,
            party=told.party,
            upload_sha256=told.file,
            received=told.time,
        ),
        lines=[
            f"'{told.analyst}' received your upload on {told.time}: {told.file}",
            "Its receipt is right, countersigned, and in your transcript.",
        ],
    )
