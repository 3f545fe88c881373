"""Base of what stays where it was made: no representation, no pickle, no copy."""

from typing import NoReturn

from cobasis.errors import SecretError


class Hidden:
    """Refuses to be printed, pickled or copied; what it holds can only be used."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the value."""
        return f"<{type(self).__name__}, hidden>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise SecretError(
            f"a {type(self).__name__} does not travel: pickle and copy would put it into files and "
            "processes that nobody protects. Keep the object where it was made."
        )

    def __reduce__(self) -> NoReturn:
        """Refuse, as above."""
        self.__reduce_ex__(2)

    def __getstate__(self) -> NoReturn:
        """Refuse, as above."""
        self.__reduce_ex__(2)
