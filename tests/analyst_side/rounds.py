"""A real round on a real disk: keys, a signed agreement, sealed uploads, the analyst's desk."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cobasis import Agreement, ConsortiumSecret, Party, PartyKey, numeric_features
from cobasis.analyst_side.session import AnalystSession, WorkFolder
from cobasis.bundle.enclosure import write_bundle
from cobasis.bundle.messages import enclose_proposal, enclose_upload
from cobasis.bundle.uploads import write_upload
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import exchanges
from cobasis.protocol.signatures import News
from protocol.consortium import COMPONENTS, WIDTH, tables

NAMES = ("east", "north", "south", "west")


@dataclass
class RealRound:
    """Everything of one round; parties' side and analyst's side."""

    folder: Path
    agreement: Agreement
    identities: dict
    secret: ConsortiumSecret
    rows: dict
    parties: dict = field(default_factory=dict)

    @property
    def inbox(self):
        return self.folder / "inbox"

    @property
    def returns(self):
        return self.folder / "outbox"

    @property
    def work(self):
        return WorkFolder(self.folder / "icu.round")

    def session(self):
        """A fresh session, as every command opens one."""
        identity, path = self.identities["lab"], self.folder / "icu.toml"
        return AnalystSession(self.agreement, identity=identity, path=path)

    def sealed(self, name):
        """A party's upload in the work folder, as it came."""
        return self.work.sealed(name, exchanges(self.agreement)[-1])

    def reply(self, name, number=-1):
        """What a party gets back."""
        return self.session().reply(name, exchanges(self.agreement)[number])

    def news(self):
        """The signed news beside the agreement."""
        return News.from_text((self.folder / "icu.news").read_bytes(), self.agreement)

    def party(self, name):
        if name not in self.parties:
            self.parties[name] = Party(
                name, agreement=self.agreement, secret=self.secret, key=PartyKey()
            )
        return self.parties[name]

    def payload(self, name, *, rows=None, consensus=None):
        """A party's upload as a file, in the agreed precision."""
        path = self.folder / f"{name}.safetensors"
        prepared = self.party(name).prepare(*(rows or self.rows[name]), consensus=consensus)
        write_upload(
            prepared,
            path,
            precision=self.agreement.precision,
            int8_range=self.agreement.int8_range,
        )
        return path

    def upload(self, name, *, file=None, signer=None, to=("lab",), **options):
        """A party's sealed upload in the inbox."""
        created, audit = options.pop("created", None), options.pop("audit", None)
        payload = self.payload(name, **options)
        draft, parts = enclose_upload(payload, agreement=self.agreement, audit=audit)
        self.inbox.mkdir(exist_ok=True)
        path = self.inbox / (file or f"{name}.upload")
        write_bundle(
            path,
            draft=draft,
            parts=parts,
            sign=(signer or self.identities[name]).sign,
            recipients=[self.identities[each].public for each in to],
            created=created or datetime.now(UTC),
        )
        payload.unlink()
        return path

    def uploads(self, names=None):
        """Sealed uploads of some parties, or of all."""
        return {name: self.upload(name) for name in (names or self.agreement.parties)}

    def proposal(self, name):
        """A party's sealed proposal."""
        proposed = self.party(name).propose(self.rows[name][0])
        draft, parts = enclose_proposal(proposed, agreement=self.agreement)
        self.inbox.mkdir(exist_ok=True)
        path = self.inbox / f"{name}.proposal"
        write_bundle(
            path,
            draft=draft,
            parts=parts,
            sign=self.identities[name].sign,
            recipients=[self.identities["lab"].public],
        )
        return path


def real_round(folder, *, names=NAMES, identities=None, secret=None, **changes):
    """Make keys, a secret and an agreement that enrols everybody."""
    secret = secret or ConsortiumSecret()
    if identities is None:
        identities = {name: Identity.new(name) for name in names}
        identities["lab"] = Identity.new("lab", role="analyst")
    fields = {
        "round_id": "icu-2026",
        "parties": tuple(names),
        "features": numeric_features([f"x{column}" for column in range(WIDTH)]),
        "task": "classification",
        "classes": (0, 1),
        "n_components": COMPONENTS,
        "n_anchor_rows": 8,
        "model": "ridge",
        "models": ("ridge", "logistic"),
        "label": "sick",
        "minimum_parties": 3,
        "purpose": "a test",
        "threat_model": "semi-honest",
        "retention_days": 30,
        "enrolled": tuple(identities[name].public for name in names),
        "analyst": identities["lab"].public,
    }
    fields.update(changes)
    agreement = Agreement(**fields, commitment=secret.commitment(fields["round_id"]))
    return RealRound(folder, agreement, identities, secret, tables(names=names, n_rows=40))
