"""Models restated from public reports of wrong values, with the right value, if stored here."""

from pathlib import Path

import numpy as np
import pytest

from ixion.analysis.evaluate import evaluate
from ixion.frontend import load

CASES = sorted((Path(__file__).parents[3] / "shared" / "cases").glob("*.onnx"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in CASES])
def test_case(path):
    data = np.load(path.with_suffix(".npz"))
    feeds = {key[3:]: data[key] for key in data.files if key.startswith("in:")}
    module = load(path, {name: array.shape for name, array in feeds.items()})
    got = evaluate(module["main"], [feeds[name] for name in module.attrs["input_names"]], module)
    results = got if isinstance(got, tuple) else (got,)
    for name, value in zip(module.attrs["output_names"], results, strict=True):
        want = data[f"out:{name}"]
        assert value.dtype == want.dtype
        assert value.shape == want.shape
        np.testing.assert_allclose(
            value.astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=1e-5
        )
