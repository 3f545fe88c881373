"""``cobasis analyst``, ``verify`` and ``inspect`` as people type them."""

import shutil
from io import BytesIO
from pathlib import Path

import pytest
import zstandard

from cli.round_by_commands import NAMES, Typed, write_table
from cobasis.analyst_side import run as running
from cobasis.keys.at_rest import load_identity


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A sealed round whose parties have prepared their uploads; made once."""
    folder = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        cobasis = Typed(folder, patch)
        cobasis.sealed(more="--holdout 0.2")
        for seed, name in enumerate(NAMES):
            write_table(folder / f"{name}.csv", seed=seed + 1)
            cobasis(f"party join icu.toml {name}.secret", by=name)
            line = f"party prepare icu.toml {name}.csv -o {name}.upload --signed-by Officer"
            cobasis(f"{line} --yes", by=name)
        yield cobasis


@pytest.fixture
def cobasis(base, tmp_path, monkeypatch):
    """A copy of it, and an inbox with two uploads."""
    folder = tmp_path / "round"
    shutil.copytree(base.folder, folder)
    monkeypatch.chdir(folder)
    found = Typed.__new__(Typed)
    found.folder = folder
    inbox = folder / "inbox"
    inbox.mkdir()
    for name in ("east", "north"):
        shutil.copy(folder / f"{name}.upload", inbox)
    return found


@pytest.fixture
def ran(cobasis):
    cobasis("analyst receive icu.toml inbox", by="lab")
    cobasis("analyst run icu.toml -o returns", by="lab")
    return cobasis


def test_receive_says_who_is_in_and_who_is_missing(cobasis):
    found = cobasis.json("analyst receive icu.toml inbox/", by="lab")
    assert (found["received"], found["missing"]) == (["east", "north"], ["south"])
    assert [each["verdict"] for each in found["files"]] == ["accepted", "accepted"]
    assert all(Path(path).is_file() for path in found["receipts"].values())
    again = cobasis("analyst receive icu.toml inbox/", by="lab")
    assert "received before" in again.stdout
    assert "Missing: south" in again.stdout


def test_receive_shows_the_audit_record_of_each_upload_also_later(cobasis):
    cobasis("analyst receive icu.toml inbox/east.upload", by="lab")
    said = cobasis("analyst receive icu.toml inbox", by="lab").stdout
    assert "Audit by east: pseudonymised, policy cobasis/audit/1" in said
    found = cobasis.json("analyst receive icu.toml inbox", by="lab")["files"]
    assert [each["verdict"] for each in found] == ["received before"] * 2
    for each in found:
        assert (each["audit"]["policy"], each["audit"]["verdict"]) == (
            "cobasis/audit/1",
            "pseudonymised",
        )
        assert len(each["audit"]["report"]) == 64


def test_a_file_that_is_refused_makes_the_exit_code_3_and_blocks_no_other(cobasis):
    (cobasis.folder / "inbox" / "bad.upload").write_bytes(b"junk")
    found = cobasis.json("analyst receive icu.toml inbox", by="lab", code=3)
    assert {each["file"]: each["code"] for each in found["files"]} == {
        "bad.upload": "CB801",
        "east.upload": "",
        "north.upload": "",
    }
    assert found["received"] == ["east", "north"]


def test_run_writes_a_return_that_its_party_accepts_and_predicts_with(ran):
    found = ran.json("analyst run icu.toml --model logistic -o returns/", by="lab")
    assert (found["model"], found["trained_on"]) == ("logistic", ["east", "north"])
    assert found["missing"] == ["south"]
    assert set(found["figures"]) == {"east", "north"}
    ran("party accept icu.toml returns/north.return", by="north")
    write_table(ran.folder / "new.csv", seed=9, n_rows=5)
    ran("party predict icu.toml new.csv -o out.csv", by="north")
    assert (ran.folder / "out.csv").read_text().startswith("patient,prediction")
    done = ran("party accept icu.toml returns/east.return", by="north", code=3)
    assert "[CB801]" in done.stderr


def test_a_run_below_the_minimum_exits_with_2_and_the_names(cobasis):
    (cobasis.folder / "inbox" / "east.upload").unlink()
    cobasis("analyst receive icu.toml inbox", by="lab")
    done = cobasis("analyst run icu.toml -o returns", by="lab", code=2)
    assert "Missing: east, south" in done.stderr
    assert "[CB305]" in done.stderr


def test_a_family_that_was_not_agreed_exits_with_2(cobasis):
    cobasis("analyst receive icu.toml inbox", by="lab")
    done = cobasis("analyst run icu.toml --model mlp -o returns", by="lab", code=2)
    assert "allowed: ridge, logistic" in done.stderr


def test_only_the_enrolled_analyst_receives(cobasis):
    done = cobasis("analyst receive icu.toml inbox --as north", by="north", code=2)
    assert "[CB702]" in done.stderr
    done = cobasis("analyst receive icu.toml inbox", by="nobody", code=2)
    assert "there is no key" in done.stderr


def test_add_and_remove_as_typed_in_the_walk(ran):
    added = ran.json("analyst add icu.toml south.upload -o returns/", by="lab")
    assert added["trained_on"] == list(NAMES)
    ran("party accept icu.toml returns/south.return", by="south")
    done = ran("analyst remove icu.toml south -o returns/", by="lab")
    assert "still descends from east" in done.stdout
    removed = ran.json("analyst remove icu.toml south -o returns/ --realign", by="lab")
    assert [Path(path).name for path in removed["certificate"]] == [
        "removal-south.json",
        "removal-south.txt",
    ]
    assert removed["trained_on"] == ["east", "north"]
    ran("party accept icu.toml returns/north.return", by="north")


def test_forget_asks_and_afterwards_nothing_is_added(ran):
    assert "nothing leaves unasked" in ran("analyst forget icu.toml", by="lab", code=2).stderr
    assert "agreed to be kept" in ran("analyst forget icu.toml --yes", by="lab", code=2).stderr
    ran.json("analyst forget icu.toml --early --yes", by="lab")
    done = ran("analyst add icu.toml south.upload -o returns", by="lab", code=2)
    assert "[CB313]" in done.stderr
    said = ran("analyst forget icu.toml --early --with-key --yes", by="lab").stdout
    assert "Destroy its copies" in said
    assert "there is no key" in ran("analyst forget icu.toml --yes", by="lab", code=2).stderr


def test_verify_needs_no_key_and_exits_with_3_when_something_does_not_hold(ran):
    folder = ran.folder / "transcript"
    folder.mkdir()
    for path in (ran.folder / "icu.round" / "receipts").iterdir():
        shutil.copy(path, folder)
    shutil.copy(ran.folder / "icu.round" / "transcript.jsonl", folder)
    found = ran.json("verify icu.toml transcript/", by="nobody")
    assert found["holds"]
    assert ran.json("verify icu.toml icu.round", by="nobody")["holds"]
    (folder / "north.receipt").write_bytes(b"{}\n")
    found = ran.json("verify icu.toml transcript/", by="nobody", code=3)
    assert [each["name"] for each in found["findings"] if not each["holds"]] == ["north.receipt"]
    assert "FAILS" in ran("verify icu.toml transcript", by="nobody", code=3).stdout


def test_inspect_says_with_a_key_what_it_does_not_say_without(cobasis):
    outside = cobasis.json("inspect north.upload", by="nobody")
    assert (outside["n_recipients"], outside["manifest"], outside["round"]) == (1, None, None)
    inside = cobasis.json("inspect north.upload --as lab", by="lab")
    assert (inside["signature"], inside["manifest"]["sender"]) == ("not checked", "north")
    checked = cobasis.json("inspect north.upload --as lab --agreement icu.toml", by="lab")
    assert checked["signature"] == "good"
    assert checked["manifest"]["told"]["n_rows"] < 40  # the holdout stayed
    assert "[CB801]" in cobasis("inspect north.upload --as north", by="north", code=3).stderr


def test_inspect_says_which_of_our_plain_files_a_file_is(cobasis):
    folder = cobasis.folder
    (folder / "north.receipt").write_text('{"countersignature":null,"format":"cobasis/receipt/1"}')
    said = {
        "icu.toml": "an agreement",
        "north.pub": "a public identity",
        "north.sig": "a signature",
        "north.receipt": "a receipt",
    }
    for name, kind in said.items():
        assert f"not sealed: {kind}" in cobasis(f"inspect {name}", by="nobody").stdout
        assert cobasis.json(f"inspect {name}", by="nobody")["n_recipients"] == 0
    (folder / "other.txt").write_text("hello\n", encoding="utf-8")
    assert "[CB801]" in cobasis("inspect other.txt", by="nobody", code=3).stderr


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(ran, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "conclude", interrupted)
    done = ran("analyst run icu.toml -o returns", by="lab", code=130)
    assert "the same command goes on" in done.stderr
    monkeypatch.undo()
    monkeypatch.chdir(ran.folder)


def test_the_analysts_folders_hold_no_secret_of_a_party(ran):
    """The consortium's secret is read from its file by a party, and looked for in every byte."""
    said = (ran.folder / "passphrase").read_text().strip()
    north = load_identity(ran.folder / "home-north/keys/north.key", passphrase=said)
    plain = BytesIO()
    with (ran.folder / "north.secret").open("rb") as sealed:
        north.unseal(sealed, plain)
    frame = plain.getvalue()[plain.getvalue().rindex(b"\x28\xb5\x2f\xfd") :]
    secret = zstandard.ZstdDecompressor().decompress(frame, max_output_size=64)
    assert len(secret) == 32
    cells = [line.split(b",")[1] for line in (ran.folder / "north.csv").read_bytes().split()[1:]]
    wanted = [secret, secret.hex().encode(), *cells]
    analysts = [ran.folder / "icu.round", ran.folder / "home-lab", ran.folder / "returns"]
    files = [path for folder in analysts for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        data = path.read_bytes()
        assert not [needle for needle in wanted if needle in data], path
