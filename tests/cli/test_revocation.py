"""``cobasis key revoke``: analyst and a party stop a round whose key was stolen; people decide."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from cobasis.bundle.agreement_file import line_in, read_agreement
from cobasis.bundle.transcript import verify_transcript
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.news import News, Revocation
from cobasis.protocol.word import Word

FILE, NEWS = Path("icu.east.revocation"), Path("icu.news")


def revoke(typed, *, by, name="east"):
    return SimpleNamespace(**typed.json(f"key revoke icu.toml {name} --yes", by=by))


def stopped(typed):
    """The round with east's key revoked: north accepted the news, south older ones."""
    typed("accept icu.toml icu.news", by="south")
    revoke(typed, by="north")
    assert revoke(typed, by="lab").stopped
    typed("accept icu.toml icu.news", by="north")


def refuses(typed, words, *, by):
    typed.refused(words, "[CB315]", "the key of 'east'", "by lab and north", by=by)


def test_one_of_the_two_stops_nothing(sealed):
    for by in ("north", "lab"):
        found = revoke(sealed, by=by)
        assert (found.name, found.signed, found.stopped) == ("east", [by], False)
        FILE.unlink()
        sealed("receive icu.toml", by="lab")
        sealed("accept icu.toml icu.news", by="north")
    for by in ("north", "south"):  # two parties are not the analyst and a party
        revoke(sealed, by=by)
    sealed.send()
    sealed.run()
    sealed.accept()


def test_with_both_signatures_nothing_more_is_sent_taken_or_made(sealed):
    sealed.send("north")
    assert revoke(sealed, by="lab").signed == ["lab"]
    FILE.unlink()
    stopped(sealed)
    transcript = Path("icu.round/transcript.jsonl")
    before = FILE.read_bytes(), verify_transcript(transcript)
    for by in ("north", "lab"):  # what is typed or told again changes nothing
        revoke(sealed, by=by)
    assert (FILE.read_bytes(), verify_transcript(transcript)) == before
    sealed.refused("receive icu.toml inbox", "refused: the key of 'east'", by="lab", code=3)
    refuses(sealed, "run icu.toml --without south", by="lab")
    refuses(sealed, "send icu.toml --again", by="north")
    refuses(sealed, "send icu.toml south.csv --yes --signed-by Officer", by="south")
    told = sealed.json("status icu.toml", by="south")
    assert (told["revoked"], told["next"]) == (["east"], "")
    sealed.said("status icu.toml", "the key of east: all stands still [CB315]", by="lab")
    sealed("verify icu.toml home-lab/..")
    sealed("forget icu.toml --yes", by="north")
    lines = ("predict icu.toml north.csv -o out.csv", "score icu.toml", "export icu.toml")
    for line in (*lines, "send icu.toml north.csv --yes"):
        sealed.refused(line, "has forgotten the round")


def test_several_owners_are_removed_by_one_command(sent):
    sent.run()
    stopped(sent)
    revoke(sent, by="north", name="south")
    revoke(sent, by="lab", name="south")
    ways = "--without east --without south", "cobasis remove east south"
    sent.refused("run icu.toml", *ways, by="lab")
    refuses(sent, "remove icu.toml south", by="lab")
    # the round wants two parties at least, and then nobody's rows may be trained on
    sent.refused("remove icu.toml east south", "destroy all that was sent", by="lab")


def test_without_the_analysts_key_nobody_is_told_to_go_on(sealed):
    for by in ("north", "lab"):
        revoke(sealed, by=by, name="lab")
    for words, by in (("run icu.toml", "lab"), ("send icu.toml south.csv --yes", "south")):
        told = sealed.refused(words, "Without the analyst's key nobody can go on", by=by)
        assert "--without lab" not in told


