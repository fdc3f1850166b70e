"""A record of one body, sampled evenly, that others differ from."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import frictax as fx

T = np.linspace(0.0, 2.0, 401)
UNEVEN = np.cumsum(1.0 + 0.4 * np.sin(np.arange(401.0))) / 200
S = 0.1 * np.sin(3 * T) + 0.02 * T
FRAME = pd.DataFrame({"t": T, "F": np.cos(3 * T), "q": S, "qd": 0.3 * np.cos(3 * T) + 0.02})


def record(t: Any = T, **options: Any) -> fx.Record:
    given = {
        "inputs": {"drive": np.cos(3 * np.asarray(t))},
        "outputs": {"mass.s": 0.1 * np.sin(3 * np.asarray(t)) + 0.02 * np.asarray(t)},
    }
    return fx.Record(t, **{**given, **options})


def same(one: fx.Record, other: fx.Record) -> None:
    np.testing.assert_allclose(one.t, other.t, rtol=1e-14)
    for kind in ("inputs", "outputs"):
        a, b = getattr(one, kind), getattr(other, kind)
        assert list(a) == list(b)
        for name in a:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-15)
    assert {k: None if v is None else pytest.approx(v) for k, v in one.sd.items()} == other.sd
