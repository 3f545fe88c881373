"""Folders of uploads for the analyst's tests, and children that are stopped on the way."""

import json
import os
import subprocess
import sys

import numpy as np

from bundle.payloads import announced, put
from cobasis import Analyst, ConsortiumSecret, numeric_features
from cobasis.bundle.folders import FitFolder, StateFolder, UploadFolder
from cobasis.progress import silent
from protocol.consortium import NONE, agree

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def agreement_of(*, n_parties, n_anchor_rows=40, n_components=4):
    """What the parties of a folder agreed on."""
    return agree(
        ConsortiumSecret(bytes(32), simulated=True),
        parties=tuple(f"party-{number:06d}" for number in range(n_parties)),
        **NONE,
        features=numeric_features(f"f{column}" for column in range(n_anchor_rows)),
        n_components=n_components,
        n_anchor_rows=n_anchor_rows,
    )


def align_folder(uploads, *, aligner, to, report=silent):
    """Align the uploads of a folder, or go on with that."""
    folder = UploadFolder(uploads)
    image = folder[next(iter(folder))].image_shape
    agreement = agreement_of(n_parties=len(folder), n_anchor_rows=image[0], n_components=image[1])
    with FitFolder(to) as fits:
        kept = {"fits": fits, "state": StateFolder(to)}
        return Analyst(agreement, aligner=aligner, uploads=folder, report=report, **kept).align()


def write_folder(folder, *, n_parties, n_anchor_rows=40, n_components=4, seed=0, own=0.01):
    """Write uploads that see one span, and a little of their `own`, through turned bases."""
    agreement = agreement_of(
        n_parties=n_parties, n_anchor_rows=n_anchor_rows, n_components=n_components
    )
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(n_anchor_rows, n_components))
    folder.mkdir()
    for number, party in enumerate(agreement.parties):
        turned = seen[:, rng.permutation(n_components)] * rng.choice([-1, 1], size=n_components)
        image = turned + own * seen[rng.permutation(n_anchor_rows)]
        told = {"image": image, "agreement_digest": agreement.digest(), "simulated": True}
        upload = announced(party, n_rows=1, **told)
        put(upload, folder / f"{number:06d}.safetensors", precision="fp32")


def measured(script, *arguments):
    """Run a script in a process of its own; return what `result` holds, and its peak in MiB."""
    ends = "\nprint(json.dumps([result, peak_bytes() / 2**20]))\n"
    starts = "import json\nfrom pathlib import Path\nfrom benchmarks.machine import peak_bytes\n"
    command = [sys.executable, "-c", starts + script + ends, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
