"""Table 8's partition through the command line: Adult, rows and features partitioned."""

import numpy as np
import polars as pl
import pytest
from experiments.data.adult import SOURCES, adult, partition
from experiments.studies.table_08 import in_turn
from sklearn.linear_model import LogisticRegression

from cli.round_by_commands import Typed

pytestmark = [pytest.mark.data(SOURCES[0].path), pytest.mark.soak]
BLOCKS, SIZE = 4, 10


def table(rows, held, labels=None):
    told = {f"x{at}": rows[:, at] for at in np.flatnonzero(held)}
    frame = pl.DataFrame({"person": [f"p{at:05}" for at in range(len(rows))], **told})
    return frame if labels is None else frame.with_columns(income=pl.Series(labels))


def agreed(typed, halves, blocks):
    parties = [f"{block}-{part}" for block in blocks for part in halves]
    names = [f"x{at}" for at in range(len(halves["first"]))]
    typed.keys(parties)
    typed(
        f"agreement new icu.toml {' '.join(f'--numbers {name}' for name in names)} --label income "
        "--classes 0,1 --id person --task classification --model logistic --basis svd "
        f"--n-components {2 * SIZE} --holdout 0 --purpose study --retention-days 30 --yes"
    )
    text = (typed.folder / "icu.toml").read_text()
    for block in blocks:
        for part, held in halves.items():
            columns = [f"x{at}" for at in np.flatnonzero(held)]
            text += f'\n[[holdings]]\nparty = "{block}-{part}"\ncolumns = {columns}\n'
            text += f'block = "{block}"\nn_components = {SIZE}\n'
            text += "labels = false\n" if part == "second" else ""
    (typed.folder / "icu.toml").write_text(text)
    typed(
        f"agreement new icu.toml {' '.join(f'{name}.pub' for name in (*parties, 'lab'))} --yes",
        by=parties[0],
    )
    typed.signed(parties)
    return parties


def test_blocks_of_two_parties_predict_better_together_than_half_of_the_columns_can(
    tmp_path, monkeypatch
):
    typed = Typed(tmp_path, monkeypatch)
    split = in_turn(partition(adult(), repeat=0, n_blocks=100, n_tests=2_000))
    blocks = dict(list(split.parties.items())[:BLOCKS])
    halves = dict(zip(("first", "second"), split.halves, strict=True))
    parties = agreed(typed, halves, blocks)
    for block, (rows, labels) in blocks.items():
        table(rows, halves["first"], labels).write_csv(tmp_path / f"{block}-first.csv")
        mixed = table(rows, halves["second"]).sample(fraction=1.0, shuffle=True, seed=1)
        mixed.write_csv(tmp_path / f"{block}-second.csv")
    typed.send(*parties)
    typed.run()
    typed.accept(*parties)
    for part, held in halves.items():
        table(split.test_rows, held).write_csv(tmp_path / f"new-{part}.csv")
    first, second = (f"block-000-{part}" for part in halves)
    typed("predict icu.toml new-second.csv --part -o second.part", by=second)
    typed("predict icu.toml new-first.csv --with second.part -o out.csv", by=first)
    tests, truth = split.test_rows, split.test_labels
    together = np.mean(pl.read_csv(tmp_path / "out.csv")["prediction"].to_numpy() == truth)
    rows, labels = blocks["block-000"]
    alone = [
        LogisticRegression().fit(rows[:, held], labels).score(tests[:, held], truth)
        for held in halves.values()
    ]
    assert together > max(alone) > np.mean(truth == 0)
