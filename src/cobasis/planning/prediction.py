"""How long an alignment will take on this machine."""

from cobasis.planning.own import work_of
from cobasis.planning.rates import Rates
from cobasis.planning.size import Size


def predict_alignment(
    size: Size, *, rates: Rates, method: str = "odc", workers: int = 1, one_span: bool = False
) -> float:
    """Return how many seconds an alignment of arrays in memory will take, within a factor of 3.

    Parameters
    ----------
    size : Size
        Of the alignment.
    rates : Rates
        Of this machine: ``cobasis.planning.rates.calibrate()``.
    method : {'odc', 'whitened', 'imakura', 'kawakami'}
        Which.
    workers : int
        Threads, each with a core of its own.
    one_span : bool
        Whether all parties have one span (basis ``consensus``, ``haar`` or ``public``), under an
        isometric anchor: ODC then takes a fraction of the time.

    Returns
    -------
    float
        Seconds; reading files is not in it.

    Raises
    ------
    OptionError
        Another method.

    Notes
    -----
    **Who sees what.** Sizes and rates.

    **Cost.** None; calibration takes a second, once.
    """
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
