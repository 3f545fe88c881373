import json
from dataclasses import fields, replace

import numpy as np

from cobasis.bundle.envelope import write_bundle
from cobasis.bundle.uploads import StoredTable, UploadFile, open_payload
from cobasis.protocol.messages import Upload

DIGEST, TAG = bytes(range(32)), bytes(range(32, 64))


def announced(party="north", *, image=None, n_rows=7, labels=None, **changes):
    """An upload whose rows and labels are still to come, with some fields changed."""
    image = tables()[1] if image is None else image
    fields = {
        "party": party,
        "agreement_digest": DIGEST,
        "anchor_tag": TAG,
        "rows": np.zeros((n_rows, image.shape[1])),
        "labels": None if labels is None else np.zeros(n_rows, labels),
        "anchor_image": image,
        "simulated": False,
    }
    return Upload(**{**fields, **changes})


def tables(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(7, 3)), rng.normal(size=(5, 3)), rng.normal(size=7)


def write(path, *, party="north", seed=0, labels=True):
    rows, image, numbers = tables(seed)
    upload = announced(party, image=image, rows=rows)
    put(replace(upload, labels=numbers) if labels else upload, path)
    return rows, image, numbers


def put(upload, path, *, precision="fp64", int8_range=None):
    with UploadFile(path, precision=precision, int8_range=int8_range)(upload) as tables:
        for name, table in tables.items():
            table[0 : len(upload.rows)] = getattr(upload, name)


def sealed(path, enclosed, *, by, to, created=None):
    told = {"draft": enclosed.draft, "parts": enclosed.parts, "created": created}
    write_bundle(path, sign=by.sign, recipients=[to.public], **told)
    return path


def described(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def json_of(header):
    return json.dumps(header, separators=(",", ":")).encode()


def file_of(header, numbers=b"", *, length=None):
    text = header if isinstance(header, bytes) else json_of(header)
    size = len(text) if length is None else length
    return size.to_bytes(8, "little") + text + numbers


def read_upload(path):
    payload = open_payload(path)
    found = {each.name: getattr(payload, each.name) for each in fields(payload)}
    read = {name: each[:] for name, each in found.items() if isinstance(each, StoredTable)}
    return Upload(**found | read)
