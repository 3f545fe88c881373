"""Patients of many hospitals, with NaN where a value is missing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from experiments.data.sources import read_verified, source, table
from experiments.harness.models import Labels, Table

EICU = (source("eicu_demo/los_25features.csv.gz"), source("eicu_demo/hospital.csv.gz"))
DIABETES = source("diabetes130/diabetic_data.csv.gz")
HEART = tuple(
    source(f"heart_disease_4site/processed.{site}.data")
    for site in ("cleveland", "hungarian", "switzerland", "va")
)

HEART_FEATURES = (
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg"),
    *("thalach", "exang", "oldpeak", "slope", "ca", "thal"),
)


@dataclass(frozen=True, kw_only=True)
class Patients:
    rows: Table  # with NaN where a value is missing
    labels: Labels  # what is predicted
    sites: npt.NDArray[np.str_]  # whose patient each is
    features: tuple[str, ...]  # of the columns

    def only(self, sites: list[str]) -> "Patients":
        kept = np.isin(self.sites, sites)
        return replace(self, rows=self.rows[kept], labels=self.labels[kept], sites=self.sites[kept])

    def largest(self, count: int) -> list[str]:
        """Return the sites with most patients, by name where they are equal."""
        sizes = Counter(self.sites.tolist())
        return sorted(sizes, key=lambda site: (-sizes[site], site))[:count]


def _number(text: str) -> float:
    return float("nan") if text in {"", "?"} else float(text)


NOWHERE = ("", "NA")  # what the file calls the region of a hospital that has none


@cache
def eicu_demo(by: str) -> Patients:
    """Return 25 features and the days in intensive care; sites are hospitals or regions."""
    stays, hospitals = map(table, EICU)
    regions = {each["hospitalid"]: each["region"] for each in hospitals}
    named = list(stays[0])
    features = ("age", *named[named.index("intubated") :])
    sites = [s["hospitalid"] if by == "hospital" else regions[s["hospitalid"]] for s in stays]
    whole = Patients(
        rows=np.array([[_number(stay[name]) for name in features] for stay in stays]),
        labels=np.array([float(stay["icu_los_days"]) for stay in stays]),
        sites=np.array(sites),
        features=features,
    )
    placed = [site for site in {*sites} if site not in NOWHERE]
    return whole.only([*NOWHERE] if by == "no region" else placed)


DRUGS = (
    *("metformin", "repaglinide", "glimepiride", "glipizide", "glyburide"),
    *("pioglitazone", "rosiglitazone"),
)
COUNTS = (
    *("num_lab_procedures", "num_procedures", "num_medications", "number_outpatient"),
    *("number_emergency", "number_inpatient", "number_diagnoses"),
)
LEVELS: Mapping[str, Mapping[str, float]] = {
    "A1Cresult": {"None": 0, "Norm": 1, ">7": 2, ">8": 3},
    "max_glu_serum": {"None": 0, "Norm": 1, ">200": 2, ">300": 3},
}
ADMISSIONS = {"emergency": "1", "urgent": "2", "elective": "3"}


@cache
def diabetes130() -> Patients:
    """Return 25 features and the days in hospital, each patient's first stay in the file.

    The file names no hospital; a site is here one payer's patients of one medical specialty, and
    who has neither is left out.
    """
    first = {stay["patient_nbr"]: stay for stay in reversed(table(DIABETES))}
    sites = {n: f"{stay['payer_code']}/{stay['medical_specialty']}" for n, stay in first.items()}
    stays = {number: stay for number, stay in first.items() if sites[number] != "?/?"}
    rows = [list(_diabetes_features(stay)) for stay in stays.values()]
    return Patients(
        rows=np.array([[value for _, value in row] for row in rows]),
        labels=np.array([float(stay["time_in_hospital"]) for stay in stays.values()]),
        sites=np.array([sites[number] for number in stays]),
        features=tuple(name for name, _ in rows[0]),
    )


def _diabetes_features(stay: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    yield "age", float(stay["age"][1:].split("-")[0]) + 5.0
    yield "female", float(stay["gender"] == "Female")
    for name in COUNTS:
        yield name, float(stay[name])
    for name, levels in LEVELS.items():
        yield name, float(levels[stay[name]])
    for name, code in ADMISSIONS.items():
        yield name, float(stay["admission_type_id"] == code)
    for name in (*DRUGS, "insulin"):
        yield name, float(stay[name] != "No")
    yield "insulin changed", float(stay["insulin"] in {"Up", "Down"})
    yield "change", float(stay["change"] == "Ch")
    yield "diabetesMed", float(stay["diabetesMed"] == "Yes")


@cache
def heart_disease_4site() -> Patients:
    """Return 13 features and who has a heart disease; a cholesterol of 0 is a missing one."""
    lines, sites = list[list[float]](), list[str]()
    for each in HEART:
        read = read_verified(each).decode("ascii").split()
        lines += [[_number(field) for field in line.split(",")] for line in read]
        sites += [each.path.split(".")[-2]] * len(read)
    whole = np.array(lines)
    rows, at = whole[:, :-1], HEART_FEATURES.index("chol")
    rows[:, at] = np.where(rows[:, at] == 0, np.nan, rows[:, at])
    return Patients(
        rows=rows,
        labels=(whole[:, -1] > 0).astype(np.int64),
        sites=np.array(sites),
        features=HEART_FEATURES,
    )
