import shutil

import numpy as np
import pytest

from bundle.bundles import ENROLLED, LAB, sealed, unsealed, write
from cobasis.bundle.envelope import open_bundle
from cobasis.errors import BundleError, SealError, SignatureError

NOISE = np.random.default_rng(0).bytes(6_000)
PARTS = {
    "upload": {"upload.safetensors": NOISE},
    "return": {"fit.safetensors": NOISE, "model.safetensors": NOISE[::-1]},
    "proposal": {"span.safetensors": NOISE},
    "consensus": {"span.safetensors": NOISE},
    "receipt": {"receipt.json": NOISE},
    "secret": {"secret.bin": NOISE[:32]},
}
FIRST = 4096


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


class Damage:
    """One kind of bundle, sealed and under the seal, and whether a damaged one is opened."""

    def __init__(self, kind, folder):
        self.path = folder / f"{kind}.cb"
        write(self.path, kind=kind, parts=PARTS[kind])
        self.forms = {"sealed": self.path.read_bytes(), "plain": unsealed(self.path)}
        self.starts = [self.forms["plain"].index(each) for each in PARTS[kind].values()]

    def opens(self, form, data):
        if form == "sealed":
            self.path.write_bytes(data)
        else:
            sealed(self.path, data)
        into = self.path.with_suffix(".in")
        try:
            open_bundle(self.path, unseal=LAB.unseal, signer=ENROLLED, into=into)
        except (SealError, BundleError, SignatureError):
            return False
        finally:
            shutil.rmtree(into)
        return True

    def opened_with(self, form, bits):
        data = self.forms[form]
        return [int(bit) for bit in bits if self.opens(form, flipped(data, int(bit)))]


@pytest.fixture
def damage(in_memory, request):
    return Damage(request.param, in_memory)


every_kind = pytest.mark.parametrize("damage", PARTS, indirect=True)


@pytest.mark.parametrize("n_bits", [40, pytest.param(834, marks=pytest.mark.soak)])
@every_kind
def test_whole_it_is_opened_and_with_a_bit_changed_or_an_end_cut_off_it_is_refused(damage, n_bits):
    rng = np.random.default_rng(1)
    for form, data in damage.forms.items():
        assert damage.opens(form, data)
        assert damage.opened_with(form, rng.choice(8 * len(data), size=n_bits, replace=False)) == []
        cuts = [*range(0, len(data), 1024), *range(len(data) - 5, len(data))]
        assert [cut for cut in cuts if damage.opens(form, data[:cut])] == []


def test_a_bundle_of_many_age_chunks_without_its_last_is_refused(in_memory):
    """Age's chunks are whole each by itself; only the last one says that it is the last."""
    damage = Damage("upload", in_memory)
    noise = np.random.default_rng(3).bytes(300_000)
    write(damage.path, kind="upload", parts={"upload.safetensors": noise})
    data = damage.path.read_bytes()
    header = data.index(b"\n", data.index(b"\n--- ") + 1) + 1 + 16
    ends = range(header, len(data), 2**16 + 16)
    assert len(ends) == 5
    assert [end for end in ends if damage.opens("sealed", data[:end])] == []


@pytest.mark.soak
@every_kind
def test_all_bits_of_the_header_and_the_first_four_kilobytes_of_each_part_are_refused(damage, tell):
    size = len(damage.forms["plain"])
    spans = [(0, damage.starts[0]), *((at, min(at + FIRST, size)) for at in damage.starts)]
    bits = [bit for start, stop in spans for bit in range(8 * start, 8 * stop)]
    assert damage.opened_with("plain", bits) == []
    tell(f"{len(bits):,} bits changed one by one, all refused")
