"""What a party does with the model: it predicts, with its block's others where there are some."""

import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.bundle.messages import Enclosed, model_in
from cobasis.bundle.seal import look
from cobasis.disk.whole import write_whole
from cobasis.errors import CobasisError, LocalError, OptionError, StepError, TableError
from cobasis.features.contract import (
    MISSING,
    UNKNOWN,
    CategoryFeature,
    Column,
    columns_in,
    numeric_features,
)
from cobasis.features.encoder import words_of
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.models.chain import Chain
from cobasis.party_side.rows import open_rows, public_rows_in
from cobasis.party_side.session import PartySession, refuse_target
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.explanations import Explained, reference
from cobasis.protocol.messages import decode_labels
from cobasis.protocol.secrets import check_public_rows
from cobasis.protocol.terms import others_of
from cobasis.statistics.attributions import Attributions
from cobasis.tables.sources import CSV, PARQUET, Source, source_of
from cobasis.tables.table import StreamedTable, as_text
from cobasis.vault.datasets import Dataset

_LINE, _PART = "\0line", "part.parquet"

Which = Literal["local", "common"]
"""The model as it was fitted to the party's rows, where it was, or as all have it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Usable(Hidden):
    dataset: Dataset  # its basis is F_i
    change_of_basis: Matrix | None  # G_i; neither where sums were sent
    model: Chain
    local: bool  # whether the model is over the party's own columns
    why: Callable[..., Attributions] | None = None  # explains predictions, where asked
    of: str = ""  # the model's mark, by which parts that are of it are told from others
    part: bool = False  # whether aligned rows are asked for, and no prediction
    beside: Sequence[Path] = ()  # the others' parts, of a party of a block

    def aligned(self, rows: Matrix, others: Matrix | None = None) -> Matrix:
        """Return what the model takes: ``Y F_i G_i`` for mapped rows, or these themselves.

        Of a block's party it is its part of that; a person's parts add up, with those of others.
        """
        basis = self.dataset.basis
        if self.local or basis is None or self.change_of_basis is None:
            return rows
        own = basis.project(rows) @ self.change_of_basis
        return own if others is None else own + others


def usable(session: PartySession, *, model: Which = "local", step: bool = False) -> Usable:
    """Return what was accepted; StepError before, or where the round trains no model.

    Weights of a `step` are for the next one, and nobody predicts with them.
    """
    agreement, name = session.agreement, session.name
    found = session.round.accepted()
    uploaded = None if found is None else session.vault.upload_of(agreement, upload=found.upload)
    if uploaded is None or found is None:
        session.require_open()
        raise StepError(
            f"party '{name}' has accepted no return in round '{agreement.round_id}', so there is "
            "no model to use. Run 'cobasis accept' with what the analyst sent."
        )
    if found.model is None:
        raise StepError(
            f"round '{agreement.round_id}' was for a {agreement.task} and trained no model. Agree "
            "on another task in a new round."
        )
    kept = found.local if model == "local" else None
    common, width = model_in(found.model, agreement), agreement.n_features
    if not step and common.fit is not None and not common.fit.finished:
        raise StepError(
            f"the weights that party '{name}' has in round '{agreement.round_id}' are of a step, "
            "and no estimate yet. Type 'cobasis send' for the next, until the last has come back."
        )
    return Usable(
        dataset=uploaded[0],
        change_of_basis=found.change_of_basis,
        of=found.model_sha256,
        model=common if kept is None else model_in(kept, agreement, n_inputs=width),
        local=kept is not None,
    )


class Predicted(NamedTuple):
    n_rows: int  # rows with a prediction
    bad: Sequence[str] = ()  # which cells the others lack one for, by line; never a value


def predict(
    session: PartySession,
    table: Path | None,
    *,
    to: Path,
    model: Which = "local",
    why: bool = False,
    of: str | None = None,
    public: Path | None = None,
    part: bool = False,
    beside: Sequence[Path] = (),
) -> Predicted:
    """Predict for every row of a table, in its order; a row with a bad cell has no prediction.

    A party of a block seals its `part` of aligned rows for the others, whose stand `beside`:
    without a table, of the people of the uploaded one who were held back.
    """
    for own in (table, session.round.noted_table()[0]):
        refuse_target(to, table=own)
    if not part and to.suffix.lower() not in (*CSV, *PARQUET):
        raise OptionError(
            f"-o '{to}' has to end in one of {', '.join((*CSV, *PARQUET))}. Choose such a name."
        )
    _refuse_other(to, part=part)
    agreement = session.agreement
    use = replace(usable(session, model=model), part=part, beside=beside)
    refuse_halves(session, part=part, beside=beside, why=why or of is not None)
    if why or of is not None:
        told: Any = {"background": _reference(session, public), "report": session.report}
        asked = Explained(use.model, agreement=agreement, aligned=use.aligned, of=of)
        use = replace(use, why=partial(asked.attributions, **told))
    given = table or held_back(session)
    if not part:
        return _predicted(session, use, given, to=to)
    session.require_open()  # others' parts are opened behind the same question
    with session.alone():
        plain = session.work / _PART
        draft = {"kind": "part", "sender": session.name, "told": {"model": use.of}}
        draft |= {"round_id": agreement.round_id, "agreement": agreement.digest().hex()}
        found = _predicted(session, use, given, to=plain)
        session.seal(Enclosed(draft, {_PART: plain}), to, to=_block(session))
    return found


def _refuse_other(to: Path, *, part: bool) -> None:
    """Raise OptionError where a file lies that `predict` has not written."""
    ours = not to.exists() or (to.is_file() and not to.stat().st_size)
    with suppress(CobasisError, OSError, pl.exceptions.PolarsError):
        if part:
            ours = ours or look(to) > 0
        elif to.is_file():  # a pipe would be waited for
            scan = pl.scan_csv if to.suffix.lower() in CSV else pl.scan_parquet
            ours = {"prediction", "model"} <= {*scan(to.absolute(), glob=False).collect_schema()}
    if not ours:
        raise OptionError(
            f"-o '{to}' exists, and 'cobasis predict' did not write it, so it may be a table of "
            "yours, which would be overwritten. Choose another name, or move it away."
        )


def _predicted(
    session: PartySession, use: Usable, table: Path | pl.LazyFrame, *, to: Path
) -> Predicted:
    features, mapping = columns_in(session.agreement.features), session.round.mapping()
    columns = (*features, *as_text(session.agreement.id))
    read = partial(source_of, table, party=session.name, features=columns, mapping=mapping)
    try:
        return Predicted(n_rows=_written(session, use, read(), to=to))
    except LocalError as error:  # perhaps of some rows alone
        source = read(lenient=True)
        bad = _bad_cells(source, features)
        why = {row: "; ".join(f"{x}: {problem}" for x, problem in bad[row]) for row in sorted(bad)}
        if not 0 < len(why) < int(source.collect(pl.len()).item()):
            none = " No row fits: 'cobasis send --dry-run' with this table lists what was found."
            error.args = (f"{error.args[0]}{none * bool(why)}",)
            raise
        n_good = _written(session, use, source, to=to, why=why)
    # the file's first line is that of the names
    told = [f"line {row + 2}, column '{x}': {problem}" for row in why for x, problem in bad[row]]
    return Predicted(n_rows=n_good, bad=told)


def _reference(session: PartySession, path: Path | None) -> Matrix:
    agreement, name = session.agreement, session.name
    given = public_rows_in(path, agreement, party=name)
    public = check_public_rows(given, agreement, party=name)
    drawn = not agreement.sums and public is None
    anchor = session.round.secret().anchor(agreement) if drawn else None
    return reference(agreement, anchor, public=public)


def _bad_cells(source: Source, features: Iterable[Column]) -> dict[int, list[tuple[str, str]]]:
    """Return in which columns the cells of a row are not as agreed, and why, by row."""
    found = defaultdict[int, list[tuple[str, str]]](list)
    for each in (each for each in features if each.name in source.schema):
        cells = source.collect(pl.col(each.name))[each.name]
        if isinstance(each, CategoryFeature):
            codes = words_of(nw.from_native(cells, series_only=True), each)
            unknown = "no agreed word"
        else:
            numbers, unknown = cells.cast(pl.Float64, strict=False).to_numpy(), "no number"
            lacking = np.isnan(numbers) & (each.missing == "refuse")
            codes = np.where(np.isinf(numbers), UNKNOWN, np.where(lacking, MISSING, 0))
        for row in map(int, np.flatnonzero(codes < 0)):
            found[row].append((each.name, "empty" if codes[row] == MISSING else unknown))
    return found


def _written(
    session: PartySession,
    use: Usable,
    source: Source,
    *,
    to: Path,
    why: Mapping[int, str] | None = None,
) -> int:
    agreement, name = session.agreement, session.agreement.id
    good, why = source, why or {}
    if why:
        left = source.frame.with_row_index(_LINE).filter(~pl.col(_LINE).is_in(list(why)))
        good = replace(source, frame=left.drop(_LINE))
    rows = StreamedTable(good, agreement=agreement, party=session.name, report=session.report)
    rows = rows.unmapped()  # explained by columns
    ids = rows.identifiers()
    others = parts_of(session, ids, use=use)

    def answered(first: int, blocks: Iterator[Matrix]) -> pl.DataFrame:
        # blocks share one buffer
        table = np.vstack([each.copy() for each in blocks])
        stop = first + len(table)
        more = None if others is None else others[first:stop]
        answers = _answers(table, use, agreement, beside=more)
        return answers if ids is None else answers.insert_column(0, ids[first:stop])

    found, buffer = pl.concat(rows.over(answered, step="predicting")), io.BytesIO()
    n_rows = found.height
    if why:
        every, names = range(n_rows + len(why)), found.columns
        problem = "model_problem" if "problem" in names else "problem"
        at = pl.Series(_LINE, [row for row in every if row not in why])
        lines = pl.DataFrame({_LINE: every, problem: [why.get(row) for row in every]})
        found = lines.join(found.with_columns(at), on=_LINE, how="left").select(*names, problem)
        found = found.with_columns(source.collect(pl.col(name))[name]) if name else found
    (found.write_csv if to.suffix.lower() in CSV else found.write_parquet)(buffer)
    write_whole(to, buffer.getvalue())
    return n_rows


def refuse_halves(
    session: PartySession, *, part: bool, beside: Sequence[Path], why: bool = False
) -> None:
    """Raise OptionError where a person's columns would be left out, or counted twice."""
    others = others_of(session.agreement)
    if not others and (part or beside):
        raise OptionError(
            f"party '{session.name}' holds no part of other parties' people, so there is none to "
            "write or to take. Leave out --part and --with."
        )
    if others and ((part and why) or len({*beside}) != (0 if part else len(others))):
        raise OptionError(
            f"party '{session.name}' holds some columns of its people, and the model takes all: "
            f"those of {', '.join(others)} are needed as well. Each types 'cobasis predict --part' "
            "for the same people, without a table for those who were held back; 'predict' and "
            "'score' take each file by --with, and then no --part. Of a part alone there are no "
            "reasons, and nothing is exported."
        )


