"""Invitations, by who writes an agreement and who takes one: codes, keys, and the agreement."""

import base64
import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from cobasis.bundle.agreement_file import read_agreement, stem_of
from cobasis.disk.whole import make_folder, read_whole, write_whole
from cobasis.errors import (
    AgreementError,
    DiskError,
    IdentityError,
    OptionError,
    RemoteError,
    RequestError,
    UnreachableError,
    WaitingError,
)
from cobasis.party_side.author import Authorship
from cobasis.protocol.agreement import Digest, Moment, Server, moment_of, moment_text
from cobasis.protocol.enrolment import IdentityName, OneLine, PublicIdentity, is_identity_name
from cobasis.strict_json import IF_ANY
from cobasis.transport.certificate import Statement
from cobasis.transport.mailbox import INVITES, Invites, address_of

PREFIX = "cobasis-invite-"
_TOKEN_BYTES, _DAYS = 16, 14


class Code(OneLine):
    """What an author gives to a party: where to go, whom to believe there, and the token."""

    form, passes_over = "cobasis/code/1", True
    what = "invitation's code"
    ask = "Ask the agreement's author for the code that 'cobasis agreement new --invite' prints."

    party: IdentityName
    stem: Annotated[str, Field(pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$")]
    server: Server
    analyst: str  # the public identity's text, whole
    token: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    until: Annotated[Moment | Literal[""], IF_ANY] = ""  # older codes do not say
    pin: Annotated[Digest | Literal[""], IF_ANY] = ""  # of the certificate; empty: none was shown

    @property
    def who(self) -> PublicIdentity:
        return PublicIdentity.from_text(self.analyst)

    def believes(self, made: Statement) -> bool:
        """Whether a certificate is the one that was shown when this code was made, or a later."""
        # so one that was stolen before then is of no use, and one that is renewed since is
        if made.pin == self.pin or not self.pin:
            return True
        return moment_of(made.since) > moment_of(self.until) - timedelta(days=_DAYS)

    def words(self) -> str:
        return PREFIX + base64.urlsafe_b64encode(self.text().encode()).decode().rstrip("=")

    @classmethod
    def of_words(cls, said: str) -> Self:
        packed = said.removeprefix(PREFIX)
        with suppress(ValueError):
            text = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()
            return cls.from_text(text)
        raise AgreementError(f"this code is cut, or changed. {cls.ask} Copy all of it.")


class Invitations:
    """Whom the author of an agreement has invited; the codes stay in the author's home."""

    def __init__(self, author: Authorship) -> None:
        self.author, self._path = author, author.folder / "invited.json"

    def codes(self) -> tuple[Code, ...]:
        if not self._path.exists():
            return ()
        return tuple(Code.of_words(each) for each in json.loads(read_whole(self._path)))

    def invite(self, names: Iterable[str], *, server: str, analyst: PublicIdentity) -> None:
        """Make a code for each name, and the file that the analyst's server has to have."""
        from cobasis.transport.client import Line  # noqa: PLC0415 -- httpx, where nobody is invited

        stem, made, pin = stem_of(self.author.path), [], ""
        with (
            suppress(UnreachableError, RemoteError),  # not served yet: the signature vouches alone
            Line(server, analyst=analyst, ca=None, insist=False) as line,
        ):
            pin = line.pin
        until = moment_text(datetime.now(UTC) + timedelta(days=_DAYS))
        for name in dict.fromkeys(names):
            if not is_identity_name(name):
                raise IdentityError(
                    f"--invite {name[:100]!r} is no party's name. Names have 1 to 100 letters, "
                    "digits, '.', '_' and '-', none with an accent, and do not begin with a '.'."
                )
            token = secrets.token_hex(_TOKEN_BYTES)
            told = {"party": name, "stem": stem, "server": server, "token": token, "until": until}
            made.append(Code(**told, analyst=analyst.text(), pin=pin))
        make_folder(self.author.folder)
        write_whole(self._path, json.dumps([each.words() for each in made]).encode())
        hashes = [address_of(bytes.fromhex(each.token)) for each in made]
        listed = self.author.path.with_name(f"{stem}{INVITES}")
        write_whole(listed, Invites(hashes=hashes, until=until).text().encode(), mode=0o644)

    def keys(self) -> Iterator[PublicIdentity]:
        """Yield who came; WaitingError while somebody has not."""
        from cobasis.transport.client import Post  # noqa: PLC0415 -- as above

        away = []
        for code in self.codes():
            with Post(code) as post:
                told = post.fetch("key")
            if told is None:
                away.append(code.party)
                continue
            who = None
            with suppress(AgreementError):
                who = PublicIdentity.from_text(told.decode(errors="replace"))
            if who is None or (who.name, who.role) != (code.party, "party"):
                raise IdentityError(
                    f"under the invitation of '{code.party}' came no key of a party of that name. "
                    "Ask what happened, and invite it again."
                )
            yield who
        if away:
            raise WaitingError(
                f"{', '.join(away)} did not come with a key yet. Nothing changed; type the same "
                "command again later."
            )

    def tell(self) -> list[str]:
        """Bring the agreement to everybody who was invited; return to whom it goes by hand.

        An invitation brings one text, and none once it has run out.
        """
        from cobasis.transport.client import Post  # noqa: PLC0415 -- as above

        text, left = read_whole(self.author.path), []
        for code in self.codes():
            try:
                with Post(code) as post:
                    post.bring("agreement", text)
            except RequestError as error:
                if error.status not in {404, 409}:
                    raise
                left.append(code.party)
        return left


def take_agreement(code: Code, text: bytes, *, path: Path) -> None:
    if path.exists():
        if read_whole(path) == text:
            return
        raise DiskError(
            f"'{path}' is in the way: it is another text than the invitation's agreement. Move it "
            "away, or type this in another folder."
        )
    agreement = read_agreement(path, text=text.decode(errors="replace")).agreement
    if agreement.server != code.server or agreement.analyst != code.who:
        raise OptionError(
            "the agreement names another server or analyst than the invitation did. Ask its author."
        )
    write_whole(path, text, mode=0o644)
