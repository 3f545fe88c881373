"""What users of the first version met, row by row (F1 to F23)."""

import pytest

from cobasis.errors import StepError
from cobasis.party_side.accept import accept, adopt
from cobasis.party_side.session import forget
from party_side.sites import join


def test_f15_a_round_that_was_forgotten_stays_closed(returns):
    """The old secret and an old return brought a removed party back."""
    site, made = returns
    path, secret = site.return_file(made["north"]), site.secret_file("north")
    accept(site.session("north"), path)
    forget(site.session("north"))
    session = site.session("north")
    for again in (lambda: join(session, secret), lambda: accept(session, path)):
        with pytest.raises(StepError, match="it stays closed here"):
            again()
    with pytest.raises(StepError, match="it stays closed here"):
        adopt(session, path)
    assert session.round.accepted() is None
    assert not session.round.joined
