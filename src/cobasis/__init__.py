"""Train one model together without pooling rows: one upload per party, one return.

Start with :func:`simulate`, which runs a whole round in one process, or with
:class:`Round`, which is the papers' Algorithm 1. The scikit-learn face is in
``cobasis.estimators``.
"""

from cobasis.algorithms.anchors import draw_anchor
from cobasis.algorithms.base import Alignment, align
from cobasis.algorithms.certificate import Certificate
from cobasis.algorithms.gopp import GOPP
from cobasis.algorithms.imakura import Imakura
from cobasis.algorithms.kawakami import Kawakami
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.whitened import Whitened
from cobasis.errors import CobasisError, LocalError, PrivacyWarning, RemoteError
from cobasis.features.numeric import NumericFeature, numeric_features
from cobasis.models.training import train
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.party import Party
from cobasis.protocol.round import Round
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis
from cobasis.protocol.simulation import simulate
from cobasis.protocol.vertical import join_vertical

__version__ = "0.1.0"

__all__ = [
    "GOPP",
    "ODC",
    "Agreement",
    "Alignment",
    "Analyst",
    "Certificate",
    "CobasisError",
    "ConsortiumSecret",
    "Imakura",
    "Kawakami",
    "LocalError",
    "NumericFeature",
    "Party",
    "PartyKey",
    "PrivacyWarning",
    "RemoteError",
    "Round",
    "SecretBasis",
    "Whitened",
    "align",
    "draw_anchor",
    "join_vertical",
    "numeric_features",
    "simulate",
    "train",
]
