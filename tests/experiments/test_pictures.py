import numpy as np
from experiments.harness import pictures
from experiments.harness.pictures import DIGITS, strips


def test_attackers_bring_back_what_the_eye_does_not_see(monkeypatch):
    monkeypatch.setattr(pictures, "PEOPLE", 200)
    monkeypatch.setattr(pictures, "SHOWN", 3)
    digits = strips(DIGITS)
    original, *rest = digits.values()
    assert [each.shape for each in (original, *rest[3:5])] == [(3, 8, 8), *[(3, 4, 8)] * 2]
    alike = {
        title: np.corrcoef(each.ravel(), original.ravel())[0, 1]
        for title, each in digits.items()
        if each.shape == original.shape
    }
    assert [0.8 < x < 0.9999 for title, x in alike.items() if "Rebuilt" in title] == [True] * 3
    assert [x < 0.7 for title, x in alike.items() if "no guarantee" in title] == [True] * 3
