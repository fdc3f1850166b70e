"""Error control of a run on samples: error estimate, acceptance, and division of a step into parts.

A step goes from one sample to the next. A step whose estimated error is above the tolerance is
divided into parts. Start and length of a part are whole multiples of 1/`PARTS` of the step length.
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

PARTS = 4096  # largest number of parts of a step; a step of 1 s has parts of at least 0.24 ms


class Control(eqx.Module):
    """State of the error control of a run.

    - `width`: length of the next part, in units of 1/`PARTS` of a step.
    - `ranges`: largest distance of each state from its start value, in the unit of the state.
    - `errors`: sum of the estimated errors of each state, in the unit of the state.
    - `unmet`: the same sum over the accepted parts whose error is above the tolerance. (A part of
      the smallest width, 1, is always accepted.)
    - `divided`: number of accepted parts in divided steps; `extra`: the same number without the
      first part of each step.
    - `finest`: the smallest `width` of an accepted part.
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
        """Return the relative error, a flag for an inaccurate run, and the most parts per step."""
        # A part of the smallest width is accepted even if its error exceeds the tolerance. A run is
        # inaccurate if the errors of parts above the tolerance sum to more than 1e-3 of a state's
        # range.
        unmet = relative_error(self.unmet, self.ranges, y)
        finest = PARTS // self.finest
        return relative_error(self.errors, self.ranges, y), unmet > 2e-3, finest


class Judgement(eqx.Module):
    """The estimated error of a part. `errors`: error of each state, in the unit of the state;
    `error`: the sum of these errors, each divided by the error scale of its state."""

    error: Number
    errors: list[Array]

    def with_piece(self, piece: "Judgement", share: Any) -> "Judgement":
        """Return one error for this interval and the next interval between events, `piece`.
        `share`: the fraction (0 to 1) of the next interval that lies before an event."""
        errors = [a + share * b for a, b in zip(self.errors, piece.errors, strict=True)]
        return Judgement(jnp.maximum(self.error, share * piece.error), errors)


def is_controlled(options: OnSamples) -> bool:
    """Return whether `options` have error control, which divides steps whose error is too large."""
    return options.tolerance is not None and options.solver is None


def judged_states(system: Reused, y: State) -> list[Array]:
    """Return the entries of `y` whose error is controlled, as constants for differentiation."""
    return entries(constant(y)[: system.judged_states()])


def part_tolerance(options: OnSamples, dtype: Any) -> Any:
    """Return the error tolerance of a part, at least 100 times the rounding unit of `dtype`."""
    least = 100.0 * float(jnp.finfo(dtype).eps)
    return jnp.maximum(jnp.asarray(options.tolerance, dtype), jnp.asarray(least, dtype))


def step_with_differences(
    system: Reused, options: OnSamples, mode: Any, t: Any, end: Any, y: Any, rate: Any
) -> tuple[Any, Any]:
    """Return the state (n,) after one step, and the two differences that `judge_part` needs.

    The first difference is the result of order p minus the result of order p - 1. The second
    difference is, up to a factor, the result of order p - 1 minus that of order p - 2. With step h
    and stage rates k1, k2 it is ``h (k2 - k1)``, or ``h k1`` for a stiff system. Both differences
    are constants for differentiation.
    """
    if not system.is_stiff():
        y1, rates = bosh3(lambda t, y: system.flow(t, y, mode), t, end, y, rate)
        # The entries of the state are scalars here, so that XLA can fuse the arithmetic.
        h, rates = constant((end - t, rates))
        stages = list(zip(*map(entries, rates), strict=True))
        first = [(2 / 9 * h) * (k1 - 3 * k2 + 2 * k3) for k1, k2, k3 in stages]
        return y1, (first, [h * (k2 - k1) for k1, k2, _ in stages])
    y1 = take_step(system, options, mode, t, end, y, rate, holds=True)
    at = constant((t, end, y))
    return y1, tuple(map(entries, rosenbrock2_differences(constant(system), mode, *at)))


