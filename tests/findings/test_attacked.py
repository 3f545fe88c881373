"""What an attacker found in the first version, row by row (R1 to R12)."""

import json
import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from experiments.data.hospitals import heart_disease_4site
from sklearn.decomposition import FastICA

from analyst_side.rounds import real_round, refused, verdicts
from cobasis.bundle import envelope
from cobasis.bundle.envelope import STEP
from cobasis.disk import calls
from cobasis.errors import (
    AgreementError,
    AuditBlockedError,
    MessageError,
    SignatureError,
    SpanReuseError,
    StepError,
    VaultError,
)
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.models.chain import Affine, Chain
from cobasis.party_side.accept import accept, adopt
from cobasis.party_side.send import send
from cobasis.protocol.agreement import missing_fields
from cobasis.protocol.signatures import sign_span
from party_side.sites import KEY, NAMES, frame, join
from party_side.test_auditing import PEOPLE, sent
from party_side.test_receiving import span
from party_side.test_sending import scaled
from vault.vaults import agree, choose, open_vault, table, upload

SEND = "send icu.toml north.csv --yes --signed-by Officer"


def test_r4_a_column_in_another_unit_or_place_is_asked_about_at_the_party(sealed, terminal):
    """Under a basis that all share nothing else notices it."""
    right = pl.read_csv("north.csv")
    right.with_columns(b=1000 * (pl.col("b") + 40)).write_csv("north.csv")
    terminal.undo()
    above = "'b' lies for the most part far above the agreed centre"
    told = sealed.refused(SEND, above, "[CB108]")
    assert "of 60 cells" not in told.partition("looks unlike the agreement, and")[2]
    assert not Path("icu.north.1-upload").exists()
    found = sealed.json("send icu.toml north.csv --dry-run")["findings"]
    assert [(x["column"], x["problem"]) for x in found if x["asked"]] == [("b", "centre")]
    assert "of 60 cells" not in str(found)
    sealed(f"{SEND} --checked b")  # a person has looked, and it holds for the next command
    Path("icu.north.1-upload").unlink()
    sealed("send icu.toml --again")
    # columns under each other's names, at a party that nobody answers for
    south = pl.read_csv("south.csv")
    south.with_columns(a=pl.col("d") * 40, d=pl.col("a") / 40).write_csv("south.csv")
    line = "send icu.toml south.csv --signed-by Officer"
    terminal.setattr("cobasis.cli.options.on_terminal", lambda: True)
    said = ("look unlike the agreement", "Nothing was made")
    sealed.said(line, *said, by="south", typed="n\n\n", code=2)
    sealed.said(line, "Wrote", by="south", typed="y\ny\n")


def test_r2_a_proposal_is_judged_as_an_upload_is(make):
    """One person more between two weighted proposals was the top direction of their difference."""
    terms = {"basis": "weighted_consensus", "holdout": 0.0}
    site = make(**terms)
    site.joined()
    site.table("north", n_rows=150)
    first = sent(site)[0]
    [line] = site.session("north").vault.history()
    assert (line.message, line.upload) == ("proposal", first.digest)
    assert site.opened("north", first.path).manifest.audit["verdict"] == "pseudonymised"
    assert send(site.ready()).digest == first.digest
    frame(1, 150).extend(frame(8, 4)[:1]).write_csv(site.table("north"))
    with pytest.raises(StepError, match=r"of other rows.*who came or went"):
        sent(site)
    site.joined(purpose="another round", **terms)
    with pytest.raises(AuditBlockedError, match="H4, the history"):
        sent(site)
    found = sent(site, override=PEOPLE)[2].report["H4"]
    assert (found.figures["added"], found.figures["gone"]) == (1, 0)


def test_r3_a_changed_scale_or_a_new_name_makes_nobody_new(make):
    """Who was uploaded is known by the identifier; where that is new too, by the values."""
    site = make()
    site.joined()
    sent(site)
    site.joined(features=scaled(scale=1.0 + 1e-6))
    with pytest.raises(SpanReuseError, match="were uploaded before"):
        sent(site)
    table = pl.read_csv(site.table("north"), infer_schema=False)
    table.with_columns(patient="9" + pl.col("patient")).write_csv(site.table("north"))
    with pytest.raises(AuditBlockedError, match="H4, the history"):
        sent(site)
    assert missing_fields(site.agreement.model_copy(update={"id": ""})) == ("id",)


