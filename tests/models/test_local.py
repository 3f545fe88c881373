"""What a common model becomes at a party whose rows differ from the others'."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cobasis.models.chain import ABSENT, Affine, Chain
from cobasis.models.local import fit_locally, losses, mixed
from cobasis.models.trainer import train

N = 400


def linear(*weights, offset=0.0, head="probabilities"):
    column = np.array(weights, dtype=np.float64)[:, None]
    if head == "prediction":
        return Chain(
            family="linear", layers=(Affine(weights=column, offset=np.array([offset])),), head=head
        )
    wide = np.hstack([0 * column, column])
    layer = Affine(weights=wide, offset=np.array([0.0, offset]))
    return Chain(family="logistic", layers=(layer,), head=head)


def people(*, weights, offset=0.0, n=N, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2))
    likely = 1 / (1 + np.exp(-(rows @ weights + offset)))
    return rows, (rng.random(n) < likely).astype(np.int64)


def own(rows, labels):
    fitted = LogisticRegression().fit(rows, labels)
    return linear(*fitted.coef_[0], offset=fitted.intercept_[0])


def never(*_):
    raise AssertionError("nothing of the party's own is trained here")


@pytest.mark.parametrize(
    ("weights", "offset", "kinds"),
    [
        ([2, -1], -3, "intercept slope mix alone"),  # fewer people here are ill
        ([0.4, -0.2], 0, "slope mix alone"),  # the same signs say less
        ([-2, 1], 0, "alone"),  # they say the opposite
    ],
)
def test_a_party_unlike_the_others_gets_what_fits_its_people(weights, offset, kinds):
    common = linear(2, -1)
    rows, labels = people(weights=weights, offset=offset)
    found = fit_locally(rows, labels, common=common, others=common, train=own)
    assert found.kind in kinds.split()
    later, truth = people(weights=weights, offset=offset, seed=1, n=4000)
    local, before = (
        losses(each.outputs(later), truth, task=each.task).mean() for each in (found.chain, common)
    )
    best = losses(linear(*weights, offset=offset).outputs(later), truth, task=common.task).mean()
    assert best < local < best + 0.1 * (before - best)


@pytest.mark.parametrize(
    "labels", [np.arange(19) % 2, np.arange(N) < 4, np.ones(N)], ids=["few", "rare", "one class"]
)
def test_too_few_rows_leave_the_common_model_as_it_is(labels):
    common = linear(1, 1)
    rows = np.ones((len(labels), 2))
    told = fit_locally(rows, labels.astype(int), common=common, others=common, train=never)
    assert told.kind == "common"


def test_what_the_others_model_needs_is_done_to_the_common_one():
    """The common model has seen the party's rows, and would say that it needs less."""
    rows, _ = people(weights=[0, 0])
    numbers = rows @ [1, 2] + 5
    others, common = linear(1, 2, head="prediction"), linear(1, 2, offset=4.9, head="prediction")
    found = fit_locally(rows, numbers, common=common, others=others, train=lambda *_: others)
    assert found.kind == "intercept"
    assert found.chain.predict(np.zeros((1, 2))) == pytest.approx(9.9)


@pytest.mark.parametrize("family", ["ridge", "rff"])
def test_a_mix_gives_the_weighted_outputs_of_both(family):
    rows, _ = people(weights=[1, 1])
    both = [
        train(each, each[:, 0] ** 2, model=family, task="regression", seed=0, aligned=False)
        for each in (rows[:200], rows[200:])
    ]
    first, second = (each.outputs(rows) for each in both)
    assert mixed(*both, share=0.25).outputs(rows) == pytest.approx(0.75 * first + 0.25 * second)


def test_a_class_that_a_party_never_had_stays_possible_there():
    rows, labels = people(weights=[3, 0])

    def of_three(chain, *, third):
        wide, offset = chain.layers[0].weights, chain.layers[0].offset
        layer = Affine(weights=np.hstack([wide, np.zeros((2, 1))]), offset=np.append(offset, third))
        return Chain(family="logistic", layers=(layer,), head="probabilities")

    common = of_three(linear(-3, 0), third=0)
    here = lambda *given: of_three(own(*given), third=ABSENT)  # noqa: E731
    found = fit_locally(rows, labels, common=common, others=common, train=here)
    likely = found.chain.scores(rows, method="predict_proba")
    assert found.kind == "alone"
    assert 1e-6 < likely[:, 2].max() < 0.05
