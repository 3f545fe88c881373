"""What a vault holds of one round: its secret, the consensus that was adopted, the return."""

from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from cobasis.algorithms.certificate import Evidence
from cobasis.errors import SecretError, StepError
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.plaintext import secret_bytes
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.vault.records import Record, Records

FOLDER = "rounds"


@dataclass(frozen=True, kw_only=True, repr=False)
class Accepted(Hidden):
    """A return that the party checked and keeps."""

    # G_i; with the basis it makes F_i G_i, a secret of the whole consortium
    change_of_basis: Matrix
    model: bytes | None  # the file as it came; None for representation
    evidence: Evidence
    trained_on: tuple[str, ...]
    target_carries: tuple[str, ...]
    upload: str  # digest of the sealed upload that it was made for
    bundle: str  # digest of the sealed file that it came in
    time: str


class RoundRecords(Hidden):
    """One round's records in a party's vault; ``Vault.round`` makes it."""

    def __init__(self, agreement: Agreement, *, folder: str, records: Records) -> None:
        self.agreement = agreement
        self._folder, self._records = folder, records

    def join(self, secret: ConsortiumSecret) -> None:
        """Keep the consortium secret, if it opens the agreement's commitment."""
        secret.check_opens(self.agreement, party=self._records.party)
        key = np.frombuffer(secret_bytes(secret), dtype=np.uint8)
        self._put("secret", {}, {"key": key})

    @property
    def joined(self) -> bool:
        """Whether the vault holds this round's secret."""
        return self._records.path(f"{self._folder}/secret").exists()

    def secret(self) -> ConsortiumSecret:
        """Return the consortium secret; StepError before `join` and once the round is forgotten."""
        record = self._get("secret")
        if record is None:
            raise StepError(
                f"party '{self._records.party}' holds no secret of round "
                f"'{self.agreement.round_id}': it has not joined, or has forgotten the round. "
                "Join with the secret that was sent to it."
            )
        return ConsortiumSecret(record.arrays["key"].tobytes())

    def adopt(self, span: ConsensusSpan) -> None:
        """Keep the consensus that came back."""
        if span.simulated:
            raise SecretError(
                "this consensus came from a simulation, and a vault keeps those of real rounds "
                "only. Have it made from real proposals."
            )
        about = {
            "agreement_digest": span.agreement_digest.hex(),
            "anchor_tag": span.anchor_tag.hex(),
            "contributors": list(span.contributors),
        }
        self._put("consensus", about, {"rows": span.rows})

    def consensus(self) -> ConsensusSpan | None:
        """Return the consensus that was adopted, None where there is none."""
        record = self._get("consensus")
        if record is None:
            return None
        return ConsensusSpan(
            agreement_digest=bytes.fromhex(record.about["agreement_digest"]),
            anchor_tag=bytes.fromhex(record.about["anchor_tag"]),
            rows=record.arrays["rows"],
            contributors=tuple(record.about["contributors"]),
            simulated=False,
        )

    def accept(self, accepted: Accepted) -> None:
        """Keep a return that was checked; a later one takes its place."""
        about = asdict(accepted)
        arrays = {"change_of_basis": about.pop("change_of_basis")}
        model = about.pop("model")
        if model is not None:
            arrays["model"] = np.frombuffer(model, dtype=np.uint8)
        self._put("return", about, arrays)

    def accepted(self) -> Accepted | None:
        """Return what was accepted, None where there is none."""
        record = self._get("return")
        if record is None:
            return None
        model = record.arrays.get("model")
        told = record.about
        return Accepted(
            change_of_basis=record.arrays["change_of_basis"],
            model=None if model is None else model.tobytes(),
            evidence=cast("Evidence", told["evidence"]),
            trained_on=tuple(told["trained_on"]),
            target_carries=tuple(told["target_carries"]),
            upload=told["upload"],
            bundle=told["bundle"],
            time=told["time"],
        )

    def _put(self, name: str, about: dict[str, Any], arrays: dict[str, Any]) -> None:
        self._records.put(f"{self._folder}/{name}", Record(about=about, arrays=arrays))

    def _get(self, name: str) -> Record | None:
        return self._records.get(f"{self._folder}/{name}")
