"""Folders of uploads for the alignment's tests, and children that are stopped on the way."""

import json
import subprocess
import sys

import numpy as np

from cobasis.disk.tensors import make_header

FLOAT = np.dtype("<f4")


def write_folder(folder, *, n_parties, n_anchor_rows=40, n_components=4, seed=0, own=0.01):
    """Write uploads that see one span, and a little of their `own`, through turned bases.

    Quickly: the disk is not waited for.
    """
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(n_anchor_rows, n_components)).astype(FLOAT)
    rows = np.zeros((1, n_components), FLOAT)
    folder.mkdir()
    for number in range(n_parties):
        turned = seen[:, rng.permutation(n_components)] * rng.choice([-1, 1], size=n_components)
        image = turned + FLOAT.type(own) * seen[rng.permutation(n_anchor_rows)]
        told = {
            "format": "cobasis/upload/1",
            "party": f"party-{number:06d}",
            "agreement_digest": "00" * 32,
            "anchor_tag": "11" * 32,
            "simulated": "true",
        }
        tables = [("anchor_image", FLOAT, image.shape), ("rows", FLOAT, rows.shape)]
        start, _ = make_header(tables, metadata=told)
        data = start + np.ascontiguousarray(image, FLOAT).tobytes() + rows.tobytes()
        (folder / f"{number:06d}.safetensors").write_bytes(data)


CHILD = """
import os, signal, sys
from pathlib import Path
from cobasis import ODC
from cobasis.algorithms import images
from cobasis.disk import files
from cobasis.engine.alignments import align_folder
from cobasis.engine.fit_folder import FitFolder
from cobasis.store.folder import UploadFolder

uploads, to, stop, step, count, shard_bytes = sys.argv[1:]
FitFolder.__init__.__kwdefaults__["shard_bytes"] = int(shard_bytes)
images.BATCH_BYTES = images.LARGEST_BATCH = 4000
calls = 0

def die():
    os.kill(os.getpid(), getattr(signal, stop))

def report(found, done, total):
    if found == step and done == int(count):
        die()

def fsync(descriptor, real=os.fsync):
    global calls
    calls += 1
    if calls == int(count):
        die()
    real(descriptor)

if step == "fsync":
    files.os.fsync = fsync
found = align_folder(UploadFolder(Path(uploads)), aligner=ODC(), to=Path(to), report=report)
print("done", len(found.fits))
"""


def run_child(uploads, to, *, stop="SIGKILL", step="", count=0, shard_bytes=1000):
    """Align in a process of its own, which stops itself at a point of the work."""
    command = [sys.executable, "-c", CHILD, uploads, to, stop, step, str(count), str(shard_bytes)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


PEAK = """
import json
from pathlib import Path

def peak():
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)
"""
"""Peak memory of this process in MiB; the usual call also counts the process that started it."""


def measured(script, *arguments):
    """Run a script in a process of its own; return what `result` holds, and its peak memory."""
    ends = "\nprint(json.dumps([result, peak()]))\n"
    command = [sys.executable, "-c", PEAK + script + ends, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
