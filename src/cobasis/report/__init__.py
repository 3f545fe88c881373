"""Rounds, audits and plans as pages that refer to nothing outside themselves."""

from typing import Literal

DataName = Literal["digits", "cancer", "diabetes"]
Split = Literal["iid", "by-label"]
