"""The column contract, pure: what a column is called, and how its values become numbers."""
