import json
import re
from dataclasses import replace
from functools import partial
from itertools import product

from bundle.bundles import AGREED, LAB, NEWS, RECEIPT, lines_in_memory, news_text, signed_receipt
from cobasis.bundle.agreement_file import line_in, sealed_agreement
from cobasis.bundle.transcript import START, following, verify_transcript
from cobasis.protocol.news import News
from cobasis.protocol.signatures import Signature, check_receipt, sign_agreement
from party_side.sites import PEOPLE, consortium
from under_fault.in_files import OTHERS
from under_fault.vectors import Vector, json_faults, outcome_of


def text_vectors(of, expect, changes):
    for word, change in changes.items():
        yield Vector(f"{of} {word}", expect, partial(_written, change, of), of)


def _written(change, of, reader, path):
    path.write_bytes(change(reader.good[of]))


def sub(pattern, new, *, count=1):
    def change(good):
        found, n = re.subn(pattern.encode(), new.encode(), good, count=count, flags=re.MULTILINE)
        assert n, pattern
        return found

    return change


VOID = {
    "another purpose": ("^purpose = .*", 'purpose = "another"'),
    "a party renamed": ('^name = "south"\nrole', 'name = "sourh"\nrole'),
    "no signature of north": (r"\[\[signature\]\]\nname = .north.\n.*\n.*\n", ""),
    "no signature of the analyst": (r"\[\[signature\]\]\nname = .lab.\n.*\n.*\n", ""),
    "a signature twice for two": ('^name = "south"\nagreement', 'name = "north"\nagreement'),
    "a stranger's signature": ('^name = "south"\nagreement', 'name = "west"\nagreement'),
    "a signature of zeros": ("^signature = .*", f'signature = "{"0" * 128}"'),
    "a signature of another version": ("^agreement = .*", f'agreement = "{"0" * 64}"'),
}
"""The digest covers every field, as tests/protocol says; here some of each form."""

REFUSED = {
    "an unknown field": ("^holdout =", "hold_out ="),
    "parties by hand": ("^purpose =", 'parties = ["a"]\npurpose ='),
    "an unknown kind": ('^kind = "category"', 'kind = "word"'),
    "no party": (r"^\[\[party\]\](?s:.*?)^\[analyst\]", "[analyst]"),
    "a signature in a word": (r"^\[\[signature\]\](?s:.*)", "signature = 3"),
    "signatures in one table": (r"^\[\[signature\]\](?s:.*)", '[signature]\nname = "x"'),
    "terms of noise that are no table": (r"^\[\[party\]\]", "[[dp]]\n[[party]]"),
    "the secret in it": ("^round_id", f'secret = "{"0" * 64}"\nround_id'),
    "a list as its task": ("^task = .*", "task = []"),
    "a party with Python's own name": ('^name = "south"\nrole', 'self = 1\nname = "south"\nrole'),
    "a signature with Python's own name": ("^signature = ", "self = 1\nsignature = "),
    "a time behind the last year": ("^deadline = .*", "deadline = 9999-12-31T23:59:59-23:59"),
    "no commitment": ("^commitment = .*", 'commitment = ""'),
    "a party twice": ('^name = "south"\nrole', 'name = "north"\nrole'),
    "a party with a path": ('^name = "south"\nrole', 'name = "../south"\nrole'),
    "a recipient that is none": ("^recipient = .*", 'recipient = "age1nobody"'),
    "a signature without a name": ('^name = "south"\nagreement', "agreement"),
}
BROKEN = {
    "a quote open": lambda d: d.replace(b'"icu-2026"', b'"icu-2026'),
    "a number of many digits": lambda d: b"a = " + b"9" * 5000 + b"\n" + d,
    "many hexadecimal digits": lambda d: b"a = 0x" + b"f" * 5000 + b"\n" + d,
    "a field twice": lambda d: b'task = "regression"\n' + d,
    "NUL": lambda d: d.replace(b"icu-2026", b"icu\0", 1),
    "no UTF-8": lambda d: d.replace(b"a test", b"a \xfftest", 1),
    "brackets without end": lambda _: b"a = " + b"[" * 50_000,
    "JSON": lambda _: b'{"round_id": "icu-2026"}',
    "cut in a text": lambda d: d[: d.index(b"icu-2026") + 3],
    "of 32 MiB": lambda d: d + b"#" * (2**25),
}


def agreements():
    for expect, rows in {"CB311": VOID, "CB303": REFUSED}.items():
        changes = {f"with {word}": sub(*change) for word, change in rows.items()}
        yield from text_vectors("agreement", expect, changes)
    yield from text_vectors("agreement", "CB312", BROKEN)
    others = ("a pickle", "ones", "an executable", "npz")
    changes = {f"that is {word}": lambda _, w=word: OTHERS[w] for word in others}
    yield from text_vectors("agreement", "CB312", changes)
    yield from text_vectors("agreement", "CB303", {"of nothing": lambda _: b""})


def told(name, value, *into):
    def change(good):
        fields = at = json.loads(good)
        if name not in fields:
            for step in into:
                at = at[step]
        at.pop(name)
        if value is not None:
            at[name] = value
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    return change


