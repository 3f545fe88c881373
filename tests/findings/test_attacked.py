"""What an attacker found in the first version, row by row (R1 to R12)."""

from pathlib import Path

import polars as pl

SEND = "send icu.toml north.csv --yes --signed-by Officer"


def test_r4_a_column_in_another_unit_or_place_is_asked_about_at_the_party(sealed, terminal):
    """Under a basis that all share nothing else notices it."""
    right = pl.read_csv("north.csv")
    right.with_columns(b=1000 * (pl.col("b") + 40)).write_csv("north.csv")
    terminal.undo()
    told = " ".join(sealed(SEND, code=2).stderr.split())
    assert "'b' lies for the most part far above the agreed centre" in told
    assert "[CB108]" in told
    assert "of 60 cells" not in told.partition("looks unlike the agreement, and")[2]
    assert not Path("icu.north.1-upload").exists()
    found = sealed.json("send icu.toml north.csv --dry-run")
    assert [(each["column"], each["problem"]) for each in found["findings"] if each["asked"]] == [
        ("b", "centre")
    ]
    assert "of 60 cells" not in str(found)
    sealed(f"{SEND} --checked b")  # a person has looked, and it holds for the next command
    Path("icu.north.1-upload").unlink()
    sealed("send icu.toml --again")
    # columns under each other's names, at a party that nobody answers for
    south = pl.read_csv("south.csv")
    south.with_columns(a=pl.col("d") * 40, d=pl.col("a") / 40).write_csv("south.csv")
    line = "send icu.toml south.csv --signed-by Officer"
    terminal.setattr("cobasis.cli.options.on_terminal", lambda: True)
    said = sealed(line, by="south", typed="n\n", code=2).output
    assert "look unlike the agreement" in said
    assert "Nothing was made" in said
    assert "Wrote" in sealed(line, by="south", typed="y\ny\n").output
