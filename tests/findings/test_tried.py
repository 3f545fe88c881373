"""What users of the first version met, row by row (F4 to F23)."""

import html
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm

from cli.round_by_commands import NAMES, PUBS, write_table
from cobasis import Outcome, simulate
from cobasis.cli.options import Home
from cobasis.cli.status import message_in_words, standing
from cobasis.errors import StepError
from cobasis.models.trainer import train
from cobasis.party_side.accept import accept, adopt
from cobasis.party_side.predict import _answers, predict
from cobasis.party_side.session import forget
from party_side.sites import frame, join

ROOT = Path(__file__).parents[2]


def test_f4_a_name_binds_nobody_and_an_officers_key_binds_one_audit_of_these_rows(cobasis):
    """A typed name was taken where no audit was made, and after 30 rows were cut."""
    cobasis.keys(officers=("officer",))
    cobasis.sealed(more="--approver north=officer.pub")
    line = "send icu.toml north.csv --yes --signed-by Officer"
    cobasis.refused(line, "[CB512]")
    cobasis("audit icu.toml north.csv -o audit.html")
    cobasis("approve icu.toml audit.json --key officer --yes", by="officer")
    rows = Path("north.csv").read_text()
    Path("north.csv").write_text("".join(rows.splitlines(keepends=True)[:-30]))
    cobasis.refused(line, "[CB513]")
    assert not Path("icu.north.1-upload").exists()
    Path("north.csv").write_text(rows)
    cobasis(line)
    typed = "typed by the holder of east's key, proves no person"
    cobasis.said(line.replace("north", "east"), typed, by="east")