def test_r5_a_model_that_nobody_agreed_on_and_strangers_are_not_accepted(returns):
    site, made = returns
    session, good = site.session("north"), made["north"]
    sizes = ((len(good.change_of_basis), 9), (9, 2))
    one, two = (Affine(weights=np.ones(each), offset=np.ones(each[1])) for each in sizes)
    rff = Chain(family="rff", layers=(one, "Cos", two), head="decision")
    for other, words in (
        ({"model": rff}, "of family 'rff', and agreed are logistic, ridge, mlp"),
        ({"trained_on": ("north", "mallory")}, "among them 'mallory', no party of it"),
        ({"trained_on": ("north", "north")}, "names one twice"),
    ):
        path = site.return_file(replace(good, **other))
        with pytest.raises(MessageError, match=words):
            accept(session, path)
        path.unlink()
    assert session.round.accepted() is None
    assert accept(session, site.return_file(good)).trained_on == ("north", "south", "east")


def test_r6_a_common_span_is_of_three_enrolled_parties_and_of_oneself(make):
    site = make(basis="consensus")
    session = site.joined()
    site.send(to=site.root / "x.proposal")
    for who, words in (
        (("north",), "made of the directions of north; agreed are at least 3"),
        (("north", "south", "mallory"), "directions of north, south, mallory"),
        (("south", "south", "north"), "directions of south, south, north"),
        (("south", "east"), "sent a proposal, and this common span was made without it"),
    ):
        with pytest.raises(MessageError, match=words):
            adopt(session, site.consensus_file("north", span(site, contributors=who)))
    assert session.round.consensus() is None
    assert adopt(session, site.consensus_file("north", span(site))).contributors == NAMES


def test_r6_all_whose_rows_are_in_the_model_signed_one_span(make):
    """An analyst could send each party a span of its own."""
    site = make(basis="consensus")
    good, other, paths, lines = span(site), span(site, [3, 4, 5]), {}, {}
    for name in NAMES:
        adopt(site.joined(name), site.consensus_file(name, good))
        paths[name] = site.send(name).path
        [lines[name]] = site.opened(name, paths[name]).manifest.lines
    returned = site.analyst_of(paths, span=good).run()["north"]
    here, elsewhere = site.agreement, site.agreement.model_copy(update={"purpose": "another"})
    told = {"party": "east", "sign": site.identities["east"].sign}
    for east, error, words in (
        ([], MessageError, "of north, south, and one of each of east, north, south"),
        ([sign_span(other, here, **told)], MessageError, "went through the common span '"),
        ([sign_span(good, elsewhere, **told)], SignatureError, "or is of another round"),
    ):
        path = site.return_file(returned, lines=[lines["north"], lines["south"], *east])
        with pytest.raises(error, match=words):
            accept(site.session("north"), path)
        path.unlink()
    accept(site.session("north"), site.return_file(returned, lines=lines.values()))


def test_r6_an_upload_through_another_span_than_the_round_s_is_not_taken(tmp_path):
    made = real_round(tmp_path, basis="consensus")
    for name in made.agreement.parties:
        made.proposal(name)
    made.receive()
    made.run()
    span = made.adopted("east")
    sign = made.identities["east"].sign
    other = replace(span, rows=-span.rows)
    for lines in ((), (sign_span(other, made.agreement, party="east", sign=sign),)):
        path = made.upload("east", consensus=span, lines=lines)
        assert verdicts(made.receive())["east.upload"] == "CB306"
        path.unlink()
    for name in made.agreement.parties:
        made.upload(name, consensus=span)
    assert not refused(made.receive())
    made.run()
    found = made.opened("north").manifest.lines
    assert [each.party for each in found] == sorted(made.agreement.parties)


