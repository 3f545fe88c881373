"""Where one person's keys and vaults lie."""

import os
from pathlib import Path

from cobasis.disk.whole import make_folder
from cobasis.errors import IdentityError
from cobasis.protocol.enrolment import is_identity_name

VARIABLE = "COBASIS_HOME"
_SUFFIX = ".key"


def home(path: Path | None = None) -> Path:
    """Return the home folder; it is made, for its owner only, when it is not there."""
    folder = path or Path(os.environ.get(VARIABLE) or Path.home() / ".cobasis")
    make_folder(folder)
    return folder


def key_path(home: Path, name: str) -> Path:
    """Return where somebody's key file stands in a home folder; its folder is made."""
    if not is_identity_name(name):
        raise IdentityError(
            f"{name[:100]!r} is no identity's name. Names have 1 to 100 letters, digits, '.', '_' "
            "and '-', and do not begin with a '.'."
        )
    folder = home / "keys"
    make_folder(folder)
    return folder / f"{name}{_SUFFIX}"


def names(home: Path) -> tuple[str, ...]:
    """Return whose keys are in a home folder, sorted."""
    return tuple(sorted(path.stem for path in (home / "keys").glob(f"*{_SUFFIX}")))
