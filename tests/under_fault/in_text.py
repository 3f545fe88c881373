"""Vectors of the files that people can read: agreements, signatures, news, transcripts."""

import json
import re
from types import SimpleNamespace

from bundle.transcripts import in_memory
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.transcript import verify_transcript
from cobasis.protocol.signatures import News, Receipt, Signature, check_receipt, sign_receipt
from party_side.sites import PEOPLE
from under_fault.in_files import OTHERS
from under_fault.vectors import Vector


def text_vector(name, expect, change, *, of="agreement"):
    """A good file of this kind with its bytes changed."""
    return Vector(
        name=name, expect=expect, of=of, make=lambda good, path: path.write_bytes(change(good))
    )


def read_sealed(path):
    """What every command does with an agreement."""
    read_agreement(path).check_sealed()


def read_signature(path):
    """What ``receive`` does with each .sig file."""
    Signature.from_text(path.read_text("utf-8"))


def sub(pattern, new, *, count=1):
    """Replace in a text; the pattern has to be there."""

    def change(good):
        found, n = re.subn(pattern.encode(), new.encode(), good, count=count, flags=re.MULTILINE)
        assert n, pattern
        return found

    return change


VOID = {
    "another purpose": ("^purpose = .*", 'purpose = "another"'),
    "another round": ("^round_id = .*", 'round_id = "icu-2027"'),
    "a longer retention": ("^retention_days = .*", "retention_days = 31"),
    "a minimum of one more": ("^minimum_parties = .*", "minimum_parties = 2"),
    "another model": ("^model = .*", 'model = "logistic"'),
    "fewer models": ("^models = .*", 'models = ["ridge"]'),
    "a smaller holdout": ("^holdout = .*", "holdout = 0.125"),
    "fewer components": ("^n_components = .*", "n_components = 2"),
    "more anchor rows": ("^n_anchor_rows = .*", "n_anchor_rows = 10"),
    "another aligner": ("^aligner = .*", 'aligner = "whitened"'),
    "another basis": ("^basis = .*", 'basis = "haar"'),
    "another commitment": ("^commitment = .*", f'commitment = "{"0" * 64}"'),
    "another precision": ("^precision = .*", 'precision = "fp32"'),
    "another threshold": ("^scale_band = .*", "scale_band = 11.0"),
    "classes in another order": ("^classes = .*", "classes = [1, 0]"),
    "another centre": ("^centre = 0.0", "centre = 1e-9"),
    "another bound": ("^low = -50.0", "low = -50.1"),
    "another fill": ("^fill = 0.0", "fill = 99.0"),
    "a column renamed": ('^name = "pulse"', 'name = "pulse_rate"'),
    "a word more": ('"surgery"\\]', '"surgery", "burns"]'),
    "a party renamed": ('^name = "south"\nrole', 'name = "sourh"\nrole'),
    "no signature of north": (r"\[\[signature\]\]\nname = .north.\n.*\n.*\n", ""),
    "no signature of the analyst": (r"\[\[signature\]\]\nname = .lab.\n.*\n.*\n", ""),
    "a signature twice for two": ('^name = "south"\nagreement', 'name = "north"\nagreement'),
    "a stranger's signature": ('^name = "south"\nagreement', 'name = "west"\nagreement'),
    "a signature of zeros": ("^signature = .*", f'signature = "{"0" * 128}"'),
    "a signature of another version": ("^agreement = .*", f'agreement = "{"0" * 64}"'),
}
REFUSED = {
    "an unknown field": ("^round_id", 'pickle = "x"\nround_id'),
    "the secret in it": ("^round_id", f'secret = "{"0" * 64}"\nround_id'),
    "no round": ("^round_id = .*", ""),
    "an empty round": ("^round_id = .*", 'round_id = ""'),
    "a round that is a number": ("^round_id = .*", "round_id = 7"),
    "an unknown task": ("^task = .*", 'task = "ranking"'),
    "a task of no kind": ("^task = .*", "task = []"),
    "an unknown model": ("^model = .*", 'model = "forest"'),
    "a model that stores rows among many": ("^models = .*", 'models = ["svm", "ridge"]'),
    "an unknown aligner": ("^aligner = .*", 'aligner = "cca"'),
    "an unknown basis": ("^basis = .*", 'basis = "ica"'),
    "an unknown anchor": ("^anchor = .*", 'anchor = "zero"'),
    "an unknown precision": ("^precision = .*", 'precision = "fp8"'),
    "int8 without a range": ("^precision = .*", 'precision = "int8"'),
    "a range without int8": ("^int8_range = .*", "int8_range = 4.0"),
    "no components": ("^n_components = .*", "n_components = 0"),
    "negative components": ("^n_components = .*", "n_components = -3"),
    "half a component": ("^n_components = .*", "n_components = 2.5"),
    "more components than features": ("^n_components = .*", "n_components = 10"),
    "components without end": ("^n_components = .*", "n_components = 9223372036854775808"),
    "a true component": ("^n_components = .*", "n_components = true"),
    "fewer anchor rows than features": ("^n_anchor_rows = .*", "n_anchor_rows = 7"),
    "no anchor rows": ("^n_anchor_rows = .*", "n_anchor_rows = 0"),
    "a holdout above a half": ("^holdout = .*", "holdout = 0.51"),
    "a negative holdout": ("^holdout = .*", "holdout = -0.1"),
    "a holdout that is none": ("^holdout = .*", "holdout = nan"),
    "an infinite threshold": ("^scale_band = .*", "scale_band = inf"),
    "a negative retention": ("^retention_days = .*", "retention_days = -1"),
    "more parties than there are": ("^minimum_parties = .*", "minimum_parties = 4"),
    "an impossible deadline": ("^deadline = .*", 'deadline = "2026-02-30T00:00:00Z"'),
    "a deadline without a zone": ("^deadline = .*", 'deadline = "2026-12-31"'),
    "one class": ("^classes = .*", "classes = [0]"),
    "no classes": ("^classes = .*", "classes = []"),
    "a class twice": ("^classes = .*", "classes = [0, 0]"),
    "classes of two types": ("^classes = .*", 'classes = [0, "1"]'),
    "classes that are fractions": ("^classes = .*", "classes = [0.5, 1.5]"),
    "a short commitment": ("^commitment = .*", 'commitment = "00"'),
    "no commitment": ("^commitment = .*", 'commitment = ""'),
    "a threat model of malice": ("^threat_model = .*", 'threat_model = "malicious"'),
    "a scale of zero": ("^scale = 1.0", "scale = 0.0"),
    "a scale that is none": ("^scale = 1.0", "scale = nan"),
    "bounds that cross": ("^low = -50.0", "low = 51.0"),
    "no fill": ("^fill = 0.0", ""),
    "a column twice": ('^name = "pulse"', 'name = "age"'),
    "a column without a name": ('^name = "pulse"', 'name = ""'),
    "the label among the features": ('^name = "pulse"', 'name = "died"'),
    "the identifier among the features": ('^name = "pulse"', 'name = "patient"'),
    "a word twice": ('"surgery"\\]', '"icu"]'),
    "no words": ("^values = .*", "values = []"),
    "an unknown kind of column": ("^kind = .*", 'kind = "image"'),
    "a party twice": ('^name = "south"\nrole', 'name = "north"\nrole'),
    "a party with a path": ('^name = "south"\nrole', 'name = "../south"\nrole'),
    "a short key": ("^signing_key = .*", 'signing_key = "00"'),
    "a key in capitals": ("^signing_key = .*", f'signing_key = "{"A" * 64}"'),
    "a recipient that is none": ("^recipient = .*", 'recipient = "age1nobody"'),
    "no recipient": ("^recipient = .*", ""),
    "a signature without a name": ('^name = "south"\nagreement', "agreement"),
    "a short signature": ("^signature = .*", 'signature = "00"'),
    "a signature that is a number": ("^signature = .*", "signature = 7"),
    "a signature with more to say": ("^signature = ", 'note = "x"\nsignature = '),
}
BROKEN = {
    "a bracket open": lambda d: d + b"\n[",
    "a quote open": lambda d: d.replace(b'"icu-2026"', b'"icu-2026'),
    "a field twice": lambda d: b'task = "regression"\n' + d,
    "a table twice": lambda d: d + b'\n[analyst]\nname = "lab"\n',
    "no value": lambda d: d.replace(b"holdout = 0.25", b"holdout = "),
    "a number with two points": lambda d: d.replace(b"holdout = 0.25", b"holdout = 0.2.5"),
    "Python's True": lambda d: d.replace(b"holdout = 0.25", b"holdout = True"),
    "NUL": lambda d: d.replace(b"icu-2026", b"icu\0", 1),
    "no UTF-8": lambda d: d.replace(b"a test", b"a \xfftest", 1),
    "UTF-16": lambda d: d.decode().encode("utf-16"),
    "brackets without end": lambda _: b"a = " + b"[" * 50_000,
    "JSON": lambda _: b'{"round_id": "icu-2026"}',
    "YAML": lambda _: b"round_id: icu-2026\n",
    "cut in a text": lambda d: d[: d.index(b"icu-2026") + 3],
    "of 32 MiB": lambda d: d + b"#" * (2**25),
}


