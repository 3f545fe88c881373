"""What comes to a party: news with receipts, the common span, its change of basis and the model."""

import hashlib
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from cobasis.bundle.agreement_file import news_at
from cobasis.bundle.envelope import PLAIN, open_manifest, plain_kind
from cobasis.bundle.manifest import MAX_AHEAD
from cobasis.bundle.messages import consensus_in, return_in
from cobasis.bundle.transcript import now
from cobasis.disk.whole import file_digest, opened, remove_tree, write_whole
from cobasis.errors import (
    ClockError,
    FitCheckError,
    ForeignBundleError,
    MessageError,
    ReplayError,
    StepError,
    VaultError,
)
from cobasis.linalg.arrays import orthonormality_defect
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.models.mixtures import raw_centres
from cobasis.party_side.predict import usable
from cobasis.party_side.session import SENT, PartySession
from cobasis.protocol.agreement import moment_of, moment_text
from cobasis.protocol.baseline import BaselineTable, table_of
from cobasis.protocol.card import ModelCard, check_card
from cobasis.protocol.exchanges import Reply, exchanges
from cobasis.protocol.explanations import coefficients_of
from cobasis.protocol.messages import ConsensusSpan, Return
from cobasis.protocol.news import MAX_BYTES as NEWS_BYTES
from cobasis.protocol.news import News
from cobasis.protocol.refusals import check_consensus, check_return
from cobasis.protocol.signatures import SignedReceipt, check_lines, check_receipt
from cobasis.protocol.sums_terms import table_layout
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.statistics.effect_table import EffectTable, effects_of
from cobasis.vault.datasets import UploadEntry
from cobasis.vault.vault import Accepted

ORTHOGONAL = 1e-8  # by how much G'G may miss the identity where the method makes rotations


def look_at(session: PartySession, path: Path) -> Literal["news"] | Reply:
    """Say what a file is that came, or refuse it; its signature is yet to be checked."""
    plain = plain_kind(path)
    if plain == "news":
        return "news"
    answers: dict[str, Reply] = {each.answer: each.reply for each in session.exchanges}
    if plain is None:
        manifest, _ = open_manifest(path, unseal=session.identity.unseal)
        session.expected.check(manifest, what=f"'{path.name}'")
        if manifest.kind in answers:
            return answers[manifest.kind]
    what = f"a {manifest.kind} from '{manifest.sender}'" if plain is None else PLAIN[plain]
    raise ForeignBundleError(
        f"'{path.name}' is {what}, and no file that a party accepts in this round: those are news, "
        f"{', '.join(answers.values())}. Look whether files were mixed up."
    )


def accepted_before(session: PartySession, path: Path) -> bool:
    """Whether this very file was accepted before; of news, whether they are the newest."""
    digest = file_digest(path)
    taken = {each.taken_as: each.answer for each in session.exchanges}
    known = {each.told[taken[each.event]] for each in session.history(*taken)}
    return digest in known or (session.news.exists() and digest == file_digest(session.news))


def accept_news(session: PartySession, path: Path) -> tuple[News, tuple[SignedReceipt, ...]]:
    """Check news, note the receipts that are new in them, and keep them if newest."""
    with opened(path) as (file, _):
        text = cast("bytes", file.read(NEWS_BYTES + 1))
    news, kept = News.from_text(text, session.agreement), news_at(session.news, session.agreement)
    _refuse_time(news, kept, path=path)
    before = () if kept is None else kept.revoked
    if lost := {each.name for each in before} - {each.name for each in news.revoked}:
        raise ReplayError(
            f"the news '{path.name}' do not say that the key of {', '.join(sorted(lost))} was "
            "revoked, and earlier ones do, which nothing takes back. Those stay. Ask the analyst, "
            "over another channel, who made these: somebody else may have its key."
        )
    known = {str(each.told["transcript"]) for each in session.history("receipt")}
    signed = []
    for exchange in exchanges(session.agreement):
        if (found := news.receipts_of(exchange.number).get(session.name)) is None:
            continue
        if not (sent := session.digests_sent(exchange)):
            raise VaultError(
                f"the analyst has received a file of party '{session.name}' that nothing in this "
                "home folder knows of. It was put back from an older copy, or another machine has "
                "sent with this key. Put the newest copy of the whole folder back; where there is "
                "none, these rows have to stay here. If neither is so, ask the analyst for the "
                "file: its signature shows whether this key has sent it."
            )
        check_receipt(
            found,
            analyst=session.analyst,
            agreement=session.agreement.digest().hex(),
            party=session.name,
            file=found.receipt.file if found.receipt.file in sent else sent[-1],
        )
        if found.receipt.transcript not in known:
            signed.append(found)
    with session.alone():
        write_whole(session.news, text)
        # Killed between these lines, the same news add what is missing: lines say what is known.
        for each in signed:
            told = {**each.receipt.model_dump(), "signature": each.signature}
            session.transcript.append("receipt", told)
    return news, tuple(signed)


