"""What an agreement says of sums, noise and outcomes, by words and from a baseline table."""

from collections.abc import Collection, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cobasis.errors import OptionError
from cobasis.features.contract import Feature, columns_in, width_of
from cobasis.features.encoder import encode
from cobasis.features.maps import Columns, FeatureMap, Mixed, RandomFourier
from cobasis.features.outcome import Outcome, times_of
from cobasis.linalg.arrays import Matrix
from cobasis.party_side.draft import Example, Features, constants, terms_of_words
from cobasis.protocol.baseline import BaselineTable, NumberSummary
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.newton import N_STEPS
from cobasis.protocol.sums_terms import SumsTerms

N_BINS, _GRID, _OTHER = 20, 1000, "\0"
"""Bins of a baseline table where nobody says how many; rows that stand for all of one, and a word
that no agreement has."""

_WORDS = {"waves": {"rff", "mixed"}, "bandwidth": {"rff"}}
"""Words of maps, and which maps they are of."""


class Counted:
    """A baseline table, which an agreement's columns are described by."""

    def __init__(self, folder: Path) -> None:
        path = folder / "table.json" if folder.is_dir() else folder
        try:
            self._table = BaselineTable.read(path.read_bytes())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise OptionError(
                f"--from-sums '{folder}' is no baseline table: {why}. Give the folder that "
                "'cobasis accept' wrote at the end of a round with task='table'."
            ) from error
        self.names = [each.feature.name for each in self._table.columns]

    def features(self, *, leave_out: Collection[str | None], missing: str = "") -> Features:
        """Describe columns: centre and scale are mean and deviation of all rows."""
        found: list[Feature] = []
        source = f"sums of round {self._table.round_id}"[:200]
        for each in (x for x in self._table.columns if x.feature.name not in leave_out):
            told: dict[str, Any] = {"source": source}
            if isinstance(each, NumberSummary):
                told |= constants(each.means[0], each.deviations[0])
                blank = each.feature.missing == "fill" and (any(each.blanks) or missing == "fill")
                told["missing"] = "fill" if blank else "refuse"
                told["fill"] = told["centre"] if blank else None
            found.append(each.feature.model_copy(update=told))
        return tuple(found)

    def rows(self, features: Features) -> Matrix:
        """Return encoded rows whose columns are spread as the table says, each by itself."""
        shares, columns = (np.arange(_GRID) + 0.5) / _GRID, dict[str, list[Any]]()
        for name, each in zip(self.names, self._table.columns, strict=True):
            if isinstance(each, NumberSummary):
                columns[name] = [each.quantile(share) for share in shares]
                continue
            words = [_OTHER if level == "" else level for level in each.feature.levels]
            below = np.cumsum(each.counts[0]) / max(1, sum(each.counts[0]))
            columns[name] = [words[at] for at in np.searchsorted(below[:-1], shares)]
        known = [each.name for each in columns_in(features) if each.name in columns]
        return encode(pl.DataFrame(columns)[known], features, party="of the baseline table")


Public = Counted | Example | None


def sums_of_words(
    words: str | None, features: Features | None, *, public: Public, task: str, tabular: bool
) -> dict[str, SumsTerms]:
    if words is None:
        return {}
    like = "maps=rff+mixed,waves=200,most_rows=900,most_rows_in_all=3000"
    with terms_of_words("--sums", words, like=like) as said:
        kinds = said.pop("maps", "" if task == "table" or tabular else "rff").split("+")
        kinds = [each.strip() for each in kinds if each]
        maps = _maps(kinds, said, features or (), public)
        if "target_range" in said:
            said["target_range"] = tuple(said["target_range"].split(":"))
        usual = {"n_bins": N_BINS} if task == "table" else {}
        usual |= {"steps": N_STEPS} if tabular and task != "regression" else {}
        terms = SumsTerms.model_validate({**usual, **said, "maps": maps}, strict=False)
    return {"sums": terms}


def map_of_words(words: str, features: Features, *, public: Public) -> FeatureMap:
    """Read the map that rows go through before the basis: of three bandwidths the middle one."""
    like = "rff,waves=200,bandwidth=2, as mixed,waves=200 or as columns"
    with terms_of_words("--map", words, like=like) as said:
        said.pop(kind := next(iter(said), ""), None)
        made = _maps([kind], said, features, public)
        if said:
            raise ValueError(f"{', '.join(said)}: nothing here has this name")
    return made[len(made) // 2]


def waves_of(
    features: Features, *, waves: object = 500, bandwidth: object = None
) -> tuple[RandomFourier, ...]:
    spread = sqrt(width_of(features) / 2)
    sizes = [share * spread for share in (0.5, 1.0, 2.0)] if bandwidth is None else [bandwidth]
    told = [{"n_waves": waves, "bandwidth": each} for each in sizes]
    return tuple(RandomFourier.model_validate(each, strict=False) for each in told)


def _maps(
    kinds: Sequence[str], said: dict[str, Any], features: Features, public: Public
) -> tuple[FeatureMap, ...]:
    """Make maps, and take their words out of what was said: what is left is refused."""
    taken, found = [each for each in _WORDS if _WORDS[each] & {*kinds}], list[FeatureMap]()
    told = {name: said.pop(name) for name in taken if name in said}
    for kind in kinds:
        if kind == "columns":
            found.append(Columns())
        elif kind == "rff":
            found += waves_of(features, **told)
        elif kind != "mixed":
            raise ValueError(f"a map '{kind}' does not exist; there are columns, rff and mixed")
        elif public is None:
            raise ValueError(
                "the knots of mixed are made of a public table, --columns FILE, or of a baseline "
                "table, --from-sums FOLDER"
            )
        else:
            n_waves = waves_of(features, **told)[0].n_waves
            found.append(Mixed.from_public_rows(public.rows(features), n_waves=n_waves))
    return tuple(found)


def dp_of_words(words: str, sums: SumsTerms | None = None) -> DPTerms:
    usual = {"lifetime_epsilon": 1.0}
    usual |= {} if sums is None else {"radius": 1.0, "most_rows": sums.most_rows}
    like = "epsilon=8,radius=2,most_rows=900,labels=public"
    with terms_of_words("--dp", words, like=like) as said:
        found = DPTerms.model_validate({**usual, **said}, strict=False)
    once = {"lifetime_epsilon": found.epsilon + found.spent_on_labels}
    return found if "lifetime_epsilon" in words else found.model_copy(update=once)


def outcome_of_words(words: str | None) -> Outcome | None:
    if words is None:
        return None
    like = "event=died,horizons=180/365,errors=robust"
    with terms_of_words("--outcome", words, like=like) as said:
        said |= {name: times_of(name, said[name]) for name in ("horizons", "grid") if name in said}
        if "estimators" in said:
            said["estimators"] = tuple(said["estimators"].replace("/", " ").split())
        return Outcome.model_validate(said, strict=False)
