"""What has to hold of a round's folders at any moment, and what once a command has ended."""

import os
import shutil
from unittest import mock

from cobasis.analyst_side.history import CONSENSUS, RECEIVED
from cobasis.bundle.agreement_file import read_draft
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.whole import PART, file_digest
from cobasis.errors import CobasisError
from cobasis.party_side.session import SENT
from cobasis.protocol.news import News
from cobasis.protocol.plaintext import secret_bytes
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.protocol.signatures import check_receipt
from cobasis.vault.ledger import spent_on
from party_side.sites import NAMES, PEOPLE, ROUND, ready_from


def problems(site, command, *, whole):
    """Say what is wrong: lost, partly visible, unknown to the vault; half done where `whole`."""
    found = [*_partly_visible(site)]
    if command != "secret":  # before which there is no agreement to work under
        found += [*_lost(site), *_unknown_uploads(site)]
        if whole or command not in CHANGING:  # returns are replaced one by one
            found += _two_models(site)
        found += _left_over(site) if whole else ()
    claims = DONE[command](site) if whole else {}
    return [*found, *(f"not so: {claim}" for claim, holds in claims.items() if not holds)]


def _visible(site):
    """Whatever people take away, or rely on: name, who opens it, who signed it."""

    def found(*patterns):
        paths = (path for pattern in patterns for path in sorted(site.root.glob(pattern)))
        return (path for path in paths if path.suffix != PART)

    for path in found("north/*.upload", "north/*.span", "icu.round/received/*"):
        yield path, site.lab, PEOPLE[path.stem]
    for path in found("out/*-return", "out/*-span"):
        yield path, PEOPLE[path.name.split(".")[1]], site.lab
    for path in found("*.secret"):
        yield path, PEOPLE[path.stem], PEOPLE["north"]


def opened_parts(path, *, by, signer):
    into = path.parent / "opened for a look"
    with mock.patch.object(os, "fsync"):  # nobody keeps it
        bundle = open_bundle(
            path, unseal=by.unseal, signer={signer.public.name: signer.public}, into=into
        )
    made = {name: part.read_bytes() for name, part in bundle.parts.items()}
    shutil.rmtree(into)
    return made


def _partly_visible(site):
    for path, by, signer in _visible(site):
        try:
            opened_parts(path, by=by, signer=signer)
        except CobasisError as error:
            yield f"partly visible: {path.name}: {error.code}"


def _two_models(site):
    models = {
        opened_parts(path, by=by, signer=who).get("model.safetensors")
        for path, by, who in _visible(site)
        if path.name.endswith("-return")
    }
    if len(models) > 1:
        yield "two models were returned"


def received_lines(site):
    """What the analyst has acknowledged: the transcript's lines, by their hash."""
    return {each.hash: each.told for each in _entries(site) if each.event == RECEIVED}


def _lost(site):
    """An acknowledged upload lies on the disk, as it came; a receipt is for such a one only."""
    desk, lines = site.desk(), received_lines(site)
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
    path = site.desk().news
    return News.from_text(path.read_bytes(), site.agreement).receipts if path.exists() else ()


def _unknown_uploads(site):
    path = site.folder("north") / "north.upload"
    if path.exists():
        known = {each.upload for each in site.session("north").vault.history()}
        if file_digest(path) not in known:
            yield "an upload that the vault does not know"


def _left_over(site):
    for path in site.root.rglob("*"):
        if path.suffix in {PART, ".scratch"} or path.name in {"opened", "incoming"}:
            yield f"left over: {path.name}"
    for path in site.session("north").work.glob("*"):
        if path.suffix != SENT:
            yield f"left over in the party's work folder: {path.name}"
    for path in site.root.rglob("transcript.jsonl"):
        if verify_transcript(path).torn_bytes:
            yield "a torn line was not repaired"


# What each command should have done: a claim, and whether it holds.


def _secret(site):
    commitment = read_draft(site.agreement_path)["commitment"]
    sent = [each for each in _visible(site) if each[0].suffix == ".secret"]
    keys = {opened_parts(path, by=by, signer=who)["secret.bin"] for path, by, who in sent}
    made = [ConsortiumSecret(key).commitment(ROUND) for key in keys]
    whole = len(sent) == len(NAMES) and made == [commitment]
    return {"the agreement is committed to the secret that all were sent": whole}


