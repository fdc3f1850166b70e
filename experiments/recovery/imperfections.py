"""The seven imperfections: how each changes a noise-free record, or the machine."""

import dataclasses
import zlib
from collections.abc import Callable

import numpy as np
from eight_machines import Case, Taken
from scipy.signal import lfilter

INPUT = 0.05  # noise of a recorded input, over its rms
SPEED = 0.02  # of a sweep's speeds, each over itself
STEPS = 2000  # of an encoder, over the travel
MEMORY = 3.0 / 25.0  # of the narrowband error, over the length of the record
DRIFT = 5.0  # of a sensor by the end, over its white noise elsewhere

Draw = Callable[[int, Case, np.random.Generator], np.ndarray]


def white(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(n)


def coloured(n: int, denominator: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An autoregression of variance 1, which began long ago."""
    response = lfilter([1.0], denominator, np.eye(1, 20 * n)[0])
    noise = lfilter([1.0], denominator, rng.standard_normal(3 * n))[2 * n :]
    return noise / np.sqrt(np.sum(response**2))


def ar9(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    return coloured(n, np.array([1.0, -0.9]), rng)


def narrowband(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    """At the period of the slow motion, with a memory of 3 s of 25 s."""
    step = 1.0 if case.objective is None else 0.01
    radius, turn = np.exp(-1.0 / (MEMORY * n)), 2 * np.pi * step / case.period
    return coloured(n, np.array([1.0, -2.0 * radius * np.cos(turn), radius**2]), rng)


def drift(n: int, case: Case, rng: np.random.Generator) -> np.ndarray:
    """White noise, and a random walk."""
    walk = np.cumsum(rng.standard_normal(n)) / np.sqrt(n)
    return rng.standard_normal(n) + DRIFT * walk


def sensed(taken: Taken, case: Case, draw: Draw, rng: np.random.Generator) -> Taken:
    """With an error of each output, as large as the case's sensors have."""
    outputs = {
        name: x + case.noise * np.sqrt(np.mean(x**2)) * draw(x.size, case, rng)
        for name, x in taken.outputs.items()
    }
    return dataclasses.replace(taken, outputs=outputs)


def encoder(taken: Taken, case: Case, rng: np.random.Generator) -> Taken:
    """Outputs in steps, and noise in the recorded inputs."""
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
    """The machine is another than it is taken for, under a motion that is drawn, too."""

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
    """What is recorded of a machine with one of `IMPERFECTIONS`, the same for each contestant."""
    names = (case.name, imperfection)
    rng = np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])
    return IMPERFECTIONS[imperfection](case, rng)
