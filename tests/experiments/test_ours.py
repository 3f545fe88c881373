import numpy as np
import pytest
from experiments.data.molecules import Molecules
from experiments.studies import _ours, ours_anchors, ours_bases, ours_choosing_l
from experiments.studies import ours_kernel_integration as kernels

CLASSES = {"ames": 2, "mnist": 5, _ours.FACES: 2, "adult": 2}
SIZES = {"MOST_ROWS": 70, "PARTIES": 5, "ROWS": 40, "TESTS": 50, "RESERVED": 60}
SIZES |= {"FACE_TESTS": 40, "FACES_RESERVED": 70}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    rng = np.random.default_rng(0)

    def table(n_rows, classes):
        labels = rng.integers(classes, size=n_rows)
        rows = rng.integers(0, 100, size=(n_rows, 9))
        rows[:, :6] += 60 * (labels[:, None] == np.arange(6))
        rows[:, 0] = np.arange(n_rows) % 256
        rows[:, 8] = np.arange(n_rows) // 256
        return rows.astype(np.uint8), labels

    bits, labels = table(400, 2)
    part = np.where(rng.random(400) < 0.2, "test", "train")
    given = Molecules(bits=bits, labels=labels, smiles=("",) * 400, part=part, n_dropped=0)
    pool = rng.random((100, 9))
    tables = {"mnist": table(600, 5), "adult": table(600, 2), _ours.FACES: table(500, 2)}
    for name, value in {
        "molecules": lambda _: given,
        "pubchem": lambda count, rng: rng.permutation(pool)[:count],
        "tabled": lambda task: tables.get(task, (bits, labels)),
        **SIZES,
    }.items():
        monkeypatch.setattr(_ours, name, value)


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("task", CLASSES)
def test_no_row_is_dealt_twice_and_skewed_parties_have_few_labels(task, skewed):
    def numbers(rows):
        whole = np.rint(rows * (255 if task in _ours.PIXELS else 1)).astype(int)
        return (whole[:, 0] + 256 * whole[:, 8]).tolist()

    dealt = _ours.deal(task, repeat=3, skewed=skewed)
    seen = [numbers(rows) for rows, _ in dealt.parties.values()] + [numbers(dealt.test_rows)]
    if task != "ames":
        tests, reserved = (40, 70) if task == _ours.FACES else (50, 60)
        seen.append(numbers(_ours.public(task, repeat=3, count=reserved)))
        assert (len(seen[-2]), len(seen[-1])) == (tests, reserved)
    together = [number for some in seen for number in some]
    assert len(set(together)) == len(together) > 200
    held = {"mnist": 2}.get(task, 1) if skewed else CLASSES[task]
    assert {len(set(labels)) for _, labels in dealt.parties.values()} == {held}
    assert len(set(dealt.pooled()[1])) == CLASSES[task]
    other = _ours.deal(task, repeat=4, skewed=skewed)
    assert numbers(other.test_rows) != numbers(dealt.test_rows)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(_ours, "sizes", lambda *_: (2, 4))
    for name, value in {"NETWORK": (), "in_single_precision": lambda dealt: dealt}.items():
        monkeypatch.setattr(ours_bases, name, value)
    for name, value in {"mlp_regressor": _ours.ridge, "mlp": _ours.logistic}.items():
        monkeypatch.setattr(ours_bases, name, value)
    monkeypatch.setattr(ours_bases, "PUBLIC_ROWS", 30)
    monkeypatch.setattr(ours_choosing_l, "grid", lambda _: (1, 2, 4))
    monkeypatch.setattr(ours_anchors, "sizes", lambda _: {"n_components": 4, "n_anchor_rows": 60})
    monkeypatch.setattr(ours_anchors, "POOL", 40)
    monkeypatch.setattr(ours_anchors, "MODELS", {"logistic": _ours.logistic})


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("basis", ["pooled", *ours_bases.EVERYWHERE])
def test_every_basis_is_measured_with_every_model_and_l(basis):
    found = ours_bases.run(data="ames", parties="by label", basis=basis, repeat=0)
    tried = (4,) if basis in ours_bases.AT_LARGEST else (2, 4)
    told = {name for name in found if name.startswith("undetermined")}
    judged = {f"{model}, l={size}" for model in ours_bases.MODELS for size in tried}
    assert judged - set(found) == {name for name in judged if f"undetermined, {name[-3:]}" in told}
    assert all(0 < value <= 100 for name, value in found.items() if name not in told)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("anchor", [*ours_anchors.ANCHORS, "none: pooled"])
def test_every_anchor_is_measured_with_every_aligner(anchor):
    found = ours_anchors.run(data="ames", anchor=anchor, repeat=0)
    methods = {name.split("/")[0] for name in found}
    assert methods == ({"logistic"} if anchor.startswith("none") else set(ours_anchors.METHODS))
    assert all(40 < value <= 100 for value in found.values())


@pytest.mark.usefixtures("quick")
def test_a_rule_takes_the_l_that_it_says_and_loses_what_that_scores_less_than_the_best():
    found = ours_choosing_l.run(data="ames", parties="alike", repeat=0)
    scores = [found[f"score, l={size}"] for size in (1, 2, 4)]
    assert found["lost by largest l"] == max(scores) - scores[-1]
    lost = [value for name, value in found.items() if name.startswith("lost by")]
    assert (min(lost) >= 0, len(lost)) == (True, 8)
    energy = {10: 0.7, 50: 0.85, 100: 0.97}
    found = ours_choosing_l.rules(energy, {10: 0.9, 50: 0.6, 100: 0.4})
    taken = {"energy 80%": 50, "energy 90%": 100, "energy 95%": 100, "overlap 50%": 50}
    assert found == {**taken, "overlap 70%": 10, "l = 50": 50, "l = 100": 100, "largest l": 100}


def test_lki_is_kawakami_with_other_column_sizes_and_nki_reaches_an_orthonormal_centred_target():
    images = dict(enumerate(np.random.default_rng(0).normal(size=(3, 80, kernels.SIZE))))
    sent = kernels.Uploads(images=images, rows=images, tests={}, dealt=None)
    assert np.ptp(kernels.lki(sent)[1][1] / kernels.LINEAR["kawakami"](sent)[1][1], 0).max() < 1e-6
    features, weights = kernels.nki(sent, penalty=1e-9, centred=True)[2]
    reached = np.column_stack([features(images[2]) @ weights, np.full(80, 80**-0.5)])
    assert reached.T @ reached == pytest.approx(np.eye(kernels.SIZE + 1), abs=1e-6)
