"""Error control of a run on samples: error estimate, acceptance, and division of a step into parts.

A step goes from one sample to the next. If its estimated error is above the tolerance, the step is
divided into parts. Positions and widths of parts are integers, in units of 1/`PARTS` of the step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from frictax.parameters import Integer, Number, State
from frictax.parameters.arrays import constant

from ..implicit import rosenbrock2_differences, take_step
from ..options import OnSamples
from ..reused import Reused
from ..stepping import bosh3, entries, inverse_scales, is_at_rest, relative_error

PARTS = 4096  # largest number of parts of a step; the shortest part of a step of 1 s is 0.24 ms


class Control(eqx.Module):
    """State of the error control of a run.

    - `width`: length of the next part, in units of 1/`PARTS` of a step.
    - `ranges`: largest distance of each state from its start value.
    - `errors`: sum of the estimated errors of each state.
    - `unmet`: the same sum over the parts of width 1 that missed the tolerance.
    - `divided`: accepted parts of steps that were divided; `extra`: parts beyond one a step.
    - `finest`: the smallest width of an accepted part.
    """

    width: Int[Array, "..."]
    ranges: list[Array]
    errors: list[Array]
    unmet: list[Array]
    divided: Int[Array, "..."]
    extra: Int[Array, "..."]
    finest: Int[Array, "..."]

    @classmethod
    def start(cls, judged: list[Array]) -> "Control":
        nothing = [jnp.zeros_like(x) for x in judged]
        count = jnp.array(0, jnp.int32)
        whole = jnp.array(PARTS, jnp.int32)
        return cls(whole, nothing, nothing, nothing, count, count, whole)

    def accuracy(self, y: list[Array]) -> tuple[Number, Bool[Array, ""], Integer]:
        """Return the relative error of the run, whether the run is inaccurate, and the largest
        number of parts of a step.

        The error is twice the sum of the estimated errors of a state over its range, the maximum
        over the states.
        """
        # The shortest parts are accepted even if their error exceeds the tolerance. A run is
        # inaccurate if the sum of these errors exceeds 1e-3 of the range of a state.
        unmet = relative_error(self.unmet, self.ranges, y)
        finest = PARTS // self.finest
        return relative_error(self.errors, self.ranges, y), unmet > 2e-3, finest


class Judgement(eqx.Module):
    """The estimated error of a part: relative to the ranges, and of each state in its own unit."""

    error: Number
    errors: list[Array]

    def with_piece(self, piece: "Judgement", share: Any) -> "Judgement":
        """Return the error with that of a further piece, which is a `share` of what was judged."""
        errors = [a + share * b for a, b in zip(self.errors, piece.errors, strict=True)]
        return Judgement(jnp.maximum(self.error, share * piece.error), errors)


def is_controlled(options: OnSamples) -> bool:
    """Return whether the steps of a run are divided where their error is too large."""
    return options.tolerance is not None and options.solver is None


def judged_states(system: Reused, y: State) -> list[Array]:
    """Return the entries of `y` whose error counts, as constants."""
    return entries(constant(y)[: system.judged_states()])


def part_tolerance(options: OnSamples, dtype: Any) -> Any:
    """Return the tolerance of a part: at least 100 rounding errors of 1 in numbers of type `dtype`,
    because a smaller tolerance cannot be met.
    """
    least = 100.0 * float(jnp.finfo(dtype).eps)
    return jnp.maximum(jnp.asarray(options.tolerance, dtype), jnp.asarray(least, dtype))


def step_with_differences(
    system: Reused, options: OnSamples, mode: Any, t: Any, end: Any, y: Any, rate: Any
) -> tuple[Any, Any]:
    """Return the state (n,) after one step and the two differences that `judge_part` reads.

    The first is the difference between the results of order p and of order p - 1. The second is
    ``h (k2 - k1)``, the difference between the results of order 2 and of order 1 up to a factor.
    Both have no derivative.
    """
    if not system.is_stiff():
        y1, rates = bosh3(lambda t, y: system.flow(t, y, mode), t, end, y, rate)
        # Single entries of the state are used here, so that XLA can fuse the arithmetic.
        h, rates = constant((end - t, rates))
        stages = list(zip(*map(entries, rates), strict=True))
        first = [(2 / 9 * h) * (k1 - 3 * k2 + 2 * k3) for k1, k2, k3 in stages]
        return y1, (first, [h * (k2 - k1) for k1, k2, _ in stages])
    y1 = take_step(system, options, mode, t, end, y, rate, holds=True)
    at = constant((t, end, y))
    return y1, tuple(map(entries, rosenbrock2_differences(constant(system), mode, *at)))


def widen_ranges(ranges: list[Array], y: list[Array], start: list[Array]) -> list[Array]:
    """Return the ranges of the states of a run that has reached `y` from `start`."""
    return [jnp.maximum(r, jnp.abs(x - b)) for r, x, b in zip(ranges, y, start, strict=True)]


def judge_part(differences: Any, inverse: list[Array]) -> Judgement:
    """Return the error of a part whose two `differences` have the scales 1/`inverse`.

    E and D are the sums of the first and of the second difference over the states, relative to the
    scales. ``E min(1, 3/4 E/D)`` estimates the error of the step's own order. For ``y' = a y`` the
    estimate is exact to leading order. An error that is NaN stays NaN.
    """
    if not inverse:
        return Judgement(jnp.zeros(()), [])
    first, second = differences
    if len(first) == 1 and first[0].ndim:  # one array of a long vector, not its entries
        count = inverse[0].shape[0] if inverse[0].ndim else len(inverse)
        first, second = (parts[0][:count] for parts in differences)
        first, second = ([x] if inverse[0].ndim else list(x) for x in (first, second))
    first, second = first[: len(inverse)], second[: len(inverse)]
    whole, least = _sum(first, inverse), jnp.finfo(inverse[0].dtype).tiny
    share = jnp.minimum(1.0, 0.75 * whole / (_sum(second, inverse) + least))
    return Judgement(share * whole, [share * jnp.abs(e) for e in first])


def judge_by_halves(
    system: Reused, y1: list[Array], halves: list[Array], inverse: Any
) -> Judgement:
    """Return the error of a piece that ends at `y1` by one step and at `halves` by two.

    For a method of order p, ``2**p / (2**p - 1)`` times the difference estimates the error of the
    one step. Unlike `judge_part` it is not fooled by a motion that begins and goes by a power of
    the time.
    """
    ratio = 4 / 3 if system.is_stiff() else 8 / 7
    errors = [ratio * jnp.abs(a - b) for a, b in zip(y1, halves, strict=True)]
    return Judgement(_sum(errors, inverse), errors)


def _sum(parts: list[Array], inverse: list[Array]) -> Any:
    """Return the sum over the states, each relative to its scale."""
    return sum(jnp.sum(jnp.abs(x) * i) for x, i in zip(parts, inverse, strict=True))


def inverse_scales_of_part(
    control: Control, y: list[Array], y1: list[Array], start: list[Array]
) -> Any:
    """Return 1 over the error scales of a part from `y` to `y1`.

    The scale of a state without a range is its distance in the whole step at the same rate.
    """
    parts = (PARTS // control.width).astype(jnp.result_type(float))
    scales = [
        jnp.where(is_at_rest(r), parts.astype(a.dtype) * jnp.abs(b - a), r)
        for r, a, b in zip(control.ranges, y, y1, strict=True)
    ]
    return inverse_scales(widen_ranges(scales, y1, start), y)


def update_control(
    control: Control, u: Any, accepted: Any, refused: Any, part: Judgement, tol
) -> Any:
    """Return the control after a part that began at `u` and was accepted, refused or not tried."""
    width = control.width
    missed = accepted & ~(part.error <= tol)
    add = lambda totals, where: [  # noqa: E731
        jnp.where(where, a + b, a) for a, b in zip(totals, part.errors, strict=True)
    ]
    is_divided = accepted & (width < PARTS)
    fits = ((u + width) % (2 * width) == 0) & (width < PARTS)
    # If a third-order step doubles, its error grows 16 times; 24 includes a safety margin.
    widens = accepted & fits & (part.error * 24.0 < tol)
    halved = jnp.where(refused, width // 2, width)
    return Control(
        jnp.where(widens, 2 * width, halved),
        control.ranges,
        add(control.errors, accepted),
        add(control.unmet, missed),
        control.divided + is_divided,
        control.extra + (is_divided & (u > 0)),
        jnp.where(accepted, jnp.minimum(control.finest, width), control.finest),
    )


class PartLog(eqx.Module):
    """The parts of all divided steps, from which reverse mode builds each step again.

    - `count` (steps,): how many parts each step has, 0 for a step that is not divided.
    - `ends` (rows,): where each of these parts ends, in units of 1/`PARTS`, one after another.
    """

    count: Int[Array, "..."]
    ends: Int[Array, "..."]

    @classmethod
    def empty(cls, options: OnSamples, steps: int) -> "PartLog":
        rows = options.max_steps + 1 if is_controlled(options) else 1
        return cls(jnp.zeros(steps + 1, jnp.int32), jnp.zeros(rows, jnp.int16))


def times_of_part(step: Any, u: Any, width: Any) -> tuple[Any, Any, Any]:
    """Return begin [s], end [s] and slack [s] of the part of a step that begins at position `u`."""
    t, end, slack = step
    h = end - t
    at = lambda u: h * (u.astype(h.dtype) / PARTS)  # noqa: E731
    begin = jnp.where(u == 0, t, t + at(u))
    stop = jnp.where(u + width == PARTS, end, t + at(u + width))
    short = jnp.minimum(slack, 0.1 * jax.lax.stop_gradient(stop - begin))
    return begin, stop, jnp.where(width == PARTS, slack, short)