def _refuse_time(news: News, kept: News | None, *, path: Path) -> None:
    """Raise ClockError for news of the future, ReplayError for older ones than are kept."""
    if moment_of(news.time) > now() + MAX_AHEAD:  # which no right ones could follow for so long
        raise ClockError(
            f"the news '{path.name}' say that they are of {news.time}, more than 48 hours after "
            f"now, {moment_text(now())}. One of the two clocks is wrong. Correct it; if it is the "
            "analyst's, ask for news that are made anew."
        )
    if kept is not None and moment_of(news.time) < moment_of(kept.time):
        raise ReplayError(
            f"the news '{path.name}' are of {news.time}, and newer ones are kept, of {kept.time}. "
            "Those stay; nothing has to be done."
        )


def adopt(session: PartySession, path: Path) -> ConsensusSpan:
    with session.alone():
        bundle = session.opened(path, kind="consensus")
        span = consensus_in(bundle)
        proposed = session.digests_sent(exchanges(session.agreement)[0])
        if proposed and session.name not in span.contributors:
            raise MessageError(
                f"party '{session.name}' sent a proposal, and this common span was made without "
                f"it, of {', '.join(span.contributors)}. Ask the analyst whether it came, and for "
                "the span that it is part of, or agree on a new round."
            )
        tag = session.round.secret().anchor_tag(session.agreement)
        check_consensus(span, session.agreement, anchor_tag=tag, party=session.name)
        before = session.round.consensus()
        other = before is not None and not np.array_equal(before.rows, span.rows)
        if other and session.vault.upload_of(session.agreement) is not None:
            raise StepError(
                f"party '{session.name}' has uploaded in round '{session.agreement.round_id}' "
                "through the common span that it adopted before, and this is another one. Rows are "
                "seen through one span only: keep the first, or agree on a new round."
            )
        session.round.adopt(span)
        if all(each.told["consensus"] != bundle.digest for each in session.history("adopted")):
            contributors = list(span.contributors)
            session.transcript.append(
                "adopted", {"consensus": bundle.digest, "contributors": contributors, "exchange": 1}
            )
        return span


def accept(session: PartySession, path: Path) -> Accepted:
    """Check what came back, and keep it; `cobasis.party_side.worth.score` says its worth.

    A later return of the same round, after a party came or left, takes the place of this one.
    """
    agreement = session.agreement
    with session.alone():
        bundle = session.opened(path, kind="return")
        returned = return_in(bundle, agreement=agreement, party=session.name)
        sent = _upload_of(session, bundle.manifest.told.get("upload"))
        manifest, digest, span = bundle.manifest, bundle.digest, session.round.consensus()
        _refuse_older(session, digest=digest, created=manifest.created)
        check_return(returned, agreement, party=session.name)
        check_lines(manifest.lines, agreement, consensus=span, parties=returned.trained_on)
        _refuse_no_rotation(returned, session)
        tag = None if agreement.sums else session.round.secret().anchor_tag(agreement)
        of: Any = {"consensus": span, "anchor_tag": tag, "n_rows": sent.n_rows}
        card = check_card(returned, agreement.whole, **of)
        ended, finished = _exchange_of(session, returned, card, sent=sent)
        model = encode_chain(returned.model) if isinstance(returned.model, Chain) else None
        accepted = Accepted(
            model=model,
            model_sha256="" if model is None else hashlib.sha256(model).hexdigest(),
            others=None if returned.others is None else encode_chain(returned.others),
            card=card.encoded(),
            total=None if returned.total is None else returned.total.astype("<i8").tobytes(),
            change_of_basis=returned.change_of_basis,
            evidence=returned.evidence,
            trained_on=returned.trained_on,
            target_carries=returned.target_carries,
            upload=sent.upload,
            bundle=digest,
            time=manifest.created,
        )
        table_in(session, accepted)  # MessageError where no rows can add up to it
        _keep(session, accepted, ended=ended, finished=finished)
        return accepted


def _keep(session: PartySession, accepted: Accepted, *, ended: int, finished: bool) -> None:
    # Vault, then transcript: killed in between, the same file is accepted once more, for it is
    # no older one; and no line tells of a return that is not there.
    session.round.accept(accepted)
    if finished or ended == len(exchanges(session.agreement)):  # of which scores are the last
        session.round.erase_mask_key()
    for each in exchanges(session.agreement, last=ended):  # what was sent has arrived
        remove_tree(session.kept_file(each, end=SENT))
    told: dict[str, Any] = {"return": accepted.bundle, "made": accepted.time, "exchange": ended}
    told |= {"model_sha256": accepted.model_sha256, "evidence": accepted.evidence}
    told |= {name: list(getattr(accepted, name)) for name in ("trained_on", "target_carries")}
    session.transcript.append("accepted", told | ({"finished": True} if finished else {}))


