"""``cobasis forget``: destroys what this side keeps of a round."""

from functools import partial
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
    yes: Yes = False,
) -> None:
    """Destroy what is kept of a round, once its name was typed.

    The analyst: all that parties sent and what aligned it, when retention is over. A party: the
    secret, the span and the return; nothing can be predicted then. Its upload history stays.

    Example: cobasis forget icu.toml
    """
    path = alone(agreement)
    found = read_agreement(path).agreement
    round_id, analyst = found.round_id, owner.who(found).role == "analyst"
    if early and not analyst:
        raise OptionError("leave out --early: it is the analyst's.")
    what = "all that parties sent" if analyst else "its secret, span and return"
    question = f"This destroys {what}. Type the round's name ({round_id}) to go on"
    ask = partial(consent, question, yes=yes, what=what, word=round_id)
    if analyst:
        time = forget_uploads(owner.analyst(path), early=early, ask=ask)
        lines = [f"What parties sent in round '{round_id}' was destroyed on {time}."]
    else:
        session = owner.party(path)
        ask()
        time = forget_secret(session)
        lines = [f"'{session.name}' forgot round '{round_id}' on {time}."]
    owner.say(lines, command="forget", round=round_id, time=time)
