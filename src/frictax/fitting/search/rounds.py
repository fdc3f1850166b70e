"""Rounds of many simulations, for free runs whose residuals exceed the noise after a search.

If a simulated machine sticks slightly too late, its whole later motion is late too. Therefore the
cost has many local minima, and a gradient-based search ends in a local minimum.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from frictax.engine import OnSamples
from frictax.interrupts import may_keep
from frictax.measurements.noise import white_noise_of
from frictax.notice import Notice
from frictax.parameters import Real
from frictax.programs import cached_jit

from ..problem.problem import Problem, bounds
from .certificate import certify
from .levenberg_marquardt import Descent
from .run import Run, begun

_LANES = 64  # number of simulations in one call
_GENERATIONS = 20  # number of generations of CMA-ES in a round
RUNS = _LANES * _GENERATIONS  # number of simulations in a round
# Standard deviation of the first random points of each round [logarithm of the distance from the
# bound]. These points are centred alternately at the start values and at the best point found.
_WIDTHS = (0.15, 0.05, 0.5, 0.15, 1.0, 0.05, 0.3, 0.3)
_FARTHEST = 4.0  # [logarithms] largest distance of a point from the start


def by_rounds(run: Run, state: Descent, most: int, seed: int, noise: float) -> tuple[Descent, int]:
    """Search in at most `most` rounds. Return the best final state and the number of rounds.

    In a round, CMA-ES moves a cloud of random points towards better scores. A score needs one
    simulation, without derivatives. Short fits start from the best distinct points. The rounds end
    at the first fit whose residuals are white noise.

    64 points are simulated in parallel. If one simulation divides a time step because the step
    error is too large, all 64 simulations divide the step. With divided steps, a round takes up to
    20 times as long. Therefore scores are computed without error control of the steps, if this
    does not double the cost at the final point of the first search.

    **Source:** N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, 2016.
    """
    problem = run.problem
    before = after = certify(problem, np.asarray(state.residuals))
    best, made = state, 0
    try:
        plain, engine = problem, problem.engine
        if isinstance(engine, OnSamples) and engine.tolerance is not None:
            plain = dataclasses.replace(problem, engine=dataclasses.replace(engine, tolerance=None))
            points = np.repeat(np.asarray(state.z)[None], _LANES, axis=0)
            scale = _inverse_noise(problem)
            squares = np.asarray(_scores(plain, points, scale, np.float64(noise))[2])
            plain = plain if 0.5 * squares[0] < 2.0 * float(state.cost) else problem
        while after is not None and not after.at_noise and made < most:
            made += 1
            for end in _ends_of_round(run, plain, best, made - 1, seed, noise):
                if float(end.cost) < float(best.cost) * (1 - 1e-9):
                    best, after = end, certify(problem, np.asarray(end.residuals))
                    if after is None or after.at_noise:
                        break
            run.say(f"round {made} of {most}: cost {float(best.cost):.6g}")
        if not bool(best.done):
            run.steps -= int(best.steps)  # `run.one` counts all steps of the search again
            best = run.one(best, noise)
    except KeyboardInterrupt:
        if not may_keep():
            raise
        run.interrupted = True
    if float(best.cost) < float(state.cost) * (1 - 0.02):  # report a reduction above 2 %
        assert before is not None
        ends = {"before": before.ratio, "after": 0.0 if after is None else after.ratio}
        numbers = {"runs": made * RUNS, "rounds": made, "most": most}
        run.notices.append(Notice("search-by-rounds", before.subject, ends | numbers))
    return best, made


def _ends_of_round(
    run: Run, plain: Problem, best: Descent, number: int, seed: int, noise: float
) -> Iterator[Descent]:
    """Yield the final states of the short fits of round `number` (from 0). The fits start from the
    best points after every tenth generation. `plain`: the problem that computes the scores.
    """
    # A fit has at most `short` steps, or `long` steps if its cost is below twice the lowest cost.
    short, long = 12, 60
    problem, by, least = run.problem, number % 3, np.inf
    logarithms, scale = _Logarithms(problem, best), _inverse_noise(problem)
    centre = logarithms.of_coordinates(best.z) if number % 2 else np.zeros(best.z.size)
    cloud = _Cloud(centre, _WIDTHS[number % len(_WIDTHS)], np.random.default_rng([seed, number]))
    drawn: list[np.ndarray] = []
    scored: list[np.ndarray] = []
    for k in range(_GENERATIONS):
        points = cloud.draw()
        z = logarithms.to_coordinates(points)
        scores = np.stack(_scores(plain, z, scale, np.float64(noise)), axis=1)
        scores = np.where(np.isfinite(scores), scores, np.inf)
        cloud.adapt(points, scores[:, by])
        drawn.append(points)
        scored.append(scores)
        if (k + 1) % 10:
            continue
        points, scores = np.concatenate(drawn), np.concatenate(scored)
        apart = points / (np.std(drawn[-1], axis=0) + 1e-6)
        chosen = _best_distinct(apart, scores[:, by]) + _best_distinct(apart, scores[:, 2])
        z = logarithms.to_coordinates(points)
        for i in dict.fromkeys(chosen):
            end = run.to(begun(problem, z[i]), short, noise)
            if not bool(end.done) and float(end.cost) < 2.0 * least:
                end = run.to(end, long, noise)
            run.steps += int(end.steps)
            if np.isfinite(end.cost):
                least = min(least, float(end.cost))
                yield end
        drawn, scored = [], []


def _best_distinct(points: Float[np.ndarray, "k p"], scores: Float[np.ndarray, " k"]) -> list[int]:
    """Return the indices of the 8 best points whose distances from each other exceed 1."""
    chosen: list[int] = []
    for i in np.argsort(scores).tolist():
        if not np.isfinite(scores[i]) or len(chosen) == 8:
            break
        if all(np.linalg.norm(points[i] - points[j]) > 1.0 for j in chosen):
            chosen.append(i)
    return chosen


class _Logarithms:
    """A conversion between coordinates and the points of CMA-ES.

    A point has an entry for each fitted number. For a number with one bound, the entry is log(d /
    d0), with the distance d of its value and d0 of its start value from the bound. For an unbounded
    number, the entry is its change divided by the size of its start value. For a number with two
    bounds, the entry is its coordinate.
    """

    def __init__(self, problem: Problem, state: Descent) -> None:
        self.problem = problem
        self.x0 = x0 = np.asarray(problem.x0)
        domains = [u.declaration.domain for u in problem.unknowns for _ in range(u.size)]
        alone = np.array([domain.entry_by_entry for domain in domains])
        self.bounded = problem.one_sided() & alone
        self.real = np.array([isinstance(domain, Real) for domain in domains])
        self.low = np.where(self.bounded, bounds(problem.unknowns), 0.0)
        size = np.where(x0 == 0, np.asarray(state.span), np.abs(x0))
        self.size = np.where(size > 0, size, 1.0)

    def to_coordinates(self, points: Float[np.ndarray, "k p"]) -> Float[np.ndarray, "k p"]:
        far = self.low + (self.x0 - self.low) * np.exp(np.where(self.bounded, points, 0.0))
        x = np.where(self.bounded, far, self.x0 + np.where(self.real, self.size * points, 0.0))
        z = np.stack([np.asarray(self.problem.coordinates(row)) for row in x])
        return np.where(self.bounded | self.real, z, points)

    def of_coordinates(self, z: Any) -> Float[np.ndarray, " p"]:
        z, x = np.asarray(z), np.asarray(self.problem.physical(jnp.asarray(z)))
        from_bound = np.where(self.bounded, self.x0 - self.low, 1.0)
        logarithm = np.log(np.maximum((x - self.low) / from_bound, 1e-12))
        others = np.where(self.real, (x - self.x0) / self.size, z)
        return np.clip(np.where(self.bounded, logarithm, others), -_FARTHEST, _FARTHEST)


class _Cloud:
    """A normal distribution that moves towards better points by CMA-ES, with the weights and
    learning rates of Hansen's tutorial, without negative weights.
    """

    def __init__(
        self, mean: Float[np.ndarray, " p"], width: float, rng: np.random.Generator
    ) -> None:
        p, half = mean.size, _LANES // 2
        self.mean, self.width, self.rng, self.count = mean, width, rng, 0
        weights = np.log(half + 0.5) - np.log(np.arange(1, half + 1))
        self.weights = weights / weights.sum()
        self.mass = mass = 1.0 / float(np.sum(self.weights**2))
        self.of_width = (mass + 2) / (p + mass + 5)
        self.of_path = (4 + mass / p) / (p + 4 + 2 * mass / p)
        self.of_one = 2 / ((p + 1.3) ** 2 + mass)
        self.of_all = min(1 - self.of_one, 2 * (mass - 2 + 1 / mass) / ((p + 2) ** 2 + mass))
        self.damping = 1 + self.of_width + 2 * max(0.0, np.sqrt((mass - 1) / (p + 1)) - 1)
        # The expected length of a vector of p standard normal numbers.
        self.usual = np.sqrt(p) * (1 - 1 / (4 * p) + 1 / (21 * p * p))
        self.covariance, self.path, self.straight = np.eye(p), np.zeros(p), np.zeros(p)
        self.axes, self.lengths = np.eye(p), np.ones(p)

    def draw(self) -> Float[np.ndarray, "k p"]:
        sizes, self.axes = np.linalg.eigh(self.covariance)
        self.lengths = np.sqrt(np.maximum(sizes, 1e-20))
        normal = self.rng.standard_normal((_LANES, self.mean.size))
        points = self.mean + self.width * (normal * self.lengths) @ self.axes.T
        return np.clip(points, -_FARTHEST, _FARTHEST)

    def adapt(self, points: Float[np.ndarray, "k p"], scores: Float[np.ndarray, " k"]) -> None:
        best = points[np.argsort(scores)[: self.weights.size]]
        steps = (best - self.mean) / self.width
        step = self.weights @ steps
        self.mean = self.mean + self.width * step
        self.count += 1
        plain = self.axes @ (self.axes.T @ step / self.lengths)
        keep, move = 1 - self.of_width, np.sqrt(self.of_width * (2 - self.of_width) * self.mass)
        self.straight = keep * self.straight + move * plain
        length = float(np.linalg.norm(self.straight))
        reached = length / np.sqrt(1 - keep ** (2 * self.count))
        is_usual = reached < (1.4 + 2 / (self.mean.size + 1)) * self.usual
        move = is_usual * np.sqrt(self.of_path * (2 - self.of_path) * self.mass)
        self.path = (1 - self.of_path) * self.path + move * step
        self.covariance = (
            (1 - self.of_one - self.of_all) * self.covariance
            + self.of_one * np.outer(self.path, self.path)
            + self.of_all * (steps.T * self.weights) @ steps
        )
        growth = self.of_width / self.damping * (length / self.usual - 1)
        self.width = min(self.width * float(np.exp(min(1.0, growth))), 2.0)  # [logarithms]


def _inverse_noise(problem: Problem) -> Float[np.ndarray, " n"]:
    """Return 1 / noise for each weighted residual, and 0 for a sample without weight. The noise of
    an output is at least a thousandth of the output's standard deviation.
    """
    parts = []
    for prepared in problem.prepared:
        weight, measured = np.asarray(prepared.weight), np.asarray(prepared.measured)
        scale = np.zeros(weight.shape)
        for c, name in enumerate(prepared.names):
            counted = weight[:, c] > 0
            y = (weight[:, c] * measured[:, c])[counted]
            noise = np.fmax(white_noise_of(y), 1e-3 * np.std(y)) if y.size else np.nan
            noise = getattr(prepared, "tick_noise", {}).get(name, noise)
            scale[counted, c] = 1.0 / noise if noise > 0 else 1.0
        parts.append(scale.ravel())
    return np.concatenate(parts)


@cached_jit
def _scores(
    problem: Problem, points: Float[Array, "k p"], scale: Float[Array, " n"], noise: Any
) -> tuple[Array, ...]:
    """Return three scores of each point, from one simulation; a lower score is better.

    The first score measures how long the simulation stays near the record. This score is minus the
    mean of 1 / (1 + m / 25) over the samples; m is the mean square of residual/noise from the first
    sample to the present sample. The second score is the mean of log(1 + (residual/noise)**2 / 25).
    The third score is the sum of the squared weighted residuals."""
    near = 5.0  # [noise] residuals up to this size count as near the record
    failed = 1e12  # squared residual that is assumed for a simulation that fails
    zeros = 20.0  # number of zero residuals assumed before the first sample

    def one(z: Array) -> tuple[Array, ...]:
        r = problem.misfit(z, noise)
        stays, logarithms, first = [], [], 0
        for prepared in problem.prepared:
            shape = np.shape(prepared.weight)
            here = slice(first, first + int(np.prod(shape)))
            first = here.stop
            square = (r[here] * scale[here]) ** 2 / near**2
            square = jnp.where(jnp.isfinite(square), square, failed / near**2)
            logarithms.append(jnp.log1p(square))
            so_far = jnp.cumsum(jnp.mean(jnp.reshape(square, shape), axis=1))
            stays.append(1.0 / (1.0 + so_far / (jnp.arange(shape[0]) + zeros)))
        stay, logarithm = (jnp.mean(jnp.concatenate(x)) for x in (stays, logarithms))
        return -stay, logarithm, jnp.sum(r * r)

    return jax.vmap(one)(jnp.asarray(points))
