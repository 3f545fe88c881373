"""Agreements on disk, in every state between a draft and a sealed one."""

from cobasis import ConsortiumSecret, NumericFeature
from cobasis.bundle.agreement_file import complete, read_agreement
from cobasis.bundle.agreement_text import new_text
from cobasis.features.contract import CategoryFeature
from cobasis.protocol.signatures import sign_agreement
from protocol.consortium import NAMES
from protocol.people import ANALYST, KEYS, PEOPLE

SECRET = ConsortiumSecret(bytes(32))
FEATURES = (
    NumericFeature(name="age", centre=60, scale=20, unit="years", low=0, high=120),
    NumericFeature(name='the "odd" \\ one\n', scale=1e-7, missing="fill", fill=-1e16),
    CategoryFeature(name="ward", values=("icu", "Größe", "\U0001f600"), missing="level"),
)
FILLED = {
    "round_id": "icu-2026",
    "purpose": "Mortality; the four hospitals only.",
    "threat_model": "semi-honest",
    "retention_days": 90,
    "task": "classification",
    "id": "patient",
    "label": "died",
    "classes": (0, 1),
    "model": "ridge",
    "n_components": 3,
    "n_anchor_rows": 9,
    "features": FEATURES,
    "holdout": 0.25,
}


def written(folder, **changes):
    path = folder / "icu.toml"
    path.write_text(new_text(FILLED | changes))
    return path


def edited(path, **people):
    path.write_text(complete(path.read_text(), path=path, **people))


def whole(folder, **changes):
    """An agreement that lacks signatures only."""
    path = written(folder, **changes)
    edited(path, parties=PEOPLE, analyst=ANALYST, commitment=SECRET.commitment("icu-2026"))
    return path


def signed(path, names=(*NAMES, "lab")):
    agreement = read_agreement(path).agreement
    return [sign_agreement(agreement, name=name, sign=KEYS[name].sign) for name in names]
