"""A party's session: who it is, what was agreed, its vault and its transcript, opened together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from cobasis.bundle.agreement_file import news_at, signed_agreement, stem_of
from cobasis.bundle.envelope import Bundle, open_bundle, open_in_memory, write_bundle
from cobasis.bundle.manifest import Expected, Kind
from cobasis.bundle.messages import Enclosed
from cobasis.bundle.transcript import Entry, Transcript, now, verify_transcript
from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, remove_tree
from cobasis.errors import CobasisError, CommitmentError, DiskError, OptionError, StepError
from cobasis.keys.identity import Identity, enrolled_key
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import KEY_BYTES
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.exchanges import Exchange, exchanges
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.protocol.signatures import analyst_of, check_sealed, mask_keys, signers
from cobasis.protocol.sums_terms import may_leave_out
from cobasis.vault.vault import Vault

NEWS = "news"
MADE, SENT = ".made", ".sent"
"""Sealed files in the work folder: without a name outside yet, and those that were given one."""


class PartySession(Hidden):
    def __init__(self, path: Path, agreed: Agreement, *, identity: Identity, home: Path) -> None:
        name, digest = identity.public.name, agreed.digest().hex()
        self.name, self.path, self.agreement = name, path, agreed.held_by(name)
        # perhaps an earlier one; the vault is under the newest
        self.identity = enrolled_key(identity, signers(agreed)[name])
        self.transcript = Transcript(transcript_path(agreed, name, home=home))
        self.news = self.transcript.path.with_name(NEWS)  # the newest that were accepted
        self.work = home / "work" / name / digest[:16]
        self.payload = self.work / "upload.safetensors"  # projected rows, until they are sealed
        self.audits = home / "audits" / name / digest[:16]
        self.expected = Expected(round_id=agreed.round_id, agreement=digest, recipient=name)
        self.report: Report = silent  # hears how far the command at work is
        make_folder(self.work)
        make_folder(self.news.parent)
        seals: Any = {"seal": identity.seal_for_self, "unseal": identity.unseal_own}
        self.vault = Vault(home / "vault" / name, party=name, **seals)
        self.round = self.vault.round(agreed)  # what the vault holds of it

    @property
    def analyst(self) -> PublicIdentity:
        return analyst_of(self.agreement)

    def beside(self, word: str) -> Path:
        """Return where a file of the round lies: ``icu.north.1-proposal`` for ``1-proposal``."""
        return self.path.with_name(f"{stem_of(self.path)}.{self.name}.{word}")

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        ended = [each.told for each in self.history("accepted") if each.told.get("finished")]
        return exchanges(self.agreement, last=cast("int", ended[-1]["exchange"]) if ended else None)

    @property
    def upcoming(self) -> Exchange:
        """The exchange that the party sends in: the first until its answer was accepted."""
        every = self.exchanges
        ended = [cast("int", each.told["exchange"]) for each in self.history("accepted")]
        ended += [1] * (self.round.consensus() is not None)  # known before a line tells of it
        return every[min(max(ended, default=0), len(every) - 1)]

    def history(self, *events: str) -> tuple[Entry, ...]:
        path = self.transcript.path
        found = verify_transcript(path) if path.exists() else ()
        return tuple(each for each in found if each.event in events)

    def digests_sent(self, exchange: Exchange) -> tuple[str, ...]:
        lines = [each.told for each in self.history(exchange.sent_as)]
        return tuple(str(x[exchange.message]) for x in lines if x["exchange"] == exchange.number)

    def kept_file(self, exchange: Exchange, *, end: str) -> Path:
        return self.work / f"{exchange.number}-{exchange.message}{end}"

    def refuse_rollback(self) -> None:
        """Raise VaultError where a transcript or a receipt knows a file that the vault does not."""
        homes, told = self.transcript.path.parent.parent, []
        for path in homes.glob("*/transcript.jsonl"):  # of all rounds
            told += [str(each.told.get("history", "")) for each in verify_transcript(path)]
        news = news_at(self.path.with_name(f"{stem_of(self.path)}.{NEWS}"), self.agreement)
        receipts = () if news is None else (each.receipt for each in news.receipts)
        told += [each.history for each in receipts if each.party == self.name]
        self.vault.heads({*told} - {""})

    def require_open(self) -> None:
        """Raise StepError for a round that the party has forgotten, RevokedError where it stands.

        With the old secret and an old return a party that was removed would be back in it.
        """
        if forgotten := self.history("forgotten"):
            raise StepError(
                f"party '{self.name}' has forgotten the round '{self.agreement.round_id}' on "
                f"{forgotten[-1].time}, so it stays closed here. For a new model, agree on a new "
                "round."
            )
        found = [news_at(self.news, self.agreement)]
        with suppress(CobasisError):  # perhaps not accepted yet; foreign ones hide no return
            beside = self.path.with_name(f"{stem_of(self.path)}.{NEWS}")
            found.append(news_at(beside, self.agreement))
        if told := [each for each in found if each is not None and each.revoked]:
            newest = max(told, key=lambda each: each.time)
            newest.refuse_revoked(self.agreement, asking=self.name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other commands out of the work folder, in which no command leaves anything plain."""
        make_folder(self.work)
        # The system lets go of the lock when a process dies, however it dies, so what lies here
        # then is a killed command's.
        with Lock(self.work, what=f"the work folder '{self.work}'"):
            self._sweep()
            try:
                yield
            finally:
                self._sweep()

    def _sweep(self) -> None:
        """Delete projected rows and what was opened; what was made is sealed."""
        for path in sorted(self.work.glob("*")):
            if path.suffix not in {MADE, SENT}:
                remove_tree(path)

    def seal(self, enclosed: Enclosed, path: Path, *, to: Sequence[PublicIdentity]) -> str:
        return write_bundle(path, **enclosed._asdict(), sign=self.identity.sign, recipients=to)

    def opened(self, path: Path, *, kind: Kind, senders: Sequence[PublicIdentity] = ()) -> Bundle:
        """Open what the analyst, or who is named, sent; while `alone`, whose end deletes it."""
        self.require_open()
        return open_bundle(
            path,
            unseal=self.identity.unseal,
            signer={each.name: each for each in senders or (self.analyst,)},
            into=self.work / "opened",
            expected=replace(self.expected, kind=kind),
        )

    def roster(self) -> tuple[dict[str, str], int]:
        """Return who adds up under which key for masks, and in which attempt, by the kept news.

        The analyst says who is left out of an attempt. Whether somebody may be, the agreement and
        this machine's own clock say: of fewer parties the total says more of each.
        """
        agreement, signatures = self.agreement, signed_agreement(self.path).signatures
        check_sealed(agreement, signatures=signatures)  # of what is read now
        keys, news = mask_keys(agreement, signatures), news_at(self.news, self.agreement)
        kept, left = self.round.accepted(), () if news is None else news.without
        if kept is not None and {*keys} - {*left} != {*kept.trained_on}:
            raise StepError(
                f"the model that party '{self.name}' keeps is of the sums of "
                f"{', '.join(kept.trained_on)}, and more would be added up with that of others. "
                "Nothing is made. Ask why, and for a new round."
            )
        if news is None or news.attempt == 1:
            return keys, 1
        closes, may = agreement.closes, may_leave_out(agreement, attempt=news.attempt)
        if closes is None or now() < closes or not may:
            raise StepError(
                f"'{news.analyst}' begins sums again (left out: "
                f"{', '.join(news.without) or 'nobody'}), and the agreement allows that behind its "
                "deadline alone, with least_rows of 20 for each feature or with noise and a "
                "lifetime_epsilon that it does not exceed. Nothing is made. Ask why, and for "
                "a new round."
            )
        if self.name in news.without:
            raise StepError(
                f"'{news.analyst}' goes on without party '{self.name}' since {news.time}, so "
                "nothing of it is added up. Ask for another attempt, which takes it in again "
                f"(cobasis run --with {self.name}), or for a new round."
            )
        return {name: key for name, key in keys.items() if name not in news.without}, news.attempt


