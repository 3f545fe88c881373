import json
from functools import partial
from itertools import product

import numpy as np

from bundle import bundles
from bundle.payloads import file_of
from cobasis.bundle.messages import model_in
from cobasis.keys.identity import Identity
from cobasis.party_side.accept import accept
from cobasis.party_side.send import send
from cobasis.protocol.messages import Return
from models import chains
from models.chains import WIDTH
from models.malformed import MALFORMED, malformed
from party_side.sites import KEY, NAMES, PEOPLE, consortium, join, ready_from
from under_fault.in_files import OTHERS
from under_fault.in_uploads import RESHAPED, ROWS
from under_fault.vectors import Tables, Vector, bad_names, json_faults, outcome_of, wrong_fields


class Site:
    """North, which has uploaded and waits for its return; and who may send it one."""

    def __init__(self, folder, monkeypatch):
        made = consortium(folder, monkeypatch, n_components=WIDTH, models=("ridge", "mlp"))
        self.made = made
        join(made.session("north"), made.secret_file("north"))
        to = made.folder("north") / "north.upload"
        self.upload = send(ready_from(made.session("north"), made.table("north")), to).digest
        self.change = np.linalg.qr(np.random.default_rng(0).normal(size=(WIDTH, WIDTH)))[0]
        model = model_in(chains.file_of("ridge"), made.agreement)
        good = Return(
            party="north",
            agreement_digest=made.agreement.digest(),
            change_of_basis=self.change,
            model=model,
            evidence="cannot tell",
            trained_on=NAMES,
            target_carries=("north",),
            simulated=False,
        )
        self.card = made.carded(good).card
        self.before = self.kept()

    def sealed(self, path, parts, *, by="lab", to="north", **changes):
        fields = {"sender": by, "recipients": ["north"], "anchor_tag": None, **changes}
        manifest = bundles.described_in(self.made.agreement, parts, **fields)
        signer = PEOPLE.get(by) or Identity.new(by)
        bundles.craft(path, manifest, b"".join(parts.values()), by=signer, to=PEOPLE[to])

    def returned(self, path, *, fit=None, model=None, told=None, parts=None, **options):
        change = self.change if fit is None or isinstance(fit, bytes) else fit
        data = fit if isinstance(fit, bytes) else fit_file(change)
        made = {
            "n_rows": change.shape[0],
            "n_columns": change.shape[-1],
            "party": "north",
            "upload": self.upload,
            "evidence": "cannot tell",
            "trained_on": list(NAMES),
            "target_carries": ["north"],
            **(told or {}),
        }
        made = {name: value for name, value in made.items() if value is not None}
        whole = {"fit.safetensors": data, "model.safetensors": model or chains.file_of("ridge")}
        kind = options.pop("kind", "return")
        self.sealed(path, parts(whole) if parts else whole, kind=kind, told=made, **options)

    def decided(self, path, command):
        take = {"accept": accept, "join": join}[command]
        return outcome_of(lambda: take(self.made.session("north"), path))

    def kept(self):
        home = self.made.home("north")
        return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def fit_file(table, *, name="change_of_basis"):
    return file_of(*Tables({name: table}, metadata={}).header())


def return_vector(name, expect, options):
    def make(site, path):
        site.returned(path, **(options(site) if callable(options) else options))

    return Vector(f"a return {name}", expect, make, "accept")


NO_ROTATION = {
    "zero": lambda g: g * 0,
    "a millionth longer": lambda g: g * (1 + 1e-6),
    "with a column twice": lambda g: g[:, [0, 0, 2, 3, 4]],
    "sheared": lambda g: g + np.eye(WIDTH, k=1) * 1e-3,
    "of condition 1e16": lambda g: g @ np.diag(np.geomspace(1, 1e-16, WIDTH)),
}
OF_TYPE = {
    f"of {word}": lambda g, word=word: g.astype(word) for word in ("float32", "float16", "int64")
}
FITS = {
    "CB207": NO_ROTATION,
    "CB306": {word: RESHAPED[word] for word in (*ROWS, "a column less", "a column more")},
    "CB602": {word: RESHAPED[word] for word in ("no row", "no column")},
    "CB803": OF_TYPE | {word: RESHAPED[word] for word in ("one dimension", "a dimension behind")},
}


def fits():
    for expect, changes in FITS.items():
        for word, change in changes.items():
            made = lambda site, change=change: {"fit": change(site.change)}  # noqa: E731
            yield return_vector(f"whose fit is {word}", expect, made)
    for value, at in product((np.nan, np.inf, -np.inf), (0, 12, -1)):
        spoilt = partial(_spoilt, value, at)
        yield return_vector(f"whose fit has {value} at {at}", "CB306", spoilt)
    for word, data in OTHERS.items():
        yield return_vector(f"whose fit is {word}", "CB602", {"fit": data})
    for name in bad_names("change_of_basis"):
        made = lambda site, name=name: {"fit": fit_file(site.change, name=name)}  # noqa: E731
        yield return_vector(f"whose fit is called {name[:99]!r}", "CB803", made)


