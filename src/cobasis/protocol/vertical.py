"""Vertical partition: parties that hold different features of the same rows, joined into one.

Analyst's side. The parties of one block of rows sign an agreement over all features, and
upload under it with zeros (after centre and scale) where they hold none. Their bases then
stand on different rows of one anchor: side by side they are one basis.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np

from cobasis.algorithms.bases import BASES
from cobasis.errors import AgreementError, MessageError, ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.protocol import refusals
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import Labels, Upload

DISJOINT = 1e-8
"""How far, relative, images of disjoint features may be from orthogonal, isometric anchor."""


def join_vertical(uploads: Iterable[Upload], *, party: str, agreement: Agreement) -> Upload:
    """Join uploads of different features of the same rows, column by column, into one.

    Parameters
    ----------
    uploads : iterable of Upload
        From two or more parties that signed one agreement. Each row is the same person's in
        all of them: parties that share rows and a `PartyKey` upload in one order.
    party : str
        What the block of rows is called in `agreement`.
    agreement : Agreement
        The parts' own but for ``parties``, which names blocks of rows, and ``n_components``,
        which is the sum over the parts.

    Returns
    -------
    Upload
        ``[X_1 F_1, X_2 F_2]``, ``A [F_1, F_2]`` and the labels, once. To `Analyst` or
        `align` it is one party's.

    Raises
    ------
    CobasisError
        The parts are fewer than two, one party's twice, of different agreements, anchors, rows or
        labels; they share features (found under an isometric anchor), or the basis mixes them; or
        what is joined is not what `agreement` says.

    Notes
    -----
    Parts that hold disjoint features of *other* rows cannot be aligned with each other: under
    an isometric anchor ``A_1' A_2 = 0``, and every aligner that rotates refuses. Labels are all
    that shows whether rows are linked: parts without labels are taken at their word.

    **Who sees what.** The analyst learns which uploads are of the same persons, and so more
    about each of them than from any one part. A prediction takes ``X_1 F_1`` and ``X_2 F_2``
    of one person together, and the whole change of basis that returns.

    **Cost.** One copy of the tables, and a product of the images for each pair of parts.

    References
    ----------
    Imakura, Ye and Sakurai (2020); ODC paper, section 2.1 and Table 8.

    Examples
    --------
    >>> import numpy as np
    >>> from cobasis import Agreement, ConsortiumSecret, Party, PartyKey, numeric_features
    >>> secret, key = ConsortiumSecret(), PartyKey()
    >>> parts = Agreement(
    ...     round_id="icu-2026", parties=("ward", "lab"), task="regression", n_components=2,
    ...     features=numeric_features(["age", "pulse", "lactate", "sodium"]), n_anchor_rows=4,
    ...     model="ridge", commitment=secret.commitment("icu-2026"))
    >>> rows = np.random.default_rng(0).normal(size=(20, 4))
    >>> uploads = [
    ...     Party(name, agreement=parts, secret=secret, key=key).prepare(rows * held, rows.sum(1))
    ...     for name, held in {"ward": [1, 1, 0, 0], "lab": [0, 0, 1, 1]}.items()]
    >>> whole = parts.model_copy(update={"parties": ("first",), "n_components": 4})
    >>> join_vertical(uploads, party="first", agreement=whole).rows.shape
    (20, 4)
    """
    parts: dict[str, Upload] = {}
    for upload in uploads:
        refusals.refuse_second(upload.party, parts)
        parts[upload.party] = upload
    _refuse_unjoinable(parts, party=party, agreement=agreement)
    _refuse_heights({name: len(each.rows) for name, each in parts.items()}, "rows", party)
    images = {name: each.anchor_image for name, each in parts.items()}
    _refuse_heights({name: len(each) for name, each in images.items()}, "anchor rows", party)
    if agreement.anchor == "isometric":
        _refuse_shared_features(images, party=party)
    joined = Upload(
        party=party,
        agreement_digest=agreement.digest(),
        anchor_tag=next(iter(parts.values())).anchor_tag,
        rows=np.hstack([each.rows for each in parts.values()]),
        labels=_labels(parts, party=party),
        anchor_image=np.hstack(list(images.values())),
        simulated=any(each.simulated for each in parts.values()),
    )
    refusals.check_upload(joined, agreement)
    return joined


def _refuse_unjoinable(parts: Mapping[str, Upload], *, party: str, agreement: Agreement) -> None:
    """Refuse too few parts, parts of several agreements or anchors, and bases that mix features."""
    if len(parts) < 2:  # noqa: PLR2004 -- a join takes two
        raise ShapeError(
            f"{len(parts)} upload(s) were given for '{party}', and a join takes two or more. Give "
            "all uploads of the block's parties, or receive a single one as it is."
        )
    if not BASES[agreement.basis].span.startswith("own"):
        raise AgreementError(
            f"basis='{agreement.basis}' mixes all features, and a part of '{party}' holds some of "
            "them only, so its basis would not be its own. Agree on basis='svd' or 'pca'."
        )
    if len({each.agreement_digest for each in parts.values()}) > 1:
        raise MessageError(
            f"the uploads of {', '.join(parts)}, to be joined as '{party}', belong to different "
            "agreements. Ask them to prepare with the one that all of them signed."
        )
    refusals.refuse_different_anchors(parts)


def _refuse_heights(counts: Mapping[str, int], what: str, party: str) -> None:
    """Raise MessageError unless all tables have one number of rows."""
    if len({*counts.values()}) > 1:
        listed = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        raise MessageError(
            f"the parts of '{party}' have different numbers of {what} ({listed}), so they are not "
            "the same rows. Have the parties agree on which rows they share, and prepare again."
        )


def _refuse_shared_features(images: Mapping[str, Matrix], *, party: str) -> None:
    """Raise MessageError where two parts overlap: then the joined basis is not orthonormal."""
    # under an isometric anchor (A F_1)'(A F_2) is F_1'F_2, which is 0 for disjoint features
    for (one, first), (other, second) in combinations(images.items(), 2):
        size = np.linalg.norm(first) * np.linalg.norm(second)
        if np.linalg.norm(first.T @ second) > DISJOINT * size:
            raise MessageError(
                f"the bases of '{one}' and '{other}', parts of '{party}', overlap: both hold "
                "some feature, which would count twice. Leave it to one of them, with zeros "
                "at the other."
            )


def _labels(parts: Mapping[str, Upload], *, party: str) -> Labels | None:
    """Return the labels that all parts with labels have; None where nobody has any."""
    found = [each.labels for each in parts.values() if each.labels is not None]
    if not all(np.array_equal(found[0], each) for each in found[1:]):
        raise MessageError(
            f"the labels of {', '.join(parts)}, parts of '{party}', are not the same row by row, "
            "so their rows are not linked. Have the parties sort their rows alike and share one "
            "PartyKey, which gives one order, and prepare again."
        )
    return found[0] if found else None
