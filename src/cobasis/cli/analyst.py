"""``cobasis analyst``: from the inbox to sealed returns."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli.options import Agreed, Owner, Yes, consent, owned, progress
from cobasis.models import ModelName

app = typer.Typer(help="The analyst's side of a round.", no_args_is_help=True)

REMOTE = 3
Returns = Annotated[Path, typer.Option("-o", "--out", help="Folder for one return per party.")]
Family = Annotated[
    ModelName | None, typer.Option(help="A family that the agreement allows; else its own.")
]

Cluster = Annotated[
    str | None,
    typer.Option(help="Train on the Dask cluster whose scheduler answers at this address."),
]


@app.command()
@owned
def consensus(
    owner: Owner,
    agreement: Agreed,
    spans: Annotated[Path, typer.Argument(metavar="SPANS", help="Folder of *.span files.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for one file per party.")],
) -> None:
    """Make the common span of all proposals, and seal it to each party.

    Example: cobasis analyst consensus icu.toml spans/ -o consensus/
    """
    from cobasis.analyst_side.consensus import consensus as make
    from cobasis.cli.analyst_answers import ConsensusAnswer, file_answers, said_of_files

    session = owner.analyst(agreement)
    with progress() as report:
        found = make(session, spans, to=out, report=report)
    owner.say(
        ConsensusAnswer(
            command="analyst consensus",
            round=session.agreement.round_id,
            contributors=list(found.contributors),
            missing=list(found.missing),
            files=file_answers(found.files),
            written={party: str(path) for party, path in found.written.items()},
        ),
        lines=[
            *said_of_files(found.files),
            f"The common span of {', '.join(found.contributors)} is in {out}, one file per party.",
            *([f"Without a part in it: {', '.join(found.missing)}"] if found.missing else []),
        ],
    )


@app.command()
@owned
def receive(
    owner: Owner,
    agreement: Agreed,
    inbox: Annotated[Path, typer.Argument(metavar="INBOX", help="Folder of *.upload files.")],
) -> None:
    """Verify every upload, store and acknowledge the good ones, and say who is missing.

    The inbox is not changed and may be received again at any time. Send each party its receipt.

    Example: cobasis analyst receive icu.toml inbox/
    """
    from cobasis.analyst_side.receive import receive as take
    from cobasis.cli.analyst_answers import (
        ReceiveAnswer,
        file_answers,
        said_of_audits,
        said_of_files,
    )

    session = owner.analyst(agreement)
    with progress() as report:
        found = take(session, inbox, report=report)
    agreed = session.agreement
    count = f"{len(found.received)} of {len(agreed.parties)}, {agreed.minimum_parties} are needed"
    lines = [
        *said_of_files(found.files),
        *said_of_audits(found.files),
        f"In: {', '.join(found.received) or 'nobody'} ({count})",
        f"Missing: {', '.join(found.missing) or 'nobody'}"
        + (f"; the deadline is {agreed.deadline}" if agreed.deadline and found.missing else ""),
        f"Receipts: {session.work.receipts}",
        *([f"After the run: {', '.join(found.late)} (analyst add)"] if found.late else []),
    ]
    owner.say(
        ReceiveAnswer(
            command="analyst receive",
            round=agreed.round_id,
            files=file_answers(found.files),
            received=list(found.received),
            missing=list(found.missing),
            late=list(found.late),
            receipts={party: str(session.work.receipt(party)) for party in found.received},
            minimum_parties=agreed.minimum_parties,
            deadline=agreed.deadline,
        ),
        lines=lines,
    )
    if found.refused:
        raise typer.Exit(REMOTE)


@app.command()
@owned
def run(
    owner: Owner,
    agreement: Agreed,
    out: Returns,
    model: Family = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="A party to leave out, by name; repeat.")
    ] = None,
    cluster: Cluster = None,
) -> None:
    """Align, certify, train once, and seal one return to each party.

    Example: cobasis analyst run icu.toml --model mlp -o returns/
    """
    from cobasis.analyst_side.run import run as start
    from cobasis.cli.analyst_answers import certified

    session = owner.analyst(agreement)
    with progress() as report:
        ran = start(
            session, to=out, model=model, exclude=exclude or [], cluster=cluster, report=report
        )
    notes = [f"Missing: {', '.join(ran.missing)}: analyst add takes them."] if ran.missing else []
    if ran.before_deadline:
        notes.append(f"The deadline, {session.agreement.deadline}, had not passed.")
    answer, lines = certified(
        ran.concluded,
        command="analyst run",
        round_id=session.agreement.round_id,
        missing=ran.missing,
        excluded=ran.excluded,
        before_deadline=ran.before_deadline,
    )
    owner.say(answer, lines=[*lines, *notes])


@app.command()
@owned
def add(
    owner: Owner,
    agreement: Agreed,
    upload: Annotated[Path, typer.Argument(metavar="UPLOAD", help="Of an enrolled party.")],
    out: Returns,
    model: Family = None,
    cluster: Cluster = None,
) -> None:
    """Fit a party that comes late to the frozen target, train again, and seal all returns.

    Example: cobasis analyst add icu.toml late.upload -o returns/
    """
    from cobasis.analyst_side.membership import add as take
    from cobasis.cli.analyst_answers import certified

    session = owner.analyst(agreement)
    with progress() as report:
        concluded = take(session, upload, to=out, model=model, cluster=cluster, report=report)
    answer, lines = certified(concluded, command="analyst add", round_id=session.agreement.round_id)
    owner.say(answer, lines=lines)


@app.command()
@owned
def remove(
    owner: Owner,
    agreement: Agreed,
    party: Annotated[str, typer.Argument(metavar="PARTY", help="Who leaves.")],
    out: Returns,
    realign: Annotated[
        bool, typer.Option("--realign", help="Also make a new target and new changes of basis.")
    ] = False,
    cluster: Cluster = None,
) -> None:
    """Delete a party's upload, train without it, and certify what is and is not gone.

    Example: cobasis analyst remove icu.toml south -o returns/
    """
    from cobasis.analyst_side.membership import remove as take_out
    from cobasis.cli.analyst_answers import RemoveAnswer

    session = owner.analyst(agreement)
    with progress() as report:
        done = take_out(session, party, to=out, realign=realign, cluster=cluster, report=report)
    removal = done.removal
    files = {} if done.concluded is None else done.concluded.files
    owner.say(
        RemoveAnswer.of(
            removal,
            command="analyst remove",
            round=session.agreement.round_id,
            certificate=[str(path) for path in done.files],
            returns={name: str(path) for name, path in files.items()},
        ),
        lines=[
            removal.text().rstrip(),
            "",
            *(f"Wrote {path}" for path in (*files.values(), *done.files)),
        ],
    )


@app.command()
@owned
def forget(
    owner: Owner,
    agreement: Agreed,
    early: Annotated[bool, typer.Option("--early", help="Before the agreed time.")] = False,
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Also the key, if it is of this round alone.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Destroy the round's uploads, target and changes of basis, when retention is over.

    Models, receipts, certificates and the transcript stay. Nobody can be added or removed then.
    Without the key, copies of uploads in inboxes and backups are closed for good as well.

    Example: cobasis analyst forget icu.toml --with-key --yes
    """
    from cobasis.analyst_side.forget import forget as destroy
    from cobasis.cli.answers import ForgetAnswer

    session = owner.analyst(agreement)
    what = f"all uploads of this round{f' and the key of {session.name!r}' if with_key else ''}"
    consent(f"Destroy {what}?", yes=yes, what="the deletion")
    key = owner.key(session.name) if with_key else None
    time = destroy(session, early=early, key=key)
    answer = ForgetAnswer(command="analyst forget", round=session.agreement.round_id, time=time)
    lines = [f"The uploads of round '{session.agreement.round_id}' were destroyed on {time}."]
    lines += ["The key was destroyed, too. Destroy its copies."] if with_key else []
    owner.say(answer, lines=lines)
