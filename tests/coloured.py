"""Runs with noise that remembers its past, and a fit whose answer is a mean."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import frictax as fx
from rigs import NOISE, block, motion

T = np.linspace(0.0, 10.0, 2001)
# problem P4 of the benchmarks
SLIDING = 3 * np.sin(2 * np.pi * T) + 3 * np.sin(2 * np.pi * 0.37 * T)
STICKING = 3 * np.sin(2 * np.pi * 0.5 * T) + 1.5 * np.sin(2 * np.pi * 0.37 * T)
LAW = ["friction.f_pos"]


def coloured(
    random: np.random.Generator, n: int, rho: float = 0.9, sd: float = NOISE
) -> np.ndarray:
    """An autoregression of order 1."""
    x = sd * random.standard_normal(n)
    for i in range(1, n):
        x[i] = rho * x[i - 1] + np.sqrt(1 - rho**2) * x[i]
    return x


def clean(u: np.ndarray, machine: fx.Mechanism) -> np.ndarray:
    return np.asarray(motion(machine, T, u)["mass"].v)


def holds(intervals: Mapping[str, Any], truth: dict[str, float]) -> list[bool]:
    return [intervals[name][0] <= x <= intervals[name][1] for name, x in truth.items()]


def resting(values: list[np.ndarray], *more: str) -> fx.FoundMachine:
    """A mass that friction holds, under a sensor with an offset: the estimate is the mean of what
    was recorded.
    """
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0))
    )
    records = [
        fx.Record(
            0.01 * np.arange(x.size), outputs={"mass.s": x}, name=f"run{i}", sd={"mass.s": 1.0}
        )
        for i, x in enumerate(values)
    ]
    return fx.fit(machine, records, free=["outputs.mass.s.offset", *more], rounds=0)


X = coloured(np.random.default_rng(3), 1200, 0.8, 1.0)


def white_fit() -> fx.FoundMachine:
    """A fit to a block that sticks and slides, under white noise."""
    v = clean(STICKING, block())
    record = fx.Record(
        T,
        {"drive": STICKING},
        {"mass.v": v + NOISE * np.random.default_rng(5).standard_normal(T.size)},
        name="run",
    )
    return fx.fit(block(peak=1.1), record, free=[*LAW, "friction.peak"])
