"""Attacks that no party's audit runs: what they show is in the threat model."""
