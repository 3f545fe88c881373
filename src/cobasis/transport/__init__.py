"""Rounds over HTTPS: the analyst's server, its worker, and a party's client.

What travels are the very files that travel by hand. `inbox` and `server` run where the world can
reach them and can open nothing; `worker` has the analyst's key and no port.
"""