def transcript_path(agreement: Agreement, name: str, *, home: Path) -> Path:
    """Return where a party's transcript of a round stands; no key is needed to read it."""
    return home / "transcripts" / name / agreement.digest().hex()[:16] / "transcript.jsonl"


SUFFIX, PART = ".secret", "secret.bin"
"""Of a file with the consortium secret, and the name of its one part."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SentSecret(Hidden):
    key: bytes
    maker: str
    bundle: str


def read_secret(session: PartySession, path: Path | None = None) -> SentSecret:
    """Open the consortium secret, and hold it against agreement and commitment.

    A secret goes with the very agreement that is signed. Were it taken under another text,
    whoever wrote the parties' keys could have it sealed for a key of their own first, and then
    put the right keys back and seal it for their owners again: the maker's signature would stand.
    """
    with session.alone():
        session.require_open()
        manifest, key, digest = open_in_memory(
            path or session.path.with_name(f"{session.name}{SUFFIX}"),
            unseal=session.identity.unseal,
            signer={each.name: each for each in session.agreement.enrolled},
            expected=replace(session.expected, kind="secret"),
        )
        if len(key) != KEY_BYTES:
            raise CommitmentError(
                f"the secret that '{manifest.sender}' sent to party '{session.name}' has "
                f"{len(key)} bytes, not {KEY_BYTES}. Ask for the file that 'cobasis agreement new' "
                "makes."
            )
        ConsortiumSecret(key).check_opens(session.agreement, party=session.name)
        return SentSecret(key=key, maker=manifest.sender, bundle=digest)


def keep_secret(session: PartySession, sent: SentSecret) -> None:
    # In this order: a kill in between leaves a secret that no line tells of, and `sign` reads it
    # again and writes the line. A line about a secret that is not there would have to be believed.
    with session.alone():
        session.round.join(ConsortiumSecret(sent.key))
        session.transcript.append("joined", {"secret_from": sent.maker, "bundle": sent.bundle})


def refuse_target(to: Path, *, table: Path | None = None) -> None:
    """Raise OptionError or DiskError where a result would overwrite its table or has no folder."""
    with suppress(OSError):
        if table is not None and (to.resolve() == table.resolve() or to.samefile(table)):
            raise OptionError(
                f"-o '{to}' is a table of yours, which would be overwritten. Choose another name."
            )
    if to.is_dir() or not to.parent.is_dir():
        raise DiskError(f"'{to}' is a folder, or in one that does not exist. Name a file.")


def forget(session: PartySession) -> str:
    """Destroy what the vault has of a round: the consortium secret, the common span, the return.

    The basis and the history of uploads stay: a later round on the same rows needs them. So do
    files that were exported, and sealed files outside the home folder.
    """
    with session.alone():
        # First the line: after a kill in between the secret is still there, and typing the command
        # again ends it. Behind a secret that is gone without a line nobody could say why.
        found = session.history("forgotten") or [session.transcript.append("forgotten", {})]
        session.round.forget()
        remove_tree(session.work)
        return found[0].time
