"""A party's tables: CSV, Parquet and data frames, read block by block."""

from cobasis.tables.table import Checked, StreamedTable, check_table, open_table

__all__ = ["Checked", "StreamedTable", "check_table", "open_table"]
