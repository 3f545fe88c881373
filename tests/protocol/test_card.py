"""The model card: what all parties may know of a model, and what a party refuses to believe."""

from dataclasses import replace

import pytest

from cobasis import ConsortiumSecret, DPTerms
from cobasis.errors import MessageError
from cobasis.protocol.card import ModelCard, card_of, check_card
from protocol.consortium import NONE, WIDTH, consortium

SECRET = ConsortiumSecret(bytes(32))
TABLE = {"task": "regression", "classes": (), "model": "ols", "n_components": WIDTH}
DP = DPTerms(epsilon=8.0, radius=9.0, most_rows=1000, labels="public", lifetime_epsilon=8.0)


def trained(*, without=(), **changes):
    made = consortium(secret=SECRET, **changes)
    return made, made.received(without=without).run()["north"]


def checked(made, returned, *, n_rows=30, tag=None):
    tag = tag or SECRET.anchor_tag(made.agreement)
    span = made.analyst.span
    return check_card(returned, made.agreement, consensus=span, anchor_tag=tag, n_rows=n_rows)


@pytest.fixture(scope="module")
def good():
    made, returned = trained(model="logistic", purpose="find the sick", label="sick")
    return made, replace(returned, card=card_of(made.analyst))


def test_a_card_says_who_and_what_made_a_model_and_no_figure_of_one_party(good):
    made, returned = good
    card = checked(made, returned)
    assert (card.trained_on, card.n_rows) == (("north", "south", "east", "west"), 120)
    assert (card.purpose, card.family, card.gives) == ("find the sick", "logistic", "probabilities")
    assert (card.widths, card.evidence) == ((3, 2), "not a random turn")
    assert ModelCard.read(card.encoded()) == card
    figures = made.analyst.certificate.parties.values()
    told = card.encoded().decode()
    for each in figures:
        for value in (each.residual, each.scale, each.correlation, each.smallest_cosine):
            assert f"{value:.3f}"[:5] not in told
    assert card.facts[1] == "No fit leaves a direction undetermined: all cosines are above 1e-08."
    for limit, words in zip(
        card.limits,
        ("tried on no others", "right on average", "medical device", "without noise", "word: no"),
        strict=True,
    ):
        assert words in limit


@pytest.mark.parametrize(
    ("changes", "gives", "words"),
    [
        ({"model": "ridge", "basis": "haar", "dp": DP}, "scores", "with noise: differential priv"),
        ({"task": "regression", "classes": (), "model": "ridge"}, "numbers", "how far off"),
        (NONE, "aligned rows", "No model was trained"),
        ({"basis": "consensus"}, "probabilities", "right on average"),
        (TABLE | {"basis": "haar"}, "coefficients", "All encoded columns left"),
    ],
)
def test_its_limits_are_those_of_this_round(changes, gives, words):
    made = consortium(secret=SECRET, **changes)
    if changes.get("basis") == "consensus":
        made.agreed(made.proposals())
    else:
        made.received()
    made.analyst.run()
    card = card_of(made.analyst)
    assert card.gives == gives
    assert any(words in each for each in card.limits)
    assert (card.consensus_sha256 is None) == (changes.get("basis") != "consensus")
    assert (card.model_sha256 is None) == (gives == "aligned rows")


def test_it_names_who_is_missing_and_who_left():
    made, _ = trained(without=("west",))
    assert "Named in the agreement, but not in the model: west." in card_of(made.analyst).limits
    made.analyst.remove("north")
    made.analyst.certify()
    made.analyst.train()
    told = " ".join(card_of(made.analyst).limits)
    assert "not in the model: north, west." in told
    assert "keeps a trace of north, whose rows are not in it" in told


CONTRADICTIONS = {  # of the card, of what came with it, of what the party has
    ": trained_on. ": ({"trained_on": ("north",)}, {}, {}),
    ": limits, model_sha256. ": ({"model_sha256": "0" * 64, "limits": ()}, {}, {}),
    ": others_sha256. ": ({"others_sha256": "0" * 64}, {}, {}),
    ": importance. ": ({"importance": {"x": (0.5, 0.1)}}, {}, {}),  # which nobody agreed on
    "n_rows, which is below your own": ({"n_rows": 10}, {}, {}),
    "anchor_tag": ({}, {}, {"tag": bytes(32)}),
    "evidence": ({}, {"evidence": "cannot tell"}, {}),  # than the card's
    "is missing": ({}, {"card": None}, {}),
}


@pytest.mark.parametrize("named", CONTRADICTIONS)
def test_a_party_refuses_a_card_that_contradicts_what_it_has(good, named):
    made, returned = good
    of_card, of_return, own = CONTRADICTIONS[named]
    told = {"card": returned.card.model_copy(update=of_card)} | of_return
    with pytest.raises(MessageError, match=named):
        checked(made, replace(returned, **told), **own)
