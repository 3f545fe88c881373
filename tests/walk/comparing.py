"""Whether two ways to predict say the same."""

import numpy as np
import onnxruntime
import polars as pl


def assert_same_predictions(world, role):
    """The exported file predicts from raw columns what out.csv says, to 1e-12."""
    folder = world.folder(role)
    new = pl.read_csv(folder / "new.csv")
    out = pl.read_csv(folder / "out.csv")
    assert out["patient"].to_list() == new["patient"].to_list()
    session = onnxruntime.InferenceSession((folder / f"{role}.onnx").read_bytes())
    given = {each.name: new[each.name].to_numpy()[:, None] for each in session.get_inputs()}
    label, scores = session.run(["label", "scores"], given)
    assert [("no", "yes")[each] for each in np.ravel(label)] == out["prediction"].to_list()
    told = out.select(pl.selectors.starts_with("score_")).to_numpy()
    assert told.shape[1] in {1, 2}  # without likelihoods one for the second class
    np.testing.assert_allclose(scores[:, -told.shape[1] :], told, rtol=0, atol=1e-12)
