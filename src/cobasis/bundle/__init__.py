"""Messages as bytes. Nothing that another side sent is trusted, and nothing is ever pickled.

Read ``uploads.py`` first: what an upload looks like on disk. ``cobasis.disk`` reads and writes.
"""
