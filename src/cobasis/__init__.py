"""Train one model together without pooling rows: one upload per party, one return.

Start with :func:`simulate`, which runs a whole round in one process, or with
:class:`Round`, which is the papers' Algorithm 1. The scikit-learn face is in
``cobasis.estimators``. All but the errors is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from cobasis import errors
from cobasis.errors import *  # noqa: F403 -- each can be caught by its name, and is one of ours

if TYPE_CHECKING:
    from cobasis.algorithms.anchors import draw_anchor as draw_anchor
    from cobasis.algorithms.base import Alignment as Alignment
    from cobasis.algorithms.base import align as align
    from cobasis.algorithms.certificate import Certificate as Certificate
    from cobasis.algorithms.gopp import GOPP as GOPP
    from cobasis.algorithms.imakura import Imakura as Imakura
    from cobasis.algorithms.kawakami import Kawakami as Kawakami
    from cobasis.algorithms.odc import ODC as ODC
    from cobasis.algorithms.whitened import Whitened as Whitened
    from cobasis.features.contract import CategoryFeature as CategoryFeature
    from cobasis.features.contract import NumericFeature as NumericFeature
    from cobasis.features.contract import numeric_features as numeric_features
    from cobasis.features.maps import Columns as Columns
    from cobasis.features.maps import Mixed as Mixed
    from cobasis.features.maps import RandomFourier as RandomFourier
    from cobasis.features.outcome import Outcome as Outcome
    from cobasis.models.trainer import train as train
    from cobasis.protocol.agreement import Agreement as Agreement
    from cobasis.protocol.analyst import Analyst as Analyst
    from cobasis.protocol.dp_terms import DPTerms as DPTerms
    from cobasis.protocol.messages import Return as Return
    from cobasis.protocol.messages import Upload as Upload
    from cobasis.protocol.party import Party as Party
    from cobasis.protocol.round import Round as Round
    from cobasis.protocol.round import SumsRound as SumsRound
    from cobasis.protocol.secrets import ConsortiumSecret as ConsortiumSecret
    from cobasis.protocol.secrets import PartyKey as PartyKey
    from cobasis.protocol.secrets import SecretBasis as SecretBasis
    from cobasis.protocol.simulation import simulate as simulate
    from cobasis.protocol.sums_terms import SumsTerms as SumsTerms
    from cobasis.protocol.terms import Holding as Holding

__version__ = "0.1.0"

_HOMES = {
    "Agreement": "protocol.agreement",
    "Alignment": "algorithms.base",
    "Analyst": "protocol.analyst",
    "CategoryFeature": "features.contract",
    "Certificate": "algorithms.certificate",
    "Columns": "features.maps",
    "ConsortiumSecret": "protocol.secrets",
    "DPTerms": "protocol.dp_terms",
    "GOPP": "algorithms.gopp",
    "Holding": "protocol.terms",
    "Imakura": "algorithms.imakura",
    "Kawakami": "algorithms.kawakami",
    "Mixed": "features.maps",
    "NumericFeature": "features.contract",
    "ODC": "algorithms.odc",
    "Outcome": "features.outcome",
    "Party": "protocol.party",
    "PartyKey": "protocol.secrets",
    "RandomFourier": "features.maps",
    "Return": "protocol.messages",
    "Round": "protocol.round",
    "SecretBasis": "protocol.secrets",
    "SumsRound": "protocol.round",
    "SumsTerms": "protocol.sums_terms",
    "Upload": "protocol.messages",
    "Whitened": "algorithms.whitened",
    "align": "algorithms.base",
    "draw_anchor": "algorithms.anchors",
    "numeric_features": "features.contract",
    "simulate": "protocol.simulation",
    "train": "models.trainer",
}
"""In which module each name is that is loaded on first use."""

_ERRORS = [name for name, each in vars(errors).items() if isinstance(each, type)]

__all__ = sorted([*_HOMES, *_ERRORS])  # noqa: PLE0605 -- a list all the same


def __getattr__(name: str) -> object:
    """Load a name's module when the name is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cobasis' has no attribute '{name}'")
    found: object = getattr(import_module(f"cobasis.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List what can be imported, loaded or not."""
    return sorted({*globals(), *__all__})