def agreements():
    """Agreements that are no TOML, contradict themselves, or were changed after signing."""
    for word, (pattern, new) in VOID.items():
        yield text_vector(f"an agreement with {word}", "CB311", sub(pattern, new))
    for word, (pattern, new) in REFUSED.items():
        yield text_vector(f"an agreement with {word}", "CB303", sub(pattern, new))
    for word, change in BROKEN.items():
        yield text_vector(f"an agreement with {word}", "CB312", change)
    for word in ("npy", "a pickle", "ones", "an executable", "npz"):
        yield text_vector(f"an agreement that is {word}", "CB312", lambda _, w=word: OTHERS[w])
    yield text_vector("an empty agreement", "CB303", lambda _: b"")


def _json(name, value):
    """A field of a line of JSON replaced, or taken away."""

    def change(good):
        fields = json.loads(good)
        if value is None:
            del fields[name]
        else:
            fields[name] = value
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    return change


NO_JSON = {
    "nothing": lambda _: b"",
    "a list": lambda _: b"[]",
    "cut": lambda d: d[:-20],
    "in brackets": lambda _: b"[" * 5000,
    "of another format": lambda d: d.replace(b"/1", b"/2"),
}


def signature_files():
    """What ``receive`` is given in place of a signature."""
    for word, change in NO_JSON.items():
        yield text_vector(f"a signature {word}", "CB303", change, of="signature")
    for name in ("name", "agreement", "signature", "format"):
        for value in (None, 7, "x\0", ["a"]):
            yield text_vector(
                f"a signature whose {name} is {value}", "CB303", _json(name, value), of="signature"
            )


