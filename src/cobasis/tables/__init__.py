"""A party's tables: CSV, Parquet and data frames, read block by block."""

from cobasis.tables.checking import Checked, check_table
from cobasis.tables.streaming import StreamedTable, open_table

__all__ = ["Checked", "StreamedTable", "check_table", "open_table"]
