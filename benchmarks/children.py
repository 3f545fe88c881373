"""Work in a process of its own, whose peak memory is its own too."""

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import ONE_THREAD, ROOT
from cobasis.linalg.threads import available_threads


def in_a_child(work: str, *, threads: bool = False, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Call a function in a fresh process."""
    environment = {name: os.environ[name] for name in os.environ if name not in ONE_THREAD}
    environment |= {} if threads else ONE_THREAD
    done = subprocess.run(  # noqa: S603 -- our own modules
        [sys.executable, "-m", "benchmarks.children", work, json.dumps(options)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        msg = f"{work} failed in its own process: {done.stderr.strip()[-600:]}"
        raise RuntimeError(msg)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def peak_bytes() -> int:
    """Return the most memory that this process has had in RAM.

    From Linux's own record, which begins anew with each program; elsewhere from the one that may
    include the parent's at the moment of the fork.
    """
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    [line] = [line for line in text.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def main(work: str, options: str) -> None:
    """Do the work and write what came out as the last line."""
    module, name = work.split(":")
    call = getattr(importlib.import_module(f"benchmarks.{module}"), name)
    before = peak_bytes()
    started = time.perf_counter()
    result = call(**json.loads(options))
    took = time.perf_counter() - started
    answer = {
        "result": result,
        "seconds": took,
        "peak_bytes": peak_bytes(),
        "peak_before_bytes": before,
        "blas_threads": available_threads(),
    }
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