def widen_ranges(ranges: list[Array], y: list[Array], start: list[Array]) -> list[Array]:
    """Return `ranges`, enlarged if necessary to include the distance from `start` to `y`."""
    return [jnp.maximum(r, jnp.abs(x - b)) for r, x, b in zip(ranges, y, start, strict=True)]


def judge_part(differences: Any, inverse: list[Array]) -> Judgement:
    """Return the `Judgement` of a part from its two `differences` (see `step_with_differences`).
    `inverse`: 1 over the error scale of each state.

    The error estimate is ``E min(1, 3/4 E/D)``, with E for the first and D for the second
    difference. E and D are sums over the states of |difference|/scale. For ``y' = a y`` and `Bosh3`
    the estimate is exact to leading order. If a difference is NaN, so is the estimate.
    """
    if not inverse:
        return Judgement(jnp.zeros(()), [])
    first, second = differences
    if len(first) == 1 and first[0].ndim:  # the differences of a long state vector are one array
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
    """Return the `Judgement` of an interval that was computed twice: one step gives the end state
    `y1`, two half steps give `halves`.

    For a method of order p, the error of the single step is ``2**p / (2**p - 1)`` times the
    difference of both results. Unlike `judge_part`, this estimate covers a state that begins to
    grow as a power of time.
    """
    if not inverse:
        return Judgement(jnp.zeros(()), [])
    ratio = 4 / 3 if system.is_stiff() else 8 / 7
    errors = [ratio * jnp.abs(a - b) for a, b in zip(y1, halves, strict=True)]
    return Judgement(_sum(errors, inverse), errors)


def _sum(parts: list[Array], inverse: list[Array]) -> Any:
    """Return the sum over the states of the absolute value of `parts` times `inverse`."""
    return sum(jnp.sum(jnp.abs(x) * i) for x, i in zip(parts, inverse, strict=True))


def inverse_scales_of_part(
    control: Control, y: list[Array], y1: list[Array], start: list[Array]
) -> Any:
    """Return 1 over the error scale of each state for a part from `y` to `y1`.

    For a state at rest so far, the scale is its mean rate in this part times the whole step length.
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
    """Return the `Control` after a part that began at position `u`. `accepted`, `refused`: whether
    the part was accepted or refused; both are False if the part has not ended."""
    width = control.width
    missed = accepted & ~(part.error <= tol)
    add = lambda totals, where: [  # noqa: E731
        jnp.where(where, a + b, a) for a, b in zip(totals, part.errors, strict=True)
    ]
    is_divided = accepted & (width < PARTS)
    fits = ((u + width) % (2 * width) == 0) & (width < PARTS)
    # If the length doubles, the local error of the third-order method grows 16 times. The factor 24
    # is 16 times a safety factor of 1.5.
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
    """The parts of all divided steps. Reverse mode repeats each step with the parts in this log.

    - `count` (steps,): number of parts of each step; 0 for a step that is not divided.
    - `ends` (rows,): end position of each part, in units of 1/`PARTS` of its step. The parts of all
      divided steps are listed in the order of time.
    """

    count: Int[Array, "..."]
    ends: Int[Array, "..."]

    @classmethod
    def empty(cls, options: OnSamples, steps: int) -> "PartLog":
        rows = options.max_steps + 1 if is_controlled(options) else 1
        return cls(jnp.zeros(steps + 1, jnp.int32), jnp.zeros(rows, jnp.int16))


def times_of_part(step: Any, u: Any, width: Any) -> tuple[Any, Any, Any]:
    """Return start, end and slack [s] of the part that begins at position `u` of a step."""
    t, end, slack = step
    h = end - t
    at = lambda u: h * (u.astype(h.dtype) / PARTS)  # noqa: E731
    begin = jnp.where(u == 0, t, t + at(u))
    stop = jnp.where(u + width == PARTS, end, t + at(u + width))
    short = jnp.minimum(slack, 0.1 * jax.lax.stop_gradient(stop - begin))
    return begin, stop, jnp.where(width == PARTS, slack, short)
