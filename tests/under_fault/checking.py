"""What has to hold of a round's folders at any moment, and what once a command has ended."""

import os
from unittest import mock

from cobasis.analyst_side.history import CONSENSUS, KEY_DESTROYED, RECEIVED
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import read_draft
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.whole import PART, file_digest
from cobasis.errors import CobasisError
from cobasis.party_side.session import NOTES, SENT
from cobasis.protocol.plaintext import secret_bytes
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.protocol.signatures import News, check_receipt
from party_side.sites import NAMES, PEOPLE, ROUND, ready_from


def analyst_of(site):
    """A fresh session of the analyst's."""
    return AnalystSession(
        site.agreement, identity=site.lab, path=site.agreement_path, outbox=site.root / "returns"
    )


def reply(site, name, number=-1):
    """What a party gets back."""
    session = analyst_of(site)
    return session.reply(name, session.exchanges[number])


def problems(site, command, *, whole):
    """Say what is wrong: lost, partly visible, unknown to the vault; half done where `whole`."""
    if command == "secret":  # before there is an agreement to work under
        return [*_partly_visible(site), *(_uncommitted(site) if whole else ())]
    found = [*_partly_visible(site), *_lost(site), *_unknown_uploads(site)]
    if whole or command not in CHANGING:  # returns are replaced one by one
        found += _two_models(site)
    if whole:
        found += _left_over(site)
        if command in UNDONE:
            found += UNDONE[command](site)
        elif not DONE[command](site):
            found.append(f"{command} has not kept what it should")
    return found


def _visible(site):
    """Whatever people take away, or rely on: name, who opens it, who signed it."""
    for pattern in ("north/*.upload", "north/*.span", "icu.round/received/*"):
        for path in sorted(site.root.glob(pattern)):
            if path.suffix != PART:
                yield path, site.lab, PEOPLE[path.stem]
    for pattern in ("returns/*-return", "returns/*-span"):
        for path in sorted(site.root.glob(pattern)):
            yield path, PEOPLE[path.name.split(".")[1]], site.lab
    for path in sorted(site.root.glob("*.secret")):
        yield path, PEOPLE[path.stem], PEOPLE["north"]


def opened_parts(path, *, by, signer):
    """The parts of a sealed file, by name; CobasisError where it is not whole."""
    into = path.parent / "opened for a look"
    with mock.patch.object(os, "fsync"):  # nobody keeps it
        bundle = open_bundle(path, unseal=by.unseal, signer=signer.public, into=into)
    made = {name: part.read_bytes() for name, part in bundle.parts.items()}
    bundle.discard()
    into.rmdir()
    return made


def _partly_visible(site):
    for path, by, signer in _visible(site):
        try:
            opened_parts(path, by=by, signer=signer)
        except CobasisError as error:
            yield f"partly visible: {path.name}: {error.code}"


def _two_models(site):
    returns = [each for each in _visible(site) if each[0].name.endswith("-return")]
    models = {
        opened_parts(path, by=by, signer=who).get("model.safetensors") for path, by, who in returns
    }
    if len(models) > 1:
        yield "two models were returned"


def received_lines(site):
    """What the analyst has acknowledged: the transcript's lines, by their hash."""
    path = analyst_of(site).work.transcript
    entries = verify_transcript(path).entries if path.exists() else ()
    return {each.hash: each.told for each in entries if each.event == RECEIVED}


def _lost(site):
    """An acknowledged upload lies on the disk, as it came; a receipt is for such a one only."""
    desk, lines = analyst_of(site), received_lines(site)
    work, history = desk.work, desk.history
    for told in lines.values():
        name = told["party"]
        if history.forgotten or name in history.removed:
            continue
        exchange = desk.exchanges[told["exchange"] - 1]
        if file_digest(work.sealed(name, exchange)) != told["file"]:
            yield f"lost: the sealed {exchange.message} of {name}"
        path = work.payload(name)
        if "payload" in told and path.exists() and file_digest(path) != told["payload"]:
            yield f"lost: the opened upload of {name}"
    for signed in receipts(site):
        try:
            told = lines[signed.receipt.transcript]
            check_receipt(
                signed,
                analyst=site.lab.public,
                agreement=site.agreement.digest().hex(),
                party=told["party"],
                file=told["file"],
            )
        except (CobasisError, KeyError) as error:
            yield f"a receipt for nothing: {signed.receipt.party}: {error!r}"


def receipts(site):
    """Those of the news, once there are any; CobasisError where they are not whole."""
    path = analyst_of(site).news
    return News.from_text(path.read_bytes(), site.agreement).receipts if path.exists() else ()


def _unknown_uploads(site):
    """What left a party is in its vault's history."""
    path = site.folder("north") / "north.upload"
    if path.exists():
        known = {each.upload for each in site.session("north").vault.history()}
        if file_digest(path) not in known:
            yield "an upload that the vault does not know"


