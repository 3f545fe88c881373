"""What a result has to say about where it was made, and work in a process of its own."""

import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from cobasis.linalg.threads import available_threads

ROOT = Path(__file__).parents[1]
ONE_THREAD: Mapping[str, str] = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def machine() -> dict[str, Any]:
    """Return cores, processor, memory and BLAS, in words."""
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    lines = read("/proc/cpuinfo").splitlines()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    pinned = hasattr(os, "sched_getaffinity")
    return {
        "cores": len(os.sched_getaffinity(0)) if pinned else os.cpu_count(),
        "processor": named[0] if named else platform.processor(),
        "memory_gib": round(memory_bytes() / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": sorted({f"{each['internal_api']} {each['version']}" for each in blas}),
    }


def read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def in_a_child(work: str, *, threads: bool = False, **options: Any) -> dict[str, Any]:
    """Call a function in a fresh process; its peak memory is its own too."""
    environment = {name: os.environ[name] for name in os.environ if name not in ONE_THREAD}
    environment |= {} if threads else ONE_THREAD
    done = subprocess.run(  # noqa: S603 -- our own modules
        [sys.executable, "-m", "benchmarks.machine", work, json.dumps(options)],
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
    """Return the most memory that this process has had, by Linux's own record if it has one."""
    for line in read("/proc/self/status").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(work: str, options: str) -> None:
    module, name = work.split(":")
    call = getattr(importlib.import_module(f"benchmarks.{module}"), name)
    before, started = peak_bytes(), time.perf_counter()
    answer = {"result": call(**json.loads(options))}
    answer["seconds"] = time.perf_counter() - started
    answer |= {"peak_bytes": peak_bytes(), "peak_before_bytes": before}
    answer["blas_threads"] = available_threads()
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
