"""``cobasis forget``: destroys what this side keeps of a round."""

from typing import Annotated

from typer import Option

from cobasis.analyst_side.forget import forget as forget_uploads
from cobasis.bundle.agreement_file import read_agreement
from cobasis.cli.options import AgreementFile, Owner, Yes, alone, consent, grouped
from cobasis.errors import OptionError
from cobasis.party_side.session import forget as forget_secret


@grouped
def forget(
    owner: Owner,
    agreement: AgreementFile = None,
    early: Annotated[bool, Option("--early", help="The analyst: before the agreed time.")] = False,
    with_key: Annotated[bool, Option("--with-key", help="The analyst: the key, too.")] = False,
    yes: Yes = False,
) -> None:
    """Destroy what is kept of a round, once its name was typed.

    The analyst: all that parties sent and what aligned it, when retention is over. A party: the
    secret, the span and the return; nothing can be predicted then. Its upload history stays.

    Example: cobasis forget icu.toml
    """
    path = alone(agreement)
    if owner.who(read_agreement(path).agreement).role == "analyst":
        lab = owner.analyst(path)
        round_id, also = lab.agreement.round_id, f" and the key of {lab.name!r}" if with_key else ""
        if with_key and lab.n_keys > 1:
            also = f", and all {lab.n_keys} keys of {lab.name!r}, which other rounds may enrol"
        time = forget_uploads(
            lab,
            early=early,
            key=owner.key(lab.name) if with_key else None,
            ask=lambda: _ask(round_id, yes=yes, what=f"all that parties sent{also}"),
        )
        lines = [f"What parties sent in round '{round_id}' was destroyed on {time}."]
        lines += ["The key was destroyed, too. Destroy its copies."] if with_key else []
    elif early or with_key:
        raise OptionError("leave out --early and --with-key: they are the analyst's.")
    else:
        session = owner.party(path)
        round_id = session.agreement.round_id
        _ask(round_id, yes=yes, what="its secret, span and return")
        time = forget_secret(session)
        lines = [f"'{session.name}' forgot round '{round_id}' on {time}."]
    owner.say(lines, command="forget", round=round_id, time=time)


def _ask(round_id: str, *, yes: bool, what: str) -> None:
    question = f"This destroys {what}. Type the round's name ({round_id}) to go on"
    consent(question, yes=yes, what=what, word=round_id)
