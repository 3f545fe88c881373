"""run.sh: set-up happens once, is repaired where it broke, and says what it cannot do.

A stand-in for Python (a shell script that notes what it was asked) takes the place of the
real one, so that these tests install nothing and take no time.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PYTHON = r"""#!/bin/bash
log() { printf '%s\n' "$*" >>"$NOTES"; }
case "$*" in
    *"sys.exit(sys.version_info"*) exit "${FAKE_TOO_OLD:-0}" ;;
    *"%d.%d"*) echo 3.11 ;;
    *ensurepip*) [ -z "${FAKE_DEBIAN:-}" ] || [ -e "$NOTES.venv" ] ;;
    "-m venv --clear "*)
        log "venv by ${0##*/}"
        rm -rf "$4"
        mkdir -p "$4/bin"
        cp "$0" "$4/bin/python"
        printf '#!/bin/bash\necho "cobasis in $PWD:"\nprintf "<%%s>" "$@"\n' >"$4/bin/cobasis"
        chmod +x "$4/bin/cobasis" ;;
    "-m pip"*)
        log "$@"
        echo "words of pip"
        eval "${FAKE_PIP:-}" ;;
    *) log "$@" ;;
esac
"""
APT_GET = '#!/bin/bash\necho "apt-get $*" >>"$NOTES"\n[ -z "${APT_FAILS:-}" ] && : >"$NOTES.venv"\n'


class Checkout:
    """A copy of the set-up files in a folder of its own, with a space in its name."""

    def __init__(self, folder):
        self.folder = folder / "a copy"
        self.bin = folder / "bin"
        self.notes = folder / "notes"
        self.folder.mkdir()
        self.bin.mkdir()
        for path in [ROOT / "run.sh", ROOT / "pyproject.toml", *ROOT.glob("requirements*.lock")]:
            shutil.copy(path, self.folder)
        self.tool("python3.11", PYTHON)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("COBASIS_", "COV_"))}
        self.env = kept | {"PATH": f"{self.bin}:{kept['PATH']}", "NOTES": str(self.notes)}

    def tool(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self, *arguments, status=0, **settings):
        done = subprocess.run(
            [self.folder / "run.sh", *arguments],
            cwd=self.bin,
            env=self.env | settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == status, done.stderr
        return done

    def asked(self):
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        self.notes.unlink(missing_ok=True)
        return lines


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_any_other_word_goes_to_cobasis_with_its_arguments_and_the_callers_folder(checkout):
    done = checkout.run("prepare", "--table", "my rows.csv", "")
    assert done.stdout == f"cobasis in {checkout.bin}:\n<prepare><--table><my rows.csv><>"


def test_what_is_no_whole_line_is_answered_in_words_and_nothing_is_set_up(checkout):
    done = checkout.run(status=2)
    listed = {line.split()[1] for line in done.stderr.splitlines()}
    words = ("demo", "test", "check", "bench", "experiment", "wheelhouse", "lock", "ANYTHING")
    assert listed == set(words)
    studies(checkout)
    listed = "Name a study: table_07 traffic all"
    assert f"run.sh: {listed}" in checkout.run("experiment", status=2).stderr
    said = checkout.run("experiment", "_shared/../x", status=2).stderr
    assert f"run.sh: no study is called '_shared/../x'. {listed}" in said
    assert checkout.asked() == []
    (checkout.bin / "wheels").mkdir()  # never put over a folder that holds something
    (checkout.bin / "wheels" / "mine.txt").touch()
    assert "there already" in checkout.run("wheelhouse", "wheels", status=2).stderr
    assert [path.name for path in (checkout.bin / "wheels").iterdir()] == ["mine.txt"]


def test_set_up_installs_by_hash_once_and_again_what_was_changed_or_moved(checkout):
    done = checkout.run("demo")
    made, core, ours = checkout.asked()
    assert made == "venv by python3.11"
    for part in ("--require-hashes", "--only-binary :all:", f"{checkout.folder}/requirements.lock"):
        assert part in core
    assert ours.endswith("install --no-deps --no-build-isolation -e .")
    assert done.stderr.count("setting up") == 1
    assert checkout.run("demo").stderr == ""
    assert checkout.asked() == []
    for name in ("requirements.lock", "pyproject.toml"):
        with (checkout.folder / name).open("a") as file:
            file.write("# changed\n")
        checkout.run("demo")
        assert [line.split()[1] for line in checkout.asked()] == ["pip", "pip"]
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved"))
    checkout.run("demo")
    assert checkout.asked()[0].startswith("venv by")


def test_a_set_up_that_failed_is_built_again_from_nothing(checkout):
    done = checkout.run("demo", status=2, FAKE_PIP="exit 1")
    assert "words of pip" in done.stderr
    assert "the same command tries again" in done.stderr
    checkout.asked()
    checkout.run("demo")
    assert checkout.asked()[0].startswith("venv by")


@pytest.mark.parametrize(
    ("words", "asked", "lock"),
    [
        ("test -k polar", "-m pytest -k polar", "test"),
        ("bench --quick", "-m benchmarks --quick", "test"),
        ("experiment table_07 --budget 90m", "-m experiments table_07 --budget 90m", "experiments"),
        ("experiment all", "-m experiments all", "experiments"),
        ("experiment --help", "-m experiments --help", "experiments"),
    ],
)
def test_a_word_runs_its_program_with_its_own_lock_which_the_others_can_use(
    checkout, words, asked, lock
):
    studies(checkout)
    checkout.run(*words.split())
    found = checkout.asked()
    assert found[-1] == asked
    assert sum(f"requirements-{lock}.lock" in line for line in found) == 1
    checkout.run("demo")
    assert checkout.asked() == []


def studies(checkout):
    folder = checkout.folder / "experiments" / "studies"
    folder.mkdir(parents=True)
    for name in ("__init__", "_shared", "table_07", "traffic"):
        (folder / f"{name}.py").touch()


def test_without_the_venv_module_root_gets_it_and_others_are_told_what_to_install(checkout):
    checkout.tool("apt-get", APT_GET)
    for user, settings in (("1000", {}), ("0", {"APT_FAILS": "1"})):
        checkout.tool("id", f"#!/bin/bash\necho {user}\n")
        done = checkout.run("demo", status=2, FAKE_DEBIAN="1", **settings)
        assert "sudo apt-get install python3.11-venv" in done.stderr
        assert bool(checkout.asked()) == (user == "0")
    done = checkout.run("demo", FAKE_DEBIAN="1")
    asked = checkout.asked()
    assert asked[0] == "apt-get -q update"
    assert asked[1].endswith("install python3.11-venv")
    assert "fetching python3.11-venv" in done.stderr
    assert done.stdout.endswith("<demo>")


def test_a_python_is_looked_for_and_another_by_name_means_another_venv(checkout):
    done = checkout.run("demo", status=2, COBASIS_PYTHON=str(checkout.bin / "absent"))
    assert "found no Python 3.11 or newer" in done.stderr
    assert f"{checkout.bin}/absent" in done.stderr
    checkout.tool("python3.11", "#!/bin/bash\nexit 1\n")  # too old, or broken
    checkout.tool("python3", PYTHON)
    checkout.run("demo")
    assert checkout.asked()[0] == "venv by python3"
    checkout.tool("python4", PYTHON)
    checkout.run("demo", COBASIS_PYTHON="python4")
    assert checkout.asked()[0] == "venv by python4"
