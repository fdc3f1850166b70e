"""The seven imperfections: functions that change a noise-free record, or the true machine."""

import dataclasses
import zlib
from collections.abc import Callable

import numpy as np
from eight_machines import Case, Taken
from scipy.signal import lfilter

INPUT = 0.05  # standard deviation of the noise of an input, divided by the rms of the input
SPEED = 0.02  # standard deviation of the noise of a sweep's speed, divided by this speed
STEPS = 2000  # number of encoder steps in the range of an output
MEMORY = 3.0 / 25.0  # correlation time of narrowband noise, divided by the record's length
DRIFT = 5.0  # standard deviation of the final sensor drift, divided by that of the white noise

Draw = Callable[[int, Case, np.random.Generator], np.ndarray]


def white(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(n)


def coloured(n: int, denominator: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return stationary autoregressive noise of variance 1."""
    response = lfilter([1.0], denominator, np.eye(1, 20 * n)[0])
    noise = lfilter([1.0], denominator, rng.standard_normal(3 * n))[2 * n :]
    return noise / np.sqrt(np.sum(response**2))


def ar9(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    return coloured(n, np.array([1.0, -0.9]), rng)


def narrowband(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return noise at the period of the slow sine, with a correlation time of 3 s (of 25 s)."""
    step = 1.0 if case.objective is None else 0.01
    radius, turn = np.exp(-1.0 / (MEMORY * n)), 2 * np.pi * step / case.period
    return coloured(n, np.array([1.0, -2.0 * radius * np.cos(turn), radius**2]), rng)


def drift(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return white noise plus a random walk."""
    walk = np.cumsum(rng.standard_normal(n)) / np.sqrt(n)
    return rng.standard_normal(n) + DRIFT * walk


def sensed(taken: Taken, case: Case, draw: Draw, rng: np.random.Generator) -> Taken:
    """Return the record with noise `draw` in each output, scaled to the sensors of `case`."""
    outputs = {
        name: x + case.noise * np.sqrt(np.mean(x**2)) * draw(x.size, case, rng)
        for name, x in taken.outputs.items()
    }
    return dataclasses.replace(taken, outputs=outputs)


def encoder(taken: Taken, case: Case, rng: np.random.Generator) -> Taken:
    """Return the record with outputs rounded to encoder steps and noise in the inputs."""
    outputs, inputs = {}, {}
    for name, x in taken.outputs.items():
        step = np.ptp(x) / STEPS
        outputs[name] = step * (np.round(x / step + rng.uniform()) + 0.0)
    for name, u in taken.inputs.items():
        size = SPEED * np.abs(u) if case.objective is None else INPUT * np.sqrt(np.mean(u**2))
        inputs[name] = u + size * rng.standard_normal(u.size)
    return Taken(taken.t, inputs, outputs)


def by_sensor(draw: Draw) -> Callable[[Case, np.random.Generator], Taken]:
    return lambda case, rng: sensed(case.taken("exact", np.zeros(2)), case, draw, rng)


def by_machine(kind: str) -> Callable[[Case, np.random.Generator], Taken]:
    """Return a function that records the true machine `kind` with random motion and white noise."""

    def measured(case: Case, rng: np.random.Generator) -> Taken:
        turn = rng.uniform(0.0, 2 * np.pi, 2)
        return sensed(case.taken(kind, turn), case, white, rng)

    return measured


IMPERFECTIONS: dict[str, Callable[[Case, np.random.Generator], Taken]] = {
    "white": by_sensor(white),
    "AR .9": by_sensor(ar9),
    "narrowband": by_sensor(narrowband),
    "encoder": lambda case, rng: encoder(case.taken("exact", np.zeros(2)), case, rng),
    "drift": by_sensor(drift),
    "missing": by_machine("missing"),
    "wrong": by_machine("wrong"),
}


def measured(case: Case, imperfection: str, seed: int) -> Taken:
    """Return a record with one of `IMPERFECTIONS`. The record is equal for all methods."""
    names = (case.name, imperfection)
    rng = np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
    return IMPERFECTIONS[imperfection](case, rng)
