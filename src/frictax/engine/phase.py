"""One phase of a run with `Adaptive`: the time between two events, in one mode.

`locate` integrates until the phase ends. `cross` computes time, state and mode after the event.
`transport` repeats the phase up to its known end to compute derivatives.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float, Int, PyTree

from frictax.parameters import Values
from frictax.parameters.arrays import constant

from .events import Bracket, Slope, first_to_fall, slope_of
from .options import Adaptive
from .reused import Reused
from .rodas import Rodas4
from .stepping import select
from .system import CUT, DEADLINE, END
from .tangents import reverse_if_used


class Bracketed(optx.AbstractRootFinder):
    """A root finder for a `diffrax.Event` that uses `Bracket`.

    The search stops when the bracket is shorter than `rtol` times the solver step. The Newton step
    in `cross` then reduces a relative time error e to about e**2. A small function value does not
    end the search: an event function, such as the velocity after a breakaway, is also small just
    after its mode began. Optimistix's `Bisection` takes as long as a solver step, and its `Newton`
    may leave the bracket.
    """

    rtol: float
    atol: float = 0.0
    norm: Any = optx.max_norm

    def init(self, fn, y, args: PyTree, options, f_struct, aux_struct, tags) -> Any:
        low, high = options["lower"], options["upper"]
        at_low, at_high = jax.lax.map(  # `map` compiles the event functions once for both ends.
            lambda x: _value_of_event(fn, x, args)[0], jnp.stack([low, high])
        )
        return Bracket.start(low, high, at_low, at_high)

    def step(self, fn, y, args: PyTree, options, state, tags) -> Any:
        x = state.guess(self.rtol)
        fx, aux = _value_of_event(fn, x, args)
        return x, state.narrow(x, fx), aux

    def terminate(self, fn, y, args: PyTree, options, state, tags) -> Any:
        return state.is_shorter_than(self.rtol), optx.RESULTS.successful

    def postprocess(self, fn, y, aux, args: PyTree, options, state, tags, result) -> Any:
        return state.end(), aux, {}


def _value_of_event(fn, x, args: PyTree) -> Any:
    """Return the sum of the event conditions, of which only the active one is not 0, and `aux`."""
    conditions, aux = fn(x, args)
    return sum(jax.tree.leaves(conditions)), aux


STEPS = 4096  # largest number of solver steps in a phase without samples; a longer phase is split
STEPS_DENSE = 64  # largest number of solver steps in a phase with samples
_REFUSED = diffrax.RESULTS.max_steps_rejected
WINDOW = 64  # largest number of samples in a phase; a phase with more samples is split


class Start(eqx.Module):
    """Start of a phase. `dt`: first step [s]; `sample`: index of the next sample."""

    t: Values
    y: Float[Array, "... n"]
    mode: Int[Array, "... m"]
    dt: Values
    sample: Int[Array, "..."]


class Stop(eqx.Module):
    """The end of a phase. `t`: end time (from `locate`: before the Newton step). `fired`: cause of
    the end, the index of an event function, `DEADLINE`, `END` or `CUT`."""

    t: Values
    fired: Int[Array, "..."]


class _Walked(NamedTuple):
    """The state of the controller `_Steps`. `inner`: state of the wrapped controller. `reached`:
    time and state after the last accepted step. `watch`: event functions and their rates after the
    last accepted step, and the number of repetitions of the current step. `sums`: the `Sums` of all
    steps so far."""

    inner: Any
    reached: tuple[Any, Any]
    watch: Any
    sums: Any


class Sums(eqx.Module):
    """The error of a run so far. `errors`: for each state the sum of the estimated errors of all
    steps. `ranges`: largest distance of each state from its start value `origin`."""

    errors: Float[Array, "... n"]
    ranges: Float[Array, "... n"]
    origin: Float[Array, "... n"]

    @classmethod
    def start(cls, y: Array) -> "Sums":
        return cls(jnp.zeros_like(y), jnp.zeros_like(y), y)

    def after(self, y: Array, error: Array) -> "Sums":
        """Return the error sums after a step to the state `y` with the estimated `error`."""
        ranges = jnp.maximum(self.ranges, jnp.abs(y - self.origin))
        return Sums(self.errors + jnp.abs(error), ranges, self.origin)


class _Begun(diffrax.AbstractStepSizeController):
    """A controller whose first step is `dt`. (Diffrax's own `dt0` adds a host callback.)"""

    controller: Any
    dt: Any

    def wrap(self, direction) -> Any:
        return dataclasses.replace(self, controller=self.controller.wrap(direction))

    def init(self, terms, t0, t1, y0, dt0, *rest) -> Any:
        return self.controller.init(terms, t0, t1, y0, self.dt, *rest)

    def adapt_step_size(self, *args) -> Any:
        return self.controller.adapt_step_size(*args)


class _Steps(_Begun, diffrax.AbstractAdaptiveStepSizeController):
    """A step-size controller that shortens a step in which an event function may fall to 0 and rise
    again. The controller also stores the last accepted state.

    - `slope`: a function of time and state that returns event functions and their rates; None for a
      controller that does not shorten steps. `first`: the result of `slope` at the start.
    - `sums`: the error `Sums` of the run before the phase; None if they are not needed.
    """

    rtol: Any
    atol: Any
    norm: Any
    slope: Any
    first: Any
    sums: Any

    def init(self, terms, t0, t1, y0, dt0, *rest) -> Any:
        t1, state = super().init(terms, t0, t1, y0, dt0, *rest)
        watch = None if self.slope is None else (self.first, jnp.array(0))
        return t1, _Walked(state, (t0, y0), watch, self.sums)

    def adapt_step_size(self, t0, t1, y0, y1, args: PyTree, error, order, state) -> Any:
        inner, reached, watch, sums = state
        # If the solver also integrates dy/dt, `error` is a tuple: errors of the state and of dy/dt.
        if isinstance(error, tuple):
            short = t1 - t0 <= 1e3 * jnp.finfo(t1.dtype).eps * jnp.abs(t1)
            # The error of dy/dt has a weight of 10, or 0 if rounding limits the step length.
            error = (error[0], jnp.where(short, 0.0, 10.0) * error[1])
        keep, next_t0, next_t1, jumped, after, result = self.controller.adapt_step_size(
            t0, t1, y0, y1, args, error, order, inner
        )
        # If dy/dt is not finite, the controller rejects all steps until the step length is 0.
        result = diffrax.RESULTS.where(~keep & (next_t1 <= next_t0), _REFUSED, result)
        if watch is None:
            after = _Walked(after, select(keep, (t1, y1), reached), None, sums)
            return keep, next_t0, next_t1, jumped, after, result
        before, tries = watch
        here = self.slope(t1, y1)
        # Within a step, an event function may have fallen to 0 and risen again. A cubic through
        # values and rates at both ends of the step estimates each minimum. A minimum below half of
        # both end values counts as a dip. The step is then repeated up to the minimum, where the
        # event function is evaluated exactly.
        (g0, r0), (g1, r1) = before, here
        whole = jnp.isfinite(g0) & jnp.isfinite(g1)
        g0, g1 = jnp.where(whole, g0, 1.0), jnp.where(whole, g1, 1.0)
        r0, r1 = (jnp.where(whole, r, 0.0) * (t1 - t0) for r in (r0, r1))
        # The minimum of g = g0 + r0*x + b*x^2 + a*x^3 is at the larger root of its derivative.
        a, b = r0 + r1 - 2 * (g1 - g0), 3 * (g1 - g0) - 2 * r0 - r1
        root = jnp.sqrt(jnp.maximum(b * b - 3 * a * r0, 0.0))
        by_sum = -r0 / jnp.where(b > 0, b + root, 1.0)
        x = jnp.where(b > 0, by_sum, (root - b) / jnp.where(a == 0, 1.0, 3 * a))
        x = jnp.clip(x, 0.01, 0.99)
        least = g0 + x * (r0 + x * (b + x * a))
        turns = whole & (r0 < -1e-6 * (jnp.abs(g0) + jnp.abs(g1))) & (r1 > 0) & (g0 > 0) & (g1 > 0)
        dips = turns & (least < 0.5 * jnp.minimum(g0, g1))
        share = jnp.min(jnp.where(dips, x, 1.0))
        # A step is repeated at most five times in a row.
        again = keep & jnp.any(dips) & (tries < 5)
        next_t0 = jnp.where(again, t0, next_t0)
        next_t1 = jnp.where(again, t0 + share * (t1 - t0), next_t1)
        after = select(again, inner, after)
        moves = keep & ~again
        reached, before = select(moves, ((t1, y1), here), (reached, before))
        if sums is not None:
            sums = select(moves, sums.after(y1, error), sums)
        after = _Walked(after, reached, (before, jnp.where(again, tries + 1, 0)), sums)
        return moves, next_t0, next_t1, jumped, after, result


class _SameSteps(diffrax.AbstractStepSizeController):
    """A step-size controller whose steps end at the given `times` (unused entries: inf).

    Reverse mode computes each step several times, in several parts of the program, with different
    rounding. If step lengths come from error estimates, the repetitions of a step end at slightly
    different times. The derivatives then omit the motion between these end times.
    """

    times: Any

    def wrap(self, direction) -> Any:
        return self

    def init(self, terms, t0, t1, y0, dt0, *rest) -> Any:
        return self.times[0], jnp.array(1)

    def adapt_step_size(self, t0, t1, y0, y1, args: PyTree, error, order, state) -> Any:
        successful = diffrax.RESULTS.successful
        return jnp.array(True), t1, self.times[state], False, state + 1, successful


class _SameAdaptiveSteps(_SameSteps, diffrax.AbstractAdaptiveStepSizeController):
    """A `_SameSteps` with tolerances, which an implicit solver reads from its controller."""

    rtol: Any
    atol: Any
    norm: Any


def _controller(
    system: Reused, options: Adaptive, start: Start, t1, span, margins=None, first=None, sums=None
) -> Any:
    """Return the step-size controller of a phase: the controller of `options`, wrapped in `_Steps`
    (or in `_Begun` if it has no error control). The run ends at the time `t1` and lasts `span`.

    Step lengths are not differentiated.
    """
    longest = constant(system.longest_step_at(constant(t1 - span), start.mode, span))
    controller = options.controller(start.y.dtype, longest)
    if isinstance(controller, diffrax.AbstractAdaptiveStepSizeController):
        tolerances = controller.rtol, controller.atol, controller.norm
        return _Steps(controller, start.dt, *tolerances, margins, first, sums)
    return _Begun(controller, start.dt)


def _solver(system: Reused, options: Adaptive) -> Any:
    """Return the diffrax solver of a phase."""
    implicit = options.solver is None and system.is_stiff() and not system.swings()
    return Rodas4() if implicit else options.walker()


def _solve(
    system: Reused,
    options: Adaptive,
    start: Start,
    t1,
    controller,
    with_speed: bool = False,
    **kwargs,
) -> Any:
    # If `with_speed`, the solver also integrates the speed dy/dt. The speed satisfies the same
    # linear equation as the derivatives of the state with respect to its start values. The slope of
    # some laws is not smooth, such as the slope of v**1.5 at v = 0. Near v = 0 a step can be
    # accurate for the state but not for its derivatives. The error of the speed shows such a step.
    # The speed has no other use and no derivative.
    y0: Any = start.y
    if with_speed:
        y0 = start.y, constant(system.flow(start.t, start.y, start.mode))

    def flow(t, y, system: Reused) -> Any:
        if not with_speed:
            return system.flow(t, y, start.mode)
        still, t_, y_ = constant((system, t, y[0]))
        speed = still.flow(t_, y_, start.mode)
        along = (jnp.ones_like(t_), speed)
        change = jax.jvp(lambda t, y: still.flow(t, y, start.mode), (t_, y_), along)[1]
        return system.flow(t, y[0], start.mode), constant(change)

    how: dict[str, Any] = {"args": system, "stepsize_controller": controller, "throw": False}
    return diffrax.diffeqsolve(
        diffrax.ODETerm(flow), _solver(system, options), start.t, t1, None, y0, **how, **kwargs
    )


def _state(y) -> Any:
    """Return the state without dy/dt, which `_solve` appends if `with_speed` is True."""
    return y[0] if isinstance(y, tuple) else y


def _read_samples(solution, start: Start, ts, end, speed=None) -> Any:
    """Return the states at the next `WINDOW` sample times. The states for samples after `end` are
    not valid; the next phase overwrites these states.

    The Newton step may move the event slightly beyond `end`. At a sample between `end` and the
    event, the state is extrapolated with `speed`.
    """
    if ts is None:
        return None
    asked = jax.lax.dynamic_slice(ts, (start.sample,), (WINDOW,))
    times = jnp.clip(asked, start.t, end)
    states = _state(jax.vmap(solution.evaluate)(times))
    if speed is None:
        return states
    late = jnp.where(jnp.isfinite(asked), jnp.maximum(asked - times, 0.0), 0.0)
    return states + late[:, None] * speed


def locate(system: Reused, options: Adaptive, start: Start, t1, ts, span, sums: Sums) -> Any:
    """Integrate until an event function falls to 0, to the deadline or the end of the run, or until
    a buffer is full.

    Return the `Stop`, the state and the `Slope` at the stop, and the states at the samples. Also
    return the numbers of steps taken and accepted, and the `Sums` (NaN without error control).
    """
    dtype = start.y.dtype
    deadline = system.deadline(start.mode).astype(dtype)
    last = t1 if ts is None else jnp.minimum(t1, ts[start.sample + WINDOW])

    def margins(t, y) -> tuple[Any, Any]:
        slope = slope_of(system, t, y, start.mode)
        return slope.g, slope.rate

    first = margins(start.t, start.y)
    # The phase ends immediately if an event function is not positive, or is NaN, at the start.
    expired = ~jnp.all(first[0] > 0) | jnp.isnan(deadline)
    # The phase also ends immediately if its deadline is before its start.
    until = jnp.where(expired, start.t, jnp.maximum(jnp.minimum(deadline, last), start.t))

    def least(t, y, args: PyTree, **_) -> Any:
        g = jnp.min(args.guard(t, y, start.mode))
        return jnp.where(jnp.isnan(g), -jnp.inf, g)

    event = diffrax.Event(
        least, Bracketed(rtol=1e-6 if jnp.finfo(dtype).bits >= 64 else 1e-3), direction=False
    )

    solution = _solve(
        system,
        options,
        start,
        until,
        _controller(system, options, start, t1, span, margins, first, sums),
        saveat=diffrax.SaveAt(t1=True, dense=ts is not None, controller_state=True),
        event=event,
        adjoint=diffrax.ForwardMode(),
        max_steps=STEPS if ts is None else STEPS_DENSE,
    )
    assert solution.event_mask is not None
    fell = expired | solution.event_mask
    whole = solution.result == diffrax.RESULTS.successful
    t, y = solution.ts[-1], solution.ys[-1]
    if isinstance(solution.controller_state, _Walked):
        # In diffrax 0.7 under vmap, a run that has used all its steps may end with a rejected step.
        # `reached` contains the time and state after the last accepted step.
        t, y = select(fell | whole, (t, y), solution.controller_state.reached)
        sums = solution.controller_state.sums
    else:
        sums = jax.tree.map(lambda a: jnp.full_like(a, jnp.nan), sums)
    kind = jnp.where(
        ~whole, CUT, jnp.where(until >= deadline, DEADLINE, jnp.where(until >= t1, END, CUT))
    )
    slope = slope_of(system, t, y, start.mode)
    stop = Stop(t, jnp.where(fell, first_to_fall(slope, expired), kind))
    taken, accepted = solution.stats["num_steps"], solution.stats["num_accepted_steps"]
    accepted = jnp.where(solution.result == _REFUSED, 0, accepted)
    samples = _read_samples(solution, start, ts, t, slope.speed)
    return stop, y, slope, samples, (taken, accepted), sums


def cross(
    system: Reused, start: Start, stop: Stop, y, slope: Slope, t1, began
) -> tuple[Any, Any, Any, Any]:
    """Compute the exact time of the event at the end of a phase by one Newton step, then call
    `jump`.

    The Newton step also gives the derivatives of time and state. This step is dt = -g/g' with the
    event function g and its rate g' = dg/dt; the state becomes y + dt*dy/dt. `began`: start time
    with derivatives. Return time, state, mode and status after the event (1 if no mode is
    consistent, otherwise 0).
    """
    t, fired = stop.t, stop.fired
    i = jnp.maximum(fired, 0)
    falling = slope.rate[i] < 0
    step = -slope.g[i] / jnp.where(falling, slope.rate[i], 1.0)
    # The value of the Newton step is limited to about 1 % of the phase, its derivative is not.
    most = 1e-2 * (t - start.t) + 1e-5 * start.dt
    # At a pole, an event function changes its sign without a zero. `first_to_fall` then selects
    # another event function, whose zero is far away.
    lost = (fired >= 0) & falling & (t > start.t) & (jnp.abs(step) > (t - start.t) + start.dt)
    # If a load makes an event function negative at the start, the phase ends immediately.
    at_once = (t <= start.t) & ~(falling & (step >= -most))
    step = step + constant(jnp.clip(step, -jnp.minimum(most, t - start.t), most) - step)
    step = jnp.where(falling, step, 0.0)
    step = jnp.where(fired >= 0, jnp.where(at_once, began - constant(began), step), 0.0)
    # The difference `known - constant(known)` is 0, but it has the derivative of the known time.
    # If the deadline is before the phase, the event is at the start of the phase.
    deadline = system.deadline(start.mode).astype(t.dtype)
    deadline = deadline + constant(jnp.maximum(start.t - deadline, 0.0))
    known = jnp.where(fired == DEADLINE, deadline, t1)
    at_known = (fired == DEADLINE) | (fired == END)
    time = jnp.where(at_known, known, t + step)
    state = y + slope.speed * jnp.where(at_known, known - constant(known), step)
    after, mode, status = system.jump(time, state, start.mode, fired)
    jumped = fired >= DEADLINE
    return (
        time,
        jnp.where(jumped, after, state),
        jnp.where(jumped, mode, start.mode),
        jnp.where(lost, 1, jnp.where(jumped, status, 0)),
    )


def transport(
    system: Reused, options: Adaptive, start: Start, stop: Stop, t1, ts, span, adjoint
) -> Any:
    """Repeat the phase up to its known end and compute its event, with derivatives.

    The integration treats times as constants. Instead of a start time that is later by d, it uses a
    start state that is smaller by d*dy/dt. Return time and state after the event, and the states at
    the samples of the phase.
    """
    t = constant(start.t)
    y = start.y + constant(system.flow(t, start.y, start.mode)) * (t - start.t)
    begin = Start(t, y, start.mode, start.dt, start.sample)
    smooth, end = system.is_smooth(), jnp.maximum(stop.t, t)
    # `most` is the largest number of steps of the repeated phase. The last step must end at the
    # event, so the repetition may need one or two steps more than `locate`. Without samples,
    # `start` and `stop` may enclose several parts of a split phase. If a law is not smooth, the
    # repetition takes shorter steps at rest. At the reversal of a bristle, rounding changes the
    # number of rejected steps.
    most = (2 * STEPS if ts is None else STEPS_DENSE) + (
        9 * STEPS_DENSE if not smooth else 3 * STEPS_DENSE if system.is_stiff() else 16
    )
    # `_solve` does not differentiate the rate of the speed. Therefore an implicit solver would need
    # very short steps to integrate the speed of a stiff motion.
    implicit = isinstance(_solver(system, options), Rodas4 | diffrax.AbstractImplicitSolver)
    with_speed, done = not smooth and not implicit, True
    controller = _controller(system, options, begin, t1, span)
    if isinstance(adjoint, diffrax.RecursiveCheckpointAdjoint):
        still, at = constant((system, begin))
        steps = _solve(
            still,
            options,
            at,
            end,
            controller,
            with_speed,
            saveat=diffrax.SaveAt(steps=True, fn=lambda t, y, args: t),
            adjoint=diffrax.ForwardMode(),
            max_steps=most,
        )
        if isinstance(controller, _Steps):
            tolerances = controller.rtol, controller.atol, controller.norm
            controller = _SameAdaptiveSteps(steps.ts, *tolerances)
        else:
            controller = _SameSteps(steps.ts)
        with_speed = False
        done = steps.result == diffrax.RESULTS.successful
    solution = _solve(
        system,
        options,
        begin,
        end,
        controller,
        with_speed,
        saveat=diffrax.SaveAt(t1=True, dense=ts is not None),
        adjoint=adjoint,
        max_steps=most,
    )
    # The results of a failed phase are multiplied by NaN, so that all of its derivatives are NaN.
    done = done & (solution.result == diffrax.RESULTS.successful)
    finished = jnp.where(done, 1.0, jnp.nan)
    finished = finished.astype(y.dtype)
    y = _state(solution.ys)[-1] * finished
    fixed = slope_of(constant(system), stop.t, constant(y), start.mode)

    def cross_event(system: Reused, begin: Start, stop: Stop, y, fixed: Slope, *at) -> Any:
        slope = Slope(fixed.speed, system.guard(stop.t, y, begin.mode), fixed.rate)
        return cross(system, begin, stop, y, slope, *at)[:2]

    # If the run ended early, time and state after the event are not used and may be NaN.
    use = cross_event
    if not isinstance(adjoint, diffrax.ForwardMode):
        use = functools.partial(reverse_if_used, cross_event)
    time, state = use(system, begin, stop, y, fixed, t1, start.t)
    samples = _read_samples(solution, begin, ts, solution.ts[-1])
    return time, state, None if samples is None else samples * finished
