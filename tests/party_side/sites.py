"""Three parties and an analyst with real keys, a sealed agreement, and tables on disk."""

import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bundle.payloads import read_upload, sealed
from cobasis import Analyst, ConsortiumSecret, NumericFeature
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import read_agreement, seal
from cobasis.bundle.agreement_text import new_text
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.messages import Enclosed, enclose, proposal_in, upload_in
from cobasis.cli import options
from cobasis.features.contract import CategoryFeature
from cobasis.party_side.preview import make_ready
from cobasis.party_side.rows import check
from cobasis.party_side.send import send
from cobasis.party_side.session import PartySession, keep_secret, read_secret
from cobasis.privacy.audit import attackers
from cobasis.protocol.card import make_card
from cobasis.protocol.signatures import sign_agreement
from faults import died, dying_after
from keys.quick import keys_of

NAMES = ("north", "south", "east")
NUMBERS = ("age", "pulse", "lactate", "weight")
ROUND = "icu-2026"
FEATURES = (
    *(
        NumericFeature(name=name, low=-50.0, high=50.0, missing="fill", fill=0.0)
        for name in NUMBERS
    ),
    CategoryFeature(name="ward", values=("icu", "surgery"), unknown="other", missing="level"),
)


def frame(seed, n_rows=120):
    """Rows with labels that follow from two columns, some empty cells, and ids with zeros."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, len(NUMBERS))) @ rng.normal(size=(len(NUMBERS), len(NUMBERS)))
    died = (rows[:, 0] + 0.3 * rng.normal(size=n_rows) > 0).astype(int)
    columns = {name: rows[:, at].tolist() for at, name in enumerate(NUMBERS)}
    columns["lactate"][3] = None
    return pl.DataFrame(
        {"patient": [f"{1000 * seed + at:07d}" for at in range(n_rows)]}
        | columns
        | {"ward": rng.choice(["icu", "surgery", "maternity"], size=n_rows), "died": died}
    )


PEOPLE = keys_of((*NAMES, "west"))
KEY = secrets.token_bytes(32)


@dataclass
class Consortium:
    root: Path
    identities, lab, key = PEOPLE, PEOPLE["lab"], KEY

    @property
    def agreement_path(self):
        return self.root / "icu.toml"

    @property
    def agreement(self):
        return read_agreement(self.agreement_path).agreement

    @property
    def secret(self):
        return ConsortiumSecret(self.key)

    def folder(self, name):
        found = self.root / name
        found.mkdir(exist_ok=True)
        return found

    def home(self, name):
        return self.folder(name) / "home"

    def table(self, name, *, n_rows=120):
        path = self.folder(name) / "data.csv"
        if not path.exists():
            frame(NAMES.index(name) + 1, n_rows).write_csv(path)
        return path

    def secret_file(self, name, *, agreement=None, to=None):
        """As `cobasis agreement new` makes it, by north, for one party."""
        digest = (agreement or self.agreement).digest()
        told = {"kind": "secret", "round_id": ROUND, "sender": "north", "agreement": digest.hex()}
        enclosed = Enclosed(told, {"secret.bin": self.key})
        whose = {"by": self.identities["north"], "to": to or self.identities[name]}
        return sealed(self.folder(name) / f"{name}.secret", enclosed, **whose)

    def session(self, name="north"):
        """A session as the command opens it, without the two seconds that a passphrase takes."""
        told = {"identity": PEOPLE[name], "home": self.home(name)}
        return PartySession(self.agreement_path, self.agreement, **told)

    def joined(self, name="north", **changes):
        if changes:
            agreed(self.root, **changes)
        session = self.session(name)
        join(session, self.secret_file(name))
        return session

    def ready(self, name="north", *, table=None, **how):
        return ready_from(self.session(name), table or self.table(name), **how)

    def send(self, name="north", *, to=None, table=None, **how):
        return send(self.ready(name, table=table), to or self.upload(name), **how)

    def upload(self, name="north"):
        return self.folder(name) / f"{name}.upload"

    def of_round(self):
        return self.folder("north") / f"{self.session().work.name}.upload"

    def desk(self):
        return AnalystSession(self.agreement, identity=self.lab, path=self.agreement_path)

    def reply(self, name, number=-1):
        desk = self.desk()
        return desk.reply(name, desk.exchanges[number])

    def copied(self, to):
        shutil.copytree(self.root, to)
        return replace(self, root=to)

    def analyst_of(self, paths, **changes):
        analyst = Analyst(self.agreement, **changes)
        for name, path in paths.items():
            analyst.receive(self.opened_upload(name, path))
        return analyst

    def opened_upload(self, name, path):
        bundle = self.opened(name, path)
        payload = upload_in(bundle, agreement=self.agreement)
        return read_upload(payload.path)

    def opened(self, name, path):
        into = self.folder("lab") / f"opened-{secrets.token_hex(4)}"
        return open_bundle(
            path, unseal=self.lab.unseal, signer={name: self.identities[name].public}, into=into
        )

    def proposal(self, name, path):
        return proposal_in(self.opened(name, path))

    def consensus_file(self, name, span):
        enclosed = enclose(span, agreement=self.agreement, sender="lab")
        path = self.folder(name) / f"{name}.consensus"
        return sealed(path, enclosed, by=self.lab, to=self.identities[name])

    def carded(self, returned):
        """A return with its model card, as of 1,000 rows."""
        tag, span = self.secret.anchor_tag(self.agreement), self.session(returned.party).round
        told = {"consensus": span.consensus(), "anchor_tag": tag, "evidence": returned.evidence}
        card = make_card(self.agreement, returned, **told, n_rows=1000)
        return replace(returned, card=returned.card or card)

    def return_file(self, returned, *, to=None, upload=None, lines=(), created=None):
        name, agreement = returned.party, self.agreement
        upload = upload or self.session(name).vault.upload_of(agreement)[1].upload
        told = {"sender": "lab", "told": {"upload": upload}, "lines": tuple(lines)}
        enclosed = enclose(self.carded(returned), agreement=agreement, **told)
        path = to or self.folder(name) / f"{name}.return"
        return sealed(path, enclosed, by=self.lab, to=self.identities[name], created=created)


def join(session, path):
    keep_secret(session, read_secret(session, path))


def ready_from(session, table, **how):
    return make_ready(session, check(session, table), **how)


def killed(site, folder, work, *, step):
    """Kill some work at every step-th call, each time in a copy of its own."""
    for number in count(1, step):
        place = site.copied(Path(tempfile.mkdtemp(dir=folder)) / "site")
        if not died(dying_after, number, lambda place=place: work(place)):
            return
        yield place


def steps(few):
    """Kills at some of the calls; where tests may take long, at each."""
    every = pytest.param(1, marks=pytest.mark.soak)
    return pytest.mark.parametrize("step", [few, every])


FIELDS = {
    "round_id": ROUND,
    "features": FEATURES,
    "task": "classification",
    "classes": (0, 1),
    "n_components": 3,
    "n_anchor_rows": 9,
    "model": "ridge",
    "models": ("logistic", "ridge", "mlp"),
    "label": "died",
    "id": "patient",
    "holdout": 0.25,
    "purpose": "a test",
    "threat_model": "semi-honest",
    "retention_days": 30,
}
ENROLLED = {
    "enrolled": tuple(PEOPLE[name].public for name in NAMES),
    "analyst": PEOPLE["lab"].public,
}
_TEXTS = {}


def agreed(root, **changes):
    """An agreement that everybody signed, on disk; made once for all tests that ask for it."""
    path, words = root / "icu.toml", repr(changes)
    if words not in _TEXTS:
        path.unlink(missing_ok=True)
        commitment = ConsortiumSecret(KEY).commitment(ROUND)
        path.write_text(new_text({**FIELDS, **ENROLLED, "commitment": commitment, **changes}))
        found = read_agreement(path).agreement
        who = {name: PEOPLE[name].sign for name in (*NAMES, "lab")}
        signed = [sign_agreement(found, name=name, sign=sign) for name, sign in who.items()]
        seal(path, signed).replace(path)
        _TEXTS[words] = path.read_text(encoding="utf-8")
    path.write_text(_TEXTS[words], encoding="utf-8")
    return path


def consortium(root, monkeypatch, **changes):
    monkeypatch.setattr(options, "load_identity", lambda path, **_: PEOPLE[path.stem])
    monkeypatch.setattr(attackers, "_SPLITS", 1)  # of an audit's best guess, which others look at
    agreed(root, **changes)
    return Consortium(root)