def signature_files():
    yield from text_vectors("signature", "CB303", dict(json_faults()))
    fields = product(("name", "agreement", "signature", "format"), (None, 7, "x\0", ["a"]))
    changes = {f"whose {name} is {value}": told(name, value) for name, value in fields}
    for name in ("self", "cls"):  # Python's own
        new = f'{{"{name}":1,'.encode()
        changes[f"with a field {name}"] = lambda good, new=new: good.replace(b"{", new, 1)
    yield from text_vectors("signature", "CB303", changes)


def check(path):
    [found] = News.from_text(path.read_bytes(), AGREED).receipts
    wanted = {name: RECEIPT[name] for name in ("agreement", "party", "file")}
    check_receipt(found, analyst=LAB.public, **wanted)


FORMED = {("round_id", "x\0"), ("exchange", 7)}
FORMED |= {(name, "A" * 64) for name in ("round_id", "party", "analyst")}
"""Words of the right form, so that only the signature tells."""


def news():
    other = "0" * 64
    yield from text_vectors("news", "CB803", dict(json_faults()))
    fields = [("", name, ("news",)) for name in (*NEWS, "signature", "format")]
    fields += [("receipt's ", name, ("news", "receipts", 0, "receipt")) for name in RECEIPT]
    for (whose, name, into), value in product(fields, (None, 7, "x\0", "A" * 64)):
        change = {f"whose {whose}{name} is {value}": told(name, value, *into)}
        expect = "CB802" if (name, value) in FORMED else "CB803"
        yield from text_vectors("news", expect, change)
    changed = {
        "CB802": {
            "of another analyst": told("analyst", "south", "news"),
            "of another time": told("time", "2026-11-21T15:00:01Z", "news"),
        },
        "CB803": {
            "with a blank more": lambda d: d[:-1] + b" \n",
            "of 17 MB": lambda d: d + b" " * 17 * 10**6,
        },
        "CB804": {
            "of another agreement": lambda _: news_text(signed_receipt(), agreement=other),
            "with a receipt under another": lambda _: news_text(signed_receipt(agreement=other)),
            "with a receipt for another file": lambda _: news_text(signed_receipt(file=other)),
        },
    }
    for expect, changes in changed.items():
        yield from text_vectors("news", expect, changes)


LINES = lines_in_memory(6)
SPOILT = {
    "taken out": lambda _: [],
    "twice": lambda line: [line, line],
    "changed": lambda line: [line.replace(b"n_rows", b"n_r0ws")],
    "dated back": lambda line: [line.replace(b"2026", b"2025")],
    "with a space": lambda line: [line.replace(b":", b": ", 1)],
    "cut": lambda line: [line[:-9] + b"\n"],
    "empty": lambda _: [b"\n"],
    "of zeros": lambda line: [bytes(len(line) - 1) + b"\n"],
    "after a pickle": lambda line: [b"\x80\x04K\x01.\n", line],
}


LINE = following(START, "x", told={"a": 1.5}, time="").line
FORGED = {
    "deep": b"[" * 100_000 + b"\n",
    "no object": b"null\n",
    "no text": b"\xff\xfe\n",
    "of another number": following(replace(START, seq=1), "x", told={}, time="").line,
    "true for a number": LINE.replace(b":1,", b":true,"),
    "NaN": LINE.replace(b"1.5", b"NaN"),
    "infinite": LINE.replace(b"1.5", b"1e999"),
    "of two names": LINE.replace(b'{"event"', b'{"event":"y","event"'),
    "of facts without names": LINE.replace(b'{"a":1.5}', b"[]"),
}


def transcripts():
    forged = {f"whose first is {word}": lambda _, f=f: f + b"{}\n" for word, f in FORGED.items()}
    yield from text_vectors("transcript", "CB807", forged)
    for at in range(5):
        before, line, after = LINES[:at], LINES[at], LINES[at + 1 :]
        found = {word: [*before, *change(line), *after] for word, change in SPOILT.items()}
        found["after the next"] = [*before, after[0], line, *after[1:]]
        changes = {
            f"whose line {at + 1} is {word}": lambda _, lines=lines: b"".join(lines)
            for word, lines in found.items()
        }
        yield from text_vectors("transcript", "CB807", changes)
    long = {"with a line of 2 MiB": lambda d: d + b"x" * 2**21 + b"\n" + d}
    yield from text_vectors("transcript", "CB807", long)


class Reader:
    def __init__(self, folder, monkeypatch):
        made = consortium(folder, monkeypatch)
        signed = sign_agreement(made.agreement, name="north", sign=PEOPLE["north"].sign)
        self.good = {
            "agreement": made.agreement_path.read_bytes(),
            "signature": signed.text().encode(),
            "news": news_text(signed_receipt()),
            "transcript": b"".join(LINES),
        }
        self.before = self.kept()

    def kept(self):
        return None

    def decided(self, path, of):
        read = {
            "agreement": lambda: sealed_agreement(path),
            "signature": lambda: line_in(path, Signature),
            "news": lambda: check(path),
            "transcript": lambda: verify_transcript(path),
        }
        return outcome_of(read[of])
