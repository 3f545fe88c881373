"""What has to hold of a round's folders at any moment, and what they come to in the end."""

import os
import re
import shutil
from collections import Counter
from unittest import mock

from cobasis.analyst_side.history import CONSENSUS, RECEIVED
from cobasis.bundle.agreement_file import read_draft
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.transcript import REPAIRED, verify_transcript
from cobasis.disk.whole import PART, file_digest
from cobasis.errors import CobasisError
from cobasis.protocol.news import News
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.protocol.signatures import check_receipt
from party_side.sites import PEOPLE, ROUND

CHANGING = {"late", "remove", "realign"}
"""Commands that replace returns, one by one."""
ONCE = {CONSENSUS, RECEIVED}
"""What a command that is typed again does not note again."""


def problems(site, command, *, whole):
    """Say what is wrong: lost, partly visible, unknown to the vault; of two makes where `whole`."""
    seen = []
    for path, by, signer in _visible(site):
        try:
            seen.append(opened_parts(path, by=by, signer=signer))
        except CobasisError as error:
            yield f"partly visible: {path.name}: {error.code}"
    if command == "secret":  # before which there is no agreement to work under
        made = {ConsortiumSecret(each["secret.bin"]).commitment(ROUND) for each in seen}
        if whole and made != {read_draft(site.agreement_path)["commitment"]}:
            yield "the agreement is committed to another secret than all were sent"
        return
    yield from _lost(site)
    known = {each.upload for each in site.session("north").vault.history()}
    yield from (
        f"unknown to the vault: {each}" for each in sent(site) if file_digest(each) not in known
    )
    models = {each["model.safetensors"] for each in seen if "model.safetensors" in each}
    if len(models) > 1 and (whole or command not in CHANGING):
        yield "two models were returned"
    returns = {
        each.name.split(".")[1]: file_digest(each) for each in site.root.glob("outbox/*-return")
    }
    if whole and returns != getattr(site.desk().history.outcome, "returns", {}):
        yield "the returns are not the transcript's"


def state(site):
    """All that a command leaves: paths, but for what is drawn or a digest; events; receipts.

    A command that was disturbed, and typed again, comes to the state of one that was not.
    """
    paths = [path.relative_to(site.root) for path in site.root.rglob("*")]
    found = Counter(_drawn(path) for path in paths)
    for path in paths:
        if path.name == "transcript.jsonl":
            log, n_bytes = verify_transcript(site.root / path), (site.root / path).stat().st_size
            events = [each.event for each in log]
            found.update((_drawn(path), each) for each in {*events} - {REPAIRED})
            found.update(each for each in events if each in ONCE)
            found.update(["a torn line"] * (n_bytes > sum(len(each.line) for each in log)))
    found.update((each.receipt.party, each.receipt.exchange) for each in receipts(site))
    return found


def sent(site):
    """What is in the files that a party made: that stays, however often they are made."""
    whose = {"by": site.lab, "signer": PEOPLE["north"]}
    files = (*site.root.glob("north/north.upload"), *site.root.glob("north/north.span"))
    return {path: opened_parts(path, **whose) for path in files}


def _drawn(path):
    return re.sub(r"[0-9a-f]{16,}", "#", str(path))


def _visible(site):
    """Whatever people take away, or rely on: name, who opens it, who signed it."""

    def found(*patterns):
        paths = (path for pattern in patterns for path in sorted(site.root.glob(pattern)))
        return (path for path in paths if path.suffix != PART)

    for path in found("north/*.upload", "north/*.span", "icu.round/received/*"):
        yield path, site.lab, PEOPLE[path.stem]
    for path in found("outbox/*-return", "outbox/*-span"):
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


def _lost(site):
    """An acknowledged upload lies on the disk, as it came; a receipt is for such a one only."""
    desk = site.desk()
    work, history = desk.work, desk.history
    entries = verify_transcript(work.transcript) if work.transcript.exists() else ()
    lines = {each.hash: each.told for each in entries if each.event == RECEIVED}
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
    path = site.root / "icu.news"
    return News.from_text(path.read_bytes(), site.agreement).receipts if path.exists() else ()
