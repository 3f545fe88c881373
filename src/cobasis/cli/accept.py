"""``cobasis accept``: whatever came to a party, each by what is in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Owner, agreed, owned, progress, wrapped
from cobasis.errors import CobasisError, WaitingError

if TYPE_CHECKING:
    from cobasis.cli.answers import NewsAnswer, ReturnAnswer, SpanAnswer
    from cobasis.party_side.accept import Came, Taken
    from cobasis.party_side.score import Scores
    from cobasis.party_side.session import PartySession
    from cobasis.protocol.signatures import News, SignedReceipt


@owned
def accept(
    owner: Owner,
    words: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[AGREEMENT] [FILES]...",
            help="What came, or folders of it; else what lies beside the agreement.",
        ),
    ] = None,
) -> None:
    """Take what came from the analyst: news with receipts, a span, a return.

    A file is known by what is in it; its name does not matter. A return is scored on the rows
    that were held back.

    Example: cobasis accept icu.toml icu.news icu.north.1-return
    """
    from cobasis.cli.answers import AcceptAnswer

    agreement, given = agreed(words or [])
    session = owner.party(agreement)
    taking = _Taking(session)
    for came in taking.looked_at(given or _beside(session)):
        taking.take(came)
    answer = AcceptAnswer.by(
        session,
        command="accept",
        news=taking.news,
        span=taking.span,
        returned=taking.returned,
        refused=[str(each) for each in taking.refused.values()],
        passed_over=[path.name for path in taking.passed],
    )
    owner.say(answer, lines=taking.lines)
    taking.end()


def _places(session: "PartySession") -> list[Path]:
    """Return where what comes for this party lies by default."""
    from cobasis.bundle.agreement_file import stem_of
    from cobasis.protocol.agreement import exchanges

    replies = [f"{each.number}-{each.reply}" for each in exchanges(session.agreement)]
    news = session.path.with_name(f"{stem_of(session.path)}.news")
    return [news, *map(session.beside, replies)]


def _beside(session: "PartySession") -> list[Path]:
    """Return what lies beside the agreement for this party; WaitingError where nothing is new."""
    from cobasis.party_side.accept import accepted_before

    places = _places(session)
    found = [path for path in places if path.exists()]
    new = [path for path in found if not accepted_before(session, path)]
    if not new:
        had = f" ({', '.join(path.name for path in found)} were accepted before)" if found else ""
        raise WaitingError(
            f"nothing new for '{session.name}' lies beside '{session.path}'{had}. Waiting for one "
            f"of {', '.join(path.name for path in places)}: put what the analyst sends there, or "
            "name its files."
        )
    return new


class _Taking:
    """What is taken of some files, the newest of each kind, and what is refused."""

    def __init__(self, session: "PartySession") -> None:
        self.session = session
        self.news: NewsAnswer | None = None
        self.span: SpanAnswer | None = None
        self.returned: ReturnAnswer | None = None
        self.lines: list[str] = []
        self.refused: dict[Path, CobasisError] = {}
        self.passed: list[Path] = []

    def looked_at(self, paths: list[Path]) -> "list[Came]":
        """Return what the files are, news first; of a folder, what is for this party."""
        from cobasis.party_side.accept import look_at

        found: list[Came] = []
        ours = {path.name for path in _places(self.session)}
        for path in paths:
            folder = path.is_dir()
            for each in sorted(filter(Path.is_file, path.iterdir())) if folder else [path]:
                try:
                    found.append(look_at(self.session, each))
                except CobasisError as error:
                    if folder and each.name not in ours:
                        self.passed.append(each)
                    else:
                        self.refused[each] = error
        if not found and not self.refused:
            raise WaitingError(
                f"of {len(self.passed):,} file(s) in {', '.join(map(str, paths))} none is for "
                f"'{self.session.name}'. Ask '{self.session.analyst.name}' for yours."
            )
        return sorted(found, key=lambda each: ("news", "span", "return").index(each.kind))

    def take(self, came: "Came") -> None:
        """Take one file, or note why not."""
        try:
            {"news": self._news, "span": self._span, "return": self._return}[came.kind](came.path)
        except CobasisError as error:
            self.refused[came.path] = error

    def end(self) -> None:
        """Say what was refused, and end with the code of the first; alone, as any command."""
        for path, error in self.refused.items():
            if len(self.refused) == 1 and not self.lines:
                raise error
            typer.echo(f"Refused {path.name}: {type(error).__name__}: {error}", err=True)
        for error in self.refused.values():
            raise typer.Exit(error.exit_code)

    def _news(self, path: Path) -> None:
        from cobasis.cli.answers import NewsAnswer
        from cobasis.party_side.accept import accept_news

        news, signed = accept_news(self.session, path)
        files = [each.receipt.file for each in signed]
        self.news = NewsAnswer.of(news, receipts=files)
        self.lines += _news_in_words(self.session, news, signed)

    def _span(self, path: Path) -> None:
        from cobasis.cli.answers import SpanAnswer
        from cobasis.party_side.accept import adopt

        contributors = adopt(self.session, path)
        self.span = SpanAnswer(contributors=list(contributors))
        self.lines += wrapped(
            f"Accepted {path.name}: the common span of {', '.join(contributors)}. It is of this "
            "round's anchor, and is kept for the upload."
        )
        if not self.session.history("prepared"):
            self.lines += ["Next:", f"  cobasis send {self.session.path.name} DATA"]

    def _return(self, path: Path) -> None:
        from cobasis.cli.answers import ReturnAnswer
        from cobasis.party_side import accept as accepting
        from cobasis.party_side.score import score_quietly

        taken = accepting.accept(self.session, path)
        with progress() as report:
            scores = score_quietly(self.session, report=report)
        self.returned = ReturnAnswer.of(taken, return_sha256=taken.bundle, score=scores)
        self.lines += [*_return_in_words(path, taken), *scores_in_words(scores)]
        if taken.model_sha256:
            name = self.session.path.name
            self.lines += ["Next:", f"  cobasis predict {name} NEW.csv -o OUT.csv"]


def _news_in_words(
    session: "PartySession", news: "News", signed: "tuple[SignedReceipt, ...]"
) -> Iterator[str]:
    """Yield what news say, for people."""
    yield f"Accepted the news of {news.time}, signed by '{news.analyst}'."
    for each in signed:
        told = each.receipt
        yield f"  Your file of exchange {told.exchange} was received on {told.time}:"
        yield f"  {told.file}"
        yield "  The receipt is right, countersigned, and in your transcript."
    for word, names in (("goes on without", news.without), ("has removed", news.removed)):
        if names:
            yield from wrapped(f"'{news.analyst}' {word} {', '.join(names)}.", lead="  ")
    yield f"  Where the round stands: cobasis status {session.path.name}"


def _return_in_words(path: Path, taken: "Taken") -> Iterator[str]:
    """Yield what a return says, for people."""
    from cobasis.algorithms.certificate import CAVEAT

    yield f"Accepted {path.name}."
    yield from wrapped(f"The certificate says of your basis: {taken.evidence}; {CAVEAT}.")
    yield from wrapped(f"Trained on {', '.join(taken.trained_on) or 'nobody'}.")
    yield from wrapped(
        f"The target keeps a trace of {', '.join(taken.target_carries) or 'nobody'}."
    )
    if taken.orthogonality is not None:
        yield f"The change of basis is a rotation to {taken.orthogonality:.0e}."
    if taken.model_sha256:
        yield "The model, the same at every party, has the SHA-256"
        yield f"  {taken.model_sha256}"


def scores_in_words(scores: "Scores") -> Iterator[str]:
    """Yield what the model is worth, for people."""
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
        yield from wrapped(f"Note: {remark}.")
