"""Rounds over HTTPS: the analyst's server, its worker, and a party's client.

What travels are the very files that travel by hand.
"""
