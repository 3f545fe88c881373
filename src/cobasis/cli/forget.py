"""``cobasis forget``: destroys what this side keeps of a round."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli.options import AgreementFile, Owner, Yes, alone, ask_round, owned
from cobasis.errors import OptionError


@owned
def forget(
    owner: Owner,
    agreement: AgreementFile = None,
    early: Annotated[
        bool, typer.Option("--early", help="The analyst: before the agreed time.")
    ] = False,
    with_key: Annotated[
        bool,
        typer.Option("--with-key", help="The analyst: also the key, if it is of this round alone."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Destroy what is kept of a round, once its name was typed.

    The analyst: all that parties sent, the span, target and changes of basis, when retention is
    over. Models, news, certificates and the transcript stay. A party: the secret, the span and
    the return; nothing can be predicted then. Its basis and upload history stay.

    Example: cobasis forget icu.toml
    """
    from cobasis.cli.answers import ForgetAnswer

    path = alone(agreement)
    if owner.is_analyst(path):
        round_id, lines, time = _as_analyst(owner, path, early=early, with_key=with_key, yes=yes)
    elif early or with_key:
        raise OptionError(
            "--early and --with-key are the analyst's, and you are a party. Try without."
        )
    else:
        round_id, lines, time = _as_party(owner, path, yes=yes)
    owner.say(ForgetAnswer(command="forget", round=round_id, time=time), lines=lines)


def _as_analyst(
    owner: Owner, path: Path, *, early: bool, with_key: bool, yes: bool
) -> tuple[str, list[str], str]:
    from cobasis.analyst_side.forget import forget as destroy

    session = owner.analyst(path)
    round_id = session.agreement.round_id
    what = f"all that parties sent{f' and the key of {session.name!r}' if with_key else ''}"
    key = owner.key(session.name) if with_key else None
    time = destroy(
        session, early=early, key=key, ask=lambda: ask_round(round_id, yes=yes, what=what)
    )
    lines = [f"What parties sent in round '{round_id}' was destroyed on {time}."]
    lines += ["The key was destroyed, too. Destroy its copies."] if with_key else []
    return round_id, lines, time


def _as_party(owner: Owner, path: Path, *, yes: bool) -> tuple[str, list[str], str]:
    from cobasis.party_side.session import forget as destroy

    session = owner.party(path)
    round_id = session.agreement.round_id
    ask_round(round_id, yes=yes, what="its secret, span and return")
    time = destroy(session)
    return round_id, [f"'{session.name}' forgot round '{round_id}' on {time}."], time
