"""A party's vault: what it keeps of its data sets and of each round."""

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from cobasis.algorithms.certificate import Evidence
from cobasis.errors import SpanReuseError, StepError, VaultError
from cobasis.features.mapping import Mapping as TableMapping
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import EXCHANGES
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.plaintext import basis_columns, secret_bytes
from cobasis.protocol.secrets import ConsortiumSecret, SecretBasis
from cobasis.strict_json import canonical_json
from cobasis.vault.datasets import (
    Asked,
    Choice,
    Dataset,
    Fingerprints,
    UploadEntry,
    choose_span,
    load_datasets,
    save_dataset,
)
from cobasis.vault.ledger import Spent, affordable, charge_of, spent_on
from cobasis.vault.records import Cipher, Given, Record, Records

_BYTES = 8
"""Of a fingerprint: in a table of a million rows two unlike ones are alike with odds of 3e-8."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Accepted(Hidden):
    # G_i; with the basis it makes F_i G_i, a secret of the whole consortium
    change_of_basis: Matrix | None  # None where sums were sent
    model: bytes | None  # the file as it came; None for representation
    evidence: Evidence
    trained_on: tuple[str, ...]
    target_carries: tuple[str, ...]
    upload: str  # digest of the sealed upload that it was made for
    bundle: str  # digest of the sealed file that it came in
    time: str  # when the analyst made it
    model_sha256: str = ""  # the same at every party
    others: bytes | None = None  # a model file too, trained without this party
    card: bytes = b""  # as it came; empty in what an earlier version accepted
    total: bytes | None = None  # of a baseline table: everybody's sums, as int64
    local: bytes | None = None  # what the model became here, over the party's own columns
    chosen: str | None = None  # None where nothing was compared


_FILES = ("model", "others", "card", "total", "local")
_MASKS = "masks"  # a folder of its own, which is destroyed at one moment


class Vault(Hidden):
    """A party's secrets at rest.

    Every write is one file, old or new and never half, so a crash at any moment leaves a vault
    that works; what it left behind goes at the next opening. Two processes take turns.
    """

    def __init__(self, folder: Path, *, party: str, seal: Cipher, unseal: Cipher) -> None:
        self.party = party
        self._records = Records(folder, party=party, seal=seal, unseal=unseal)

    def fingerprints(self, rows: Iterable[bytes], *, use: bytes = b"fingerprints") -> Fingerprints:
        key = self._records.derived(use)
        marks = b"".join(hmac.digest(key, each, "sha256")[:_BYTES] for each in rows)
        return np.frombuffer(marks, dtype="<u8").astype(np.uint64)

    def people(self, identifiers: Iterable[str]) -> Fingerprints:
        """Return the fingerprints of rows' identifiers, in their order, under a key of its own."""
        return self.fingerprints((each.encode() for each in identifiers), use=b"people")

    def affordable(
        self, asked: Asked, agreement: Agreement, *, release: str | None = None
    ) -> Spent:
        spent = spent_on(self.datasets(), asked)
        return affordable(spent, agreement, party=self.party, release=release)

    def choose_span(self, asked: Asked) -> Choice:
        seed = self._records.derived(b"data sets")
        return choose_span(self.datasets(), asked, party=self.party, seed=seed)

    # One record has all three, so that a kill leaves none of them or all. Behind it the upload
    # counts as seen and as paid for, though its file may never become whole: counted afterwards, a
    # kill in between would have shown rows, or spent noise, that nobody knows of.
    def begin_upload(
        self,
        choice: Choice,
        basis: SecretBasis | None,
        *,
        agreement: Agreement,
        time: str,
        release: str = "",
    ) -> int:
        """Keep the basis, the rows and the charge of an upload, before a byte of it leaves.

        Without a basis it is a proposal, or sums. The release is a digest of sums, or of all that
        the noise of rows is drawn for.
        """
        asked = choice.asked
        with self._records.alone():
            self.affordable(asked, agreement, release=release)
            now = self.choose_span(asked)  # nobody else writes any more
            if basis is not None:
                self._refuse_other_basis(now, choice, basis)
            elif before := self.made_before(agreement, asked, content=release):
                return before.number
            forced = asked.forced if now.span == "forced" else None
            entry = UploadEntry(
                number=1 + len(self.heads()),
                time=time,
                round_id=agreement.round_id,
                agreement=agreement.digest().hex(),
                message=asked.message,
                upload="",
                n_rows=len(asked.rows),
                n_components=asked.shape[1],
                basis=agreement.basis,
                span=now.span,
                reason=forced.reason if forced else "",
                by=" and ".join(forced.by) if forced else "",
                charge=charge_of(agreement, release),
                sums=asked.sums and replace(asked.sums, content=release),
            )
            dataset = (None if basis is None else now.dataset) or Dataset(
                name=secrets.token_hex(8),
                basis=basis,
                key=choice.key,
                columns=asked.columns,
                names=asked.names,
            )
            dataset = dataset.uploading(asked.rows, people=asked.people, entry=entry)
            save_dataset(dataset, self._records)
        return entry.number

    def made_before(
        self, agreement: Agreement, asked: Asked, *, content: str = ""
    ) -> UploadEntry | None:
        """Return a round's proposal or sums if they were of these rows; StepError if of others."""
        # The difference of two is a person, where one came or went in between; of two contents
        # under one mask it is all that differs.
        digest, sums = agreement.digest().hex(), asked.sums
        for dataset in self.datasets():
            entry = dataset.history[0]
            if (entry.message, entry.agreement) != (asked.message, digest):
                continue
            same = np.array_equal(dataset.last, asked.rows)
            if sums is not None and entry.sums is not None:
                if sums.attempt != entry.sums.attempt:
                    continue
                same = same and sums.data == entry.sums.data
                if same and sums.step != entry.sums.step:
                    continue
                same = same and content in {"", entry.sums.content}
            if same:
                return entry
            raise StepError(
                f"party '{self.party}' made its {entry.message} of other rows, labels or models "
                f"on {entry.time}, and a round takes one: the difference of two shows who came or "
                "went. Give the table of then, or agree on a new round."
            )
        return None

    def _refuse_other_basis(self, now: Choice, choice: Choice, basis: SecretBasis) -> None:
        fits = choice.dataset is None and basis.shape == choice.asked.shape
        if now.dataset is not None:
            kept = cast("SecretBasis", now.dataset.basis)
            fits = np.array_equal(basis_columns(basis), basis_columns(kept))
        if not fits:
            raise SpanReuseError(
                f"the basis that party '{self.party}' is about to upload through is not the one "
                "that its vault has for these rows: another upload of them may have begun "
                "meanwhile. Nothing has left. Start again, and the stored one is used."
            )

    def finish_upload(self, number: int, digest: str) -> None:
        with self._records.alone():
            for dataset in self.datasets():
                lines = {line.number: line for line in dataset.history}
                if number in lines:
                    lines[number] = replace(lines[number], upload=digest)
                    save_dataset(replace(dataset, history=tuple(lines.values())), self._records)

    def upload_of(
        self, agreement: Agreement, *, upload: str | None = None
    ) -> tuple[Dataset, UploadEntry] | None:
        """Return a round's last upload, or a certain one, behind the data set that it is of."""
        digest = agreement.digest().hex()
        found = [
            (dataset, entry)
            for dataset in self.datasets()
            for entry in dataset.history
            if EXCHANGES[entry.message].trains
            and entry.agreement == digest
            and entry.upload
            and upload in {None, entry.upload}
        ]
        return max(found, key=lambda each: each[1].number, default=None)

    def datasets(self) -> tuple[Dataset, ...]:
        return load_datasets(self._records)

    def history(self) -> tuple[UploadEntry, ...]:
        """Return every file that was ever begun, oldest first; nothing deletes a line."""
        found = (entry for each in self.datasets() for entry in each.history)
        return tuple(sorted(found, key=lambda entry: entry.number))

    def heads(self, known: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the head of the history after each file: a keyed hash of it and of all before.

        VaultError where a file is gone, or one that has a known head.
        """
        key, history, found = self._records.derived(b"history"), self.history(), [""]
        for entry in history:  # the digest of a file is known only when it is whole
            told = asdict(replace(entry, upload=""))
            if entry.sums is None:  # as before there were any
                del told["sums"]
            elif entry.sums.step == 1:
                del told["sums"]["step"]
            text = canonical_json(told)
            found.append(hmac.digest(key, found[-1].encode() + text, "sha256").hex())
        whole = [each.number for each in history] == [*range(1, len(found))]
        if whole and not {*known} - {*found}:
            return tuple(found[1:])
        raise VaultError(
            f"the history in the vault of party '{self.party}' lacks a file that left: a later "
            "line, a transcript or a receipt of the analyst knows of it. The vault, or a record "
            "of it, was deleted or put back from an older copy, and cannot tell any more whose "
            "rows left. Nothing was made. Put the newest copy of the whole vault back; where there "
            "is none, these rows have to stay here."
        )

    def round(self, agreement: Agreement) -> "RoundRecords":
        """Return what the vault holds of a round, and keeps of it, under a name of no meaning."""
        token = hmac.digest(self._records.derived(b"rounds"), agreement.digest(), "sha256")[:16]
        return RoundRecords(agreement, folder=f"rounds/{token.hex()}", records=self._records)


class RoundRecords(Hidden):
    def __init__(self, agreement: Agreement, *, folder: str, records: Records) -> None:
        self.agreement = agreement
        self._folder, self._records = folder, records

    def join(self, secret: ConsortiumSecret) -> None:
        secret.check_opens(self.agreement, party=self._records.party)
        self._put("secret", arrays={"key": secret_bytes(secret)})

    @property
    def joined(self) -> bool:
        return self._records.path(f"{self._folder}/secret").exists()

    def mask_key(self, *, new: bool = False) -> MaskKey:
        """Return the party's key for this round's masks; StepError where there is none any more."""
        record = self._get(f"{_MASKS}/key")
        if record is not None:
            return MaskKey(record.arrays["key"].tobytes())
        if not new or self.accepted() is not None:
            raise StepError(
                f"party '{self._records.party}' has no key for masks of round "
                f"'{self.agreement.round_id}': it has not signed, or the round has ended for it, "
                "and the key was erased. 'cobasis sign' makes one before the first; for another "
                "model agree on a new round."
            )
        made = MaskKey()
        self._put(f"{_MASKS}/key", arrays={"key": secret_bytes(made)})
        return made

    def erase_mask_key(self) -> None:
        """Erase it once no file of the round needs masks any more: it would open the archived."""
        self._records.remove(f"{self._folder}/{_MASKS}")

    def secret(self) -> ConsortiumSecret:
        record = self._get("secret")
        if record is None:
            raise StepError(
                f"party '{self._records.party}' holds no secret of round "
                f"'{self.agreement.round_id}': it has not joined, or has forgotten the round. "
                "'cobasis sign' takes the secret that was sent to it."
            )
        return ConsortiumSecret(record.arrays["key"].tobytes())

    def adopt(self, span: ConsensusSpan) -> None:
        about = {
            "agreement_digest": span.agreement_digest.hex(),
            "anchor_tag": span.anchor_tag.hex(),
            "contributors": list(span.contributors),
        }
        self._put("consensus", arrays={"rows": span.rows}, about=about)

    def consensus(self) -> ConsensusSpan | None:
        record = self._get("consensus")
        if record is None:
            return None
        told = record.about
        return ConsensusSpan(
            **{each: bytes.fromhex(told[each]) for each in ("agreement_digest", "anchor_tag")},
            rows=record.arrays["rows"],
            contributors=tuple(told["contributors"]),
            simulated=False,
        )

    def call_right(self, asked: Iterable[tuple[str, str]]) -> None:
        answers = self.called_right()
        for name, problem in asked:
            answers[name] = sorted({*answers.get(name, ()), problem})
        self._put("columns", about={"right": answers, "mapping": self.mapping().digest()})

    def called_right(self) -> dict[str, list[str]]:
        """Return of each column what somebody called right, of the columns as mapped now."""
        record = self._get("columns")
        if record is None or record.about["mapping"] != self.mapping().digest():
            return {}
        return dict(record.about["right"])

    def map_columns(self, mapping: TableMapping) -> None:
        self._put("mapping", about=mapping.model_dump(mode="json"))

    def mapping(self) -> TableMapping:
        record = self._get("mapping")
        return TableMapping() if record is None else TableMapping.model_validate(record.about)

    def accept(self, accepted: Accepted) -> None:
        about = asdict(accepted)
        given = {name: about.pop(name) for name in ("change_of_basis", *_FILES)}
        arrays = {name: each for name, each in given.items() if each is not None}
        self._put("return", arrays=arrays, about=about)

    def accepted(self) -> Accepted | None:
        record = self._get("return")
        if record is None:
            return None
        about, arrays = dict(record.about), dict(record.arrays)
        about.pop("orthogonality", None)  # of what an earlier version accepted
        about |= {name: tuple(about[name]) for name in ("trained_on", "target_carries")}
        about |= {name: arrays[name].tobytes() for name in _FILES if name in arrays}
        change = arrays.get("change_of_basis")
        return Accepted(change_of_basis=change, **{"model": None, **about})

    def note_table(self, table: Path, *, held: Fingerprints) -> None:
        self._put("table", arrays={"held": held}, about={"path": str(table.resolve())})

    def noted_table(self) -> tuple[Path | None, Fingerprints]:
        """Return the noted table, and whom it held back; None before, and behind `forget`."""
        if (table := self._get("table")) is None:
            return None, np.zeros(0, np.uint64)
        return Path(table.about["path"]), table.arrays.get("held", np.zeros(0, np.uint64))

    def forget(self) -> None:
        """Destroy secret, consensus and return; nothing happens where there are none."""
        self._records.remove(self._folder)

    def _put(self, name: str, *, arrays: Given | None = None, about: Any = None) -> None:  # noqa: ANN401 -- JSON
        with self._records.alone():  # nobody seals anew meanwhile what stood there before
            self._records.put(f"{self._folder}/{name}", arrays=arrays, about=about)

    def _get(self, name: str) -> Record | None:
        return self._records.get(f"{self._folder}/{name}")
