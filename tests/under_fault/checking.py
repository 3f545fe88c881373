"""What has to hold of a round's folders at any moment, and what once a command has ended."""

import os
from unittest import mock

from cobasis.analyst_side.checking import file_digest
from cobasis.analyst_side.desk import AnalystDesk
from cobasis.analyst_side.history import RECEIVED, history_of
from cobasis.analyst_side.work import WorkFolder
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.receipts import read_receipt
from cobasis.bundle.transcript import verify_transcript
from cobasis.errors import CobasisError
from cobasis.party_side.desk import NOTES
from cobasis.protocol.receipts import check_receipt
from party_side.sites import NAMES, PEOPLE


def analyst_of(site):
    """A fresh desk of the analyst's."""
    work = WorkFolder(site.agreement_path.with_suffix(".round"))
    return AnalystDesk(site.agreement, identity=site.lab, work=work)


def problems(site, command, *, whole):
    """Say what is wrong: lost, partly visible, unknown to the vault; half done where `whole`."""
    found = [*_partly_visible(site), *_lost(site), *_unknown_uploads(site)]
    if whole:
        found += [*_left_over(site), *_undone(site, command)]
    return found


def _visible(site):
    """Whatever people take away, or rely on: name, who opens it, who signed it."""
    for path in sorted(site.root.glob("north/*.upload")):
        yield path, site.lab, PEOPLE[path.stem]
    for path in sorted(site.root.glob("icu.round/uploads/*.upload")):
        yield path, site.lab, PEOPLE[path.stem]
    for path in sorted(site.root.glob("returns/*.return")):
        yield path, PEOPLE[path.stem], site.lab


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
    models = set()
    for path, by, signer in _visible(site):
        try:
            parts = opened_parts(path, by=by, signer=signer)
        except CobasisError as error:
            yield f"partly visible: {path.name}: {error.code}"
        else:
            models.add(parts.get("model.onnx"))
    if len(models - {None}) > 1:
        yield "two models were returned"


def received_lines(site):
    """What the analyst has acknowledged: the transcript's lines, by their hash."""
    path = analyst_of(site).work.transcript
    entries = verify_transcript(path).entries if path.exists() else ()
    return {each.hash: each.told for each in entries if each.event == RECEIVED}


def _lost(site):
    """An acknowledged upload lies on the disk, as it came; a receipt is for such a one only."""
    work, lines = analyst_of(site).work, received_lines(site)
    for told in lines.values():
        name = told["party"]
        if file_digest(work.sealed(name)) != told["upload"]:
            yield f"lost: the sealed upload of {name}"
        path = work.payload(name)
        if path.exists() and file_digest(path) != told["payload"]:
            yield f"lost: the opened upload of {name}"
    for path in work.receipts.glob("*.receipt"):
        try:
            signed = read_receipt(path.read_bytes())
            told = lines[signed.receipt.transcript]
            check_receipt(
                signed,
                analyst=site.lab.public,
                agreement=site.agreement.digest().hex(),
                party=told["party"],
                upload=told["upload"],
            )
        except (CobasisError, KeyError) as error:
            yield f"a receipt for nothing: {path.name}: {error!r}"


def _unknown_uploads(site):
    """What left a party is in its vault's history."""
    path = site.folder("north") / "north.upload"
    if path.exists():
        known = {each.upload for each in site.desk("north").vault.history()}
        if file_digest(path) not in known:
            yield "an upload that the vault does not know"


def _left_over(site):
    for path in site.root.rglob("*"):
        if path.suffix == ".part" or path.name in {"opened", "incoming"}:
            yield f"left over: {path.name}"
    for path in site.desk("north").work.iterdir():
        if path.name != NOTES:
            yield f"left over in the party's work folder: {path.name}"
    for path in site.root.rglob("transcript.jsonl"):
        if verify_transcript(path).torn_bytes:
            yield "a torn line was not repaired"


def _undone(site, command):
    """What the command should have done."""
    if command == "prepare":
        path = site.folder("north") / "north.upload"
        history = site.desk("north").vault.history()
        if not path.exists() or history[-1].upload != file_digest(path):
            yield "the upload is not the vault's last"
        if len({each.name for each in site.desk("north").vault.datasets()}) != 1:
            yield "two datasets of one table"
    if command in {"receive", "run", "parts"}:
        told = {each["party"] for each in received_lines(site).values()}
        receipts = {path.stem for path in analyst_of(site).work.receipts.iterdir()}
        if not told == receipts == set(NAMES):
            yield f"received {told}, receipts {receipts}"
    if command in {"run", "parts"}:
        yield from _not_returned(site)
    if command == "accept":
        kept = site.desk("north").round.accepted()
        path = site.folder("returns") / "north.return"
        if kept is None or kept.bundle != file_digest(path):
            yield "the return is not kept"


def _not_returned(site):
    work = analyst_of(site).work
    outcome = history_of(verify_transcript(work.transcript).entries).outcome
    returns = {path.stem: file_digest(path) for path in site.folder("returns").iterdir()}
    if outcome is None or dict(outcome.returns) != returns or set(returns) != set(NAMES):
        yield "the returns are not those that the transcript names"
    if len(list(work.alignments.iterdir())) != 1 or len(list(work.models.iterdir())) != 1:
        yield "more than one target or model is left"
