"""Goals for the sections that measure and leave the judging to us: a party's table, training."""

from typing import Any

from benchmarks import goals

MEGABYTE = 1e6


def training(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Judge the analyst's training: every model within the memory that was asked for.

    Parameters
    ----------
    found : dict
        What ``benchmarks.analyst_training.measure`` returned.

    Returns
    -------
    list of dict
        Goals.
    """
    peaks = [(step, each["peak_bytes"] / MEGABYTE) for step, each in found["steps"].items()]
    what = f"training on {found['n_rows']:,} aligned rows x {found['n_components']}: peak memory"
    return [goals.worst(peaks, what, most=found["goal_bytes"] / MEGABYTE, unit=" MB")]