RECEIPT = {
    "round_id": "icu-2026",
    "agreement": "a" * 64,
    "party": "north",
    "analyst": "lab",
    "exchange": 1,
    "file": "b" * 64,
    "time": "2026-11-21T15:00:00Z",
    "transcript": "c" * 64,
}


AGREED = SimpleNamespace(
    digest=lambda: bytes.fromhex(RECEIPT["agreement"]),
    analyst=PEOPLE["lab"].public,
    round_id=RECEIPT["round_id"],
)
"""As much of an agreement as its news need."""

NEWS = {
    "round_id": RECEIPT["round_id"],
    "agreement": RECEIPT["agreement"],
    "analyst": "lab",
    "time": RECEIPT["time"],
    "agreed": ("north", "lab"),
}


def good_news(news=None, **receipt):
    """News of the analyst's, with one receipt."""
    sign = PEOPLE["lab"].sign
    signed = sign_receipt(Receipt(**{**RECEIPT, **receipt}), sign)
    return News(**{**NEWS, **(news or {})}, receipts=(signed,)).text(sign)


def check(path):
    """What a party does with news, and with its receipt in them."""
    [found] = News.from_text(path.read_bytes(), AGREED).receipts
    wanted = {name: RECEIPT[name] for name in ("agreement", "party", "file")}
    check_receipt(found, analyst=PEOPLE["lab"].public, **wanted)