def test_the_others_go_on_without_its_owner_where_all_is_in(sent):
    sent("receive icu.toml inbox", by="lab")
    stopped(sent)
    refuses(sent, "run icu.toml", by="lab")
    older = NEWS.read_bytes()
    sent("run icu.toml --without east", by="lab")
    sent.accept("north", "south")
    newer = NEWS.read_bytes()
    NEWS.write_bytes(older)  # beside the agreement, where newer ones were accepted
    sent("audit icu.toml north.csv", by="north")
    NEWS.write_bytes(newer)
    sent("predict icu.toml north.csv -o out.csv", by="north")
    shutil.copy("inbox/icu.east.1-upload", "later")
    assert "[CB315]" in sent("receive icu.toml later", by="lab", code=3).stdout
    refuses(sent, "run icu.toml --with east --yes", by="lab")
    sent("score icu.toml --send --yes", by="north")
    word = line_in(Path("icu.north.word"), Word).model_copy(update={"party": "east"})
    signature = sent.identity("east").sign(word.message()).hex()
    Path("forged").write_text(word.model_copy(update={"signature": signature}).text())
    assert "[CB315]" in sent("receive icu.toml forged", by="lab", code=3).stdout
    sent("receive icu.toml icu.north.word", by="lab")
    sent("accept icu.toml icu.news", by="east")
    refuses(sent, "send icu.toml --again", by="east")


def test_no_common_span_is_sealed_for_a_revoked_key(cobasis):
    cobasis.sealed(more="--basis consensus")
    cobasis.send()
    cobasis.run()
    stopped(cobasis)
    shutil.rmtree("outbox")  # all were taken away; what is not there is sealed anew
    done = cobasis("run icu.toml --without east --json", by="lab", code=None)
    assert list(json.loads(done.stdout)["written"]) == ["north", "south"]
    assert not Path("outbox/icu.east.1-span").exists()


def test_a_model_stays_in_use_and_its_owner_can_be_removed(ran):
    ran.accept("south")
    stopped(ran)
    refuses(ran, "score icu.toml --send --yes", by="south")  # by news that it has not accepted
    Path("icu.news").rename("came.bin")
    refuses(ran, "accept icu.toml outbox/icu.south.1-return came.bin", by="south")
    Path("came.bin").rename("icu.news")
    refuses(ran, "accept icu.toml outbox/icu.north.1-return", by="north")
    refuses(ran, "score icu.toml --send --yes", by="south")
    ran("predict icu.toml north.csv -o out.csv", by="north")
    refuses(ran, "remove icu.toml south", by="lab")
    ran("remove icu.toml east", by="lab")
    ran.accept("north", "south")
    ran("forget icu.toml --yes --early", by="lab")


def test_a_statement_of_another_round_or_a_forged_one_is_refused(sealed):
    revoke(sealed, by="north")
    good = json.loads(FILE.read_text())
    other = {**good, "agreement": "0" * 64}
    forged = {**good, "signatures": {"south": good["signatures"]["north"]}}
    later = {**good, "time": "2026-01-01T00:00:00Z"}
    stranger = {**good, "signatures": {"west": good["signatures"]["north"]}}
    theirs = {**good, "name": "south"}  # in the place of one that is asked for
    codes = {
        "CB804": (other, theirs),
        "CB802": (forged, later, stranger),
        "CB303": ({"format": "x"},),
    }
    for code, bad in ((code, each) for code, every in codes.items() for each in every):
        FILE.write_text(json.dumps(bad) + "\n")
        for by in ("lab", "south"):
            code_of = 2 if code == "CB303" else 3
            sealed.refused("key revoke icu.toml east --yes", f"[{code}]", by=by, code=code_of)
        assert json.loads(FILE.read_text()) == bad
    sealed.refused("key revoke icu.toml west --yes", "[CB304]")


def test_news_that_an_analyst_makes_alone_stop_nobody_and_none_takes_it_back(sealed):
    identity = sealed.identity("lab")
    agreement = read_agreement(Path("icu.toml")).agreement
    plain = News.from_text(NEWS.read_bytes(), agreement)
    revoke(sealed, by="lab")
    alone = plain.model_copy(update={"revoked": (line_in(FILE, Revocation),)})
    Path("alone.news").write_bytes(alone.text(identity.sign))
    assert "[CB802]" in sealed("accept icu.toml alone.news", by="south", code=3).stderr
    stopped(sealed)
    sealed("accept icu.toml icu.news", by="south")
    later = plain.model_copy(update={"time": moment_text(datetime.now(UTC) + timedelta(hours=1))})
    Path("later.news").write_bytes(later.text(identity.sign))
    sealed.refused("accept icu.toml later.news", "which nothing takes back", by="south", code=3)
    refuses(sealed, "send icu.toml south.csv --yes --signed-by Officer", by="south")
