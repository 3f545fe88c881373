"""What the simulator found, each as a test of its own."""

from analyst_side.rounds import real_round
from analyst_side.test_running import opened_return
from cobasis.analyst_side.membership import remove
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run


def test_a_late_party_that_leaves_is_out_also_when_the_round_is_aligned_anew(tmp_path):
    """The others are those of the first run, whose folder of fits holds the late one's as well."""
    made = real_round(tmp_path, minimum_parties=2, deadline="2026-01-01T00:00:00Z")
    early = ("north", "south", "west")
    made.uploads(early)
    receive(made.session(), [made.inbox])
    run(made.session())
    made.upload("east")
    receive(made.session(), [made.inbox])
    run(made.session(), confirmed=["east"])
    done = remove(made.session(), "east", realign=True)
    assert tuple(done.concluded.outcome.uploads) == done.removal.trained_on == early
    assert done.concluded.outcome.n_rows == 120
    assert opened_return(made, "north").trained_on == early
    assert set(done.concluded.files) == set(early)
    assert tuple(run(made.session()).concluded.outcome.uploads) == early
