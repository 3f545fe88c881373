"""The author of an agreement: its file, the secret sealed to each party, and what changed since.

The author is one of the parties, since whoever draws the secret knows it. The home folder keeps
what was written last, and digests of sealed secrets, never the secret.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import ndiff
from itertools import product
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel

from cobasis.bundle.agreement_file import (
    line_in,
    news_at,
    read_agreement,
    read_draft,
    sealed_agreement,
    sealed_path,
    stem_of,
    text_of,
    write_agreement,
)
from cobasis.bundle.envelope import write_bundle
from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.lock import Lock
from cobasis.disk.whole import (
    copy_whole,
    file_digest,
    make_folder,
    opened,
    remove_tree,
    write_whole,
)
from cobasis.errors import AgreementError, CobasisError, DiskError, OptionError
from cobasis.keys.identity import Identity
from cobasis.party_side.session import NEWS, PART, SUFFIX
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import Approver, PublicIdentity, Succession
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.protocol.signatures import Signature, everybody


@dataclass(frozen=True, kw_only=True)
class People:
    parties: tuple[PublicIdentity, ...] = ()
    approvers: tuple[Approver, ...] = ()
    analyst: PublicIdentity | None = None
    groups: tuple[PublicIdentity, ...] = ()  # analysts of all groups

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        lab = fields.get("analyst")
        return cls(
            parties=tuple(PublicIdentity(**each) for each in fields.get("enrolled", ())),
            approvers=tuple(Approver(**each) for each in fields.get("approvers", ())),
            analyst=PublicIdentity(**lab) if isinstance(lab, dict) else None,
            groups=tuple(PublicIdentity(**each) for each in fields.get("groups", ())),
        )

    @property
    def everybody(self) -> tuple[PublicIdentity, ...]:
        labs = dict.fromkeys((*filter(None, [self.analyst]), *self.groups))
        return (*self.parties, *(each.public for each in self.approvers), *labs)

    def joined(self, more: "People") -> "People":
        """Return these with others: a known name gets its new key."""
        parties = {each.name: each for each in (*self.parties, *more.parties)}
        approvers = {each.name: each for each in (*self.approvers, *more.approvers)}
        return People(
            parties=tuple(parties.values()),
            approvers=tuple(approvers.values()),
            analyst=more.analyst or self.analyst,
            groups=more.groups or self.groups,
        )


def vouched(
    people: People, *, own: Identity | None, pubs: Iterable[Path], known: Iterable[Path]
) -> dict[PublicIdentity, PublicIdentity]:
    """Return whose key is in a known agreement, or signed for there, and by which key.

    That agreement has to be signed by one's own key: anybody can make one. Nobody vouches for a key
    that was revoked in any of them, nor for another of its name: a thief could have signed for it.
    """
    rounds = [(sealed_agreement(path), path.with_name(f"{stem_of(path)}.{NEWS}")) for path in known]
    mine = {each.public for each in (own, *own.before)} if own else set()
    beside = {path for pub in pubs for path in pub.parent.glob("*.succession") if rounds}
    words = [line_in(path, Succession) for path in sorted(beside)]
    gone = {
        everybody(agreement)[each.name]
        for agreement, news in rounds
        if (kept := news_at(news, agreement)) is not None
        for each in kept.revoked
    }
    stolen = {each.name for each in gone}
    found = dict[PublicIdentity, PublicIdentity]()
    for agreement, _ in rounds:
        keys = everybody(agreement).values()
        found |= {
            who: key
            for key, who in product(keys if mine & {*keys} else (), people.everybody)
            if (who == key and who not in gone)
            or (who.name not in stolen and any(word.vouches(key, who) for word in words))
        }
    return found


def read_people(
    pubs: Sequence[Path], *, analyst: Path | None, approvers: Sequence[str] = ()
) -> People:
    """Read everybody's keys; each says its role, so the analyst's may be among the parties'."""
    given = [*pubs, *([] if analyst is None else [analyst])]
    found = {path: line_in(path, PublicIdentity) for path in given}
    officers = tuple(map(_officer, approvers))
    if analyst is not None and found[analyst].role != "analyst":
        raise AgreementError(
            f"'{analyst}' is the key of '{found[analyst].name}', and was made for role "
            f"'{found[analyst].role}'. Give the analyst's with --analyst, made with 'cobasis key "
            "new NAME --analyst'."
        )
    owners: dict[str, Path] = {}
    for path, who in found.items():
        other = owners.setdefault("" if who.role == "analyst" else who.name, path)
        if found[other] != who:
            raise AgreementError(
                f"'{other}' and '{path}' are two keys of one party, or of two analysts. Give one "
                "of them; a party's key is made with 'cobasis key new NAME'."
            )
        if who.role == "approver" and who not in {each.public for each in officers}:
            raise AgreementError(
                f"'{path}' is the key of '{who.name}', who approves files. Say of which party: "
                f"--approver PARTY={path}."
            )
    people = dict.fromkeys(found.values())
    return People(
        parties=tuple(who for who in people if who.role == "party"),
        approvers=officers,
        analyst=next((who for who in people if who.role == "analyst"), None),
    )


def _officer(said: str) -> Approver:
    party, _, path = said.partition("=")
    if not party or not path:
        raise OptionError(
            f"--approver {said} does not say whose officer it is. Give PARTY=FILE, like "
            "north=officer.pub."
        )
    who = line_in(Path(path), PublicIdentity)
    return Approver(**who.model_dump(), party=party)


class Written(BaseModel):
    text: str = ""
    words: str = ""  # a digest of the command's words
    files: tuple[str, ...] = ()  # digests of the sealed secrets that may lie beside it


