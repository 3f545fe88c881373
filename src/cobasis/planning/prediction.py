"""How long an alignment will take on this machine."""

from cobasis.planning.own import work_of
from cobasis.planning.rates import Rates
from cobasis.planning.work import Size


def predict_alignment(
    size: Size, *, rates: Rates, method: str = "odc", workers: int = 1, one_span: bool = False
) -> float:
    """Return how many seconds an alignment of arrays in memory will take, within a factor of 3."""
    found = work_of(method, size, one_span=one_span)
    columns = size.n_components
    shared = (
        found.product / rates.product.at(columns)
        + found.factor / rates.factor.at(columns)
        + found.triangle / rates.triangle.at(columns)
        + found.copied / rates.copied
    )
    alone = (
        found.eigen / rates.eigen.at(found.eigen_order)
        + found.outer / rates.outer
        + found.steps * rates.step
    )
    return shared / workers + alone
