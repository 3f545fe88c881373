"""Messages as bytes. Nothing that another side sent is trusted, and nothing is ever pickled.

Read ``payload.py`` first: what an upload looks like on disk. ``tensors.py`` is the format's
header, ``files.py`` the disk underneath.
"""
