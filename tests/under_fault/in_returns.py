"""Vectors on a party's side: returns, models and secrets that it must not take."""

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product

import numpy as np
import zstandard

from bundle import bundles
from cobasis.keys.identity import Identity
from cobasis.party_side.accept import accept
from cobasis.party_side.send import send
from cobasis.party_side.session import join
from cobasis.protocol.agreement import moment_text
from models import chains
from models.chains import WIDTH
from models.malformed import MALFORMED, malformed
from party_side.sites import KEY, NAMES, PEOPLE, consortium, ready_from
from under_fault.in_files import OTHERS, PLACES
from under_fault.vectors import Vector, file_of, outcome_of


class Site:
    """North, which has uploaded and waits for its return; and who may send it one."""

    def __init__(self, folder, monkeypatch):
        made = consortium(folder, monkeypatch, n_components=WIDTH, models=("ridge", "mlp"))
        self.made = made
        join(made.session("north"), made.secret_file("north"))
        to = made.folder("north") / "north.upload"
        self.upload = send(ready_from(made.session("north"), made.table("north")), to).digest
        self.change = np.linalg.qr(np.random.default_rng(0).normal(size=(WIDTH, WIDTH)))[0]
        self.before = self.state()

    def sealed(self, path, parts, *, by="lab", to="north", **changes):
        """A bundle to a party with any parts and any manifest."""
        agreement = self.made.agreement
        stored = {name: (data, zstandard.compress(data)) for name, data in parts.items()}
        fields = {
            "round_id": agreement.round_id,
            "agreement": agreement.digest().hex(),
            "sender": by,
            "recipients": [to],
            "anchor_tag": None,
            "created": moment_text(datetime.now(UTC)),
            **changes,
        }
        signer = PEOPLE.get(by) or Identity.new(by)
        bundles.craft(
            path,
            bundles.described(stored, **fields),
            b"".join(frame for _, frame in stored.values()),
            by=signer,
            to=PEOPLE[to],
        )

    def returned(self, path, *, fit=None, model=None, told=None, parts=None, **options):
        """A return to north."""
        change = self.change if fit is None else np.asarray(fit)
        data = fit if isinstance(fit, bytes) else fit_file(change)
        shape = (WIDTH, WIDTH) if isinstance(fit, bytes) else change.shape
        made = {
            "n_rows": shape[0],
            "n_columns": shape[-1],
            "party": "north",
            "upload": self.upload,
            "evidence": "cannot tell",
            "trained_on": list(NAMES),
            "target_carries": ["north"],
        }
        made.update(told or {})
        made = {name: value for name, value in made.items() if value is not None}
        whole = {"fit.safetensors": data, "model.safetensors": model or chains.file_of("ridge")}
        kind = options.pop("kind", "return")
        self.sealed(path, parts(whole) if parts else whole, kind=kind, told=made, **options)

    def decided(self, path, command):
        """What `accept` or `join` says: a code, or that it was accepted."""
        take = {"accept": accept, "join": join}[command]
        return outcome_of(lambda: take(self.made.session("north"), path))

    def state(self):
        """Every file that the party keeps, by its bytes; the vault's are sealed."""
        home = self.made.home("north")
        return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def fit_file(table, *, name="change_of_basis", word=None, place=...):
    """A fit as the analyst writes it."""
    data = np.ascontiguousarray(table).tobytes()
    words = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64"}
    entry = {
        "dtype": words[table.dtype.name] if word is None else word,
        "shape": list(table.shape),
        "data_offsets": [0, len(data)] if place is ... else place,
    }
    return file_of({"__metadata__": {}, name: entry}, data)


def return_vector(name, expect, options):
    """A return; `options(site)` are what is wrong with it."""

    def make(site, path):
        site.returned(path, **(options(site) if callable(options) else options))

    return Vector(name=name, expect=expect, make=make, of="accept")


