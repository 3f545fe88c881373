"""A party's secrets at rest: its bases and upload history, and what it holds of each round.

Read ``vault.py`` first. The analyst's side cannot import anything of this; a contract checks it.
"""
