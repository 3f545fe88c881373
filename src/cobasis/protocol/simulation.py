"""The one door through which a seed comes in: a whole round in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from cobasis.algorithms import AlignerName, AnchorKind, BasisName, SpanCondition
    from cobasis.algorithms.base import Aligner
    from cobasis.features.contract import Feature
    from cobasis.features.maps import Columns, Mixed, RandomFourier
    from cobasis.features.outcome import Outcome
    from cobasis.models import Estimator, ModelName, Task
    from cobasis.protocol.dp_terms import DPTerms
    from cobasis.protocol.round import Round, Rows, SumsRound
    from cobasis.protocol.sums_terms import Release


@overload
def simulate(
    rows: Rows,
    *,
    rng: np.random.Generator,
    n_components: int | None = ...,
    task: Task = ...,
    n_clusters: int | None = ...,
    release: Literal["rows"] = ...,
    maps: Sequence[Columns | RandomFourier | Mixed] | None = ...,
    aligner: AlignerName | Aligner = ...,
    anchor: AnchorKind = ...,
    n_anchor_rows: int | None = ...,
    basis: BasisName = ...,
    model: ModelName | Estimator | None = ...,
    features: Iterable[Feature] | None = ...,
    outcome: Outcome | None = ...,
    public_rows: npt.ArrayLike | None = ...,
    span_condition: SpanCondition | None = ...,
    exclude: Iterable[str] = ...,
    allow_row_carrying: bool = ...,
    dp: DPTerms | None = ...,
) -> Round: ...
@overload
def simulate(
    rows: Rows,
    *,
    rng: np.random.Generator,
    release: Literal["sums"],
    task: Task = ...,
    maps: Sequence[Columns | RandomFourier | Mixed] | None = ...,
    model: ModelName | None = ...,
    features: Iterable[Feature] | None = ...,
    outcome: Outcome | None = ...,
    dp: DPTerms | None = ...,
) -> SumsRound: ...
def simulate(
    rows: Rows,
    *,
    rng: np.random.Generator,
    n_components: int | None = None,
    task: Task = "classification",
    n_clusters: int | None = None,
    release: Release = "rows",
    maps: Sequence[Columns | RandomFourier | Mixed] | None = None,
    aligner: AlignerName | Aligner = "odc",
    anchor: AnchorKind = "isometric",
    n_anchor_rows: int | None = None,
    basis: BasisName = "svd",
    model: ModelName | Estimator | None = None,
    features: Iterable[Feature] | None = None,
    outcome: Outcome | None = None,
    public_rows: npt.ArrayLike | None = None,
    span_condition: SpanCondition | None = None,
    exclude: Iterable[str] = (),
    allow_row_carrying: bool = False,
    dp: DPTerms | None = None,
) -> Round | SumsRound:
    """Run a whole round in one process, with the real messages and secrets from a seed.

    Parameters
    ----------
    rows : mapping of str to (X, y)
        Every party's rows of shape (n_rows, n_features), an array or a data frame, and labels of
        shape (n_rows,).
    rng : numpy.random.Generator
        Fills the 32-byte keys. Everything made from them is marked as simulated.
    n_components : int
        l, columns of every secret basis; needed where rows are released, but for a table.
    task : str
        What the model is for, as an agreement says it; of "clustering", "novelty" and
        "representation" labels are None.
    n_clusters : int, optional
        How many clusters to look for; they are numbered from 1, the largest first.
    release : {"rows", "sums"}
        What a party's message holds: projected rows, or masked sums. With "sums" only `task`,
        `maps`, `features` and `dp` are taken of the other options, and the model is ridge
        regression; or, without maps, a `model` of "ols", "logit", "poisson" or "cox", with its
        `outcome`.
    maps : sequence of Columns, RandomFourier or Mixed, optional
        Of which the sums are made; evidence chooses one. By default random Fourier features of
        half, once and twice the root of half the summed variance of all encoded columns. Of rows
        the one that they go through before the basis, by default `Columns`.
    aligner : str or Aligner
        "odc", "gopp", "whitened", "imakura", "kawakami", or one with other options.
    anchor : {"isometric", "gaussian", "uniform", "public", "smote"}
        The anchor's kind.
    n_anchor_rows : int, optional
        a; by default that of features, or 1,000 if more and not isometric, or of public rows.
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"}
        How parties choose their bases.
    model : str or scikit-learn estimator, optional
        A family, or an estimator that is fitted as it is; by default one for the task. A regression
        table takes all columns and basis "haar" where none are named.
    features : iterable of NumericFeature, CategoryFeature or Interaction, optional
        By default numbers as they are, under a data frame's own names or x0, x1, ...
    outcome : Outcome, optional
        Columns beside the label: labels are then a data frame or a structured array with these,
        and one named "value" for the label itself.
    public_rows : array-like of shape (n_public, n_features), optional
        For public and smote anchors and for public bases.
    span_condition : str, optional
        One of the papers' four, eq. (92), instead of a basis.
    exclude : iterable of str
        Parties that the analyst leaves out by name.
    allow_row_carrying : bool
        Accept models that store rows.
    dp : DPTerms, optional
        Noise with a guarantee. From a seed it protects nobody, and costs what it costs.

    Returns
    -------
    Round or SumsRound
        ``round.score(X, y)``, ``round.analyst.certificate``; of sums ``round.result``.

    Raises
    ------
    CobasisError
        OptionError for what an option does not take, with a list of what it does; as the steps.

    Warns
    -----
    PrivacyWarning
        For uniform, public and smote anchors.

    Notes
    -----
    **Who sees what.** Everything is in one process, for research and for trying out. Between
    organisations use `Party` and `Analyst`, which have no seed. **Cost.** As ``Round.run``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> table = rng.normal(size=(90, 5))
    >>> label = (table @ [3, 2, 1, 0, 0] > 0).astype(int)
    >>> rows = {name: (table[i::3], label[i::3]) for i, name in enumerate(["a", "b", "c"])}
    >>> done = simulate(rows, rng=rng, n_components=4)
    >>> min(done.score(table, label).values()) > 0.8
    True
    >>> done = simulate(rows, rng=rng, release="sums")
    >>> min(done.score(table, label).values()) > 0.8
    True
    """
    given = dict(locals())
    from cobasis.protocol import seeded_round  # noqa: PLC0415 -- all of it, on its first use

    if release == "sums":
        return seeded_round.round_of_sums(**given)
    made, told = seeded_round.round_of(**given)
    return made.run(rows, **told)
