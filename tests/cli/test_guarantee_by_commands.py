"""A round with noise as people type it: agreed by a flag, said before, counted after, verified."""

import shutil

import pytest

from cli.round_by_commands import NAMES, Typed, write_table
from cobasis.bundle.agreement_file import read_agreement

TERMS = "epsilon=8,radius=3,most_rows=100,labels=randomised_response,label_epsilon=1"


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    typed = Typed(tmp_path, monkeypatch)
    typed.sealed(more=f"--basis haar --dp {TERMS}")
    for name in NAMES:
        shutil.copy(next(tmp_path.glob(f"*{name}*.secret")), f"{name}.mine")
        typed(f"party join icu.toml {name}.mine", by=name)
        write_table(tmp_path / f"{name}.csv", seed=NAMES.index(name) + 1)
    return typed


def prepare(cobasis, name, **options):
    line = f"party prepare icu.toml {name}.csv -o inbox/{name}.upload"
    return cobasis(f"{line} --signed-by Officer --yes", by=name, **options)


def test_a_round_with_noise_from_the_flag_to_predictions(cobasis):
    terms = read_agreement("icu.toml").agreement.dp
    assert (terms.epsilon, terms.lifetime_epsilon) == (8.0, 9.0)
    (cobasis.folder / "inbox").mkdir()
    line = "party prepare icu.toml north.csv -o inbox/north.upload --dry-run"
    said = cobasis(line).stdout
    assert "The guarantee: differential privacy, epsilon 8, delta 1e-06" in said
    assert "releases so far 0, epsilon spent on these rows 0 of 9" in said
    assert cobasis.json(line)["guarantee"] in said
    for name in NAMES:
        prepare(cobasis, name)
    assert "releases so far 1, epsilon spent on these rows 8.99" in cobasis(line).stdout
    assert "refused" not in cobasis("analyst receive icu.toml inbox", by="lab").stdout
    cobasis("analyst run icu.toml -o returns", by="lab")
    write_table(cobasis.folder / "north.csv", seed=1, n_rows=39)
    refused = prepare(cobasis, "north", code=2).stderr
    assert "[CB705]" in refused
    assert "lifetime of 9" in refused


def test_words_that_are_no_terms_end_in_one_coded_line(tmp_path, monkeypatch):
    cobasis = Typed(tmp_path, monkeypatch)
    told = cobasis("agreement new other.toml --numbers age --dp epsilon=8,radi=2", code=2).stderr
    assert "--dp cannot be read: radius: Field required" in told.replace("\n", " ")
    assert "[CB107]" in told
    assert not (cobasis.folder / "other.toml").exists()
