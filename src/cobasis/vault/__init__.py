"""A party's secrets at rest: its bases and upload history, and what it holds of each round.

Read ``vault.py`` first, then ``datasets.py``: the rule that a row is seen through one span only.
``records.py`` is the disk: every record is one file, sealed as a whole, old or new and never
half. The analyst's side cannot import anything of this; a contract checks it.
"""