class Authorship:
    def __init__(self, path: Path, *, home: Path, told: Mapping[str, Any] | None = None) -> None:
        """Take up the file of who typed a command with these words, which it is known by."""
        self.path, self.home, said = path, home, json.dumps(told, default=str)
        self.words = hashlib.sha256(said.encode()).hexdigest() if told else ""
        place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
        self.folder = home / "authored" / place
        self._record = self.folder / "written.json"

    def last(self) -> Written:
        with suppress(DiskError, ValueError), opened(self._record) as (file, _):
            return Written.model_validate_json(file.readall() or b"")
        return Written()

    def keep(self, **written: object) -> None:
        make_folder(self.folder)
        text = self.last().model_copy(update=written).model_dump_json()
        write_whole(self._record, text.encode())

    def secret(self, party: str) -> Path:
        return self.path.with_name(f"{party}{SUFFIX}")

    def whole(self) -> bool:
        last = self.last()
        enrolled = read_draft(self.path, text=text_of(self.path)).get("enrolled", [])
        files = {_digest(self.secret(each["name"])) for each in enrolled}
        return text_of(self.path) == last.text and files == set(last.files)

    def changed(self, text: str) -> tuple[str, ...]:
        before = self.last().text
        if not before:
            return ("This home did not write the file, so nothing can be said of what changed.",)
        lines = ndiff(before.splitlines(), text.splitlines())
        # the commitment is new each time, and says nothing
        return tuple(each for each in lines if each[0] in "+-" and "commitment" not in each)

    def refuse_change(self) -> None:
        """Raise where somebody has signed, or for a digest of other words than wrote the file."""
        if who := sorted({*self._signers()}):
            raise AgreementError(
                f"'{self.path}' was signed ({', '.join(who)}), so neither it nor its secret can "
                "change any more. Make a new agreement under another name, with a round of its own."
            )
        last, said = self.last(), self.words
        if said and self.path.exists() and (last.words, last.text) != (said, text_of(self.path)):
            raise OptionError(
                f"'{self.path}' exists, and options describe a new agreement. Edit the file, and "
                f"type 'cobasis agreement new {self.path}' without options, or choose another name."
            )

    def _signers(self) -> Iterator[str]:
        digests = set()
        for text in (text_of(self.path) if self.path.exists() else "", self.last().text):
            with suppress(CobasisError):  # a draft: nobody can have signed it
                found = read_agreement(self.path, text=text)
                digests.add(found.agreement.digest().hex())
                yield from (each.name for each in found.signatures)
        for path in sorted(self.path.parent.glob("*.sig")):
            with suppress(AgreementError):  # of another round, or no signature
                signed = line_in(path, Signature)
                yield from [signed.name] if signed.agreement in digests else []
        for digest in digests:
            for path in self.home.glob(f"transcripts/*/{digest[:16]}/transcript.jsonl"):
                told = verify_transcript(path)
                yield from [path.parts[-3]] if any(each.event == "signed" for each in told) else []
        if sealed_path(self.path).exists():
            yield f"sealed in '{sealed_path(self.path).name}'"


def issue(author: Authorship, *, text: Callable[..., str], identity: Identity, key: bytes) -> None:
    """Seal a secret to each party, and write the agreement that is committed to it.

    The agreement is written last: after a kill at any moment the same call seals anew, and
    overwrites what this home sealed before and nothing else.
    """
    round_id = str(read_draft(author.path, text=text()).get("round_id", ""))
    final = text(commitment=ConsortiumSecret(key).commitment(round_id))
    agreement = read_agreement(author.path, text=final).agreement
    make_folder(author.folder)
    with Lock(author.folder, what=f"what was written of '{author.path}'"):
        last = author.last()
        for path in map(author.secret, agreement.parties):
            if path.exists() and _digest(path) not in last.files:
                raise DiskError(
                    f"'{path}' is in the way: it was not made here for '{author.path}', and may be "
                    "the only copy of another round's secret. Move it away, then start again."
                )
        sealed = _sealed(author, agreement, identity, key)
        made = tuple(sealed.values())
        # The new files' digests are kept beside the old ones before any file changes, so that
        # whatever a kill leaves of them counts as made here, and the same call overwrites it.
        author.keep(files=(*last.files, *made))
        for path in sealed:
            copy_whole(path, author.path.with_name(path.name))
        for path in sorted(author.path.parent.glob(f"*{SUFFIX}")):  # of who is enrolled no more
            if path.stem not in agreement.parties and _digest(path) in last.files:
                remove_tree(path)
        # before the last step: no kill leaves a copy for good
        remove_tree(author.folder / "sealed")
        author.keep(text=final, words=author.words, files=made)
        write_agreement(author.path, final)


def _sealed(
    author: Authorship, agreement: Agreement, identity: Identity, key: bytes
) -> dict[Path, str]:
    """Seal the secret to each party, in the home folder; return the files and their digests."""
    folder = author.folder / "sealed"
    remove_tree(folder)
    make_folder(folder)
    draft = {
        "kind": "secret",
        "round_id": agreement.round_id,
        "agreement": agreement.digest().hex(),
        "sender": identity.public.name,
    }
    found = {}
    for party in agreement.enrolled:
        path = folder / f"{party.name}{SUFFIX}"
        found[path] = write_bundle(
            path, draft=draft, parts={PART: key}, sign=identity.sign, recipients=[party]
        )
    return found


def _digest(path: Path) -> str:
    with suppress(DiskError):
        return file_digest(path)
    return ""
