"""A party's secrets at rest: its bases and upload history, and what it holds of each round.

Read ``vault.py`` first, then ``spans.py``: the rule that a row is seen through one span only.
``records.py`` is the disk: every record is one file, sealed as a whole, old or new and never
half. The analyst's side cannot import anything of this; a contract checks it.
"""

from cobasis.vault.datasets import Charge, Dataset, Uploaded, UploadEntry
from cobasis.vault.fingerprints import Changes, fingerprints
from cobasis.vault.ledger import Ledger, Spent
from cobasis.vault.rounds import Accepted, RoundRecords
from cobasis.vault.spans import Asked, Forced, Fresh, Kept, Refused
from cobasis.vault.vault import Vault

__all__ = [
    "Accepted",
    "Asked",
    "Changes",
    "Charge",
    "Dataset",
    "Forced",
    "Fresh",
    "Kept",
    "Ledger",
    "Refused",
    "RoundRecords",
    "Spent",
    "UploadEntry",
    "Uploaded",
    "Vault",
    "fingerprints",
]
