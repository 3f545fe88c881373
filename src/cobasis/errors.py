"""Everything cobasis raises, and the one warning that is never about numbers.

The tree, with the stable code of each leaf; every code has a page in ``docs/errors``::

    CobasisError
    |-- LocalError                exit 2: something here is to be changed
    |   |-- NotFiniteError CB101, ShapeError CB102, DtypeError CB103, LabelError CB104,
    |   |   FeatureError CB105, DimensionError CB106, OptionError CB107, UnlikeColumnError CB108,
    |   |   EstimateError CB109
    |   |-- AnchorError CB201, OrthonormalityError CB202
    |   |-- SecretError CB301, CommitmentError CB302, AgreementError CB303,
    |   |   UnknownPartyError CB304, StepError CB305, UnsignedError CB311,
    |   |   AgreementFileError CB312, RetentionError CB313, WaitingError CB314, RevokedError CB315
    |   |-- RowCarryingError CB401
    |   |-- AuditBlockedError CB511, AuditUnsignedError CB512, ApprovalError CB513
    |   |-- DiskError CB601, FileChangedError CB603, AnotherRunError CB604, TableError CB611,
    |   |   MissingExtraError CB622
    |   |-- PassphraseError CB701, IdentityError CB702, SpanReuseError CB703, VaultError CB704,
    |   |   BudgetError CB705, DifferenceError CB706
    |   `-- UnreachableError CB901
    `-- RemoteError               exit 3: what another side sent is to be changed there
        |-- AnchorImageError CB203, ConditionError CB204, UndeterminedFitError CB205,
        |   ConsensusError CB206, FitCheckError CB207
        |-- MessageError CB306, DuplicatePartyError CB307, AnchorTagError CB308, ScaleError CB309
        |-- ModelFileError CB402
        |-- FileFormatError CB602
        |-- SealError CB801, SignatureError CB802, BundleError CB803, ForeignBundleError CB804,
        |   ReplayError CB805, ClockError CB806, TranscriptError CB807
        `-- CertificateError CB902, RequestError CB903
    PrivacyWarning CB501

A message says what is wrong, what it means and what to do; it holds no number of private rows.
"""


class CobasisError(Exception):
    """Base of all errors; ``code`` names the page in ``docs/errors``."""

    code = ""
    exit_code = 2

    def __init_subclass__(cls, *, code: str = "") -> None:
        super().__init_subclass__()
        cls.code = code

    def __str__(self) -> str:
        return f"{super().__str__()} [{self.code}]"


class LocalError(CobasisError, ValueError):
    """Something on this side is to be changed; the command line exits with 2."""


