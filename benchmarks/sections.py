"""What there is to measure: each section is a module with a function `measure`."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.inputs import INPUTS


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the benchmark, run in a process of its own."""

    title: str  # what it measures
    module: str  # under ``benchmarks``
    options: Mapping[str, Any] = field(default_factory=dict)
    threads: bool = False  # whether BLAS may use as many threads as it likes

    @property
    def exists(self) -> bool:
        """Whether its module is there."""
        return importlib.util.find_spec(f"benchmarks.{self.module}") is not None


SWEEPS = {
    "papers": "unrelated",
    "uniform": "different, uniform anchor",
    "isometric": "different, isometric anchor",
    "shared": "shared, isometric anchor",
}
SECTIONS: Mapping[str, Section] = {
    "exactness": Section(title="the same numbers as plain decompositions", module="exactness"),
    **{
        name: Section(title=f"Table 5's sweeps: {each}", module="sweeps", options={"name": each})
        for name, each in SWEEPS.items()
    },
    "published": Section(title="Imakura and Kawakami as published", module="published_forms"),
    "gopp": Section(title="GOPP with momentum and without", module="gopp"),
    "threads": Section(title="two threads against one", module="threads", threads=True),
    "busy": Section(title="a busy machine", module="busy", threads=True),
    "streaming": Section(title="20,000 and 100,000 parties", module="streaming", threads=True),
    "formulas": Section(title="formulas against measurements", module="formulas"),
    "party": Section(title="a party's table on disk", module="party_table", threads=True),
    "training": Section(
        title="the analyst's training",
        module="analyst_training",
        threads=True,
    ),
    "round": Section(title="a whole round of 100 parties", module="whole_round"),
    "start": Section(title="imports and help", module="start"),
    "trees": Section(title="trees in NumPy", module="tree_models"),
    "gpu": Section(title="polar on a graphics card", module="gpu", threads=True),
}
"""In the order in which they are run; ``--only`` takes these names."""

if set(SWEEPS.values()) != set(INPUTS):  # an input that nobody times would go unnoticed
    msg = f"sections time {sorted(SWEEPS.values())}, inputs are {sorted(INPUTS)}"
    raise ValueError(msg)
