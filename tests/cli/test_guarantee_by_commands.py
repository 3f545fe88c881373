"""A round with noise as people type it: agreed by a flag, said before, counted after, verified."""

import pytest

from cli.round_by_commands import NAMES, Typed, write_table
from cobasis.bundle.agreement_file import read_agreement

TERMS = "epsilon=8,radius=3,most_rows=100,labels=randomised_response,label_epsilon=1"


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    typed = Typed(tmp_path, monkeypatch)
    typed.sealed(more=f"--basis haar --dp {TERMS}")
    for name in NAMES:
        write_table(tmp_path / f"{name}.csv", seed=NAMES.index(name) + 1)
    return typed


def test_a_round_with_noise_says_what_it_promises_and_counts_what_it_spent(cobasis):
    terms = read_agreement("icu.toml").agreement.dp
    assert (terms.epsilon, terms.lifetime_epsilon) == (8.0, 9.0)
    line = "send icu.toml north.csv --dry-run"
    said = " ".join(cobasis(line).stdout.split())
    assert "The guarantee: differential privacy, epsilon 8, delta 1e-06" in said
    assert "releases so far 0, epsilon spent on these rows 0 of 9" in said
    assert cobasis.json(line)["preview"]["guarantee"] in said
    for name in NAMES:
        cobasis(f"send icu.toml {name}.csv --signed-by Officer --yes", by=name)
    said = " ".join(cobasis(line).stdout.split())
    assert "releases so far 1, epsilon spent on these rows 8.99" in said


def test_words_that_are_no_terms_end_in_one_coded_line(tmp_path, monkeypatch):
    cobasis = Typed(tmp_path, monkeypatch)
    told = cobasis("agreement new other.toml --numbers age --dp epsilon=8,radi=2", code=2).stderr
    assert "--dp cannot be read: radius: Field required" in told.replace("\n", " ")
    assert "[CB107]" in told
    assert not (cobasis.folder / "other.toml").exists()
