"""What a party's commands do: keys, vault, tables and bundles brought together.

Read ``session.py`` first, then ``send.py`` and ``accept.py``. Nothing but a sealed bundle
leaves, and what is written down about it is on the disk before the bundle has its name.
"""
