"""How large an alignment is: the three numbers that every formula takes."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of one alignment.

    Attributes
    ----------
    n_anchor_rows : int
        a.
    n_components : int
        l.
    n_parties : int
        c.
    """

    n_anchor_rows: int
    n_components: int
    n_parties: int

    @property
    def letters(self) -> tuple[int, int, int]:
        """The same as ``(a, l, c)``, for formulas."""
        return self.n_anchor_rows, self.n_components, self.n_parties
