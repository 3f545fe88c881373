"""Upload files for the tests."""

import json

import numpy as np

from cobasis.bundle.uploads import UploadFile, open_payload
from cobasis.protocol.messages import Upload, UploadHeader

DIGEST, TAG = bytes(range(32)), bytes(range(32, 64))


def header(party="north", *, n_rows=7, n_components=3, n_anchor_rows=5, **changes):
    """An upload's header, with some fields changed."""
    fields = {
        "party": party,
        "agreement_digest": DIGEST,
        "anchor_tag": TAG,
        "simulated": False,
        "n_rows": n_rows,
        "n_components": n_components,
        "n_anchor_rows": n_anchor_rows,
    }
    return UploadHeader(**{**fields, **changes})


def tables(seed=0, *, n_rows=7, n_components=3, n_anchor_rows=5):
    """Rows, anchor image and numeric labels."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_components))
    return rows, rng.normal(size=(n_anchor_rows, n_components)), rng.normal(size=n_rows)


def write(path, *, party="north", seed=0, labels=True):
    """Write a small upload, and return its tables."""
    rows, image, numbers = tables(seed)
    upload = Upload(
        party=party,
        agreement_digest=DIGEST,
        anchor_tag=TAG,
        rows=rows,
        labels=numbers if labels else None,
        anchor_image=image,
        simulated=False,
    )
    put(upload, path)
    return rows, image, numbers


def put(upload, path, *, precision="fp64", int8_range=None):
    """Write an upload that is in memory."""
    labels = upload.labels
    about = header(
        upload.party,
        n_rows=len(upload.rows),
        n_components=upload.rows.shape[1],
        n_anchor_rows=len(upload.anchor_image),
        labels=None if labels is None else labels.dtype.name,
        **{name: getattr(upload, name) for name in ("agreement_digest", "anchor_tag", "simulated")},
    )
    with UploadFile(path, precision=precision, int8_range=int8_range)(about) as writer:
        writer.write_anchor_image(upload.anchor_image)
        if labels is not None:
            writer.write_labels(labels)
        writer.write_rows(0, upload.rows)


def described(path):
    """The header's object of a file, and the numbers' bytes behind it."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def craft(path, described, numbers=b""):
    """Write a file with any header: an object, or bytes as they are."""
    text = described if isinstance(described, bytes) else json.dumps(described).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)


def read_upload(path):
    """Read a whole upload, as it was before it was written."""
    payload = open_payload(path)
    return Upload(
        party=payload.party,
        agreement_digest=payload.agreement_digest,
        anchor_tag=payload.anchor_tag,
        rows=payload.row_block(0, payload.n_rows),
        labels=payload.labels(),
        anchor_image=payload.read_image(),
        simulated=payload.simulated,
    )
