"""What came to the analyst: which files there are, whose signatures, and what became of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cobasis.analyst_side.history import AuditRecord
from cobasis.bundle.agreement_file import read_agreement, seal, sealed_path, stem_of
from cobasis.bundle.agreement_reading import line_in
from cobasis.bundle.inspecting import PLAIN, PlainKind, plain_kind
from cobasis.errors import CobasisError, DiskError, ForeignBundleError, OptionError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import Exchange, exchanges
from cobasis.protocol.signatures import Signature, check_signature, signers

SIGNS: tuple[PlainKind, ...] = ("signature", "agreement")
"""What may hold signatures."""


@dataclass(frozen=True, kw_only=True)
class FileVerdict:
    """What became of one file."""

    file: str
    verdict: Literal["accepted", "received before", "passed over", "refused"]
    message: str = ""  # empty where it is none, or was refused
    party: str | None = None  # None where nobody's signature was found good
    n_rows: int | None = None
    code: str = ""  # of the refusal
    reason: str = ""
    audit: AuditRecord | None = None


@dataclass(frozen=True, kw_only=True)
class Reception:
    """What became of files, and where the round stands."""

    files: tuple[FileVerdict, ...]
    agreed: tuple[str, ...]
    unsigned: tuple[str, ...]
    sealed: Path | None  # the sealed agreement, once everybody has signed
    exchange: Exchange  # the first that has not ended, or the last
    received: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    late: tuple[str, ...] = ()  # in, and no part of the last run
    without: tuple[str, ...] = ()
    news: Path | None = None  # None where a party has sealed

    @property
    def refused(self) -> tuple[FileVerdict, ...]:
        """The files that were refused."""
        return tuple(each for each in self.files if each.verdict == "refused")


def seal_only(agreement_path: Path, paths: Iterable[Path]) -> Reception:
    """Seal an agreement as a party: look at signatures, here and beside it, and at nothing else."""
    agreement = read_agreement(agreement_path).agreement
    agreed: dict[str, Signature] = {}
    verdicts, new = [], not sealed_path(agreement_path).exists()
    given = files_of([*paths, *sorted(agreement_path.parent.glob("*.sig"))], agreement_path)
    for path in given:
        kind = kind_of(path)
        try:
            signed = signatures_in(path, agreement, kind=kind) if kind in SIGNS else ()
        except CobasisError as error:
            verdicts.append(refused(path, error))
            continue
        agreed |= {each.name: each for each in signed}
        verdicts.append(
            signed_verdict(path, signed, new=new) if signed else passed_over(path, kind)
        )
    if new and not set(signers(agreement)) - set(agreed):
        seal(agreement_path, agreed.values())
    return reception(agreement, agreed, files=tuple(verdicts), path=agreement_path)


def reception(
    agreement: Agreement,
    agreed: Mapping[str, Signature],
    *,
    files: tuple[FileVerdict, ...],
    path: Path,
) -> Reception:
    """Say who has signed, and who has not."""
    everybody = signers(agreement)
    sealed = sealed_path(path)
    return Reception(
        files=files,
        agreed=tuple(name for name in everybody if name in agreed),
        unsigned=tuple(name for name in everybody if name not in agreed),
        sealed=sealed if sealed.exists() else None,
        exchange=exchanges(agreement)[0],
    )


def files_of(paths: Iterable[Path], agreement: Path) -> list[Path]:
    """Return all files that are given, folders' own, or without any what lies beside."""
    given = list(paths)
    if not given:
        stem, messages = stem_of(agreement), ("proposal", "upload")
        beside = [agreement.parent.glob(f"{stem}.*.[0-9]-{word}") for word in messages]
        return sorted(path for found in beside for path in found)
    found: dict[Path, None] = {}
    for path in given:
        try:
            found |= dict.fromkeys(_inside(path) if path.is_dir() else [path])
            there = path.exists() or path.is_symlink()
        except OSError as error:
            raise DiskError(
                f"'{path}' cannot be read: {error.strerror}. Check your rights to it."
            ) from error
        if not there:
            raise OptionError(f"there is neither a file nor a folder '{path}'. Check the path.")
    return list(found)


def _inside(folder: Path) -> list[Path]:
    """Return a folder's files, but for hidden ones; not those of folders in it."""
    return sorted(
        path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir()
    )


def kind_of(path: Path) -> PlainKind | None:
    """Return what a file of ours is that is not sealed; None where it cannot be read, either."""
    try:
        return plain_kind(path)
    except DiskError:
        return None  # said when it is taken


def signatures_in(
    path: Path, agreement: Agreement, *, kind: PlainKind | None
) -> tuple[Signature, ...]:
    """Return the good signatures of this agreement in a file."""
    found: tuple[Signature, ...]
    if kind == "signature":
        found = (line_in(path, Signature),)
    else:
        read = read_agreement(path)
        found = read.signatures
        if found and read.agreement.digest() != agreement.digest():
            raise ForeignBundleError(
                f"'{path.name}' is the agreement of round '{read.agreement.round_id}' as another "
                f"text ({read.agreement.digest().hex()[:16]}) than the one here "
                f"({agreement.digest().hex()[:16]}). Ask the others which of the two they signed."
            )
    for each in found:
        check_signature(agreement, each)
    return found


def signed_verdict(path: Path, found: tuple[Signature, ...], *, new: bool) -> FileVerdict:
    """Say whose signatures a file has."""
    verdict: Literal["accepted", "received before"] = "accepted" if new else "received before"
    names = ", ".join(each.name for each in found)
    return FileVerdict(file=path.name, verdict=verdict, message="signature", party=names)


def passed_over(path: Path, kind: PlainKind | None) -> FileVerdict:
    """Say what a file is that nothing is done with."""
    reason = "no signature" if kind is None else PLAIN[kind]
    return FileVerdict(file=path.name, verdict="passed over", reason=reason)


def refused(path: Path, error: CobasisError) -> FileVerdict:
    """Say why a file is not taken."""
    reason = str(error.args[0])
    return FileVerdict(file=path.name, verdict="refused", code=error.code, reason=reason)