def _proposed(site):
    desk, digest = site.session("north"), file_digest(site.folder("north") / "north.span")
    asked = ready_from(desk, site.table("north")).choice.asked
    return {
        "the proposal is the transcript's last": _last_line(site).told.get("proposal") == digest,
        "the ledger knows the proposal": spent_on(desk.vault.datasets(), asked).bare,
    }


def _spanned(site):
    made = _events(site).count(CONSENSUS) == 1 and site.desk().work.span.exists()
    written = {path.name.split(".")[1] for path in site.root.glob("out/*-span")}
    return {"the common span was made once and sent to all": made and written == set(NAMES)}


def _prepared(site):
    path, vault = site.folder("north") / "north.upload", site.session("north").vault
    return {
        "the upload is the vault's last": vault.history()[-1].upload == file_digest(path),
        "one table is one dataset": len({each.name for each in vault.datasets()}) == 1,
    }


def _received(site):
    told = {each["party"] for each in received_lines(site).values()}
    given = {each.receipt.party for each in receipts(site)}
    return {f"received {told}, receipts {given}": told == given == set(NAMES)}


def _accepted(site):
    kept = site.session("north").round.accepted()
    return {"the return is the vault's": kept and kept.bundle == file_digest(site.reply("north"))}


def _returned(site, names, *, models=1):
    desk = site.desk()
    returns = {
        path.name.split(".")[1]: file_digest(path) for path in site.root.glob("out/*-return")
    }
    told = getattr(desk.history.outcome, "returns", {})
    return {
        "the returns are the transcript's": told == returns and set(returns) == set(names),
        "one target is left": len(list(desk.work.alignments.iterdir())) == 1,
        "no more models are left than are in use": len(list(desk.work.models.iterdir())) <= models,
    }


def _trained(site, **options):
    return _received(site) | _returned(site, NAMES, **options)


def _removed(site):
    desk = site.desk()
    work, certificates = desk.work, {f"icu.removal-south.{end}" for end in ("json", "txt")}
    gone = (work.payload("south"), work.sealed("south", desk.exchanges[-1]), site.reply("south"))
    certified = [
        {path.name for path in folder.glob("*removal-*")}
        for folder in (work.certificates, site.root / "out")
    ]
    return _returned(site, [name for name in NAMES if name != "south"]) | {
        "the removal is recorded": "south" in desk.history.removed,
        "all of the removed is gone": not any(path.exists() for path in gone),
        "the removal is certified here and there": certified == [certificates] * 2,
    }


def _destroyed(site):
    desk = site.desk()
    left = [path for end in (".safetensors", "-upload") for path in desk.work.path.rglob(f"*{end}")]
    return {
        "the end is recorded": desk.history.forgotten,
        f"all is destroyed, not {left}": not left,
    }


def _left(site):
    desk = site.session("north")
    return {"nothing is kept": not desk.round.joined and not list(desk.work.iterdir())}


def _last_line(site):
    return verify_transcript(site.session("north").transcript.path).entries[-1]


def _entries(site):
    path = site.desk().work.transcript
    return verify_transcript(path).entries if path.exists() else ()


def _events(site):
    return [each.event for each in _entries(site)]


CHANGING = {"late", "remove", "realign"}
DONE = {
    "secret": _secret,
    "join": lambda site: {
        "the secret is the vault's": secret_bytes(site.session("north").round.secret()) == site.key
    },
    "propose": _proposed,
    "span": _spanned,
    "adopt": lambda site: {
        "the consensus is the vault's": site.session("north").round.consensus() is not None
    },
    "prepare": _prepared,
    "receive": _received,
    "proposals": _received,
    "receipt": lambda site: {"the receipt is the last": _last_line(site).event == "receipt"},
    "run": _trained,
    "parts": _trained,
    "accept": _accepted,
    "late": lambda site: _trained(site, models=2),  # who left before is told of the first
    "remove": _removed,
    "realign": _removed,
    "destroy": _destroyed,
    "leave": _left,
}
