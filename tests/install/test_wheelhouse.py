import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# pip as a stranger has it: no settings and no folders of this machine.
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON", "COV_"))}
CLEAN |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(*command, status=0, cwd=None):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.install
@pytest.mark.soak
def test_a_wheelhouse_installs_by_hash_with_no_network(tmp_path):
    for cut_off in (["unshare", "-rn"], ["unshare", "-n"]):
        tried = subprocess.run([*cut_off, "true"], check=False, capture_output=True, text=True)
        if tried.returncode == 0:
            break
    else:
        pytest.skip(f"cannot cut off the network: {tried.stderr.strip()}")
    wheels = tmp_path / "wheel house"
    subprocess.run([ROOT / "run.sh", "wheelhouse", wheels], check=True, cwd=tmp_path)
    requirements = wheels / "requirements.txt"
    lines = requirements.read_text().splitlines()
    assert len(lines) == len(list(wheels.glob("*.whl"))) > 20
    assert sum(line.startswith("cobasis==") for line in lines) == 1
    assert {path.name for path in tmp_path.iterdir()} == {wheels.name}

    run(sys.executable, "-m", "venv", tmp_path / "fresh")
    python = tmp_path / "fresh" / "bin" / "python"
    seen = run(*cut_off, python, "-c", "import socket; print(socket.if_nameindex())")
    assert re.findall("'([^']+)'", seen) == ["lo"], "the network is not off"
    install = [*cut_off, python, "-m", "pip", "install", "--no-index", "--find-links", wheels]
    install += ["--require-hashes", "-r", requirements]

    whole = requirements.read_text()
    requirements.write_text(re.sub("(cobasis==.*sha256:).*", r"\g<1>" + "0" * 64, whole))
    assert "DO NOT MATCH THE HASHES" in run(*install, status=1)
    requirements.write_text(whole)
    run(*install)
    run(python, "-m", "pip", "check")
    said = run(*cut_off, python, "-I", "-c", "import cobasis; print(cobasis.__file__)")
    assert said.startswith(str(tmp_path / "fresh"))