def test_f5_the_audit_is_the_page_that_an_officer_files(sealed, terminal):
    """Purpose, columns, recipients and what to change first stood nowhere, or below a constant."""
    table = pl.read_csv("north.csv")
    table.with_columns(b=1000 * (pl.col("b") + 40)).write_csv("north.csv")
    terminal.undo()
    mine = 'necessity = "No other way"\nrisks = "A helping party"\nmeasures = " "\n'
    record = Path("home-north/record.toml")
    record.write_text(mine)
    line = "audit icu.toml north.csv -o page.html"
    sealed(line)
    text = Path("page.html").read_text(encoding="utf-8")
    text = re.sub(r"<svg.*?</svg>|<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)
    text = " ".join(html.unescape(text).split())
    for words in (
        "Purpose study",
        "Contacts not stated",
        "Columns of numbers (4) a, b, c, d",
        "Their constants and words are from rows of public.csv",
        "Label, what is predicted sick: no or yes, in the clear",
        "Retention 30 days at the analyst",
        "Necessity and proportion, in the party's words (art. 35) No other way",
        "Measures against them not stated",
        *(sealed.public(name).fingerprint for name in ("lab", "south")),
        "far above the agreed centre",
        "Not answered yet.",
        "It reads your basis, whose directions are your rows' own.",
    ):
        assert words in text, words
    assert re.search(r"What we would change first (No single|.{5,60}: .* -> \d+ %; )", text)
    assert not re.search(r"\bP\d\b(?!\))", text)  # never a number alone
    record.write_text("necesity = 1\n")
    sealed.refused(line, "'necesity'")


def test_f8_accept_says_with_intervals_what_a_model_is_worth_beside_alone(ran):
    """It gave accuracies of some 20 rows, and passed over a model that was worse than alone."""
    line = "accept icu.toml icu.north.1-return"
    returned = ran.json(line)["returned"]
    told = ran.json("score icu.toml")["score"]
    assert told == returned["score"]
    one, two = (told[word]["accuracy"] for word in ("together", "constant"))
    assert one[1] < one[0] >= two[0]  # of some 15 rows
    assert told["chosen"] in {"common", "intercept", "slope", "mix", "alone"}
    assert bool(told["local"]) == (told["chosen"] != "common")
    assert told["verdict"] in {"better", "no difference", "worse"}
    assert all(low <= value <= high for value, low, high in told["together"].values())
    Path("icu.news").write_bytes(b"none")  # which hide nothing that was taken
    words = ("AUC", "Brier", "constant", "beside one of your own rows alone: ", "For your rows")
    ran.said(line, "together", *words, returned["model_sha256"])
    Path("north.csv").rename("moved.csv")
    ran.said("score icu.toml", "give it: cobasis score TABLE")
    assert ran.json("score icu.toml moved.csv")["score"] == told
    later = pl.read_csv(write_table(Path("later.csv"), seed=8))
    pl.concat([pl.read_csv("moved.csv"), later]).write_csv("more.csv")
    more = ran.json("score icu.toml more.csv")["score"]  # without the rows that were uploaded
    assert more["n_rows"] == told["n_rows"] + 40
    later.filter(pl.col("sick") == "yes").write_csv("later.csv")
    found = ran.json("score icu.toml later.csv")["score"]
    assert set(found["together"]) == {"accuracy", "Brier"}
    assert "one class" in found["remarks"][0]


def test_f8_a_party_reads_who_and_what_made_its_model(ran):
    """It got weights, and could show nobody what they are of."""
    found = ran.json("accept icu.toml icu.north.1-return")["returned"]
    told = ran.json("run icu.toml", by="lab")
    assert (found["card"], told["card"]) == ("icu.north.card.html", "icu.card.html")
    for path in (found["card"], told["card"]):
        text = Path(path).read_text()
        n_rows = f"{round(told['n_rows'], -1)}, to the nearest 10"
        for words in ("east, north, south", n_rows, found["model_sha256"]):
            assert words in text, words
        assert not re.search(r"(src|href)\s*=|http|<svg|<img", text)
    assert "as party <b>north</b> got it and checked it" in Path(found["card"]).read_text()


def test_f14_what_is_wrong_is_said_once_and_in_the_words_of_the_command(sealed):
    told = sealed.refused("run icu.toml --model nope", "'nope' is not one of", by="lab")
    assert "Value error" not in told
    pl.read_csv("north.csv").clear().write_csv("north.csv")
    told = sealed.refused("send icu.toml north.csv --dry-run", "empty: 0 rows")
    assert "the party out" not in told


@pytest.fixture
def of_four(cobasis):
    """Agree on a consensus of four parties."""
    names = (*NAMES, "west")
    cobasis.keys(names)
    cobasis.draft(pubs=f"west.pub {PUBS}", more="--basis consensus --deadline 2099-12-31")
    for seed, name in enumerate(names):
        write_table(Path(f"{name}.csv"), seed=seed, n_rows=60)
    cobasis.signed(names)
    cobasis.send(*NAMES)
    return cobasis


def test_f7_who_proposed_and_was_left_out_is_not_sent_to_a_span(of_four):
    of_four.send("west")
    of_four("receive icu.toml inbox", by="lab")
    of_four.said("run icu.toml --without west --yes", "is made without west", by="lab")
    told = of_four.json("status", by="west")
    assert (told["next"], of_four.json("status", by="north")["next"] != "") == ("", True)


def test_f7_who_never_proposed_is_sent_to_the_span_and_can_come_with_an_upload(of_four):
    """A proposal, which is too late, would keep the party out for good."""
    of_four.run("--without west")
    of_four.refused("send icu.toml west.csv", "made without a proposal of party 'west'", by="west")
    assert of_four.json("status", by="west")["next"] == "cobasis accept icu.news icu.west.1-span"
    of_four("accept icu.news outbox/icu.west.1-span", by="west")
    assert of_four.json("status", by="west")["next"] == "cobasis send icu.toml data.csv"
    of_four.send("west")
    of_four.said("receive icu.toml inbox/icu.west.2-upload", "accepted: upload of west", by="lab")


def test_f7_a_common_span_is_never_made_without_somebody_unsaid(of_four):
    """West's proposal is missing, and comes when the span is made."""
    cobasis = of_four
    waits = " ".join(cobasis.run(code=4).stderr.split())
    assert "waits for the proposal of west" in waits
    assert "go on without them: --without west" in waits
    cobasis.said("run icu.toml --without west", "is made without west, for good", by="lab")
    news = Path("icu.news").rename("away")  # which have not reached west
    cobasis.send("west")
    news.rename("icu.news")
    cobasis.refused("receive icu.toml inbox", "[CB804]", by="lab", code=3)
    for who in ("lab", "west"):
        cobasis.said("status", "left out, the span was made without it", by=who)
    assert cobasis.json("status", by="west")["next"] == ""
    lab = standing(Home(home=Path("home-lab")), Path("icu.toml"))
    late = replace(  # as after a deadline
        lab, news=lab.news.model_copy(update={"without": ()}), exchanges=lab.exchanges[:1]
    )
    assert message_in_words(late, late.last, "west") == "too late, the span was made without it"
    told = [each.party(name)["out"] for each in (lab, late) for name in ("west", "north")]
    assert told == ["left out", "", "too late", ""]


def test_f23_the_front_page_begins_with_the_picture_and_the_tutorials():
    front = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert 0 < front.index("who-sends-what.svg") < front.index("1. The parties")
    pages = ("tutorial/party\n", "how-to/read-the-audit\n", "how-to/*", "reference/python-api")
    order = [front.index(f"\n{name}") for name in pages]
    assert order == sorted(order)
    told = (ROOT / "docs/explanation/gallery.md").read_text(encoding="utf-8").partition("## ")[2]
    assert "how far a method is from pooled rows" in told.partition("{{ everything }}")[0]


def test_f9_run_says_what_each_agreed_family_is_worth_here_and_at_a_new_party(sent):
    """The analyst chose among the agreed families blind."""
    sent("receive icu.toml inbox", by="lab")
    found = sent.json("run icu.toml", by="lab")
    assert found["model"] in found["scores"]
    for each in found["scores"].values():
        assert set(each) == {"these parties", "a new party"}
        assert all(low <= value <= high for value, low, high in each.values())
    sent.said("run icu.toml --model logistic", "these parties a new party", by="lab")
    assert "a new party" not in sent("run icu.toml --model ridge --no-scores", by="lab").stdout


def test_f10_survival_counts_and_weights_give_the_tables_of_the_pooled_rows():
    """Nobody could ask for anything but classes and one number, of rows that all count alike."""
    rng = np.random.default_rng(5)
    table, years = rng.normal(size=(300, 3)), rng.uniform(0.5, 2.0, 300)
    counts, weight = rng.poisson(years * np.exp(table[:, 0] / 2)), rng.integers(1, 4, 300)
    labels = pl.DataFrame({"value": counts, "years": years, "weight": weight})
    rows = {name: (table[at::3], labels[at::3]) for at, name in enumerate(NAMES)}
    outcome = Outcome(exposure="years", weight="weight")
    south = simulate(rows, rng=rng, task="count", outcome=outcome).parties["south"]
    family, design = sm.families.Poisson(), sm.add_constant(table)
    fit = sm.GLM(counts, design, family=family, exposure=years, freq_weights=weight).fit(tol=1e-13)
    found = np.array([(each.estimate, each.standard_error) for each in south.coefficients().lines])
    np.testing.assert_allclose(found, np.column_stack([fit.params, fit.bse]), rtol=1e-7)
    predicted = fit.predict(design[:5], exposure=np.ones(5))
    np.testing.assert_allclose(south.predict(table[:5]), predicted, rtol=1e-7)


def test_f8_a_score_is_a_probability_and_under_noise_it_is_called_a_score(returns):
    """Scores of ridge and rff were numbers around zero that nobody could read."""
    site, made = returns
    session, folder = site.session("north"), site.folder("north")
    accept(session, site.return_file(made["north"]))
    frame(9).drop("died").write_csv(folder / "new.csv")
    predict(session, folder / "new.csv", to=folder / "out.csv")
    likely = pl.read_csv(folder / "out.csv").select("probability_0", "probability_1").to_numpy()
    np.testing.assert_allclose(likely.sum(axis=1), 1.0)
    assert "\n0009000," in (folder / "out.csv").read_text()  # an id keeps its zeros
    rows, labels = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    told = {"model": "ridge", "task": "classification", "seed": 0, "n_classes": 2}
    noisy = SimpleNamespace(classes=(0, 1), id=None, dp=object(), horizons=(), mapped=np.asarray)
    for tempered in (True, False):
        use = SimpleNamespace(local=False, aligned=np.asarray, why=None, part=False)
        use.model = train(rows, labels, tempered=tempered, **told)
        assert "score_1" in _answers(rows, use, noisy).columns


def test_f15_a_round_that_was_forgotten_stays_closed(returns):
    """The old secret and an old return brought a removed party back."""
    site, made = returns
    path, secret = site.return_file(made["north"]), site.secret_file("north")
    accept(site.session("north"), path)
    assert forget(site.session("north")) == forget(site.session("north"))  # the first day
    session = site.session("north")
    for again, what in ((join, secret), (accept, path), (adopt, path)):
        with pytest.raises(StepError, match="it stays closed here"):
            again(session, what)
    assert session.round.accepted() is None
    assert not session.round.joined
