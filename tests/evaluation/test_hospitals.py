import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from experiments.data.hospitals import heart_disease_4site

from cobasis import NumericFeature, Outcome, simulate
from cobasis.features.contract import CategoryFeature
from sizes import ROOT

pytestmark = pytest.mark.data("heart_disease_4site")
NUMBERS = {"age": (55.0, 10.0), "trestbps": (130.0, 20.0), "thalach": (140.0, 25.0)}
PAIN = ("typical", "atypical", "other", "none")


def test_an_odds_ratio_of_four_hospitals_is_that_of_their_rows_together():
    found = heart_disease_4site()
    table = pd.DataFrame(found.rows, columns=found.features)
    table["pain"] = table["cp"].map(dict(enumerate(PAIN, start=1)))
    table["male"] = table["sex"].map({0: "no", 1: "yes"})
    columns = [*NUMBERS, "pain", "male"]
    whole = table[columns].notna().all(axis=1).to_numpy()
    table, sites = table.loc[whole, columns].reset_index(drop=True), found.sites[whole]
    sick = np.where(found.labels[whole] > 0, "yes", "no")
    features = [
        *(NumericFeature(name=n, centre=c, scale=s) for n, (c, s) in NUMBERS.items()),
        CategoryFeature(name="pain", values=PAIN),
        CategoryFeature(name="male", values=("no", "yes")),
    ]
    rows = {
        str(site): (table[sites == site].reset_index(drop=True), sick[sites == site])
        for site in np.unique(sites)
    }
    told = {"model": "logit", "features": features, "outcome": Outcome(compare_parties=True)}
    done = simulate(rows, rng=np.random.default_rng(0), **told)
    design = sm.add_constant(
        pd.get_dummies(table, columns=["pain", "male"], dtype=float)[
            [*NUMBERS, *(f"pain_{word}" for word in PAIN[1:]), "male_yes"]
        ]
    )
    fit = sm.GLM(sick == "yes", design, family=sm.families.Binomial()).fit(tol=1e-13)
    page = (ROOT / "docs/tutorial/hazard-ratio.md").read_text(encoding="utf-8")
    for party in done.parties.values():
        lines = party.coefficients().lines
        assert str(party.coefficients()) in page
        assert [each.estimate for each in lines] == pytest.approx(fit.params.to_numpy(), rel=1e-8)
        assert [each.p for each in lines] == pytest.approx(fit.pvalues.to_numpy(), rel=1e-6)