class RemoteError(CobasisError, ValueError):
    """Another side is to change what it sent; the command line exits with 3."""

    exit_code = 3

    def __init__(self, message: str, parties: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.parties = parties


class NotFiniteError(LocalError, code="CB101"):
    """NaN or infinity where every number has to be finite."""


class ShapeError(LocalError, code="CB102"):
    """A wrong, transposed or empty shape."""


class DtypeError(LocalError, code="CB103"):
    """Numbers of a type that could only be used by casting them silently."""


class LabelError(LocalError, code="CB104"):
    """Labels of another type or length, or all of one class."""


class FeatureError(LocalError, code="CB105"):
    """Other columns than the agreement's, another order, or words outside a vocabulary."""


class DimensionError(LocalError, code="CB106"):
    """More components than rows, features or rank allow."""


class OptionError(LocalError, code="CB107"):
    """A word or number that an option does not take."""


class UnlikeColumnError(LocalError, code="CB108"):
    """A column that looks unlike the agreement, and that nobody has called right."""


class EstimateError(LocalError, code="CB109"):
    """Rows that determine no table or effect, or columns that depend on each other."""


class AnchorError(LocalError, code="CB201"):
    """An anchor that cannot be drawn as asked."""


class OrthonormalityError(LocalError, code="CB202"):
    """A basis whose columns are not orthonormal."""


class SecretError(LocalError, code="CB301"):
    """A secret that is no secret, or that would leave its owner."""


class CommitmentError(LocalError, code="CB302"):
    """A consortium secret that does not open the agreement's commitment."""


class AgreementError(LocalError, code="CB303"):
    """An agreement that forbids what was asked, or asks for the impossible."""


class UnknownPartyError(LocalError, code="CB304"):
    """A party that the agreement or the round does not know."""


class StepError(LocalError, code="CB305"):
    """A step of the round taken before its turn."""


class UnsignedError(LocalError, code="CB311"):
    """An agreement that not everybody has signed as it is now; exits with 4."""

    exit_code = 4


class AgreementFileError(LocalError, code="CB312"):
    """An agreement's file that cannot be read as TOML."""


class RetentionError(LocalError, code="CB313"):
    """A step that needs uploads which are no longer kept."""


class WaitingError(LocalError, code="CB314"):
    """A step whose turn comes once others have sent their files; exits with 4."""

    exit_code = 4


class RevokedError(LocalError, code="CB315"):
    """A step of a round that stands still, since a key of it was revoked."""

    status = 403  # of HTTP, where a server refuses


class RowCarryingError(LocalError, code="CB401"):
    """A model that would carry training rows to every party."""


class AuditBlockedError(LocalError, code="CB511"):
    """An upload that its audit blocks, and that no two people answer for."""


class AuditUnsignedError(LocalError, code="CB512"):
    """An upload whose audit is above the policy's bounds, and nobody has signed."""


class ApprovalError(LocalError, code="CB513"):
    """An approval that does not hold, or an audit that no officer can approve."""


class DiskError(LocalError, code="CB601"):
    """A disk that is full, or a file that cannot be read or written."""


class FileChangedError(LocalError, code="CB603"):
    """A file that changed while it was in use."""


class AnotherRunError(LocalError, code="CB604"):
    """A folder that holds the results of another run."""


class TableError(LocalError, code="CB611"):
    """A party's table that is truncated, ragged or changing."""


class MissingExtraError(LocalError, code="CB622"):
    """An optional package that is not installed."""


class PassphraseError(LocalError, code="CB701"):
    """A passphrase that does not open the key file."""


class IdentityError(LocalError, code="CB702"):
    """A key file that is missing, damaged, open to others, or already there."""


class SpanReuseError(LocalError, code="CB703"):
    """A fresh span for rows that were uploaded before."""


class VaultError(LocalError, code="CB704"):
    """A vault record that is damaged, of another version, or another party's."""


class BudgetError(LocalError, code="CB705"):
    """An upload that would break a guarantee given before, or spend more than its budget."""


class DifferenceError(LocalError, code="CB706"):
    """Sums whose total, beside an earlier one, would show a few rows or one party."""


class UnreachableError(LocalError, code="CB901"):
    """A server that cannot be reached, or breaks off again and again; exits with 4."""

    exit_code = 4


class AnchorImageError(RemoteError, code="CB203"):
    """An anchor image that is zero or rank-deficient."""


class ConditionError(RemoteError, code="CB204"):
    """An anchor image too ill-conditioned to be inverted."""


class UndeterminedFitError(RemoteError, code="CB205"):
    """A fit that leaves directions of a party undetermined; ``parties`` says of whom."""


class ConsensusError(RemoteError, code="CB206"):
    """Proposals that fix no common span."""


class FitCheckError(RemoteError, code="CB207"):
    """A change of basis that is not the fit of its image to the target."""


class MessageError(RemoteError, code="CB306"):
    """A message of another round, agreement, party or shape."""


class DuplicatePartyError(RemoteError, code="CB307"):
    """Two messages under one party's name."""


class AnchorTagError(RemoteError, code="CB308"):
    """Parties that used different anchors."""


class ScaleError(RemoteError, code="CB309"):
    """Rows on another scale than everybody else's."""


class ModelFileError(RemoteError, code="CB402"):
    """A model file that is damaged, or holds what the format does not allow."""


class FileFormatError(RemoteError, code="CB602"):
    """A file that is truncated, damaged or no such file at all."""


class SealError(RemoteError, code="CB801"):
    """A seal that this key does not open, or that is damaged."""


class SignatureError(RemoteError, code="CB802"):
    """A bundle that nobody who is enrolled has signed."""


class BundleError(RemoteError, code="CB803"):
    """A bundle that is not what its manifest says, or none at all."""


class ForeignBundleError(RemoteError, code="CB804"):
    """A bundle of another round, agreement, kind, sender or recipient."""


class ReplayError(RemoteError, code="CB805"):
    """An upload that was received before, or that an accepted one excludes."""


class ClockError(RemoteError, code="CB806"):
    """A bundle made in the future."""


class TranscriptError(RemoteError, code="CB807"):
    """A transcript with a line that was changed, removed, moved or added."""


class CertificateError(RemoteError, code="CB902"):
    """A server whose certificate is not one that the round's analyst has signed."""


class RequestError(RemoteError, code="CB903"):
    """A request that a server refuses, or an answer of a server that is none."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class PrivacyWarning(UserWarning):
    """A choice that shows more than the default does; never filtered by cobasis."""

    code = "CB501"
