"""Pure arrays: no party, no anchor, no round."""
