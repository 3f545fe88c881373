"""What comes back to a party: the common span, the receipt, its change of basis and the model."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from cobasis.algorithms.certificate import Evidence
from cobasis.bundle.envelope import Expected
from cobasis.bundle.manifest import Kind, moment_of
from cobasis.bundle.messages import consensus_in, return_in
from cobasis.bundle.receipts import MAX_BYTES, read_receipt
from cobasis.disk.files import opened
from cobasis.errors import FitCheckError, ReplayError, StepError
from cobasis.linalg.arrays import orthonormality_defect
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.party_side.desk import (
    PartyDesk,
    alone,
    digest_of,
    note,
    notes,
    opened_bundle,
    time_now,
)
from cobasis.party_side.preview import require_made_for, require_uploaded
from cobasis.protocol.messages import Return
from cobasis.protocol.prediction import check_consensus, check_return
from cobasis.protocol.receipts import SignedReceipt, check_receipt, countersign
from cobasis.vault import Accepted

ORTHOGONAL = 1e-8
"""By how much G'G may miss the identity where the method makes rotations."""

_CREATED, _BUNDLE = "return_created", "return_bundle"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A return that was checked and is kept.

    Attributes
    ----------
    upload, bundle, model_sha256 : str
        SHA-256 of the upload that it was made for, of the sealed file, and of the model, which has
        to be the same at every party; empty where the round trains none.
    evidence : {"not a random turn", "cannot tell"}
        What the certificate says of this party.
    trained_on, target_carries : tuple of str
        Whose rows shaped the model, and whose trace the target keeps.
    orthogonality : float or None
        Largest entry of ``G'G - I`` where the method makes rotations.
    """

    upload: str
    bundle: str
    model_sha256: str
    evidence: Evidence
    trained_on: tuple[str, ...]
    target_carries: tuple[str, ...]
    orthogonality: float | None


def adopt(desk: PartyDesk, consensus: Path) -> tuple[str, ...]:
    """Check the common span that came back, and keep it for `prepare`."""
    with alone(desk):
        expected = _expected(desk, kind="consensus")
        with opened_bundle(desk, consensus, signer=desk.analyst, expected=expected) as bundle:
            span = consensus_in(bundle, agreement=desk.agreement)
            digest = bundle.digest
        tag = desk.round.secret().anchor_tag(desk.agreement)
        check_consensus(span, desk.agreement, anchor_tag=tag, party=desk.name)
        before = desk.round.consensus()
        if before is not None and not np.array_equal(before.rows, span.rows):
            _refuse_second_span(desk)
        desk.round.adopt(span)
        contributors = list(span.contributors)
        desk.transcript.append("adopted", {"consensus": digest, "contributors": contributors})
        return span.contributors


def accept(desk: PartyDesk, path: Path) -> Taken:
    """Check what came back, and keep it; `cobasis.party_side.scoring.score` says its worth.

    A later return of the same round, after a party came or left, takes the place of this one.
    """
    with alone(desk):
        require_uploaded(desk)
        expected = _expected(desk, kind="return")
        with opened_bundle(desk, path, signer=desk.analyst, expected=expected) as bundle:
            returned = return_in(bundle, agreement=desk.agreement, party=desk.name)
            upload = require_made_for(desk, bundle.manifest.told.get("upload"))
            digest, created = bundle.digest, bundle.manifest.created
        _refuse_older(desk, digest=digest, created=created)
        size = desk.agreement.n_components
        check_return(returned, desk.agreement, n_components=size, party=desk.name)
        orthogonality = _checked_fit(returned, desk)
        model = encode_chain(returned.model) if isinstance(returned.model, Chain) else None
        taken = Taken(
            upload=upload,
            bundle=digest,
            model_sha256="" if model is None else digest_of(model),
            evidence=returned.evidence,
            trained_on=returned.trained_on,
            target_carries=returned.target_carries,
            orthogonality=orthogonality,
        )
        _keep(desk, returned, taken=taken, created=created, model=model)
        return taken


def receipt(desk: PartyDesk, path: Path) -> SignedReceipt:
    """Check the analyst's receipt for an upload of this round, and countersign it."""
    last = require_uploaded(desk)
    with opened(path) as (file, _):
        signed = read_receipt(cast("bytes", file.read(MAX_BYTES + 1)))
    agreement = desk.agreement.digest().hex()
    made = {each.upload for each in desk.vault.history() if each.agreement == agreement}
    upload = signed.receipt.file
    check_receipt(
        signed,
        analyst=desk.analyst,
        agreement=agreement,
        party=desk.name,
        file=upload if upload in made else last.upload,
    )
    countersigned = countersign(signed, desk.identity.sign)
    desk.transcript.append("receipt", countersigned.told())
    return countersigned


def _expected(desk: PartyDesk, *, kind: Kind) -> Expected:
    """Return what a bundle from the analyst has to be."""
    return Expected(
        kind=kind,
        round_id=desk.agreement.round_id,
        agreement=desk.agreement.digest().hex(),
        sender=desk.analyst.name,
        recipient=desk.name,
    )


def _refuse_second_span(desk: PartyDesk) -> None:
    """Raise StepError for another span than the one that this round's upload went through."""
    if desk.vault.upload_of(desk.agreement) is None:
        return
    raise StepError(
        f"party '{desk.name}' has uploaded in round '{desk.agreement.round_id}' through the common "
        "span that it adopted before, and this is another one. Rows are seen through one span "
        "only: keep the first, or agree on a new round."
    )


def _refuse_older(desk: PartyDesk, *, digest: str, created: str) -> None:
    """Raise ReplayError for a return that was made before the one that is kept."""
    told = notes(desk)
    if _CREATED not in told or told[_BUNDLE] == digest:
        return
    if moment_of(created) < moment_of(told[_CREATED]):
        raise ReplayError(
            f"this return to party '{desk.name}' was made on {created}, before the one that was "
            f"accepted, of {told[_CREATED]}: somebody sends an old one again. The newer one stays. "
            "If the older is really wanted, ask the analyst to make it anew."
        )


def _checked_fit(returned: Return, desk: PartyDesk) -> float | None:
    """Return how far a rotation is from one; FitCheckError where that is too far."""
    if desk.agreement.make_aligner().fit_kind != "rotation":
        return None
    change = returned.change_of_basis
    short = change.T if change.shape[0] < change.shape[1] else change
    off = orthonormality_defect(short)
    if off <= ORTHOGONAL:
        return off
    raise FitCheckError(
        f"the change of basis for party '{desk.name}' misses G'G = I by {off:.1e}, above "
        f"{ORTHOGONAL:.0e}, so it is no rotation, and the agreed aligner "
        f"'{desk.agreement.aligner}' makes nothing else. Ask the analyst to run the round again."
    )


def _keep(
    desk: PartyDesk, returned: Return, *, taken: Taken, created: str, model: bytes | None
) -> None:
    """Write a return into notes, vault and transcript."""
    note(desk, **{_CREATED: created, _BUNDLE: taken.bundle})
    desk.round.accept(
        Accepted(
            change_of_basis=returned.change_of_basis,
            model=model,
            evidence=taken.evidence,
            trained_on=taken.trained_on,
            target_carries=taken.target_carries,
            upload=taken.upload,
            bundle=taken.bundle,
            time=time_now(),
        )
    )
    desk.transcript.append(
        "accepted",
        {
            "return": taken.bundle,
            "model_sha256": taken.model_sha256,
            "evidence": taken.evidence,
            "trained_on": list(taken.trained_on),
            "target_carries": list(taken.target_carries),
        },
    )
