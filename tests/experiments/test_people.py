from functools import partial

import numpy as np
import pytest
from experiments.data import adult as adult_file
from experiments.data import hospitals
from experiments.data.sources import MissingDataError
from experiments.harness.systems import without_refused

from cobasis.errors import UndeterminedFitError

PERSON = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White,"
PERSON += " Male, 2174, 0, 40, Cuba, <=50K"
OTHER = "59, ?, 7516, HS-grad, 9, Divorced, Sales, Unmarried, Black, Female, 0, 0, 20, ?, >50K."


def test_adult_merges_both_files_words_become_zeros_and_ones_and_numbers_lie_between(
    placed, tmp_path
):
    placed(
        adult_file,
        "SOURCES",
        f"{PERSON}\n{PERSON}\n\n".encode(),
        f"|1x3 Cross validator\n{OTHER}\n".encode(),
    )
    persons = adult_file.adult.__wrapped__()
    assert persons.labels.tolist() == [0, 0, 1]
    for column, told in {
        "age": [[0.0], [0.0], [1.0]],
        "workclass": [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]],
        "capital_loss": [[0.0]] * 3,
    }.items():
        assert persons.rows[:, persons.held([column])].tolist() == told
    (tmp_path / adult_file.SOURCES[0].path).write_bytes(b"another version")
    with pytest.raises(MissingDataError, match=r"adult\.data\.gz has SHA-256"):
        adult_file.adult.__wrapped__()


def stay(**changes):
    known = {"patient_nbr": "1", "payer_code": "MC", "medical_specialty": "Surgery"}
    known |= {"age": "[60-70)", "gender": "Female", "time_in_hospital": "3"}
    known |= {"admission_type_id": "2", "change": "Ch", "diabetesMed": "Yes", "insulin": "Up"}
    known |= dict.fromkeys(hospitals.COUNTS, "4") | dict.fromkeys(hospitals.DRUGS, "No")
    return known | {"A1Cresult": ">7", "max_glu_serum": "None"} | changes


def test_diabetes_keeps_the_first_stay_of_who_has_a_site(placed):
    nobody = {"patient_nbr": "3", "payer_code": "?", "medical_specialty": "?"}
    other = {"patient_nbr": "2", "payer_code": "?", "metformin": "Steady", "insulin": "No"}
    stays = [stay(), stay(time_in_hospital="9"), stay(**other), stay(**nobody)]
    lines = [",".join(stays[0]), *(",".join(each.values()) for each in stays)]
    placed(hospitals, "DIABETES", "\n".join(lines).encode())
    found = hospitals.diabetes130.__wrapped__()
    assert (len(found.features), sorted(found.sites)) == (25, ["?/Surgery", "MC/Surgery"])
    assert found.labels[found.sites == "MC/Surgery"].tolist() == [3]
    for feature, told in {
        "age": [65, 65],
        "A1Cresult": [2, 2],
        "urgent": [1, 1],
        "metformin": [1, 0],
        "insulin changed": [0, 1],
    }.items():
        column = found.rows[np.argsort(found.sites), found.features.index(feature)]
        assert column.tolist() == told


def test_who_is_refused_is_left_out_until_most_are():
    def attempt(left_out, *, refused):
        for name in sorted(refused - left_out):
            raise UndeterminedFitError(f"party '{name}' is undetermined", (name,))
        return "found"

    for refused, result in (("", "found"), ("a", "found"), ("abc", None)):
        found = without_refused(partial(attempt, refused={*refused}), n_parties=3)
        assert found == (result, {*refused[:2]})
