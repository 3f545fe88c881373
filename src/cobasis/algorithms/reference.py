"""Which party a method refers to when it needs one."""

from cobasis.algorithms.images import Images, check_image
from cobasis.errors import UnknownPartyError
from cobasis.linalg.arrays import Matrix


def reference_of(images: Images, reference: str | None) -> tuple[str, Matrix]:
    """Return name and checked image of the reference: the one named, else the first."""
    name = next(iter(images)) if reference is None else reference
    if name not in images:
        known = list(images)
        more = f" and {len(known) - 5} more" if len(known) > 5 else ""  # noqa: PLR2004
        raise UnknownPartyError(
            f"reference '{name}' is not among the parties ({', '.join(known[:5])}{more}), so there "
            "is no image to align to. Name one of them, or leave reference out."
        )
    return name, check_image(name, images[name], n_rows=None)