def _exchange_of(
    session: PartySession, returned: Return, card: ModelCard, *, sent: UploadEntry
) -> tuple[int, bool]:
    """Return which exchange a return ends, and whether no step follows; raise out of its turn."""
    every, finished = exchanges(session.agreement), False
    fit = returned.model.fit if isinstance(returned.model, Chain) else None
    number = len(every) - (every[-1].held and not card.scores)
    if fit is not None and sent.sums is not None:
        number, finished = sent.sums.step, fit.finished
    lines = session.history(*[each.sent_as for each in every])
    made = max((cast("int", each.told["exchange"]) for each in lines), default=number)
    if every[-1].held and number > made:
        raise MessageError(
            f"this return to party '{session.name}' says what the model is worth by scores, and "
            "the party has sent none. Ask the analyst which model that is."
        )
    if number < made:
        raise ReplayError(
            f"this return to party '{session.name}' is of exchange {number}, and the party has "
            f"made its {every[made - 1].message} of exchange {made} with the model that it keeps. "
            f"That stays. Wait for the return of exchange {made}."
        )
    return number, finished


def table_in(session: PartySession, accepted: Accepted) -> BaselineTable | None:
    if accepted.total is None:
        return None
    words = np.frombuffer(accepted.total, dtype="<i8").astype(np.int64)
    return table_of(words, session.agreement, layout=table_layout(session.agreement))


Found = BaselineTable | EffectTable | CoefficientTable | list[tuple[str | float, ...]]
"""What a round may find besides a model: a table, estimates, or clusters as lines."""


def found_in(session: PartySession, accepted: Accepted) -> Found | None:
    """Return what a kept return tells by the party's own columns; None of any other model."""
    if accepted.model is None:
        return table_in(session, accepted)
    agreed, use = session.agreement, usable(session, model="common", step=True)
    turn, fit = use.aligned(np.eye(agreed.n_features)), use.model.fit  # M = F_i G_i
    if agreed.task == "clustering":  # centres at l = m
        shares = ("share of all rows", *ModelCard.read(accepted.card).shares)
        # others may have columns beside ours, and a map leads back to none
        whole = agreed.n_inputs == agreed.whole.n_features and agreed.turn is None
        told = raw_centres(use.model, turn=turn, features=agreed.features) if whole else {}
        lines = ((name, *each) for name, each in told.items())
        return [("cluster", *agreed.classes), shares, *lines]
    if fit is not None and agreed.task == "effect":
        return effects_of(fit, turn=turn, features=agreed.features)
    return coefficients_of(fit, agreed, turn=turn) if fit is not None and fit.finished else None


def _upload_of(session: PartySession, upload: object) -> UploadEntry:
    agreement = session.agreement
    for sent in map(session.digests_sent, session.exchanges):
        upload = sent[-1] if agreement.sums and upload in sent else upload  # of the same words
    if isinstance(upload, str) and (found := session.vault.upload_of(agreement, upload=upload)):
        return found[1]
    raise ForeignBundleError(
        f"this return to party '{session.name}' was made for the upload {str(upload)[:16]}, which "
        f"is none that its vault has made in round '{agreement.round_id}', so no basis goes with "
        "it. Use the home folder that sent, or send first, and ask the analyst what was received."
    )


def _refuse_older(session: PartySession, *, digest: str, created: str) -> None:
    kept = session.round.accepted()
    if kept and kept.bundle != digest and moment_of(created) < moment_of(kept.time):
        raise ReplayError(
            f"this return to party '{session.name}' was made on {created}, before the one that was "
            f"accepted, of {kept.time}: somebody sends an old one again. The newer one stays. If "
            "the older is really wanted, ask the analyst to make it anew."
        )


def _refuse_no_rotation(returned: Return, session: PartySession) -> None:
    change = returned.change_of_basis
    if change is None or session.agreement.make_aligner().fit_kind != "rotation":
        return
    off = orthonormality_defect(change.T if change.shape[0] < change.shape[1] else change)
    if off > ORTHOGONAL:
        raise FitCheckError(
            f"the change of basis for party '{session.name}' misses G'G = I by {off:.1e}, above "
            f"{ORTHOGONAL:.0e}, so it is no rotation, and the agreed aligner "
            f"'{session.agreement.aligner}' makes nothing else. Ask the analyst to run the round "
            "again."
        )
