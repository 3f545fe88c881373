"""``cobasis predict``, ``score`` and ``export``: what a party does with the common model."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Exit, Option

from cobasis.cli.options import (
    AgreementFile,
    Owner,
    Public,
    Yes,
    about,
    agreed,
    alone,
    consent,
    grouped,
    progress,
    the_one,
)
from cobasis.cli.status import standing
from cobasis.cli.words import aside, wrapped
from cobasis.errors import CobasisError, OptionError
from cobasis.party_side import predict as predicting
from cobasis.party_side import worth as scoring

Beside = Annotated[list[Path] | None, Option("--with", help="Another party's part; once for each.")]

_SHOWN = 20
"""How many cells are named on the terminal."""


@grouped
def predict(
    owner: Owner,
    words: Annotated[
        list[Path] | None,
        Argument(metavar="[AGREEMENT] DATA", help="New rows, CSV or Parquet; see --part."),
    ] = None,
    *,
    out: Annotated[Path, Option("-o", "--out", help="Predictions, CSV or Parquet.")],
    model: Annotated[
        Literal["local", "common"], Option(help="As fitted to your rows, or as all have it.")
    ] = "local",
    explain: Annotated[bool, Option("--explain", help="Add why, column by column.")] = False,
    of: Annotated[str | None, Option(help="The class to explain, by default the last.")] = None,
    public_rows: Public = None,
    part: Annotated[bool, Option("--part", help="Write your part, for your block.")] = False,
    beside: Beside = None,
) -> None:
    """Predict new rows; the id column is kept beside each prediction.

    A row with a cell that is not as agreed gets none; the command then ends with 2. A
    classification adds a column for each class: a probability, or a score under noise. With
    --explain, base and the columns why_... add up to what the column explained names.

    Where parties of a block hold columns of the same people, each writes a file with --part for
    the others, and predicts with theirs: --with lab.part. With --part and no table it is of the
    people who were held back, for the others' cobasis score.

    Example: cobasis predict icu.toml new.csv -o out.csv
    """
    agreement, rest = agreed(words)
    whole = rest or not part
    data = the_one(rest, what="a table of new rows, CSV or Parquet") if whole else None
    session = owner.party(agreement)
    with progress() as session.report:
        n_rows, bad = predicting.predict(
            session,
            data,
            to=out,
            model=model,
            why=explain,
            of=of,
            public=public_rows,
            part=part,
            beside=beside or (),
        )
    with suppress(CobasisError):  # a foreign icu.news must not hide what was made
        if old := standing(owner, agreement).outdated:
            aside(f"Note: {old}.")
    made = "people's parts, sealed for your block's others" if part else "predictions"
    lines = wrapped(f"Wrote {out}: {n_rows:,} {made}.")
    if bad:
        lines += ["Rows without a prediction; the file says why in its last column:", *bad[:_SHOWN]]
    if len(bad) > _SHOWN:
        lines.append(f"and {len(bad) - _SHOWN:,} more")
    owner.say(lines, **about(session, command="predict"), path=out, n_rows=n_rows, bad=bad)
    if bad:
        raise Exit(2)


@grouped
def score(
    owner: Owner,
    words: Annotated[
        list[Path] | None,
        Argument(metavar="[AGREEMENT] [TABLE]", help="With labels; else the rows held back."),
    ] = None,
    send: Annotated[bool, Option("--send", help="Write a coarse word for the analyst.")] = False,
    beside: Beside = None,
    yes: Yes = False,
) -> None:
    """Score the common model on rows that never left, beside a model of the party's own.

    Of a table that is given, rows that were uploaded are left out. With --send it says what may
    go back to the analyst: better, no difference or worse, rows to the nearest 10, and accuracy
    to 5 points.

    Example: cobasis score icu.toml later.csv
    """
    agreement, rest = agreed(words)
    table = the_one(rest, what="one table, CSV or Parquet") if rest else None
    if send and table is not None:
        raise OptionError("a word is of the rows that were held back. Leave out the table.")
    session = owner.party(agreement)
    with progress() as session.report:
        scores = scoring.score(session, table=table, beside=beside or ())
    lines, place = [*scores_in_words(scores)], None
    if send:
        word = scoring.word_of(session, scores)
        owner.tell(lines)
        owner.tell(wrapped(f"Leaves, to {session.analyst.name}, unsealed: {word.said()}."))
        consent("Send this word?", yes=yes, what="the word")
        place = scoring.send_word(session, word)
        how = f"cobasis go {agreement.name} data.csv, which brings it"
        how = how if session.agreement.server else f"send {place.name}"
        lines = [f"Wrote {place}", f"Next: {how} to {session.analyst.name}"]
    owner.say(lines, **about(session, command="score"), score=scores, word=place)


@grouped
def export(
    owner: Owner,
    agreement: AgreementFile = None,
    out: Annotated[
        Path | None, Option("-o", "--out", help="The file; else model.onnx, or model.txt.")
    ] = None,
    surrogate: Annotated[
        Path | None, Option(metavar="TABLE", help="Rows of yours: write what stands for the model.")
    ] = None,
    of: Annotated[str | None, Option(help="The class that it tells, by default the last.")] = None,
) -> None:
    """Write one ONNX file that takes raw columns and predicts; needs the extra onnx.

    Where rows were projected it holds a secret of all parties; of sums it holds none. With
    --surrogate it writes and prints a few lines that people read in its place: what a unit of
    each of your columns adds, and how near that is to the model.

    Example: cobasis export icu.toml -o north.onnx
    """
    if of is not None and not surrogate:
        raise OptionError("--of is of a surrogate. Name your rows: --surrogate TABLE.")
    session, found = owner.party(alone(agreement)), None
    to = out or Path("model.onnx" if surrogate is None else "model.txt")
    if surrogate is None:
        size = f"{scoring.export_onnx(session, to):,} bytes"
        lines = [f"Wrote {to} ({size}). It holds no secret."]
        if session.agreement.sums is None:
            lines = [
                f"Wrote {to} ({size}). It is SECRET: keep it as you keep your key.",
                "With it, rows that any party uploaded can be turned back.",
            ]
    else:
        with progress() as session.report:
            found = scoring.write_surrogate(session, surrogate, to=to, of=of)
        whom = "Its numbers are made of your rows: show it to whom you would show them."
        lines = [*found.summary().splitlines(), *wrapped(f"Wrote {to}. {whom}")]
    told = {"path": to, "n_bytes": to.stat().st_size, "surrogate": found}
    owner.say(lines, **about(session, command="export"), **told)


_CHOSEN = {
    "common": "the common model as it is",
    "intercept": "the common model with an intercept of your own",
    "slope": "the common model with an intercept and a slope of your own",
    "mix": "a mix of the common model and one of your own",
    "alone": "a model of your own alone",
}


def scores_in_words(scores: scoring.Scores) -> Iterator[str]:
    if scores.together:
        yield f"On {scores.n_rows:,} rows that never left, with intervals of 95 %:"
        yield f"  {'':24}{'together':26}{'local':>8}{'alone':>8}{'constant':>10}"
        for name, (value, low, high) in scores.together.items():
            within = f" ({low:.3f} to {high:.3f})" if low < high else ""
            beside = [each.get(name) for each in (scores.local, scores.alone, scores.constant)]
            local, alone, constant = ("-" if e is None else f"{e.value:.3f}" for e in beside)
            yield f"  {name:24}{f'{value:.3f}{within}':26}{local:>8}{alone:>8}{constant:>10}"
    if scores.verdict is not None:
        shown = f"no difference that {scores.n_rows:,} rows can show"
        told = {"no difference": shown}.get(scores.verdict, f"{scores.verdict} than alone")
        yield from wrapped(f"The model of all beside one of your own rows alone: {told}.")
    if scores.chosen is not None:
        yield from wrapped(f"For your rows, by those that you uploaded: {_CHOSEN[scores.chosen]}.")
    for remark in scores.remarks:
        yield from wrapped(f"Note: {remark}.")
