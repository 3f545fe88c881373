"""What a bundle has to be, beside rightly signed: of this round, for us, in time, and new."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cobasis.bundle.manifest import Kind, Manifest
from cobasis.errors import ClockError, ForeignBundleError, ReplayError
from cobasis.protocol.agreement_fields import moment_of, moment_text

MAX_AHEAD = timedelta(hours=48)
"""By how much a sender's clock may be fast."""


_SAYS = {
    "round_id": "is of round '{}', not of round '{}'",
    "agreement": "is of this round, but its agreement is another ({:.16}) than this one ({:.16})",
    "kind": "is of kind '{}', and kind '{}' is expected",
    "sender": "is from '{}', not from '{}'",
    "anchor_tag": "belongs to another anchor ({:.16}) than the one here ({:.16})",
}


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a bundle has to be; None is not checked."""

    kind: Kind | None = None
    round_id: str | None = None
    agreement: str | None = None
    sender: str | None = None  # who has to have signed it
    recipient: str | None = None  # who has to be among those it is for
    anchor_tag: str | None = None
    simulated: bool = False
    now: datetime | None = None  # by whose clock the future begins; the computer's by default

    def check(self, manifest: Manifest, *, what: str) -> None:
        """Raise ForeignBundleError or ClockError unless a manifest is of what is expected."""
        for name, says in _SAYS.items():
            wanted, found = getattr(self, name), getattr(manifest, name)
            if wanted is not None and found != wanted:
                raise ForeignBundleError(
                    f"{what} {says.format(found, wanted)}. Look whether the files were mixed up, "
                    "or ask for the right one."
                )
        if self.recipient is not None and self.recipient not in manifest.recipients:
            raise ForeignBundleError(
                f"{what} is for {', '.join(manifest.recipients[:5])}, not for '{self.recipient}'; "
                "somebody passed it on. Ask its sender for your own."
            )
        if manifest.simulated != self.simulated:
            marked = "drawn from a seed" if manifest.simulated else "of a real round"
            raise ForeignBundleError(
                f"{what} is {marked}, and does not belong here. Simulation and real rounds do not "
                "mix; ask its sender for the right one."
            )
        self._check_clock(moment_of(manifest.created), what)

    def _check_clock(self, created: datetime, what: str) -> None:
        now = self.now or datetime.now(UTC)
        if created <= now + MAX_AHEAD:
            return
        raise ClockError(
            f"{what} says that it was made on {moment_text(created)}, more than 48 hours after "
            f"now, {moment_text(now)}. One of the two clocks is wrong. Correct the clock and make "
            "the bundle anew."
        )


@dataclass(frozen=True, kw_only=True)
class AcceptedFile:
    """The file of a sender that was accepted in an exchange."""

    digest: str  # SHA-256 of the sealed file
    created: str


def refuse_replay(manifest: Manifest, *, digest: str, accepted: AcceptedFile | None) -> None:
    """Raise ReplayError when its sender's file of this exchange was accepted before.

    Two uploads of the same rows show more than one, and the second could be made to show where
    they differ. So the first one counts.
    """
    if accepted is None:
        return
    sender = manifest.sender
    if digest == accepted.digest:
        problem = f"came before: the same one of '{sender}' was accepted already"
        advice = "Nothing needs to be done"
    elif moment_of(manifest.created) < moment_of(accepted.created):
        problem = (
            f"of '{sender}' was made on {manifest.created}, before the one that was accepted, of "
            f"{accepted.created}"
        )
        advice = "The accepted one stays; move this file out of the folder"
    else:
        problem = f"is a second one of '{sender}', made on {manifest.created}"
        advice = "The first one stays; to replace it, agree on a new round"
    raise ReplayError(
        f"this {manifest.kind} {problem}. A party's {manifest.kind} is taken once in a round. "
        f"{advice}."
    )
