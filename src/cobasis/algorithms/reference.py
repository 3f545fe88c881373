"""Which party a method refers to when it needs one."""

from cobasis.algorithms.images import Images
from cobasis.errors import UnknownPartyError
from cobasis.linalg.arrays import Matrix


def reference_of(images: Images, reference: str | None) -> tuple[str, Matrix]:
    """Return name and image of the reference: the one named, else the first."""
    name = next(iter(images)) if reference is None else reference
    if name not in images:
        msg = (
            f"reference '{name}' is not among the parties ({', '.join(images)}), so there is no "
            "image to align to. Name one of them, or leave reference out."
        )
        raise UnknownPartyError(msg)
    return name, images[name]
