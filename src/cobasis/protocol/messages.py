"""Everything that travels between a party and the analyst; nothing else does.

Each message is frozen and names the agreement and the anchor it belongs to. `simulated`
marks what was drawn from a seed, which no bundle will carry to a real round. Arrays stay
out of a message's representation, so that no log shows what a person's row was made of.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.certificate import Evidence
from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Chain
from cobasis.models.training import TrainedModel

Labels = npt.NDArray[np.int64] | npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SpanProposal:
    """Party to analyst, consensus bases only: the party's directions, seen by the anchor.

    Attributes
    ----------
    party : str
        Who sends it.
    agreement_digest, anchor_tag : bytes
        Which agreement and which anchor it belongs to.
    image : ndarray of shape (n_anchor_rows, r_i)
        ``A V_i`` for the party's real directions, ``r_i <= n_components``, turned; weighted,
        ``A V_i S_i / sqrt(n_i)``.
    simulated : bool
        Drawn from a seed.
    """

    party: str
    agreement_digest: bytes
    anchor_tag: bytes
    image: Matrix = field(repr=False)
    simulated: bool

    @property
    def n_bytes(self) -> int:
        """What the arrays weigh."""
        return int(self.image.nbytes)


@dataclass(frozen=True, kw_only=True)
class ConsensusSpan:
    """Analyst to every party, consensus bases only: the common span, hidden by the anchor.

    Attributes
    ----------
    agreement_digest, anchor_tag : bytes
        Which agreement and which anchor it belongs to.
    rows : ndarray of shape (n_anchor_rows, n_components)
        Z, orthonormal.
    contributors : tuple of str
        Whose directions shaped it.
    simulated : bool
        Drawn from a seed.
    """

    agreement_digest: bytes
    anchor_tag: bytes
    rows: Matrix = field(repr=False)
    contributors: tuple[str, ...]
    simulated: bool

    @property
    def n_bytes(self) -> int:
        """What the arrays weigh."""
        return int(self.rows.nbytes)


class ReadableUpload(Protocol):
    """What the analyst reads of an upload, in memory or on disk: some rows at a time.

    Attributes
    ----------
    party : str
        Who sends it.
    agreement_digest, anchor_tag : bytes
        Which agreement and which anchor it belongs to.
    simulated : bool
        Whether it was drawn from a seed.
    n_rows, n_components : int
        Shape of the rows.
    image_shape : tuple of int
        Of the anchor image.
    n_labels : int or None
        How many labels it has; None without any.
    """

    @property
    def party(self) -> str: ...  # noqa: D102 -- above
    @property
    def agreement_digest(self) -> bytes: ...  # noqa: D102 -- above
    @property
    def anchor_tag(self) -> bytes: ...  # noqa: D102 -- above
    @property
    def simulated(self) -> bool: ...  # noqa: D102 -- above
    @property
    def n_rows(self) -> int: ...  # noqa: D102 -- above
    @property
    def n_components(self) -> int: ...  # noqa: D102 -- above
    @property
    def image_shape(self) -> tuple[int, ...]: ...  # noqa: D102 -- above
    @property
    def n_labels(self) -> int | None: ...  # noqa: D102 -- above

    def read_image(self) -> Matrix:
        """Read ``A F_i``."""
        ...

    def row_block(self, start: int, stop: int) -> Matrix:
        """Read rows `start` to `stop`, as wide floats as were sent, float32 at least."""
        ...

    def label_block(self, start: int, stop: int) -> Labels | None:
        """Read their labels; None for a representation."""
        ...


@dataclass(frozen=True, kw_only=True)
class UploadHeader:
    """What is known of an upload before its first row is there.

    Attributes
    ----------
    party : str
        Who sends it.
    agreement_digest, anchor_tag : bytes
        Which agreement and which anchor it belongs to; 32 bytes each.
    simulated : bool
        Drawn from a seed.
    n_rows, n_components, n_anchor_rows : int
        The shapes: rows are (n_rows, n_components), the anchor image (n_anchor_rows,
        n_components).
    labels : {'int64', 'float64'} or None
        Positions in the agreement's classes, or numbers; None for representation.
    """

    party: str
    agreement_digest: bytes
    anchor_tag: bytes
    simulated: bool
    n_rows: int
    n_components: int
    n_anchor_rows: int
    labels: str | None = None


@dataclass(frozen=True, kw_only=True)
class Upload:
    """Party to analyst: all that a party ever shows of its rows.

    Attributes
    ----------
    party : str
        Who sends it.
    agreement_digest, anchor_tag : bytes
        Which agreement and which anchor it belongs to.
    rows : ndarray of shape (n_rows, n_components)
        ``X_i F_i``, in an order that only the party knows.
    labels : ndarray of shape (n_rows,) or None
        Positions in the agreement's classes, or numbers; None for representation.
    anchor_image : ndarray of shape (n_anchor_rows, n_components)
        ``A F_i``.
    simulated : bool
        Drawn from a seed.

    Notes
    -----
    **Who sees what.** The analyst sees all of it, and nobody else. **Cost.** What its arrays weigh.
    """

    party: str
    agreement_digest: bytes
    anchor_tag: bytes
    rows: Matrix = field(repr=False)
    labels: Labels | None = field(repr=False)
    anchor_image: Matrix = field(repr=False)
    simulated: bool

    @property
    def n_rows(self) -> int:
        """How many rows the party sent."""
        return len(self.rows)

    @property
    def n_components(self) -> int:
        """How many columns they have."""
        return int(self.rows.shape[1])

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Rows and columns of the anchor image."""
        return self.anchor_image.shape

    @property
    def n_labels(self) -> int | None:
        """How many labels there are; None without any."""
        return None if self.labels is None else len(self.labels)

    def read_image(self) -> Matrix:
        """Return ``A F_i``."""
        return self.anchor_image

    def row_block(self, start: int, stop: int) -> Matrix:
        """Return rows `start` to `stop`."""
        return self.rows[start:stop]

    def label_block(self, start: int, stop: int) -> Labels | None:
        """Return their labels."""
        return None if self.labels is None else self.labels[start:stop]

    @property
    def n_bytes(self) -> int:
        """What the arrays weigh."""
        labels = 0 if self.labels is None else self.labels.nbytes
        return int(self.rows.nbytes + self.anchor_image.nbytes + labels)


@dataclass(frozen=True, kw_only=True)
class Return:
    """Analyst to one party: its own change of basis, and the model that all get.

    Attributes
    ----------
    party : str
        Whom it is for, and for nobody else.
    agreement_digest : bytes
        Which agreement it belongs to.
    change_of_basis : ndarray of shape (n_components, n_components)
        G_i.
    model : Chain, TrainedModel or None
        What travels, or an estimator in a simulation; None for representation.
    evidence : {"not a random turn", "cannot tell"}
        What the certificate says of this party.
    trained_on : tuple of str
        The parties whose rows shaped the model.
    target_carries : tuple of str
        The parties whose trace target or consensus basis carry, those that left included.
    simulated : bool
        Drawn from a seed.

    Notes
    -----
    **Who sees what.** For its party alone: with its basis, ``F_i G_i`` projects everybody's rows
    back. **Cost.** What its arrays weigh.
    """

    party: str
    agreement_digest: bytes
    change_of_basis: Matrix = field(repr=False)
    model: Chain | TrainedModel | None
    evidence: Evidence
    trained_on: tuple[str, ...]
    target_carries: tuple[str, ...]
    simulated: bool

    @property
    def n_bytes(self) -> int:
        """What the arrays weigh."""
        return int(self.change_of_basis.nbytes) + (self.model.n_bytes if self.model else 0)
