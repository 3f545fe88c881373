"""A real round with noise: charged before it is drawn, the same after a crash, said as agreed."""

from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from bundle.payloads import sealed
from cobasis.bundle.messages import Enclosed, enclose, upload_in
from cobasis.bundle.uploads import open_payload
from cobasis.errors import AgreementError, AuditBlockedError, ForeignBundleError
from cobasis.party_side.preview import NONE
from cobasis.protocol.dp_terms import DPTerms
from cobasis.vault.ledger import spent_on
from faults import Killed, at_call, calls_of, dying_before
from party_side.sites import Consortium, frame, killed, steps

TERMS = DPTerms(
    epsilon=2,
    radius=3,
    most_rows=200,
    labels="randomised_response",
    label_epsilon=1,
    lifetime_epsilon=6,
)
NOISY = {"basis": "haar", "dp": TERMS}


@pytest.fixture
def noisy(make):
    site = make(**NOISY)
    site.joined()
    return site


def payload(site):
    return site.opened("north", site.upload()).parts["upload.safetensors"].read_bytes()


def charges(site):
    return spent_on(site.session().vault.datasets(), site.ready().choice.asked).charges


def test_the_budget_is_charged_before_noise_is_drawn(noisy, tmp_path_factory):
    twin = noisy.copied(tmp_path_factory.mktemp("twin") / "site")
    made = [(call, path.name) for call, path in calls_of(twin.send)]
    charged = made.index(("fsync", "datasets"))  # of the folder, after its record has its name
    assert made[charged - 1][0] == "replace"
    assert charged < made.index(("open", "upload.safetensors.part"))
    drawn = at_call(1, dying_before, counts=lambda *call: "upload.safetensors" in call[2].name)
    with pytest.raises(Killed), drawn:
        noisy.send()
    assert len(charges(noisy)) == 1


@steps(9)
def test_a_kill_anywhere_leaves_at_most_one_charge_and_the_same_numbers_after_it(
    noisy, in_memory, step
):
    begun = []
    for site in killed(noisy, in_memory, Consortium.send, step=step):
        drawn = list(site.session("north").work.glob("upload.safetensors*"))
        begun.append(len(charges(site)))
        assert begun[-1] == 1 or not drawn  # nothing is drawn that was not charged
        made = {site.send() and payload(site) for _ in range(2)}
        assert (len(made), len(charges(site))) == (1, 1)
    assert begun == sorted(begun)
    assert {0, 1} == set(begun)


def test_the_manifest_tells_the_noise_that_is_in_the_upload(noisy):
    sent = noisy.send()
    told = noisy.opened("north", sent.path).manifest.dp
    assert (told, told["noise"]) == (TERMS.record(basis="haar"), TERMS.calibration.noise)
    upload, ready = noisy.opened_upload("north", sent.path), noisy.ready()
    labels = ready.rows.sent.labels()
    stream = ready.choice.key.stream(f"order/{noisy.agreement.round_id}")
    kept = int((upload.labels == labels[stream.permutation(len(labels))]).sum())
    share = np.e / (1 + np.e)  # of two classes at an epsilon of 1
    assert binomtest(kept, len(labels), share).pvalue > 1e-5  # the key is drawn
    assert ((upload.rows / TERMS.calibration.grid) % 1 == 0).all()


def test_what_the_audit_looks_at_never_leaves_and_where_it_refuses_nothing_is_spent(noisy):
    """It is the same rows with other noise, drawn before anything was charged."""
    seen, no = [], AuditBlockedError("an officer said no")
    with pytest.raises(AuditBlockedError, match="an officer said no"):
        noisy.send(allow=Mock(side_effect=no))
    assert (charges(noisy), noisy.session().vault.history()) == ((), ())
    assert not noisy.upload().exists()
    assert not list(noisy.session().work.iterdir())

    def allow(made):
        found = open_payload(made.ready.session.payload)
        seen.append(found.rows[:])
        assert not charges(noisy)
        return {}

    left = noisy.opened_upload("north", noisy.send(allow=allow).path).rows
    assert len(charges(noisy)) == 1
    assert not np.isin(left, seen[0]).any(axis=1).all()


def test_people_with_more_rows_than_agreed_are_refused_and_not_named(noisy):
    twice = pl.concat([frame(1), frame(1).head(60)])
    twice.write_csv(noisy.table("north"))
    with pytest.raises(AgreementError, match="more than rows_per_person=1") as caught:
        noisy.ready()
    assert "000100" not in str(caught.value)


def test_what_leaves_is_said_with_the_whole_guarantee_in_one_line(noisy, make):
    preview = noisy.ready().preview
    so_far = "releases so far {}, epsilon spent on these rows {} of 6"
    for words in (TERMS.statement(basis="haar"), so_far.format(0, 0)):
        assert words in preview.guarantee
    assert "3 numbers each with noise, and their column 'died' with some" in preview.leaves[0]
    noisy.send()
    assert so_far.format(1, 3) in noisy.ready().preview.guarantee
    bare = make().ready("south")  # whose rows nobody was promised anything of
    assert bare.preview.guarantee == NONE


CLAIMS = {
    "none": lambda _: None,
    "less noise": lambda dp: {**dp, "noise": dp["noise"] / 2},
    "another epsilon": lambda dp: {**dp, "terms": {**dp["terms"], "epsilon": 1.0}},
    "a word more": lambda dp: {**dp, "seal": "green"},
    "one that nobody agreed on": lambda _: TERMS.record(basis="haar"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_an_upload_that_claims_another_guarantee_is_refused(make, claim):
    site = make(**({} if "nobody" in claim else NOISY))
    site.joined()
    opened = site.opened("north", site.send().path)
    payload = upload_in(opened, agreement=site.agreement)
    enclosed = enclose(payload, agreement=site.agreement, sender="north")
    path = site.folder("lab") / "north.upload"
    claimed = {**enclosed.draft, "dp": CLAIMS[claim](enclosed.draft["dp"])}
    enclosed = Enclosed(claimed, enclosed.parts)
    sealed(path, enclosed, by=site.identities["north"], to=site.lab)
    with pytest.raises(ForeignBundleError, match=r"another thing of its noise.*\[CB804\]$"):
        upload_in(site.opened("north", path), agreement=site.agreement)


def test_more_rows_than_the_guarantee_covers_are_refused(make, monkeypatch):
    """A party whose own check was taken away."""
    few = make(**{**NOISY, "dp": TERMS.model_copy(update={"most_rows": 50})})
    few.joined()
    for place in ("protocol.party", "party_side.rows"):
        monkeypatch.setattr(f"cobasis.{place}.refuse_few", lambda *_, **__: None)
    path = few.send().path
    with pytest.raises(ForeignBundleError, match=r"more rows than that covers.*\[CB804\]$"):
        upload_in(few.opened("north", path), agreement=few.agreement)
