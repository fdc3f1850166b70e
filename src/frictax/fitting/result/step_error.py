"""The effect of the solver's steps and of the inputs' interpolation on the estimates."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.engine import OnSamples
from frictax.measurements import Record
from frictax.measurements.noise import integrated_autocorrelation_time
from frictax.notice import Notice

from ..problem.objectives import PreparedRecord
from ..problem.problem import PreparedSweep, Problem, predictions
from .estimates import Estimate
from .fit_result import FitResult
from .spread import inverse_gram

_LARGE = 0.3  # [standard errors] a larger change of an estimate by shorter time steps is reported
_FINER = 1 / 16  # factor on the tolerance that reduces the time step error to an eighth
SHORTER = 3  # largest number of further searches with shorter time steps
_SMALL = 2e-4  # [fraction of the value] largest change of an estimate that is always negligible
_CURVED = 0.5  # [standard errors] a larger change of an estimate by smooth inputs is reported


def step_error(found: FitResult) -> dict[str, float]:
    """Return the change of each estimate [SI] if the error of all time steps decreases to 1/8.

    This change is 7/8 of the effect of the time steps on the estimate. An engine with error control
    uses 1/16 of its tolerance, at most 1e-7. An engine without error control uses time steps of
    half the length. Each record is simulated once more, and a linear model replaces another fit.
    For `InverseDynamics`, which does not simulate, all changes are 0 except for rounding.

    >>> import frictax as fx, numpy as np
    >>> swing = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0, s=0.1),
    ...     wall=fx.Fixed(),
    ...     spring=fx.Spring("mass", "wall", c=900.0),
    ...     damper=fx.Damper("mass", "wall", d=1.0),
    ... )
    >>> t = np.linspace(0.0, 1.0, 101)  # 30 rad/s by 0.01 s: 0.3 rad a step
    >>> record = fx.Record(
    ...     t,
    ...     outputs={"mass.s": 0.1 * np.exp(-0.5 * t) * np.cos(30 * t)},
    ...     sd={"mass.s": 1e-4},
    ...     name="swing",
    ... )
    >>> plain = fx.OnSamples(tolerance=None)
    >>> found = fx.fit(swing, record, free=["damper.d"], engine=plain)
    >>> bool(abs(found.step_error()["damper.d"]) > 0.03)
    True
    """
    problem, engine = found.problem, found.problem.engine
    if not isinstance(engine, OnSamples):
        raise ValueError(
            f"`step_error` is for fits with `OnSamples`: {type(engine).__name__} controls the error"
            " of its steps itself."
        )
    if engine.tolerance is None or engine.solver is not None:
        finer = dataclasses.replace(engine, substeps=2 * engine.substeps)
    else:
        # `_FINER` times a loose tolerance may still be too loose to divide any time step. A
        # tolerance of at most 1e-7 divides all time steps that are too long.
        tolerance = min(float(engine.tolerance) * _FINER, 1e-7)
        finer = dataclasses.replace(engine, tolerance=tolerance)
    return _linear_change(found, dataclasses.replace(problem, engine=finer))[0]


def _linear_change(
    found: FitResult, problem: Problem
) -> tuple[dict[str, float], Float[np.ndarray, " n"]]:
    """Return the changes of the estimates and of the residuals if the predictions of `problem`
    replace those of the fit. A linear model of the fit predicts the changes.
    """
    left = []
    for i, prepared in enumerate(problem.prepared):
        weight, measured = (np.asarray(x) for x in (prepared.weight, prepared.measured))
        after = np.asarray(predictions(problem, jnp.asarray(found.x), i))
        left.append(np.ravel(weight * np.where(weight > 0, after - measured, 0.0)))
    r, jacobian = np.concatenate(left), found.full_jacobian
    r = r - found.full_residuals[: r.size]
    gram = inverse_gram(jacobian, np.linalg.norm(jacobian, axis=0), found.active)
    step = -gram @ (jacobian[: r.size].T @ r)
    moved = dict(zip(found.names, step[found.shown].tolist(), strict=True))
    return moved, r + jacobian[: r.size] @ step


def long_steps(found: FitResult) -> list[Notice]:
    """Return a notice if shorter time steps change an estimate; the result is stored in the fit.
    Records are simulated again only if the curvature of their outputs suggests a relevant error.
    """
    made, engine, notices = vars(found), found.problem.engine, list[Notice]()
    if "long_steps" in made:
        return made["long_steps"]
    if (
        isinstance(engine, OnSamples)
        and found.problem.objective.in_units_of_outputs()
        and is_doubtful(found.problem, found.full_residuals, found.noise_scale)
    ):
        moved = step_error(found)
        far = _farthest(found, moved, _LARGE)
        if far is not None:
            most, e = far
            # The solver has order 3, so the change `most` by steps of half the length is 7/8 of the
            # error. With the recommended steps the error is a tenth of a standard error.
            times = (8 / 7 * most / 0.1) ** (1 / 3)
            options = {"substeps": math.ceil(times) * engine.substeps}
            if engine.tolerance is not None and engine.solver is None:
                tolerance = engine.tolerance * min(times**-4, _FINER)
                options = {"tolerance": float(f"{tolerance:.1g}")}
            ((option, value),) = options.items()
            numbers = {"moved": moved[e.name], "unit": e.unit, "errors": most}
            numbers |= options | {"option": f"{option}={value:g}"}
            notices.append(Notice("steps-too-long", e.name, numbers))
    made["long_steps"] = notices
    return notices


def with_shorter_steps(engine: OnSamples, notice: Notice) -> OnSamples:
    """Return the engine with the step length that the notice `steps-too-long` recommends."""
    numbers = notice.numbers
    if "tolerance" in numbers:
        return dataclasses.replace(engine, tolerance=float(numbers["tolerance"]))
    return dataclasses.replace(engine, substeps=int(numbers["substeps"]))


def with_steps_needed(found: FitResult) -> Problem | None:
    """Return the problem of the fit with shorter time steps. Return None if the present steps are
    short enough, or if the engine does not control the error of its steps.
    """
    engine, too_long = found.problem.engine, long_steps(found)
    if not too_long or not isinstance(engine, OnSamples) or engine.tolerance is None:
        return None
    return dataclasses.replace(found.problem, engine=with_shorter_steps(engine, too_long[0]))


def between_samples(found: FitResult) -> list[Notice]:
    """Return a notice if smooth instead of linear interpolation of inputs changes an estimate. Omit
    the notice if the residuals show that inputs are almost linear between samples.
    """
    bends = found.bends
    if bends is None or bends.most < 0.25:  # the inputs are almost linear between samples
        return []
    # `spread` is the rms position of true inputs between linear (0) and smooth (1) interpolation.
    far = _farthest(found, {n: bends.spread * x for n, x in bends.moved.items()}, _CURVED)
    if far is None:
        return []
    _, e = far
    errors = abs(bends.moved[e.name]) / e.standard_error
    numbers = {"moved": bends.moved[e.name], "unit": e.unit, "errors": errors}
    return [Notice("bent-between-samples", e.name, numbers)]


@dataclasses.dataclass(frozen=True, eq=False)
class Bends:
    """The effect of smooth instead of linear interpolation of the inputs.

    - `moved`: change of each estimate [SI].
    - `share`: position of the true inputs between linear (0) and smooth (1) interpolation,
      estimated from the residuals; `error`: standard deviation of `share`.
    """

    moved: dict[str, float]
    share: float
    error: float

    @property
    def most(self) -> float:
        """Upper limit of the absolute value of `share`: two standard errors above it."""
        return abs(self.share) + 2.0 * self.error

    @property
    def spread(self) -> float:
        """Root mean square of the true `share`, with a uniform prior distribution from 0 to 1."""
        far = np.linspace(0.0, 1.0, 201)
        off = ((far - self.share) / self.error) ** 2 if self.error < np.inf else 0.0 * far
        likely = np.exp(-0.5 * (off - np.min(off)))
        return float(np.sqrt(likely @ far**2 / np.sum(likely)))


def bend_of(xp: Any, t: Any, u: Any) -> Any:
    """Return the correction to subtract from the samples `u` of an input at the times `t`. The
    linear interpolation of the corrected samples has the same integral as a smooth curve through
    `u`.

    The correction is u''*(h1**2 + h2**2)/24, with the curvature u'' and the time steps h1 before
    and h2 after a sample. The correction is 0 beside a gap. `t` (n,) [s] increases; `u` (n,) and
    the correction (n,) have the same unit; `xp` is the module of JAX or NumPy.
    """
    h = xp.diff(t)
    before, after = h[:-1], h[1:]
    size = (before**2 + after**2) / (before + after) / 12.0
    size = size * (xp.maximum(before, after) < 2.5 * xp.median(h))  # A longer time step is a gap.
    return xp.pad(size * xp.diff(xp.diff(u) / h), 1)


def _not_held(problem: Problem, records: Mapping[str, Any]) -> Iterator[tuple[int, PreparedRecord]]:
    for i, (record, one) in enumerate(zip(records.values(), problem.prepared, strict=True)):
        if isinstance(record, Record) and isinstance(one, PreparedRecord) and not record.hold:
            yield i, one


def with_smooth_inputs(problem: Problem, records: Mapping[str, Any]) -> Problem:
    """Return `problem` with smooth interpolation of the inputs that are not held."""
    prepared = list(problem.prepared)
    for i, one in _not_held(problem, records):
        inputs = {n: np.asarray(u) for n, u in one.inputs.items()}
        inputs = {n: u - bend_of(np, np.asarray(one.t), u) for n, u in inputs.items()}
        prepared[i] = dataclasses.replace(one, inputs=inputs)
    return dataclasses.replace(problem, prepared=tuple(prepared))


def by_bends(found: FitResult) -> Bends | None:
    """Return the effect of smooth instead of linear interpolation of inputs that are not held; None
    if this effect is negligible. Records are simulated again only if the curvature of the inputs
    suggests a relevant effect.
    """
    problem = found.problem
    if not problem.objective.in_units_of_outputs():
        return None
    bent = [
        np.sum(np.diff(u) ** 2) / (12 * np.sum((u - np.mean(u)) ** 2))
        for _, one in _not_held(problem, found.records)
        for u in map(np.asarray, one.inputs.values())
        if np.ptp(u) > 0
    ]
    least = np.sqrt(np.diag(found.full_covariance))  # these standard errors assume white residuals
    far = max(bent, default=0.0) * np.abs(found.x) > _CURVED * least
    if not np.any(far[found.shown & (least > 0)]):
        return None
    moved, left = _linear_change(found, with_smooth_inputs(problem, found.records))
    r, square = found.full_residuals[: left.size], float(left @ left)
    if not square > 0:
        return Bends(moved, 0.0, np.inf)
    share = -float(left @ r) / square
    rest = r + share * left
    variance = float(rest @ rest) / max(found.dof - 1, 1) * integrated_autocorrelation_time(rest)
    return Bends(moved, share, max(float(np.sqrt(variance / square)), 0.01))


def _farthest(
    found: FitResult, moved: dict[str, float], limit: float
) -> tuple[float, Estimate] | None:
    """Return the largest change in `moved` [standard errors] and the estimate that it belongs to.
    Return None if no change exceeds `limit` [standard errors].
    """
    far = [
        (abs(moved[e.name]) / e.standard_error, e) for e in found.estimates if e.standard_error > 0
    ]
    far = [(k, e) for k, e in far if k > limit and abs(moved[e.name]) > _SMALL * abs(e.value)]
    return max(far, key=lambda pair: pair[0], default=None)


def is_doubtful(problem: Problem, residuals: np.ndarray, noise: float) -> bool:
    """Return True if the local errors of all time steps could add up to a relevant error.

    If an oscillation turns w rad per step, the local error is the amplitude times w**4/24. Second
    differences of the outputs estimate w**4 of the main motion. Third differences estimate w**4 of
    a superposed vibration.
    """
    for prepared, weight, r in problem.by_record(residuals):
        if isinstance(prepared, PreparedSweep) or weight.shape[-2] < 6:
            continue
        x = np.asarray(prepared.measured) + np.divide(
            r, weight, out=np.zeros_like(r), where=weight > 0
        )
        for rows in (x - x.mean(axis=-2, keepdims=True), np.diff(x, axis=-2)):
            size, bend = _exceeded_by_a_tenth(rows), _exceeded_by_a_tenth(np.diff(rows, 2, axis=-2))
            fourth = np.divide(bend, size, out=np.zeros_like(bend), where=size > 0) ** 2
            added = weight.shape[-2] * fourth / 24 / problem.engine.substeps**3
            error = added * size * np.max(weight, axis=-2) * np.sqrt(weight.size)
            if np.any((added > _SMALL) & (error > _LARGE * noise)):
                return True
    return False


def _exceeded_by_a_tenth(x: np.ndarray) -> np.ndarray:
    """Return for each column the absolute value that a tenth of its rows exceeds."""
    k = int(0.9 * (x.shape[-2] - 1))
    return np.take(np.partition(np.abs(x), k, axis=-2), k, axis=-2)
