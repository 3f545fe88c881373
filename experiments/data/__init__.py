"""Loaders of the evaluation data."""
