"""Four parties and an analyst who add up masked sums: real keys, files and folders."""

from cobasis import RandomFourier, SumsTerms
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.bundle.agreement_file import seal
from cobasis.bundle.agreement_text import new_text
from cobasis.bundle.messages import sums_in
from cobasis.party_side.accept import accept, accept_news
from cobasis.party_side.audit import audited
from cobasis.party_side.send import projected, send
from cobasis.protocol.signatures import sign_agreement
from party_side.sites import FIELDS, PEOPLE, Consortium, frame

NAMES = ("north", "south", "east", "west")
PAST = "2026-01-01T00:00:00Z"
MAP = RandomFourier(n_waves=2, bandwidth=3.0)
TERMS = SumsTerms(maps=(MAP,), most_rows=200, most_rows_in_all=800)
OF_ROWS = {"n_components", "n_anchor_rows", "models"}


class Summing(Consortium):
    def table(self, name, *, n_rows=150, change=None):
        path = self.folder(name) / "data.csv"
        made = frame(NAMES.index(name) + 1, n_rows)
        (made if change is None else change(made)).write_csv(path)
        return path

    def ready(self, name="north", *, looking=False, **options):
        return super().ready(name, table=self.table(name, **options), looking=looking)

    def file(self, name="north"):
        return self.root / f"{name}.{self.agreement.round_id}"

    def send(self, name="north", **options):
        return send(self.ready(name, **options), self.file(name))

    def looked(self):
        with projected(self.ready()) as made:
            return made, audited(made).report

    def receive(self, *names):
        paths = [self.file(name) for name in names]
        return {each.file.partition(".")[0]: each for each in receive(self.desk(), paths)}

    def sent(self, *names, **options):
        for name in names or NAMES:
            self.send(name, **options)
        assert {each.verdict for each in self.receive(*(names or NAMES)).values()} == {"accepted"}

    def run(self, *, anew=False, **options):
        for path in (self.root / "outbox").glob("*") if anew else ():
            path.unlink()
        return run(self.desk(), **options)

    def step(self, **options):
        """Everybody sends, the analyst ends the exchange, and everybody takes what came."""
        number = self.desk().open_exchange().number
        self.sent(**options)
        concluded = self.run().concluded
        for name in NAMES:
            self.accept(name, number=number)
        return concluded

    def attempt(self):
        """The analyst begins again without west, whatever was agreed, and tells north."""
        desk = self.desk()
        with desk.at_work():
            desk.begin_attempt(2, without=["west"])
            desk.tell()
        return self.tell()

    def accept(self, name="north", *, number=1):
        path = self.root / "outbox" / f"icu.{name}.{number}-return"
        return accept(self.session(name), path)

    def tell(self, name="north"):
        return accept_news(self.session(name), self.desk().news)

    def words(self, name="north"):
        desk = self.desk()
        with desk.at_work(), desk.opened(self.file(name)) as bundle:
            return sums_in(bundle, exchange=desk.exchanges[0])


def summing(root, *, sums=TERMS, **changes):
    made, parties = Summing(root), {name: PEOPLE[name] for name in NAMES}
    (root / "icu.news").unlink(missing_ok=True)  # of the round before
    fields = {name: each for name, each in FIELDS.items() if name not in OF_ROWS}
    enrolled = {"enrolled": [each.public for each in parties.values()], "analyst": made.lab.public}
    more = {"release": "sums", "sums": sums, "minimum_parties": 3}
    made.agreement_path.write_text(new_text({**fields, **enrolled, **more, **changes}))
    signed = [sign_agreement(made.agreement, name="lab", sign=made.lab.sign)]
    for name, who in parties.items():
        key = made.session(name).round.mask_key(new=True).public
        signed.append(sign_agreement(made.agreement, name=name, sign=who.sign, mask_key=key))
    seal(made.agreement_path, signed).replace(made.agreement_path)
    return made
