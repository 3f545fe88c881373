from cobasis.keys.identity import Identity
from cobasis.protocol.enrolment import PublicIdentity
from protocol.consortium import NAMES

KEYS = {name: Identity.new(name) for name in NAMES} | {"lab": Identity.new("lab", role="analyst")}


def identity(name, **changes):
    made = Identity.new(name, role="analyst" if name.startswith("lab") else "party")
    return PublicIdentity(**made.public.model_dump() | changes)


PEOPLE, ANALYST = tuple(KEYS[name].public for name in NAMES), KEYS["lab"].public
REAL = {  # what an agreement says besides before anybody signs it
    "purpose": "Mortality on the ward; the four hospitals only.",
    "threat_model": "semi-honest",
    "retention_days": 90,
    "id": "patient",
    "label": "died",
    "enrolled": PEOPLE,
    "analyst": ANALYST,
}