def _left_over(site):
    for path in site.root.rglob("*"):
        if path.suffix == ".part" or path.name in {"opened", "incoming"}:
            yield f"left over: {path.name}"
    for path in site.session("north").work.glob("*"):
        if path.name != NOTES and path.suffix != SENT:
            yield f"left over in the party's work folder: {path.name}"
    for path in site.root.rglob("transcript.jsonl"):
        if verify_transcript(path).torn_bytes:
            yield "a torn line was not repaired"


# What each command should have done.


def _uncommitted(site):
    commitment = read_draft(site.agreement_path)["commitment"]
    paths = [site.root / f"{name}.secret" for name in NAMES]
    parts = [opened_parts(path, by=PEOPLE[path.stem], signer=PEOPLE["north"]) for path in paths]
    keys = {each["secret.bin"] for each in parts}
    if [ConsortiumSecret(key).commitment(ROUND) for key in keys] != [commitment]:
        yield "the agreement is not committed to the secret that was sent"


def _not_proposed(site):
    desk, path = site.session("north"), site.folder("north") / "north.span"
    told = _last_line(site).told
    if told.get("proposal") != file_digest(path):
        yield "the proposal is not the transcript's last"
    ready = ready_from(desk, site.table("north"))
    if not desk.vault.ledger.spent(ready.choice.asked).bare:
        yield "the ledger does not know the proposal"


def _no_common_span(site):
    desk = analyst_of(site)
    events = [each.event for each in verify_transcript(desk.work.transcript).entries]
    written = {path.name.split(".")[1] for path in site.root.glob("returns/*-span")}
    if events.count(CONSENSUS) != 1 or not desk.work.span.exists() or written != set(NAMES):
        yield "the common span was not made once and sent to all"


def _not_prepared(site):
    path = site.folder("north") / "north.upload"
    history = site.session("north").vault.history()
    if not path.exists() or history[-1].upload != file_digest(path):
        yield "the upload is not the vault's last"
    if len({each.name for each in site.session("north").vault.datasets()}) != 1:
        yield "two datasets of one table"


def _not_received(site):
    told = {each["party"] for each in received_lines(site).values()}
    given = {each.receipt.party for each in receipts(site)}
    if not told == given == set(NAMES):
        yield f"received {told}, receipts {given}"


def _not_trained(site):
    yield from _not_received(site)
    yield from _not_returned(site, NAMES)


def _not_added(site):
    yield from _not_received(site)
    yield from _not_returned(site, NAMES, models=2)  # those who left before are told of the first


def _not_removed(site):
    desk = analyst_of(site)
    work = desk.work
    yield from _not_returned(site, [name for name in NAMES if name != "south"])
    if "south" not in desk.history.removed:
        yield "the removal is not recorded"
    sealed = work.sealed("south", desk.exchanges[-1])
    for path in (work.payload("south"), sealed, reply(site, "south")):
        if path.exists():
            yield f"{path.name} of the removed is still there"
    for folder in (work.certificates, site.root / "returns"):
        if {path.name for path in folder.glob("removal-*")} != CERTIFICATES:
            yield f"the removal is not certified in {folder.name}"


def _not_destroyed(site):
    desk = analyst_of(site)
    events = [each.event for each in verify_transcript(desk.work.transcript).entries]
    if not desk.history.forgotten or KEY_DESTROYED not in events:
        yield "the end is not recorded"
    left = [path for end in (".safetensors", "-upload") for path in desk.work.path.rglob(f"*{end}")]
    if left or (site.root / "lab.key").exists():
        yield f"not destroyed: {left}"


def _accepted(site):
    kept = site.session("north").round.accepted()
    return kept is not None and kept.bundle == file_digest(reply(site, "north"))


def _left(site):
    desk = site.session("north")
    return not desk.round.joined and not list(desk.work.iterdir())


def _last_line(site):
    return verify_transcript(site.session("north").transcript.path).entries[-1]


DONE = {
    "join": lambda site: secret_bytes(site.session("north").round.secret()) == site.key,
    "adopt": lambda site: site.session("north").round.consensus() is not None,
    "receipt": lambda site: _last_line(site).event == "receipt",
    "accept": _accepted,
    "leave": _left,
}
"""Whether the vault, or the party's transcript, has what the command keeps there."""


def _not_returned(site, names, *, models=1):
    desk = analyst_of(site)
    outcome = desk.history.outcome
    returns = {
        path.name.split(".")[1]: file_digest(path) for path in site.root.glob("returns/*-return")
    }
    if outcome is None or dict(outcome.returns) != returns or set(returns) != set(names):
        yield "the returns are not those that the transcript names"
    if len(list(desk.work.alignments.iterdir())) != 1:
        yield "more than one target is left"
    if len(list(desk.work.models.iterdir())) > models:
        yield "more models are left than are in use"


CHANGING = {"late", "remove", "realign"}
CERTIFICATES = {"removal-south.json", "removal-south.txt"}
UNDONE = {
    "propose": _not_proposed,
    "span": _no_common_span,
    "prepare": _not_prepared,
    "receive": _not_received,
    "proposals": _not_received,
    "run": _not_trained,
    "parts": _not_trained,
    "late": _not_added,
    "remove": _not_removed,
    "realign": _not_removed,
    "destroy": _not_destroyed,
}