def _news(name, value, *, inside=False):
    """A word of news, or of the receipt in them, replaced after signing, or taken away."""

    def change(good):
        fields = json.loads(good)
        told = fields["news"]["receipts"][0]["receipt"] if inside else fields["news"]
        at = fields if name in fields else told
        if value is None:
            del at[name]
        else:
            at[name] = value
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    return change


def news():
    """News of others, for others, changed after signing, or none at all."""
    for word, change in NO_JSON.items():
        yield text_vector(f"news {word}", "CB803", change, of="news")
    for name in (*NEWS, "signature", "format"):
        for value in (None, 7, "x\0", "A" * 64):
            formed = name == "round_id" or (name == "analyst" and value == "A" * 64)
            code = "CB802" if formed and isinstance(value, str) else "CB803"
            yield text_vector(f"news whose {name} is {value}", code, _news(name, value), of="news")
    for name in RECEIPT:
        for value in (None, 7, "x\0", "A" * 64):
            formed = name == "round_id" or (name in {"party", "analyst"} and value == "A" * 64)
            formed = formed and isinstance(value, str)
            formed = formed or (name == "exchange" and value == 7)
            yield text_vector(
                f"news whose receipt's {name} is {value}",
                "CB802" if formed else "CB803",
                _news(name, value, inside=True),
                of="news",
            )
    yield from _other_news()
    yield text_vector("news with a blank more", "CB803", lambda d: d[:-1] + b" \n", of="news")
    yield text_vector("news of 17 MB", "CB803", lambda d: d + b" " * 17 * 10**6, of="news")


def _other_news():
    """News that the analyst signed, of something else."""
    other = "0" * 64
    yield text_vector(
        "news of another agreement", "CB804", lambda _: good_news({"agreement": other}), of="news"
    )
    for name in ("agreement", "file"):
        yield text_vector(
            f"news with a receipt for another {name}",
            "CB804",
            lambda _, n=name: good_news(**{n: other}),
            of="news",
        )
    for name, value in {"analyst": "south", "time": "2026-11-21T15:00:01Z"}.items():
        yield text_vector(f"news with another {name}", "CB802", _news(name, value), of="news")


LINES = in_memory(6)[0]


def transcript():
    """Six good lines."""
    return b"".join(LINES)


def transcripts():
    """Lines that were changed, taken out, moved, added or joined."""
    for at in range(5):
        for word, lines in {
            "taken out": LINES[:at] + LINES[at + 1 :],
            "twice": LINES[: at + 1] + LINES[at:],
            "after the next": [*LINES[:at], LINES[at + 1], LINES[at], *LINES[at + 2 :]],
            "changed": [*LINES[:at], LINES[at].replace(b"n_rows", b"n_r0ws"), *LINES[at + 1 :]],
            "dated back": [*LINES[:at], LINES[at].replace(b"2026", b"2025"), *LINES[at + 1 :]],
            "with a space": [*LINES[:at], LINES[at].replace(b":", b": ", 1), *LINES[at + 1 :]],
            "cut": [*LINES[:at], LINES[at][:-9] + b"\n", *LINES[at + 1 :]],
            "empty": [*LINES[:at], b"\n", *LINES[at + 1 :]],
            "of zeros": [*LINES[:at], bytes(len(LINES[at]) - 1) + b"\n", *LINES[at + 1 :]],
            "after a pickle": [*LINES[:at], b"\x80\x04K\x01.\n", *LINES[at:]],
        }.items():
            yield text_vector(
                f"line {at + 1} {word}", "CB807", lambda _, d=lines: b"".join(d), of="transcript"
            )
    yield text_vector(
        "a line of 2 MiB", "CB807", lambda d: d + b"x" * 2**21 + b"\n" + d, of="transcript"
    )


GROUPS = {
    "agreement": read_sealed,
    "signature": read_signature,
    "news": check,
    "transcript": verify_transcript,
}
