"""``cobasis page``: the analyst's rounds in a browser on this machine."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from cobasis.algorithms.certificate import CAVEAT, SPREADS
from cobasis.analyst_side.history import History, history_of
from cobasis.analyst_side.returns import findings_of
from cobasis.analyst_side.session import work_folder
from cobasis.cli.forget import forget
from cobasis.cli.key import revoke
from cobasis.cli.options import Action, Ask, Folder, Home, Topic, grouped
from cobasis.cli.receive import receive
from cobasis.cli.run import remove, run
from cobasis.cli.sign import sign, terms_of
from cobasis.cli.status import Standing, as_of, standing
from cobasis.cli.verify import verify
from cobasis.cli.words import listed, message_in_words
from cobasis.errors import OptionError
from cobasis.models import needing
from cobasis.protocol.card import ModelCard
from cobasis.protocol.signatures import everybody
from cobasis.report.pages import render_card, template
from cobasis.transport.inbox import agreements


@grouped
def page(keys: Home, folder: Folder = Path()) -> None:
    """Show all rounds in a folder in a browser on this machine, with buttons, until Ctrl-C.

    It listens on 127.0.0.1 alone. Each button runs the command of its name; those that change
    something ask for the passphrase, and the page keeps none.

    Example: cobasis page rounds
    """
    with needing("starlette and uvicorn", extra="serve", what="cobasis page"):
        from cobasis.cli.desk import Desk  # noqa: PLC0415 -- an extra
    if not folder.is_dir():
        raise OptionError(f"'{folder}' is no folder. Give the one where the agreements lie.")
    here = replace(keys, home=keys.folder().resolve())
    Desk(lambda: {path.stem: partial(_topic, here, path) for path in agreements(folder)}).open()


def _topic(keys: Home, path: Path) -> Topic:
    """Read all that is shown of a round; no key is opened."""
    found = standing(keys, path)
    history = history_of(found.own) if found.role == "analyst" else History()
    last = found.own[-1].hash if found.own else ""
    void = ("receive", "run", "remove") if found.has("forgotten") else ()
    told = findings_of(work_folder(path), history.outcome)
    card = ModelCard.read(to_json(told["card"])) if told else None
    text: dict[str, Any] = {"told": told, "card": card, "caveat": CAVEAT, "far": SPREADS}
    text |= {"found": found, "rows": [*_rows(found, history)], "as_of": as_of(found)}
    return Topic(
        title=f"Round {found.agreement.round_id}",
        line=_line(found),
        stands=f"{found.agreement.digest().hex()} {len(found.signed)} {last}",
        folder=path.parent,
        actions={x.name: x for x in _actions(keys, found, history) if x.name not in void},
        pages={
            "": lambda **more: template("desk_round.html").render(**text, **more),
            **({"card": lambda **_: render_card(card)} if card else {}),
        },
    )


def _line(found: Standing) -> str:
    here, late = found.open, f"; late: {listed(found.late)}" if found.late else ""
    by_hand = not found.agreement.server and found.path.with_name("outbox").is_dir()
    how = f"All exchanges have ended{late}" + "; send each party its file in outbox" * by_hand
    if found.unsigned:
        how = f"Not signed by {listed(found.unsigned)}"
    elif here is not None:
        came = listed(each for each in found.receipts(here) if each not in found.out)
        how = f"Exchange {here.number} of {len(found.exchanges)}: {here.message} received "
        how += f"from {came}; {here.fewest} needed; missing: {listed(found.awaited)}"
    why = "What parties sent was destroyed" if found.has("forgotten") else found.halted
    how = f"{why}. {how}" if why else how
    if found.revoked:
        how = f"The key of {listed(found.revoked)} is revoked: all stands still [CB315]. {how}"
    return f"{how}. Waits for {listed(found.waits_for)}."


def _rows(found: Standing, history: History) -> Iterator[dict[str, Any]]:
    work, model = work_folder(found.path), history.outcome and history.outcome.model_sha256
    for party in found.agreement.parties:
        row: dict[str, Any] = {"name": party, "files": [], "audits": []}
        for each in found.exchanges:
            path, kept = work.sealed(party, each), history.files.get((each.number, party))
            size = f", {path.stat().st_size:,} bytes" if path.is_file() else ""
            row["files"].append(f"{message_in_words(found, each, party)}{size}")
            if kept and kept.audit:
                row["audits"].append(f"{each.message}: {kept.audit['verdict']}")
        word = history.words.get((party, model or ""))
        yield {**row, "word": word.said() if word else "none"}


def _actions(keys: Home, found: Standing, history: History) -> Iterator[Action]:
    if found.role != "analyst":
        return
    agreement, file, away = found.agreement, (f"./{found.path.name}",), history.without
    named, who = (agreement.round_id,), ("--home", str(keys.home), "--as", found.name)
    inbox = "inbox" if found.path.with_name("inbox").is_dir() else ""
    if found.name in found.unsigned:
        terms = tuple(terms_of(agreement, keys.who(agreement)))
        to = f"./{found.path.stem}.{found.name}.sig"  # other rounds lie in this folder, too
        yield Action(sign, file, (), named, (*who, "--yes", "--out", to), terms)
    yield Action(
        receive,
        file,
        (Ask("files", "File or folder; empty: what lies beside the agreement", value=inbox),),
        named,
        who,
    )
    if not found.unsigned:
        stay = tuple(each for each in agreement.parties if each not in history.removed)
        asks = (
            Ask("--without", "Go on without", "several", stay),
            Ask("--with", "Take in again", "several", away),
            Ask("--model", "Family, else as agreed", "choice", agreement.allowed_models),
        )
        asked = tuple(each for each in asks if each.values)
        yield Action(run, file, asked, named, (*who, "--yes"))
        who_leaves = Ask("typed", "Who leaves, by name", "typed", stay)
        target = Ask("--realign", "A new target, too, if it descends from who leaves", "check")
        yield Action(remove, file, (who_leaves, target), stay, who)
        early = Ask("--early", "Before the agreed time", "check")
        yield Action(forget, file, (early,), named, (*who, "--yes"))
        people = everybody(agreement)
        whose = Ask("typed", "Whose key somebody else may have", "typed", tuple(people))
        known = tuple((f"Key of {each}", people[each].fingerprint) for each in people)
        yield Action(revoke, file, (whose,), whose.values, (*who, "--yes"), known, group="key")
    yield Action(verify, file)
