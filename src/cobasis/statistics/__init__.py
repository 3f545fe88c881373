"""Regression tables and survival curves, as clinicians and statisticians publish them."""