FITS = {
    "zero": ("CB207", lambda g: g * 0),
    "twice as long": ("CB207", lambda g: g * 2),
    "a millionth longer": ("CB207", lambda g: g * (1 + 1e-6)),
    "half as long": ("CB207", lambda g: g / 2),
    "with a column twice": ("CB207", lambda g: g[:, [0, 0, 2, 3, 4]]),
    "with a column zero": ("CB207", lambda g: g * [0, 1, 1, 1, 1]),
    "sheared": ("CB207", lambda g: g + np.eye(WIDTH, k=1) * 1e-3),
    "of ones": ("CB207", lambda g: g * 0 + 1),
    "of denormal numbers": ("CB207", lambda g: g * 0 + 5e-324),
    "of 1e154": ("CB207", lambda g: g * 1e154),
    "of condition 1e16": ("CB207", lambda g: g @ np.diag(np.geomspace(1, 1e-16, WIDTH))),
    "of float32": ("CB803", lambda g: g.astype(np.float32)),
    "of float16": ("CB803", lambda g: g.astype(np.float16)),
    "of whole numbers": ("CB803", lambda g: g.astype(np.int64)),
    "of one dimension": ("CB803", lambda g: g.ravel()),
    "of three dimensions": ("CB803", lambda g: g[None]),
    "with a row less": ("CB306", lambda g: g[:-1]),
    "with a row more": ("CB306", lambda g: np.vstack([g, g[:1]])),
    "with a column less": ("CB306", lambda g: g[:, :-1]),
    "of one number": ("CB306", lambda g: g[:1, :1]),
}


def fits():
    """A change of basis that is none."""
    for word, (expect, change) in FITS.items():
        yield return_vector(f"a fit {word}", expect, lambda site, c=change: {"fit": c(site.change)})
    for value, at in product((np.nan, np.inf, -np.inf), (0, 12, -1)):
        yield return_vector(f"{value} at {at} of a fit", "CB306", partial(_spoilt, value, at))
    for word, data in OTHERS.items():
        yield return_vector(f"a fit that is {word}", "CB602", {"fit": data})
    for word, place in PLACES.items():
        yield return_vector(f"a fit with offsets {word}", "CB602", partial(_fit, place=place))
    for name in ("rows", "", "../fit", "change_of_basis\0", "weight"):
        yield return_vector(f"a fit called {name!r}", "CB803", partial(_fit, name=name))
    for word in ("BF16", "C128", ">f8", "object", ""):
        yield return_vector(f"a fit of {word!r}", "CB602", partial(_fit, word=word))


def _fit(site, **told):
    return {"fit": fit_file(site.change, **told)}


def _spoilt(value, at, site):
    table = site.change.copy()
    table.flat[at] = value
    return {"fit": table}


TOLD = {
    "another party's": ("CB804", {"party": "south"}),
    "nobody's": ("CB804", {"party": None}),
    "for another upload": ("CB804", {"upload": "0" * 64}),
    "for no upload": ("CB804", {"upload": None}),
    "for an upload that is a number": ("CB804", {"upload": 7}),
    "of other evidence": ("CB803", {"evidence": "fine"}),
    "without evidence": ("CB803", {"evidence": None}),
    "trained on nobody told": ("CB803", {"trained_on": None}),
    "trained on a word": ("CB803", {"trained_on": "north"}),
    "whose target tells nothing": ("CB803", {"target_carries": None}),
    "with a row more than told": ("CB803", {"n_rows": WIDTH - 1}),
    "with a column less than told": ("CB803", {"n_columns": WIDTH + 1}),
    "without a number of rows": ("CB803", {"n_rows": None}),
}
OPTIONS = {
    "of another round": ("CB804", {"round_id": "icu-2025"}),
    "of another agreement": ("CB804", {"agreement": "0" * 64}),
    "from a party": ("CB802", {"by": "south"}),
    "from the party itself": ("CB802", {"by": "north"}),
    "from somebody unknown": ("CB802", {"by": "stranger"}),
    "sealed for another": ("CB801", {"to": "south"}),
    "passed on": ("CB804", {"recipients": ["south"]}),
    "for two": ("CB804", {"recipients": ["north", "south"]}),
    "drawn from a seed": ("CB804", {"simulated": True}),
    "from the year 2038": ("CB806", {"created": "2038-01-19T03:14:08Z"}),
    "of 49 hours from now": (
        "CB806",
        lambda _: {"created": moment_text(datetime.now(UTC) + timedelta(hours=49))},
    ),
    "of no time": ("CB803", {"created": "today"}),
    "of kind upload": ("CB803", {"kind": "upload"}),
    "of kind consensus": ("CB803", {"kind": "consensus"}),
    "without a model": ("CB803", {"parts": lambda p: {"fit.safetensors": p["fit.safetensors"]}}),
    "without a fit": ("CB803", {"parts": lambda p: {"model.safetensors": p["model.safetensors"]}}),
    "with a pickle beside": ("CB803", {"parts": lambda p: {**p, "model.pkl": b"\x80\x04."}}),
    "with rows beside": ("CB803", {"parts": lambda p: {**p, "upload.safetensors": b"x"}}),
}


