from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from bundle.payloads import read_upload
from cobasis import Agreement, ConsortiumSecret, NumericFeature, Party, PartyKey, numeric_features
from cobasis.bundle.uploads import UploadFile
from cobasis.features.contract import CategoryFeature
from cobasis.progress import silent
from cobasis.protocol.secrets import public_rows_digest
from cobasis.tables import open_table
from protocol.consortium import agree

NAMES = tuple(f"x{column}" for column in range(7))
PUBLIC = np.random.default_rng(5).normal(size=(20, len(NAMES)))


def frame(n_rows, *, seed=0):
    """A table with an identifier, labels, and the features in another order than agreed.

    Its directions are of different strength, about a mean that is not the centre.
    """
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(len(NAMES), len(NAMES))))[0]
    rows = rng.normal(size=(n_rows, len(NAMES))) * [9, 6, 4, 1, 0.5, 0.2, 0.1] @ turn + 1.5
    columns = {name: rows[:, index] for index, name in enumerate(NAMES)}
    died = (rows[:, 0] > 1.5).astype(int)
    return pl.DataFrame(
        {"patient": np.arange(n_rows)}
        | {name: columns[name] for name in reversed(NAMES)}
        | {"died": died, "ward": [("east", "west")[each] for each in died], "stay": rows[:, 1]}
    )


def kept(kind, table, folder):
    if kind == "parquet":
        table.write_parquet(folder / "icu.parquet", row_group_size=700)
        return folder / "icu.parquet"
    if kind == "csv":
        table.write_csv(folder / "icu.csv")
        return str(folder / "icu.csv")
    return table.lazy() if kind == "lazy" else table


@dataclass
class Site:
    """One party that can be made again with the same secrets."""

    agreement: Agreement
    secret: ConsortiumSecret
    key: PartyKey

    def party(self):
        public = PUBLIC if self.agreement.public_rows_sha256 else None
        return Party(
            "north", agreement=self.agreement, secret=self.secret, key=self.key, public_rows=public
        )

    def in_memory(self, table, labels="died"):
        targets = None if labels is None else table[labels].to_numpy()
        return self.party().prepare(table.select(NAMES).to_numpy(), targets)


def site(*, secret=None, **changes):
    """A party of three, with some fields of the agreement changed."""
    secret = secret or ConsortiumSecret()
    fields = {
        "parties": ("north", "south", "east"),
        "features": numeric_features(NAMES, centre=0.5, scale=[1, 2, 1, 3, 1, 1, 0.5]),
        "n_anchor_rows": 9,
    }
    if changes.get("basis") == "public":
        fields["public_rows_sha256"] = public_rows_digest(PUBLIC)
    return Site(agree(secret, **fields | changes), secret, PartyKey())


def uploaded(party, table, *, to, labels=None, report=silent):
    rows = open_table(
        table, agreement=party.agreement, party=party.name, labels=labels, report=report
    )
    party.write(rows, to=UploadFile(to), report=report)
    return to


def assert_same(path, upload):
    """The file holds the upload: same numbers, same order, same labels, same envelope."""
    found = asdict(read_upload(path))
    for name, each in asdict(upload).items():
        if name in {"rows", "anchor_image"}:
            np.testing.assert_allclose(found[name], each, atol=1e-10, rtol=0, strict=True)
        elif isinstance(each, np.ndarray):
            np.testing.assert_array_equal(found[name], each, strict=True)
        else:
            assert found[name] == each, name


WARD_FEATURES = (
    NumericFeature(name="age", centre=60, scale=20, low=0, high=120),
    CategoryFeature(name="ward", values=("icu", "007", "7"), unknown="other", missing="level"),
    NumericFeature(name="lactate", centre=2, scale=1.5, missing="fill", fill=1.25),
    CategoryFeature(name="sex", values=("f", "m")),
    NumericFeature(name="pulse", centre=80, scale=15, missing="fill", fill=75),
)
WARD_NAMES = tuple(each.name for each in WARD_FEATURES)
WARD_WIDTH = 1 + 5 + 1 + 2 + 1


def ward_site(**changes):
    fields = {"n_anchor_rows": WARD_WIDTH + 1, "label": "died", "id": "patient"}
    return site(**{"features": WARD_FEATURES} | fields | changes)


def ward_frame(n_rows):
    """Columns in another order than agreed, between others that are not."""
    rng = np.random.default_rng(0)
    wards = np.array(["icu", "007", "7", "hall", None], dtype=object)
    lactate = pl.Series(rng.gamma(2.0, 1.0, n_rows)).round(3)
    pulse = pl.Series(rng.integers(50, 120, n_rows))
    return pl.DataFrame(
        {
            "patient": [f"p-{row:05}" for row in range(n_rows)],
            "pulse": pulse.set(pl.Series(rng.random(n_rows) < 0.2), None),
            "sex": rng.choice(["f", "m"], n_rows),
            "note": ['a, "b"'] * n_rows,
            "lactate": lactate.set(pl.Series(rng.random(n_rows) < 0.3), None),
            "ward": pl.Series(rng.choice(wards, n_rows).tolist(), dtype=pl.String),
            "age": rng.normal(60, 15, n_rows).round(1),
            "died": rng.integers(0, 2, n_rows),
        }
    )
