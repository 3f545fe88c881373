"""The model card: what all parties may know of a model, and what a party refuses to believe."""

from dataclasses import replace

import pytest

from cobasis import ConsortiumSecret, DPTerms
from cobasis.protocol.card import ModelCard, card_of, check_card
from protocol.consortium import NONE, WIDTH, consortium

SECRET = ConsortiumSecret(bytes(32))
TABLE = {"task": "regression", "classes": (), "model": "ols", "n_components": WIDTH}
DP = DPTerms(epsilon=8.0, radius=9.0, most_rows=1000, labels="public", lifetime_epsilon=8.0)


def trained(*, without=(), **changes):
    made = consortium(secret=SECRET, **changes)
    return made, made.received(without=without).run()["north"]


def test_a_card_says_who_and_what_made_a_model_and_no_figure_of_one_party():
    made, returned = trained(model="logistic", purpose="find the sick", label="sick")
    returned, tag = replace(returned, card=card_of(made.analyst)), SECRET.anchor_tag(made.agreement)
    card = check_card(returned, made.agreement, consensus=None, anchor_tag=tag, n_rows=30)
    assert (card.trained_on, card.n_rows) == (("north", "south", "east", "west"), 120)
    assert (card.purpose, card.family, card.gives) == ("find the sick", "logistic", "probabilities")
    assert (card.widths, card.evidence) == ((3, 2), "not a random turn")
    newer = b'{"mood":"fine",' + card.encoded()[1:]  # which is passed over
    assert ModelCard.read(card.encoded()) == ModelCard.read(newer) == card
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
        (TABLE | {"basis": "haar"}, "coefficients", "All encoded columns left"),
    ],
)
def test_its_limits_are_those_of_this_round(changes, gives, words):
    made = consortium(secret=SECRET, **changes)
    made.received()
    made.analyst.run()
    card = card_of(made.analyst)
    assert card.gives == gives
    assert any(words in each for each in card.limits)
    assert (card.model_sha256 is None) == (gives == "aligned rows")


def test_it_names_who_is_missing_and_who_left():
    made, _ = trained(without=("west",))
    assert "Named in the agreement, but not among these: west." in card_of(made.analyst).limits
    made.analyst.remove("north")
    made.analyst.certify()
    made.analyst.train()
    told = " ".join(card_of(made.analyst).limits)
    assert "not among these: north, west." in told
    assert "keeps a trace of north, whose rows are not in it" in told
