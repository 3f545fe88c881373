"""Everything cobasis raises, and the one warning that is never about numbers.

The tree, with the stable code of each leaf; every code has a page in ``docs/errors``::

    CobasisError
    |-- LocalError                 exit 2: something here is to be changed
    |   |-- NotFiniteError         CB101  NaN or infinity
    |   |-- ShapeError             CB102  wrong, transposed or empty shape
    |   |-- DtypeError             CB103  numbers of a type that would be cast silently
    |   |-- LabelError             CB104  labels of another kind, length, or all of one class
    |   |-- FeatureError           CB105  other feature names, or another order
    |   |-- DimensionError         CB106  more components than rows, features or rank allow
    |   |-- OptionError            CB107  a word or number that an option does not take
    |   |-- AnchorError            CB201  an anchor that cannot be drawn as asked
    |   |-- OrthonormalityError    CB202  a basis whose columns are not orthonormal
    |   |-- SecretError            CB301  a secret that is no secret, or would travel
    |   |-- CommitmentError        CB302  a consortium secret that is not the agreement's
    |   |-- AgreementError         CB303  an agreement that forbids this, or is itself impossible
    |   |-- UnknownPartyError      CB304  a party that the agreement or the round does not know
    |   |-- StepError              CB305  a step of the round taken before its turn
    |   |-- RowCarryingError       CB401  a model that carries training rows
    |   |-- DiskError              CB601  a disk that is full, or cannot be read or written
    |   |-- FileChangedError       CB603  a file that changed while it was in use
    |   |-- AnotherRunError        CB604  a folder that holds another run's results
    |   |-- TableError             CB611  a table that cannot be read to its end
    |   |-- PartitionError         CB621  aligned rows on disk that are not what was written
    |   `-- MissingExtraError      CB622  an optional package that is not installed
    `-- RemoteError                exit 3: what another side sent is to be changed there
        |-- AnchorImageError       CB203  an anchor image that is zero or rank-deficient
        |-- ConditionError         CB204  an anchor image too ill-conditioned to invert
        |-- UndeterminedFitError   CB205  a fit that the anchor does not determine
        |-- ConsensusError         CB206  proposals that fix no common span
        |-- MessageError           CB306  a message of another round, agreement or shape
        |-- DuplicatePartyError    CB307  two messages under one party's name
        |-- AnchorTagError         CB308  parties that used different anchors
        |-- ScaleError             CB309  rows on another scale than everybody else's
        |-- FlaggedPartyError      CB310  a party whose basis does not align
        `-- FileFormatError        CB602  a file that is truncated or no such file at all

    PrivacyWarning                 CB501  this choice shows more than the default does

A message says what is wrong (numbers, the party's name), what it means, what to do, and its
code. It never holds a number computed from private rows.
"""

from typing import ClassVar


class CobasisError(Exception):
    """Base of all errors; ``code`` names the page in ``docs/errors``."""

    code: ClassVar[str] = ""
    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:
        """Return the message and its code."""
        return f"{super().__str__()} [{self.code}]"


class LocalError(CobasisError, ValueError):
    """Something on this side is to be changed; the command line exits with 2."""


class RemoteError(CobasisError, ValueError):
    """Another side is to change what it sent; the command line exits with 3."""

    exit_code = 3


class NotFiniteError(LocalError):
    """NaN or infinity where every number has to be finite."""

    code = "CB101"


class ShapeError(LocalError):
    """A wrong, transposed or empty shape."""

    code = "CB102"


class DtypeError(LocalError):
    """Numbers of a type that could only be used by casting them silently."""

    code = "CB103"


class LabelError(LocalError):
    """Labels of another type or length, or all of one class."""

    code = "CB104"


class FeatureError(LocalError):
    """Other feature names than the agreement's, or another order."""

    code = "CB105"


class DimensionError(LocalError):
    """More components than rows, features or rank allow."""

    code = "CB106"


class OptionError(LocalError):
    """A word or number that an option does not take."""

    code = "CB107"


class AnchorError(LocalError):
    """An anchor that cannot be drawn as asked."""

    code = "CB201"


class OrthonormalityError(LocalError):
    """A basis whose columns are not orthonormal."""

    code = "CB202"


class SecretError(LocalError):
    """A secret that is no secret, or that would leave its owner."""

    code = "CB301"


class CommitmentError(LocalError):
    """A consortium secret that does not open the agreement's commitment."""

    code = "CB302"


class AgreementError(LocalError):
    """An agreement that forbids what was asked, or asks for the impossible."""

    code = "CB303"


class UnknownPartyError(LocalError):
    """A party that the agreement or the round does not know."""

    code = "CB304"


class StepError(LocalError):
    """A step of the round taken before its turn."""

    code = "CB305"


class RowCarryingError(LocalError):
    """A model that would carry training rows to every party."""

    code = "CB401"


class DiskError(LocalError):
    """A disk that is full, or a file that cannot be read or written."""

    code = "CB601"


class FileChangedError(LocalError):
    """A file that changed while it was in use."""

    code = "CB603"


class AnotherRunError(LocalError):
    """A folder that holds the results of another run."""

    code = "CB604"


class TableError(LocalError):
    """A party's table that is truncated, ragged or changing."""

    code = "CB611"


class PartitionError(LocalError):
    """Aligned rows on disk that are unfinished, changed, or another run's."""

    code = "CB621"


class MissingExtraError(LocalError):
    """An optional package that is not installed."""

    code = "CB622"


class AnchorImageError(RemoteError):
    """An anchor image that is zero or rank-deficient."""

    code = "CB203"


class ConditionError(RemoteError):
    """An anchor image too ill-conditioned to be inverted."""

    code = "CB204"


class UndeterminedFitError(RemoteError):
    """A fit that leaves directions of a party undetermined; ``parties`` says of whom."""

    code = "CB205"

    def __init__(self, message: str, parties: tuple[str, ...] = ()) -> None:
        """Keep the parties beside the message."""
        super().__init__(message)
        self.parties = parties


class ConsensusError(RemoteError):
    """Proposals that fix no common span."""

    code = "CB206"


class MessageError(RemoteError):
    """A message of another round, agreement, party or shape."""

    code = "CB306"


class DuplicatePartyError(RemoteError):
    """Two messages under one party's name."""

    code = "CB307"


class AnchorTagError(RemoteError):
    """Parties that used different anchors."""

    code = "CB308"


class ScaleError(RemoteError):
    """Rows on another scale than everybody else's."""

    code = "CB309"


class FlaggedPartyError(RemoteError):
    """A party whose basis does not align with the others'."""

    code = "CB310"


class FileFormatError(RemoteError):
    """A file that is truncated, damaged or no such file at all."""

    code = "CB602"


class PrivacyWarning(UserWarning):
    """A choice that shows more than the default does; never filtered by cobasis."""

    code: ClassVar[str] = "CB501"