def returns():
    """Returns of others, for others, of other times, with other parts."""
    for word, (expect, told) in TOLD.items():
        yield return_vector(f"a return {word}", expect, {"told": told})
    for word, (expect, options) in OPTIONS.items():
        yield return_vector(f"a return {word}", expect, options)


def models():
    """Models with one thing changed, through `accept`; and files that are no models."""
    good = chains.file_of("ridge")
    found = {f"that is {word}": data for word, data in OTHERS.items()}
    found |= {f"cut by {count}": good[:-count] for count in (1, 10, 100)}
    found |= {f"and {tail[:4]!r}": good + tail for tail in (b"\0", b"PK\3\4", good)}
    found |= {f"of {n} classes": chains.file_of("logistic", n_classes=n) for n in (3, 4)}
    found["of numbers"] = chains.file_of("ridge", task="regression", n_classes=0)
    found |= {
        f"with {word}": malformed(family, change) for word, (family, change, _) in MALFORMED.items()
    }
    for word, data in found.items():
        yield return_vector(f"a model {word}", "CB402", {"model": data})


SECRETS = {
    **{f"of {n} bytes": ("CB302", {"key": b"k" * n}) for n in (1, 16, 31, 33, 64, 65)},
    "of zeros": ("CB302", {"key": bytes(32)}),
    "of other bytes": ("CB302", {"key": b"k" * 32}),
    "with one bit changed": ("CB302", {"key": bytes([KEY[0] ^ 1]) + KEY[1:]}),
    "backwards": ("CB302", {"key": KEY[::-1]}),
    "from the analyst": ("CB802", {"by": "lab"}),
    "from a stranger": ("CB802", {"by": "stranger"}),
    "signed by another": ("CB802", {"sender": "east"}),
    "for another round": ("CB804", {"round_id": "icu-2025"}),
    "for another party": ("CB804", {"recipients": ["east"]}),
    "sealed for another": ("CB801", {"to": "east", "recipients": ["north"]}),
    "sealed for the analyst": ("CB801", {"to": "lab", "recipients": ["north"]}),
    "of another kind": ("CB803", {"kind": "receipt"}),
    "under another name": ("CB803", {"part": "secret.txt"}),
    "drawn from a seed": ("CB804", {"simulated": True}),
    "from the year 2038": ("CB806", {"created": "2038-01-19T03:14:08Z"}),
    "too large": ("CB803", {"key": b"k" * 2**16}),
}


def secrets():
    """Secrets of other lengths, rounds, senders and recipients, which north must not keep."""
    for word, (expect, options) in SECRETS.items():
        make = partial(_secret, **options)
        yield Vector(name=f"a secret {word}", expect=expect, make=make, of="join")


def _secret(site, path, *, key=KEY, part="secret.bin", **options):
    agreement = site.made.agreement.digest().hex()
    kept = {"by": "south", "kind": "secret", "agreement": agreement, **options}
    site.sealed(path, {part: key}, **kept)