def held_back(session: PartySession) -> pl.LazyFrame:
    """Return the uploaded table's rows of people who are held back, and not of who came since."""
    noted, people = session.round.noted_table()
    if noted is not None and noted.is_file():
        rows = open_rows(session, noted).keeping(people)
        if named := rows.kept.people():
            column = pl.col(session.agreement.id).cast(pl.String)
            return rows.table.source.frame.filter(column.is_in(named))
    raise OptionError(
        f"the table that party '{session.name}' uploaded is not there any more, or all of its "
        "people were uploaded, so there is nobody who was held back. Name a table of people."
    )


def parts_of(session: PartySession, ids: Iterable[object] | None, *, use: Usable) -> Matrix | None:
    """Return the sum of the others' parts of these people, in their order, made by a model."""
    if not use.beside:
        return None
    agreement, missing = session.agreement, {each.name: each for each in _block(session)}
    senders, names = [*missing.values()], _part_names(agreement)
    known = pl.Series(agreement.id, ids)
    columns: list[Column] = [*numeric_features(names), *as_text(agreement.id)]
    people, found = known.cast(pl.String).to_frame(), np.zeros((len(known), len(names)))
    for path in use.beside:
        with session.alone():
            bundle = session.opened(path, kind="part", senders=senders)
            sender, told = bundle.manifest.sender, bundle.manifest.told
            source = source_of(bundle.parts[_PART], party=sender, features=columns)
            part = source.collect(pl.col([agreement.id, *names])).cast({agreement.id: pl.String})
        if missing.pop(sender, None) is None or told != {"model": use.of}:
            raise TableError(
                f"'{path.name}' of {sender} was given twice, or is of another model than the one "
                "that you accepted last. Have it made anew with 'cobasis predict --part'."
            )
        once = part.unique(agreement.id)
        their = people.join(once, on=agreement.id, how="left", maintain_order="left")
        table = their.select(names).cast(pl.Float64).to_numpy()
        lacking = int((~np.isfinite(table)).any(axis=1).sum())
        if lacking or once.height < part.height:
            raise TableError(
                f"'{path.name}' lacks {lacking:,} of {len(known):,} people of your table, known by "
                f"'{agreement.id}', and has {part.height - once.height:,} more than once. Ask for "
                "one part of each of these people, or leave those that lack out of your table."
            )
        found += table
    return found


