"""An upload's manifest says what its noise promises: what was agreed, or it is refused."""

import pytest

from cobasis.analyst_side import session as lab_session
from cobasis.analyst_side.receive import receive
from cobasis.bundle.enclosure import write_bundle
from cobasis.bundle.messages import enclose_upload, upload_in
from cobasis.errors import ForeignBundleError
from party_side.test_guarantee import NOISY, TERMS, joined, prepared


@pytest.fixture
def noisy(make):
    return joined(make(**NOISY))


@pytest.fixture
def lab(noisy, monkeypatch):
    (noisy.home("lab") / "keys").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(lab_session, "load_identity", lambda *_, **__: noisy.lab)
    return lambda: lab_session.open_session(
        noisy.agreement_path, home=noisy.home("lab"), name="lab", passphrase=str
    )


def test_the_manifest_carries_the_agreements_guarantee(noisy):
    sent = prepared(noisy)
    manifest = noisy.opened("north", sent.path).manifest
    assert manifest.dp == TERMS.record(basis="haar")
    assert manifest.dp["noise"] == TERMS.calibration.noise


CLAIMS = {
    "none": lambda _: None,
    "less noise": lambda dp: {**dp, "noise": dp["noise"] / 2},
    "more noise": lambda dp: {**dp, "noise": dp["noise"] * 2},
    "another epsilon": lambda dp: {**dp, "terms": {**dp["terms"], "epsilon": 1.0}},
    "another sentence": lambda dp: {**dp, "statement": "protected"},
    "a word more": lambda dp: {**dp, "seal": "green"},
}


def claimed(site, claim):
    """North's upload with another guarantee in its manifest, signed by north."""
    sent = prepared(site)
    opened = site.opened("north", sent.path)
    enclosed = enclose_upload(opened.parts["upload.safetensors"], agreement=site.agreement)
    path = site.folder("lab") / "north.upload"
    write_bundle(
        path,
        draft={**enclosed.draft, "dp": claim(enclosed.draft["dp"])},
        parts=enclosed.parts,
        sign=site.identities["north"].sign,
        recipients=[site.lab.public],
    )
    return path


@pytest.mark.parametrize("claim", CLAIMS)
def test_an_upload_that_claims_another_guarantee_is_refused(noisy, claim):
    path = claimed(noisy, CLAIMS[claim])
    with pytest.raises(ForeignBundleError, match=r"another thing of its noise.*\[CB804\]$"):
        upload_in(noisy.opened("north", path), agreement=noisy.agreement)


def test_more_rows_than_the_guarantee_covers_are_refused(make, monkeypatch):
    """A party whose own check was taken away."""
    few = joined(make(**{**NOISY, "dp": TERMS.model_copy(update={"most_rows": 50})}))
    monkeypatch.setattr("cobasis.protocol.projection._refuse", lambda *_: None)
    path = prepared(few).path
    with pytest.raises(ForeignBundleError, match=r"more rows than that covers.*\[CB804\]$"):
        upload_in(few.opened("north", path), agreement=few.agreement)


def test_a_guarantee_that_nobody_agreed_on_is_refused(site):
    path = claimed(site, lambda _: TERMS.record(basis="haar"))
    with pytest.raises(ForeignBundleError, match="another thing of its noise"):
        upload_in(site.opened("north", path), agreement=site.agreement)


def test_the_analyst_receives_what_says_what_was_agreed_and_nothing_else(noisy, lab):
    good = prepared(noisy)
    inbox = noisy.folder("lab") / "inbox"
    inbox.mkdir()
    (inbox / "north.upload").write_bytes(good.path.read_bytes())
    [verdict] = receive(lab(), [inbox]).files
    assert verdict.verdict == "accepted"
    bad = claimed(noisy, CLAIMS["less noise"])
    (inbox / "north.upload").write_bytes(bad.read_bytes())
    [verdict] = receive(lab(), [inbox]).files
    assert (verdict.verdict, verdict.code) == ("refused", "CB805")  # a second one of its party
