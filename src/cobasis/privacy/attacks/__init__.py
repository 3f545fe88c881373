"""What an attacker makes of a release: each attack says what it knows and returns what it got.

``release.py`` holds the three types that all of them share, ``scoring.py`` sets what was recovered
against the truth, with what guessing gives beside it. Attacks take arrays; none reads a file.
"""
