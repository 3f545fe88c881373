"""The round as a transformer: one common representation, no labels, no model."""

from cobasis.estimators.base import CollaborativeBase


class CollaborativeTransformer(CollaborativeBase):
    """Bring the rows of several parties into one aligned representation.

    Parameters
    ----------
    n_components : int, optional
        l, columns of every secret basis; by default half the features, at least one. Fewer
        components show the analyst less, and keep less.
    aligner : str or Aligner
        "odc", "gopp", "whitened", "imakura", "kawakami", or one with other options.
    anchor : {"isometric", "gaussian", "uniform", "public", "smote"}
        The anchor's kind.
    n_anchor_rows : int, optional
        a; by default as ``simulate`` chooses it.
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"}
        How parties choose their bases.
    public_rows : array-like of shape (n_public, n_features), optional
        For public anchors and bases; unused by others, so that a search can compare them.
    random_state : int, RandomState or None
        Fills the simulated keys; None draws fresh entropy at every fit.

    Attributes
    ----------
    round_ : Round
        The finished round; ``round_.analyst.certificate`` is of its alignment.
    parties_ : ndarray of shape (n_parties,)
        Names of the parties, sorted.
    n_features_in_ : int
        m, number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where `X` was a data frame with names.

    Raises
    ------
    CobasisError
        By `fit`, as ``simulate``.

    Notes
    -----
    Rows are taken as they are. Centre and scale by constants that are public, never by a
    scaler that is fitted to everybody's rows: no party has those. A fitted estimator holds
    secret bases, which refuse to be pickled or copied; keep it where it was made, or `clone`
    it unfitted.

    **Who sees what.** A simulation: one process plays all parties and the analyst.

    **Cost.** As ``simulate``.

    Examples
    --------
    >>> import numpy as np
    >>> from cobasis.estimators import CollaborativeTransformer
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> parties = np.array(["north", "south", "east", "west"] * 25)
    >>> model = CollaborativeTransformer(n_components=4, basis="haar", random_state=0)
    >>> model.fit_transform(X, parties=parties).shape
    (100, 4)
    >>> model.round_.analyst.certificate.parties["north"].evidence
    'cannot tell'
    """
