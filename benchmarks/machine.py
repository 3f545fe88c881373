"""What a result has to say about where it was made."""

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

ROOT = Path(__file__).parents[1]
PACKAGES = ("cobasis", "numpy", "scipy", "scikit-learn", "safetensors", "polars", "xgboost-cpu")
ONE_THREAD: Mapping[str, str] = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def machine() -> dict[str, Any]:
    """Return cores, processor, memory and BLAS, in words."""
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    names = sorted({f"{each['internal_api']} {each['version']}" for each in blas})
    return {
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "processor": _processor(),
        "memory_gib": round(memory_bytes() / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": names,
    }


def memory_bytes() -> int:
    """Return how much memory the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def versions() -> dict[str, str]:
    """Return the versions of Python and of every package that is timed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit() -> str:
    """Return the commit, with a word where the tree differs from it."""
    try:
        known = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "benchmarks")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{known} and changes" if changed else known


def _git(*arguments: str) -> str:
    """Return what git prints."""
    done = subprocess.run(  # noqa: S603 -- fixed words
        ["git", *arguments],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.strip()


def _processor() -> str:
    """Return the processor's own name for itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()