def _spoilt(value, at, site):
    table = site.change.copy()
    table.flat[at] = value
    return {"fit": table}


FAR = "2038-01-19T03:14:08Z"
TOLD = {
    "CB803": {
        "evidence": ["fine", None],
        "trained_on": [None, "north"],
        "target_carries": [None],
        "n_rows": [WIDTH - 1, None],
        "n_columns": [WIDTH + 1],
    },
    "CB804": {"party": ["south", None], "upload": ["0" * 64, None, 7]},
}
OPTIONS = {
    "CB801": {"to": ["south"]},
    "CB802": {"by": ["south", "north", "stranger"]},
    "CB803": {"created": ["today"], "kind": ["upload", "consensus"]},
    "CB804": {
        "round_id": ["icu-2025"],
        "agreement": ["0" * 64],
        "recipients": [["south"], ["north", "south"]],
        "simulated": [True],
    },
    "CB806": {"created": [FAR]},
}
BESIDE = {
    "without a model": lambda p: {"fit.safetensors": p["fit.safetensors"]},
    "without a fit": lambda p: {"model.safetensors": p["model.safetensors"]},
    "with a pickle beside": lambda p: {**p, "model.pkl": b"\x80\x04."},
    "with rows beside": lambda p: {**p, "upload.safetensors": b"x"},
}


def returns():
    for name, expect, field, value in wrong_fields(TOLD):
        yield return_vector(f"told: {name}", expect, {"told": {field: value}})
    for name, expect, field, value in wrong_fields(OPTIONS):
        yield return_vector(name, expect, {field: value})
    for word, parts in BESIDE.items():
        yield return_vector(word, "CB803", {"parts": parts})


def models():
    found = {f"that is {word}": data for word, data in OTHERS.items()}
    found["of numbers"] = chains.file_of("ridge", task="regression", n_classes=0)
    found |= {
        f"with {word}": malformed(family, change) for word, (family, change, _) in MALFORMED.items()
    }
    for word, data in found.items():
        yield return_vector(f"of a model {word}", "CB402", {"model": data})


SECRETS = {
    "CB302": {
        "key": [
            *(b"k" * n for n in (1, 16, 31, 32, 33, 64)),
            *(bytes(32), KEY[::-1], bytes([KEY[0] ^ 1]) + KEY[1:]),
        ]
    },
    "CB801": {"to": ["east", "lab"]},
    "CB802": {"by": ["lab", "stranger"], "sender": ["east"]},
    "CB803": {"kind": ["receipt"], "part": ["secret.txt"], "key": [b"k" * 2**16]},
    "CB804": {"round_id": ["icu-2025"], "recipients": [["east"]], "simulated": [True]},
    "CB806": {"created": [FAR]},
}


CARD = {
    "CB306": {
        "trained_on": [["north"], ["north", "south", "east", "north"], ["south", "north", "east"]],
        "target_carries": [[], ["south"]],
        "n_rows": [0, 50],  # north sent some 90: who is held back is drawn anew
        "evidence": ["not a random turn"],
        "gives": ["probabilities", "numbers"],
        "purpose": ["another test", ""],
        "classes": [["0", "1"], []],
        "family": ["logistic", None],
        "widths": [[], [5, 3]],
        "limits": [[], ["none"]],
        "facts": [[]],
        "importance": [{"age": [0.5, 0.1]}],  # which nobody agreed on
        "basis": ["haar"],
        "scores": [{"rows": 40.0}],  # of sums alone
        **{f"{word}_sha256": ["0" * 64] for word in ("model", "others", "consensus")},
        **{word: ["0" * 64] for word in ("agreement", "anchor_tag")},
    },
    "CB803": {
        "format": ["cobasis/card/2", None, ...],
        "n_rows": [84, 7.0, -10, 10**30, "100", None, ...],
        "evidence": ["proven", None, ...],
        "label": [None, ["died"], ...],
        "limits": ["none", [1], ...],
        "model_sha256": ["A" * 64, "", ...],
    },
}


def cards():
    for name, expect, field, value in wrong_fields(CARD):
        made = partial(_card, changes={field: value})
        yield return_vector(f"whose card's {name}", expect, made)
    for word, change in json_faults():
        yield return_vector(f"of a card {word}", "CB803", partial(_card, change=change))
    yield return_vector("without a card", "CB306", {})


def _card(site, *, changes=(), change=bytes):
    fields = {**json.loads(site.card.encoded()), **dict(changes)}
    text = json.dumps({name: each for name, each in fields.items() if each is not ...}).encode()
    return {"parts": lambda parts: {**parts, "card.json": change(text)}}


def secrets():
    for name, expect, field, value in wrong_fields(SECRETS):
        yield Vector(f"a secret whose {name}", expect, partial(_secret, **{field: value}), "join")


def _secret(site, path, *, key=KEY, part="secret.bin", **options):
    kept = {"by": "south", "kind": "secret", **options}
    site.sealed(path, {part: key}, **kept)
