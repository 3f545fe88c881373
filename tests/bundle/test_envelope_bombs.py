"""A few kilobytes that would be gigabytes are refused in little memory, whoever signed them."""

import io
import subprocess
import sys

import pytest

from bundle.bundles import craft, described, opened, receipt, undeclared, write, zeros
from cobasis.bundle.frames import decompress
from cobasis.bundle.payload import open_payload
from cobasis.errors import BundleError, FileFormatError

MANY = 800_000_000
MOST_MEMORY = 64 * 2**20
CHILD = """
import resource, sys
from pathlib import Path
sys.path[:0] = {path!r}
from bundle.bundles import opened, write
from cobasis.errors import BundleError
folder = Path({folder!r})
write(folder / "good.cb")
opened(folder / "good.cb", folder / "in").discard()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
codes = []
for bomb in sorted(folder.glob("bomb*")):
    try:
        opened(bomb, folder / "in")
    except BundleError as error:
        codes.append(error.code)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(codes), after - before, len(list((folder / "in").iterdir())))
"""


def bomb(path, stored, *, says):
    """An upload, rightly signed, that says it has `says` bytes."""
    manifest = described({"upload.safetensors": (b"x", stored)}, kind="upload")
    manifest["parts"][0]["n_bytes"] = says
    return craft(path, manifest, stored)


def test_bombs_are_refused_in_less_than_64_megabytes(tmp_path):
    honest = zeros(MANY, declares=MANY)
    assert len(honest) < 25_000
    bomb(tmp_path / "bomb1", honest, says=MANY)  # 800 MB of zeros, and it says so
    bomb(tmp_path / "bomb2", honest, says=20_000_000)  # the frame says more than the manifest
    bomb(tmp_path / "bomb3", zeros(MANY, declares=20_000_000), says=20_000_000)  # both lie
    bomb(tmp_path / "bomb4", undeclared(bytes(10**7)), says=10**6)
    bomb(tmp_path / "bomb5", zeros(MANY, declares=2**63), says=20_000_000)
    noise = zeros(20_000_000, declares=20_000_000)  # sizes are right, the digest is not
    bomb(tmp_path / "bomb6", noise, says=20_000_000)
    script = CHILD.format(path=sys.path, folder=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    refused, kilobytes, left = map(int, done.stdout.split())
    assert refused == 6
    assert left == 0
    assert kilobytes * 1024 < MOST_MEMORY


def test_a_part_that_grows_a_thousand_times_is_refused_before_it_grows(tmp_path):
    bomb(tmp_path / "a.cb", zeros(MANY, declares=MANY), says=MANY)
    with pytest.raises(BundleError, match="from 24,430 to 800,000,000 bytes"):
        opened(tmp_path / "a.cb", tmp_path / "in")


def test_a_frame_that_holds_more_than_it_declares_is_stopped_where_it_does(tmp_path):
    bomb(tmp_path / "a.cb", zeros(MANY, declares=20_000_000), says=20_000_000)
    with pytest.raises(BundleError, match=r"upload\.safetensors"):
        opened(tmp_path / "a.cb", tmp_path / "in")
    assert not (tmp_path / "in").exists()


def test_nothing_beyond_the_declared_size_is_handed_on():
    """Neither the library's count nor ours lets 800 MB through to the disk."""
    written = []
    stored = zeros(MANY, declares=10**6)
    with pytest.raises(BundleError):
        decompress(
            io.BytesIO(stored),
            lambda data: written.append(len(data)),
            stored_bytes=len(stored),
            n_bytes=10**6,
            what="the part",
        )
    assert sum(written) <= 10**6
    assert max(written) <= 2**17


@pytest.mark.parametrize("kind", [0, 2, 4])
def test_a_block_above_128_kilobytes_is_refused_before_it_is_read(kind):
    head = zeros(0, declares=2**18)[:14]
    block = ((2**17 + 1) << 3 | kind | 1).to_bytes(3, "little")
    stored = head + block + bytes(2**18)
    with pytest.raises(BundleError, match="one of its blocks is none"):
        decompress(
            io.BytesIO(stored),
            lambda _: None,
            stored_bytes=len(stored),
            n_bytes=2**18,
            what="the part",
        )


def test_a_frame_that_holds_less_than_it_declares_is_refused(tmp_path):
    bomb(tmp_path / "a.cb", zeros(999_999, declares=10**6), says=10**6)
    with pytest.raises(BundleError, match=r"upload\.safetensors"):
        opened(tmp_path / "a.cb", tmp_path / "in")


def test_the_frames_made_here_are_ones_that_would_have_been_taken(tmp_path):
    plain = bytes(300_000)
    path = receipt(tmp_path / "a.cb", plain=plain, stored=zeros(300_000, declares=300_000))
    assert opened(path, tmp_path / "in").parts["receipt.json"].read_bytes() == plain


def test_a_payload_of_a_hundred_thousand_tables_is_refused_by_its_headers_length(tmp_path):
    entry = '"t{}":{{"dtype":"F64","shape":[1],"data_offsets":[{},{}]}}'
    text = ",".join(entry.format(i, 8 * i, 8 * i + 8) for i in range(100_000))
    start = ("{" + text + "}").encode()
    upload = tmp_path / "upload"
    upload.write_bytes(len(start).to_bytes(8, "little") + start + bytes(800_000))
    write(tmp_path / "a.cb", kind="upload", parts={"upload.safetensors": upload})
    bundle = opened(tmp_path / "a.cb", tmp_path / "in")
    with pytest.raises(FileFormatError, match=r"hold no header of [67],\d{3},\d{3} bytes"):
        open_payload(bundle.parts["upload.safetensors"])
