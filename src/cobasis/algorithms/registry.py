"""The aligners by name, as agreements and command lines call them."""

from typing import TYPE_CHECKING, get_args

from cobasis.algorithms import AlignerName
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.gopp import GOPP
from cobasis.algorithms.imakura import Imakura
from cobasis.algorithms.kawakami import Kawakami
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.whitened import Whitened
from cobasis.errors import OptionError

if TYPE_CHECKING:
    from cobasis.algorithms.options import Scale

ALIGNERS: tuple[AlignerName, ...] = get_args(AlignerName)


def make_aligner(name: AlignerName, *, gain: float | None) -> Aligner:
    """Make an aligner by name, with the one global scalar that the anchor's kind gives."""
    scale: Scale = "measured" if gain is None else gain
    if name == "odc":
        return ODC()
    if name == "gopp":
        return GOPP()
    if name == "whitened":
        return Whitened(scale=scale)
    if name == "imakura":
        return Imakura(scale=scale)
    if name == "kawakami":
        return Kawakami(scale=scale)
    raise OptionError(f"aligner '{name}' does not exist. Choose one of {', '.join(ALIGNERS)}.")
