"""A kill at any call leaves one content for one mask, and the same command ends what it began."""

import numpy as np
import pytest

from cobasis.errors import CobasisError, StepError
from party_side.sites import killed, steps
from party_side.summing import NAMES, PAST, TERMS, Summing


@steps(11)
def test_a_kill_at_each_point_leaves_one_content_for_one_mask(site, in_memory, step):
    """No two files that ever left, or could have, differ by a row."""
    seen = []
    for place in killed(site, in_memory, Summing.send, step=step):
        left = place.words("north").words if place.file().exists() else None
        begun = place.session("north").vault.history()
        if left is not None:
            assert begun
        if begun:  # whatever the vault knows of is the content that this mask keeps
            with pytest.raises(CobasisError, match=r"\[CB(706|305)\]"):
                place.send("north", change=lambda frame: frame.head(100))
        place.send()
        again = place.words("north").words
        assert left is None or np.array_equal(left, again)
        seen.append((bool(begun), again.tobytes()))
    assert {begun for begun, _ in seen} == {True, False}
    assert len({words for _, words in seen}) == 1


@steps(9)
def test_a_kill_while_accepting_leaves_the_key_until_the_model_is_kept(site, in_memory, step):
    site.sent()
    site.run()
    seen = []
    for place in killed(site, in_memory, Summing.accept, step=step):
        kept = place.session().round.accepted() is not None
        assert kept or place.session().round.mask_key()
        place.accept()
        with pytest.raises(StepError, match="no key for masks"):
            place.session().round.mask_key()
        seen.append(kept)
    assert {*seen} == {True, False}


@steps(9)
def test_a_kill_while_beginning_again_leaves_the_old_attempt_or_the_new_one(make, in_memory, step):
    site = make(deadline=PAST, holdout=0.1, sums=TERMS.model_copy(update={"least_rows": 80}))
    site.sent(*NAMES[:3])
    seen = []
    for place in killed(site, in_memory, lambda place: place.run(without=["west"]), step=step):
        attempt = place.desk().history.attempt
        if attempt == 1:
            place.run(without=["west"])
        else:  # the news may not have said so yet, and receive says it
            place.receive()
        for name in NAMES[:3]:
            place.tell(name)
            place.send(name)
        assert {each.verdict for each in place.receive(*NAMES[:3]).values()} == {"accepted"}
        assert place.run().concluded.card.trained_on == tuple(sorted(NAMES[:3]))
        seen.append(attempt)
    assert {*seen} == {1, 2}
