"""The round, without I/O: who may know what, and who sends what to whom.

Read ``round.py`` first: it is the papers' Algorithm 1 in one process, where with files
``party_side`` and ``analyst_side`` take its steps. ``party.py`` is what happens at a party,
``analyst.py`` what happens at the analyst, ``messages.py`` all that travels between them.
"""
