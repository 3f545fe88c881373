"""A party's secrets at rest: its bases and upload history, and what it holds of each round.

Read ``vault.py`` first, then ``datasets.py``: the rule that a row is seen through one span only.
``records.py`` is the disk: every record is one file, sealed as a whole, old or new and never
half. The analyst's side cannot import anything of this; a contract checks it.
"""

from cobasis.vault.datasets import (
    Asked,
    Changes,
    Choice,
    Dataset,
    Fingerprints,
    Forced,
    Refused,
    Span,
)
from cobasis.vault.vault import Accepted, RoundRecords, Vault

__all__ = [
    "Accepted",
    "Asked",
    "Changes",
    "Choice",
    "Dataset",
    "Fingerprints",
    "Forced",
    "Refused",
    "RoundRecords",
    "Span",
    "Vault",
]
