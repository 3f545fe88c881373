"""One consortium per test, made by asking for it; a whole round is made once and copied."""

import numpy as np
import pytest

from party_side.sites import NAMES, consortium


@pytest.fixture
def make(tmp_path, monkeypatch):
    return lambda **changes: consortium(tmp_path, monkeypatch, **changes)


@pytest.fixture
def site(make):
    made = make()
    for name in NAMES:
        made.joined(name)
    return made


@pytest.fixture(scope="module")
def whole_round(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        made, paths = consortium(tmp_path_factory.mktemp("round"), patch), {}
        for name in NAMES:
            made.joined(name)
            paths[name] = made.send(name).path
        answers = made.analyst_of(paths).run()
    return made, answers


@pytest.fixture
def uploaded(whole_round, tmp_path):
    made = whole_round[0].copied(tmp_path / "round")
    for name in NAMES:
        made.session(name).round.note_table(made.table(name), held=np.zeros(0))
    return made, {name: made.upload(name) for name in NAMES}


@pytest.fixture
def returns(uploaded, whole_round):
    return uploaded[0], whole_round[1]
