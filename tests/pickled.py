"""Whether an object goes through `pickle` and `copy.deepcopy` as it is."""

import copy
import dataclasses
import pickle
import types
from enum import Enum
from typing import Any

import jax
import numpy as np
import pandas as pd

import frictax as fx
from frictax.fitting import FitResult


def is_of_frictax(thing: Any) -> bool:
    """Whether it is an object of a class of frictax's, or of a class derived from one."""
    kinds = type(thing).__mro__
    return not isinstance(thing, type | types.ModuleType | types.FunctionType | Enum) and any(
        kind.__module__.partition(".")[0] == "frictax" for kind in kinds
    )


def answers(thing: Any) -> list[str]:
    """What a user reads of it."""
    html = getattr(thing, "_repr_html_", None)
    return [repr(thing), str(thing), html() if html is not None else ""]


def is_same(a: Any, b: Any) -> bool:
    """Whether all numbers in `a` and `b` are equal; what is cached is not compared."""
    if isinstance(a, jax.Array | np.ndarray):
        return a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, pd.DataFrame):
        return bool(a.equals(b))
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(is_same(a[key], b[key]) for key in a)
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        fields = [f.name for f in dataclasses.fields(a)]
        return all(is_same(getattr(a, f, None), getattr(b, f, None)) for f in fields)
    return type(a) is type(b)


def assert_travels(thing: Any) -> None:
    """Fail where `thing` changes by `pickle` or `copy.deepcopy`, before it is asked or after."""
    for asked in (False, True):
        said = answers(thing) if asked else None
        for copied in (pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)):
            assert type(copied) is type(thing)
            assert is_same(thing, copied)
            assert said is None or answers(copied) == said


def noisy_sweep(seed: int) -> fx.Sweep:
    v = np.linspace(0.5, 8.0, 12)
    f = 6.0 + 0.2 * v + 0.02 * np.random.default_rng(seed).standard_normal(v.size)
    return fx.Sweep(v, f, velocity_unit="m/s", force_unit="N", name=f"axis {seed}")


def asked(found: FitResult) -> list[str]:
    """What a fit says when it is asked."""
    return [str(found), str(found.uncertainty()), str(found.uncertainty(fx.White()))]


def fitted(sweep: fx.Sweep) -> FitResult:
    return fx.fit(fx.Coulomb, sweep)
