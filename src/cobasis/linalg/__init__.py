"""Pure arrays: no party, no anchor, no round.

One name is shared by everything above: :data:`Matrix`, a two-dimensional float64 array.
"""