def _block(session: PartySession) -> list[PublicIdentity]:
    return [x for x in session.agreement.enrolled if x.name in others_of(session.agreement)]


def _part_names(agreement: Agreement) -> list[str]:
    return [f"part_{at + 1}" for at in range(agreement.n_inputs)]


def _answers(
    rows: Matrix, use: Usable, agreement: Agreement, *, beside: Matrix | None = None
) -> pl.DataFrame:
    """Return predictions and scores of encoded rows, under names that the identifier has not."""
    model, aligned = use.model, use.aligned(agreement.mapped(rows), beside)
    if use.part:
        return pl.DataFrame(dict(zip(_part_names(agreement), aligned.T, strict=True)))
    found = {"prediction": decode_labels(model.predict(aligned), agreement)}
    if agreement.classes:
        scores = model.scores(aligned, method=model.method)
        table = scores[:, np.newaxis] if scores.ndim == 1 else scores
        classes = agreement.classes[1:] if scores.ndim == 1 else agreement.classes
        # a model of rows with noise cannot know how sure it may be of rows without
        word = "score" if agreement.dp or not model.likely else "probability"
        found |= {f"{word}_{each}": table[:, at] for at, each in enumerate(classes)}
    if agreement.horizons:
        told = zip(agreement.horizons, model.survival(aligned).T, strict=True)
        found |= {f"survival_{horizon:g}": each for horizon, each in told}
    found["model"] = np.full(len(aligned), "local" if use.local else "common")
    if use.why is not None:
        why = use.why(rows, beside=beside)
        whole = {"explained": why.explained, "base": why.base}
        found |= {name: np.full(len(rows), each) for name, each in whole.items()}
        found |= {f"why_{name}": why.values[:, at] for at, name in enumerate(why.names)}
    taken = agreement.id
    return pl.DataFrame(
        {f"model_{name}" if name == taken else name: each for name, each in found.items()}
    )
