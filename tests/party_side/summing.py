"""Four parties and an analyst who add up masked sums: real keys, files and folders."""

from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree

from cobasis import RandomFourier, SumsTerms
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import read_agreement, seal
from cobasis.bundle.agreement_text import new_text
from cobasis.keys.identity import Identity
from cobasis.party_side import session as session_module
from cobasis.party_side.accept import accept, accept_news
from cobasis.party_side.send import send
from cobasis.party_side.session import open_session
from cobasis.protocol.signatures import sign_agreement
from party_side.sites import FIELDS, frame, ready_from

NAMES = ("north", "south", "east", "west")
PEOPLE = {name: Identity.new(name) for name in NAMES}
LAB = Identity.new("lab", role="analyst")
PAST = "2026-01-01T00:00:00Z"
MAP = RandomFourier(n_waves=2, bandwidth=3.0)
TERMS = SumsTerms(maps=(MAP,), most_rows=200, most_rows_in_all=800)
OF_ROWS = {"n_components", "n_anchor_rows", "models"}


@dataclass
class Summing:
    """All sides of one round of sums."""

    root: Path

    @property
    def path(self):
        return self.root / "icu.toml"

    @property
    def agreement(self):
        return read_agreement(self.path).agreement

    def session(self, name, *, sealed=True):
        home = self.root / name
        (home / "keys").mkdir(parents=True, exist_ok=True)
        return open_session(self.path, home=home, name=name, passphrase=str, sealed=sealed)

    def table(self, name, *, n_rows=150, change=None):
        path = self.root / name / "data.csv"
        made = frame(NAMES.index(name) + 1, n_rows)
        (made if change is None else change(made)).write_csv(path)
        return path

    def send(self, name, **options):
        """The sealed file, of the same table unless another is asked for."""
        session = self.session(name)
        return send(ready_from(session, self.table(name, **options)), self.root / f"{name}.sums")

    def desk(self):
        return AnalystSession(
            self.agreement, identity=LAB, path=self.path, outbox=self.root / "out"
        )

    def receive(self, *names):
        paths = [self.root / f"{name}.sums" for name in names]
        return {each.file.partition(".")[0]: each for each in receive(self.desk(), paths).files}

    def sent(self, *names):
        """What the analyst says of everybody's files, or of some."""
        for name in names or NAMES:
            self.send(name)
        return self.receive(*(names or NAMES))

    def run(self, **options):
        return run(self.desk(), **options)

    def accept(self, name, *, number=1):
        path = self.root / "out" / f"icu.{name}.{number}-return"
        return accept(self.session(name), path)

    def tell(self, name):
        return accept_news(self.session(name), self.desk().news)

    def words(self, name):
        """What a party's file holds, as the analyst opens it."""
        from cobasis.bundle.messages import sums_in  # noqa: PLC0415 -- of one look

        desk = self.desk()
        with desk.at_work():
            bundle = desk.opened(self.root / f"{name}.sums")
            return sums_in(bundle, agreement=self.agreement, exchange=desk.exchanges[0])

    def copied(self, to):
        copytree(self.root, to)
        return replace(self, root=to)


def summing(root, monkeypatch, *, sums=TERMS, **changes):
    """Everybody has signed, each with a key for masks."""
    everybody = {**PEOPLE, "lab": LAB}
    monkeypatch.setattr(session_module, "load_identity", lambda path, **_: everybody[path.stem])
    made = Summing(root)
    fields = {name: each for name, each in FIELDS.items() if name not in OF_ROWS}
    enrolled = {"enrolled": [each.public for each in PEOPLE.values()], "analyst": LAB.public}
    more = {"release": "sums", "sums": sums, "minimum_parties": 3}
    made.path.write_text(new_text({**fields, **enrolled, **more, **changes}))
    signed = [sign_agreement(made.agreement, name="lab", sign=LAB.sign)]
    for name, who in PEOPLE.items():
        key = made.session(name, sealed=False).round.mask_key(new=True).public
        signed.append(sign_agreement(made.agreement, name=name, sign=who.sign, mask_key=key))
    seal(made.path, signed).replace(made.path)
    return made
