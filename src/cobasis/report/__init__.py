"""Rounds, audits and plans as pages that refer to nothing outside themselves."""
