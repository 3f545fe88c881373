"""The round, without I/O: who may know what, and who sends what to whom.

Read ``round.py`` first: it is the papers' Algorithm 1. ``party.py`` is what happens at a
party, ``analyst.py`` what happens at the analyst, and ``messages.py`` is the complete list
of what travels between them.
"""