def test_r7_a_vault_that_knows_less_than_its_receipts_sends_nothing(ran):
    """A deleted record, or an older copy, was a fresh start."""
    look, home = "send icu.toml north.csv --dry-run", Path("home-north")
    news = json.loads(Path("icu.news").read_text())["news"]
    receipts = {each["receipt"]["party"]: each["receipt"] for each in news["receipts"]}
    [transcript] = home.glob("transcripts/north/*/transcript.jsonl")
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    [head] = [each["told"]["history"] for each in lines if each["event"] == "prepared"]
    assert receipts["north"]["history"] == head != receipts["south"]["history"]
    ran(look)
    [record] = home.glob("vault/north/datasets/*.age")
    for gone in (record, transcript, Path("icu.news")):
        gone.unlink()
        if gone == Path("icu.news"):  # nothing is left that knows: this cannot be seen
            ran(look)
        else:
            ran.refused(look, "[CB704]")
        if gone == transcript:
            ran.refused("accept icu.toml icu.news", "put back from an older copy")


def test_r7_a_file_without_identifiers_or_out_of_the_middle_is_missed(tmp_path):
    vault, ids = open_vault(tmp_path / "north"), [f"p{at}" for at in range(30)]
    for seed in (0, 1):
        upload(vault, table(seed=seed), agreement=agree(f"round-{seed}"))
    with pytest.raises(VaultError, match="uploaded without identifiers"):
        choose(vault, table(seed=2), ids=ids)
    heads = vault.heads()
    assert vault.heads(heads[:1]) == heads
    first = vault.datasets()[0].name
    (tmp_path / "north" / "datasets" / f"{first}.age").unlink()
    with pytest.raises(VaultError, match="lacks a file that left"):
        upload(vault, table(seed=2))


def test_r9_a_command_that_dies_leaves_no_memory_on_the_disk(cobasis):
    cobasis("status", code=2)
    assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0


def test_r9_no_plain_secret_reaches_the_disk(make, monkeypatch):
    """However soon a command dies: nothing that is written, under a name or none, holds it."""
    site, written = make(), []
    session, path, write = site.session("north"), site.secret_file("north"), calls.write

    def noted(descriptor, data, **how):
        written.append(bytes(data))
        return write(descriptor, data, **how)

    def refused(_):
        pytest.fail("a file without a name")

    monkeypatch.setattr(calls, "write", noted)
    monkeypatch.setattr(envelope, "nameless_file", refused)
    join(session, path)
    assert session.round.secret().anchor_tag(site.agreement) == site.secret.anchor_tag(
        site.agreement
    )
    assert len(written) >= 2
    assert not [data for data in written if KEY in data]


@pytest.mark.data("heart_disease_4site")
def test_r10_ica_on_the_rows_gives_columns_back_at_full_width():
    """Of heart disease five of thirteen."""
    rows = heart_disease_4site().rows
    rows = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    sent = rows @ haar_columns(KeyStream(bytes(32), "basis"), n_rows=13, n_columns=13)
    found = FastICA(random_state=0, max_iter=1000).fit_transform(sent)
    alike = np.abs(np.corrcoef(found.T, rows.T)[:13, 13:]).max(axis=0)
    assert 3 <= np.count_nonzero(alike > 0.9) <= 7


def test_r11_the_sealed_size_tells_no_balance_of_labels(make):
    site, sizes = make(holdout=0.0), set()
    for name, share in (("north", 0.1), ("south", 0.5)):
        path = site.table(name, n_rows=400)
        sick = pl.Series([int(number < 400 * share) for number in range(400)])
        pl.read_csv(path, infer_schema=False).with_columns(died=sick).write_csv(path)
        site.joined(name)
        data = site.send(name).path.read_bytes()
        sizes.add(len(data[data.index(b"\n", data.index(b"\n--- ") + 1) + 1 :]))
    (sealed,) = sizes
    assert (sealed - 16 - 16) % STEP == 0  # age's nonce, and the tag of its one chunk


def test_r12_names_that_differ_in_case_are_one(make):
    site = make()
    names = ("north", "North", "south")
    with pytest.raises(AgreementError, match="in whatever case, names north more than once"):
        site.agreement.model_copy(update={"parties": names, "enrolled": (), "analyst": None})
