"""The published forms compute what ours compute, and what does not fit is known beforehand."""

import numpy as np
import pytest
from benchmarks.contenders import FORMS, fit, kawakami_dense, triangle
from benchmarks.exactness import difference, imakura_exact
from benchmarks.inputs import Shape, separated
from benchmarks.published import estimate, fits, judged

from cobasis import Imakura, Kawakami, align

IMAGES = separated(a=60, l=4, c=5, noise=0.3)
OURS = {"Imakura": Imakura(scale="paper"), "Kawakami": Kawakami(scale="paper")}


@pytest.mark.parametrize("name", FORMS)
def test_a_published_form_finds_our_solution_up_to_a_rotation(name):
    ours = dict(align(OURS[name.split(",")[0]], IMAGES).changes_of_basis)
    tolerance = 1e-4 if "randomised" in name else 1e-10
    assert difference(IMAGES, FORMS[name].run(IMAGES), ours) < tolerance


@pytest.mark.parametrize("name", [name for name in FORMS if "best" in name])
def test_the_best_form_of_few_columns_is_the_same(name):
    few = separated(a=60, l=4, c=3, noise=0.3)
    wanted = FORMS[
        "Imakura, full SVD + pinv" if "Imakura" in name else "Kawakami, dense eigenproblem"
    ]
    assert difference(few, FORMS[name].run(few), wanted.run(few)) < 1e-10


def test_the_best_form_goes_on_where_normal_equations_are_not_definite():
    image = np.random.default_rng(0).normal(size=(30, 4))
    image[:, 3] = 0
    target = np.random.default_rng(1).normal(size=(30, 2))
    np.testing.assert_allclose(fit(image, target), np.linalg.pinv(image) @ target, atol=1e-12)
    found = triangle(image)
    np.testing.assert_allclose(found.T @ found, image.T @ image, atol=1e-12)


def test_slow_forms_alone_have_a_goal_and_it_is_said_how_often_they_were_tried():
    slow, thin = "Imakura, full SVD + pinv", "Imakura, thin SVD + pinv"
    median = {f"{slow} / ours": 6.0, f"{thin} / ours": 3.0, "Imakura, best form / ours": 0.5}
    one = {"a": 9, "l": 2, "c": 3, "ratios": {name: {"median": m} for name, m in median.items()}}
    found = {each["goal"]: each for each in judged([one, {**one, "ratios": {}}])}
    told = {name: (each["value"], each["verdict"]) for name, each in found.items()}
    assert told[f"faster than {slow}"] == (6.0, "met")
    assert found[f"faster than {slow}"]["where"].endswith("tried at 1 of 2 sizes")
    assert told[f"faster than {thin}"] == (3.0, "no goal")
    best = "our time against Imakura, best form in plain NumPy and SciPy"
    assert told[best] == (2.0, "no goal")


def test_the_difference_sees_anything_but_a_rotation():
    ours = dict(align(OURS["Imakura"], IMAGES).changes_of_basis)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert difference(IMAGES, {name: each @ turn for name, each in ours.items()}, ours) < 1e-12
    assert difference(IMAGES, {name: 1.01 * each for name, each in ours.items()}, ours) > 0.01
    assert difference(IMAGES, imakura_exact(IMAGES), kawakami_dense(IMAGES)) > 1e-3


def test_what_needs_too_much_memory_is_not_tried():
    found = estimate(FORMS["Imakura, full SVD + pinv"], Shape(c=1000))
    assert found["bytes"] > 20e9
    assert not fits(found)
    assert all(fits(estimate(form, Shape())) for form in FORMS.values())
