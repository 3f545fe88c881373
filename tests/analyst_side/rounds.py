"""A real round on a real disk: keys, a signed agreement, sealed uploads, the analyst's desk."""

from dataclasses import dataclass, field
from pathlib import Path

from bundle.payloads import put, sealed
from cobasis import Agreement, ConsortiumSecret, Party, PartyKey
from cobasis.analyst_side.forget import forget
from cobasis.analyst_side.membership import remove
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.analyst_side.session import AnalystSession, WorkFolder
from cobasis.bundle.agreement_file import read_agreement, seal, sealed_path
from cobasis.bundle.agreement_text import new_text
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.messages import Enclosed, consensus_in, enclose, return_in
from cobasis.bundle.transcript import verify_transcript
from cobasis.bundle.uploads import open_payload
from cobasis.protocol.exchanges import exchanges
from cobasis.protocol.news import News
from cobasis.protocol.signatures import sign_agreement, sign_span
from keys.quick import keys_of
from protocol.consortium import agree, tables

NAMES = ("east", "north", "south", "west")
EARLY = NAMES[:3]
PAST = "2026-01-01T00:00:00Z"  # a deadline of which a run waits for nobody


@dataclass
class RealRound:
    folder: Path
    agreement: Agreement
    identities: dict
    secret: ConsortiumSecret
    rows: dict
    parties: dict = field(default_factory=dict)

    path = property(lambda self: self.folder / "icu.toml")
    work = property(lambda self: WorkFolder(self.folder / "icu.round"))
    inbox = property(lambda self: self.folder / "inbox")
    outbox = property(lambda self: self.folder / "outbox")

    def session(self):
        """A fresh session, as every command opens one; without a file all have signed."""
        sealed = not self.path.exists() or sealed_path(self.path).exists()
        identity = self.identities["lab"]
        return AnalystSession(self.agreement, identity=identity, path=self.path, sealed=sealed)

    def receive(self, *paths):
        return receive(self.session(), paths or [self.inbox])

    def run(self, **options):
        return run(self.session(), **options)

    def remove(self, *names, **options):
        return remove(self.session(), names, **options)

    def forget(self, **options):
        return forget(self.session(), **options)

    def write(self, *, sealed=True):
        self.path.write_text(new_text(dict(self.agreement)))
        self.agreement = read_agreement(self.path).agreement
        if sealed:
            seal(self.path, [self.signature(name) for name in (*self.agreement.parties, "lab")])
        return self.path

    def signature(self, name, *, agreement=None):
        sign = self.identities[name].sign
        return sign_agreement(agreement or self.agreement, name=name, sign=sign)

    def sign(self, *names, to=None, agreement=None):
        for name in names:
            text = self.signature(name, agreement=agreement).text()
            ((to or self.inbox) / f"{name}.sig").write_text(text)

    def sealed(self, name):
        return self.work.sealed(name, exchanges(self.agreement)[-1])

    def reply(self, name, number=-1):
        return self.session().reply(name, exchanges(self.agreement)[number])

    def opened(self, name, number=-1, *, by=None):
        return open_bundle(
            self.reply(name, number),
            unseal=self.identities[by or name].unseal,
            signer={"lab": self.identities["lab"].public},
            into=self.folder / f"opened-{name}",
        )

    def returned(self, name):
        return return_in(self.opened(name), agreement=self.agreement, party=name)

    def adopted(self, name):
        return consensus_in(self.opened(name, 0))

    def news(self):
        return News.from_text((self.folder / "icu.news").read_bytes(), self.agreement)

    def entries(self):
        return verify_transcript(self.work.transcript)

    def party(self, name):
        if name not in self.parties:
            told = {"agreement": self.agreement, "secret": self.secret, "key": PartyKey()}
            self.parties[name] = Party(name, **told)
        return self.parties[name]

    def payload(self, name, *, consensus=None):
        path, agreed = self.folder / f"{name}.safetensors", self.agreement
        prepared = self.party(name).prepare(*self.rows[name], consensus=consensus)
        put(prepared, path, precision=agreed.precision, int8_range=agreed.int8_range)
        return path

    def upload(self, name, *, file=None, signer=None, created=None, consensus=None, lines=None):
        if lines is None and consensus is not None:
            sign = self.identities[name].sign
            lines = (sign_span(consensus, self.agreement, party=name, sign=sign),)
        payload = self.payload(name, consensus=consensus)
        draft, parts = enclose(open_payload(payload), agreement=self.agreement, sender=name)
        enclosed = Enclosed({**draft, "lines": lines or ()}, parts)
        path = self._sent(enclosed, file or f"{name}.upload", signer or name, created=created)
        payload.unlink()
        return path

    def uploads(self, names=None):
        return {name: self.upload(name) for name in (names or self.agreement.parties)}

    def proposal(self, name):
        proposed = self.party(name).propose(self.rows[name][0])
        enclosed = enclose(proposed, agreement=self.agreement, sender=proposed.party)
        return self._sent(enclosed, f"{name}.proposal", name)

    def _sent(self, enclosed, file, signer, *, created=None):
        self.inbox.mkdir(exist_ok=True)
        to, by = self.identities["lab"], self.identities.get(signer, signer)
        return sealed(self.inbox / file, enclosed, by=by, to=to, created=created)


def real_round(folder, *, names=NAMES, identities=None, secret=None, **changes):
    secret, identities = secret or ConsortiumSecret(), identities or keys_of(names)
    fields = {
        "parties": tuple(names),
        "models": ("ridge", "logistic"),
        "id": "patient",
        "label": "sick",
        "minimum_parties": 3,
        "purpose": "a test",
        "threat_model": "semi-honest",
        "retention_days": 30,
        "enrolled": tuple(identities[name].public for name in names),
        "analyst": identities["lab"].public,
    }
    agreement = agree(secret, **fields | changes)
    return RealRound(folder, agreement, identities, secret, tables(names=names, n_rows=40))


def began(folder, names=NAMES, **changes):
    made = real_round(folder, **changes)
    made.uploads(names)
    assert not refused(made.receive())
    return made


def verdicts(found):
    return {each.file: each.code or each.verdict for each in found}


def refused(found):
    return [each for each in found if each.verdict == "refused"]


def contents(folder):
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
