"""The one word that a party may say of a model: coarse, signed and once, and no figure more."""

from typing import Annotated, Literal

from pydantic import Field

from cobasis.errors import ForeignBundleError, SignatureError
from cobasis.models.worth import Verdict
from cobasis.protocol.agreement import Agreement, Digest, Moment
from cobasis.protocol.enrolment import IdentityName, SignedLine, officers_of
from cobasis.protocol.signatures import Approval

WORD = "word"
"""The event of a transcript, a party's own and the analyst's."""

ROWS, POINTS = 10, 5
"""To which rows and accuracy are rounded."""


class Word(SignedLine):
    """Whether a model is better at a party than one of its own rows alone."""

    form = "cobasis/word/1"
    what = "word on a model"
    ask = "Ask the party for the file that 'cobasis score --send' writes."

    agreement: Digest
    party: IdentityName
    model_sha256: Digest
    verdict: Verdict
    n_rows: Annotated[int, Field(ge=ROWS, multiple_of=ROWS)]
    measure: Literal["accuracy", "R2"]
    value: Annotated[int, Field(le=100, multiple_of=POINTS)]  # of the measure, in per cent
    history: Digest  # keyed head of all that the party ever sent
    time: Moment
    approval: Annotated[str, Field(max_length=2000)] = ""  # the officer's, where one is needed

    def said(self) -> str:
        than = " that so few rows can show" if self.verdict == "no difference" else " than alone"
        return f"{self.verdict}{than}, on some {self.n_rows} rows; {self.measure} {self.value} %"

    def check(self, agreement: Agreement, *, model_sha256: str | None) -> None:
        """Raise unless an enrolled party says it of this model, approved where it has to be."""
        if (self.agreement, self.model_sha256) != (agreement.digest().hex(), model_sha256):
            raise ForeignBundleError(
                f"this word of '{self.party}' is on another model than the one that was trained "
                f"last ({self.model_sha256[:16]}), or of another agreement. Ask for one on this."
            )
        good = any(self.is_by(each) for each in agreement.enrolled if each.name == self.party)
        if good and officers_of(agreement, self.party):
            told = Approval.from_text(self.approval)
            good = told.covers_word(agreement, party=self.party, at=self.time)
        if not good:
            raise SignatureError(
                f"this word is not signed with the key that is enrolled for '{self.party}', or has "
                "no approval that covers it, of an officer enrolled for that party, where it "
                "needs one. So it says nothing: ask for one that has both."
            )
