"""The papers' tables and figures, run again; not part of the wheel."""
