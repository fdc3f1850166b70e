"""The loop over the phases of a run with `Adaptive`, in forward and reverse mode."""

import functools
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from frictax.jax_internals import nondifferentiable
from frictax.parameters import Integer

from .options import Adaptive, room
from .phase import STEPS, STEPS_DENSE, WINDOW, Start, Stop, Sums, cross, locate, transport
from .result import CHATTER, SECOND, Result
from .reused import Reused
from .stepping import entries, relative_error, select
from .system import CUT, END
from .tangents import (
    add_time_tangents,
    check_fixed_options,
    linear_map,
    nan_where,
    pull_known,
    split_moving,
    unknown_after_cut,
    zero_if_unused,
)


class _Record(eqx.Module):
    """The `Start` and `Stop` of each phase. The derivatives repeat each phase from this data."""

    start: Start
    stop: Stop
    count: Integer


@eqx.filter_custom_jvp
def run_phases(model, t0, t1, y0, mode0, ts, options: Adaptive) -> Any:
    floats, whole, _ = _forward(model, t0, t1, y0, mode0, ts, options)
    return floats, whole


@run_phases.def_jvp
def _run_phases_jvp(primals, tangents) -> Any:
    model, t0, t1, y0, mode0, ts, options = primals
    d_model, d_t0, d_t1, d_y0, _, d_ts, d_options = tangents
    check_fixed_options(options, d_options)
    # The Newton step that locates an event treats rates as constants, which is exact only for first
    # derivatives. A second derivative raises an error, because it would be wrong.
    model_, t0_, t1_, y0_, ts_ = nondifferentiable((model, t0, t1, y0, ts), msg=SECOND)
    floats, whole, record = _forward(model_, t0_, t1_, y0_, mode0, ts_, options)
    moved, rest, d_moved = split_moving(model_, d_model)
    # For reverse mode, JAX transposes the map from input tangents to output tangents. Each tangent
    # must be linear in an input tangent. Therefore `nought`, 0 times an input tangent, replaces a
    # missing tangent.
    nought = 0.0 * jnp.sum(jax.tree.leaves((d_model, d_t0, d_t1, d_y0, d_ts))[0])
    zero = lambda like, d=None: jnp.zeros_like(like) + nought if d is None else d  # noqa: E731
    inputs = (d_moved, zero(t0, d_t0), zero(t1, d_t1), zero(y0, d_y0))
    nothing = jax.tree.map(zero, floats)

    def phase(adjoint) -> Any:
        def run(moved, t, t1, y, start: Start, stop: Stop) -> Any:
            system = Reused(eqx.combine(moved, rest))
            begin = Start(t, y, start.mode, start.dt, start.sample)
            return transport(
                system, options, begin, stop, t1, _pad_samples(ts_), ts_[-1] - ts_[0], adjoint
            )

        return run

    # If a run ended early, states and event times after its end do not have derivatives. The end
    # time of the last phase has a derivative only if an event ended this phase.
    (ys, times), (_, fired, _, _, count, result, *_) = floats, whole
    given_up = (fired[count - 1] == CUT) | (result == Result.nonfinite)
    used = jnp.where(given_up, count - 1, count)
    used = jnp.where(result == Result.successful, times.shape[0], used)
    unknown = unknown_after_cut(ys, times, used)
    along = _push(phase(diffrax.ForwardMode()), moved, t1_, record, floats)
    push = lambda inputs: nan_where(unknown, along(inputs))  # noqa: E731
    if options.adjoint is not None:
        d_ys, d_times = push(inputs)
    else:
        back = _pull(phase(diffrax.RecursiveCheckpointAdjoint()), moved, t1_, record, floats)
        pull = lambda cotangents: pull_known(back, unknown, cotangents)  # noqa: E731
        d_ys, d_times = linear_map(push, pull, inputs, nothing)
    # `d_ys` already contains the derivatives with respect to the first and the last sample time.
    d_ys = add_time_tangents(model_, ts_, d_ts, floats[0], whole[0], d_ys, slice(1, -1))
    return (floats, whole), ((d_ys, d_times), jax.tree.map(lambda _: None, whole))


def _pad_samples(ts) -> Any:
    """Return the sample times, followed by `WINDOW` entries inf, so that `WINDOW` entries can be
    read from any sample on. If `ts` contains only start and end, return None."""
    if ts.shape[0] <= 2:
        return None
    return jnp.concatenate([ts[:-1], jnp.full(WINDOW + 1, jnp.inf, ts.dtype)])


def _push(phase, moved, t1, record: _Record, like) -> Any:
    """Return the function that computes output tangents from input tangents. This function goes
    forward from the first phase to the last phase."""

    def push(inputs) -> Any:
        d_moved, d_t0, d_t1, d_y0 = inputs
        d_ys, d_times = jax.tree.map(jnp.zeros_like, like)
        if d_ys.shape[0] > 2:
            d_ys = jnp.concatenate([d_ys, jnp.zeros((WINDOW, d_ys.shape[1]), d_ys.dtype)])

        def body(k, carry) -> Any:
            d_t, d_y, d_ys, d_times = carry
            start, stop = jax.tree.map(lambda a: a[k], (record.start, record.stop))
            primals = (moved, start.t, t1, start.y)
            _, (d_t, d_y, d_window) = jax.jvp(
                lambda *p: phase(*p, start, stop), primals, (d_moved, d_t, d_t1, d_y)
            )
            if d_window is not None:
                d_ys = jax.lax.dynamic_update_slice(
                    d_ys, d_window, (start.sample, jnp.zeros_like(start.sample))
                )
            return d_t, d_y, d_ys, d_times.at[k].set(d_t)

        _, d_y, d_ys, d_times = jax.lax.fori_loop(
            0, record.count, body, (d_t0, d_y0, d_ys, d_times)
        )
        size = like[0].shape[0]
        if size <= 2:
            return jnp.stack([d_y0, d_y][:size]), d_times
        return jnp.concatenate([d_ys[: size - 1], d_y[None]]), d_times

    return push


def _pull(phase, moved, t1, record: _Record, like) -> Any:
    """Return the function that computes input cotangents from output cotangents. The function goes
    backward from the last phase to the first phase."""

    def pull(cotangents) -> Any:
        c_ys, c_times = cotangents
        size = like[0].shape[0]
        c_end = c_ys[-1] if size > 1 else jnp.zeros_like(c_ys[0])
        inside = jnp.concatenate([c_ys[:-1], jnp.zeros((WINDOW + 1, c_ys.shape[1]), c_ys.dtype)])
        zero = jax.tree.map(jnp.zeros_like, (moved, t1))

        def body(i, carry) -> Any:
            c_t, c_y, c_moved, c_t1 = carry
            k = record.count - 1 - i
            start, stop = jax.tree.map(lambda a: a[k], (record.start, record.stop))
            following = jnp.where(
                k + 1 < record.count,
                record.start.sample[jnp.minimum(k + 1, record.start.sample.shape[0] - 1)],
                size - 1,
            )
            (_, _, window), back = jax.vjp(
                lambda *p: phase(*p, start, stop), moved, start.t, t1, start.y
            )
            c_window = None
            if window is not None:
                own = start.sample + jnp.arange(WINDOW) < following
                place = start.sample, jnp.zeros_like(start.sample)
                seen = jax.lax.dynamic_slice(inside, place, window.shape)
                c_window = jnp.where(own[:, None], seen, 0.0)
            given = c_t + c_times[k], c_y, c_window
            d_moved, c_t, d_t1, c_y = zero_if_unused(given, back(given))
            add = jax.tree.map(jnp.add, (c_moved, c_t1), (d_moved, d_t1))
            return c_t, c_y, *add

        c_t, c_y, c_moved, c_t1 = jax.lax.fori_loop(
            0, record.count, body, (jnp.zeros_like(t1), c_end, *zero)
        )
        if size <= 2:  # Without samples, the first row is the start state.
            c_y = c_y + c_ys[0]
        return c_moved, c_t, c_t1, c_y

    return pull


def _forward(model, t0, t1, y0, mode0, ts, options: Adaptive) -> Any:
    """Return the results of a whole run without derivatives, and a `_Record` of its phases. JAX
    traces the run only once for both values and derivatives."""
    numbers, rest = eqx.partition(options, eqx.is_array)
    leaves, structure = jax.tree.flatten(rest)
    fixed = (tuple(leaves), structure)
    own = Reused(model), t0, t1, y0, mode0, ts, numbers
    return map_lanes_in_turn(lambda own, _: _walk_phases(*own, fixed))(own, ())


@functools.partial(jax.jit, static_argnums=7)
def _walk_phases(system: Reused, t0, t1, y0, mode0, ts, numbers, rest) -> Any:
    options = eqx.combine(numbers, jax.tree.unflatten(rest[1], rest[0]))
    dtype, n, m = y0.dtype, y0.shape[0], mode0.shape[0]
    options.tolerances(dtype)
    samples = _pad_samples(ts)
    span = t1 - t0
    size = room(options) + 1
    if samples is not None:  # A phase that is split needs additional rows.
        size += 2 * (ts.shape[0] // WINDOW + 1) + options.max_steps // (2 * STEPS_DENSE)
    first = jnp.asarray(span / 100 if options.dt0 is None else options.dt0, dtype)
    begin = Start(t0, y0, mode0, first, jnp.array(0, jnp.int32))
    starts = Start(
        jnp.zeros(size, dtype),
        jnp.zeros((size, n), dtype),
        jnp.zeros((size, m), jnp.int32),
        jnp.zeros(size, dtype),
        jnp.zeros(size, jnp.int32),
    )
    stops = Stop(jnp.zeros(size, dtype), jnp.zeros(size, jnp.int32))
    samples_at = None if samples is None else jnp.full((samples.shape[0], n), jnp.nan, dtype)
    owner = None if samples is None else jnp.zeros(samples.shape[0], jnp.int32)
    ends = (jnp.full(size, jnp.inf, dtype), jnp.zeros((size, m), jnp.int32))
    zero = jnp.array(0, jnp.int32)
    # The counters are the numbers of recorded phases, of events, of solver steps, of accepted steps
    # since the last recorded phase, and of successive phases of length 0.
    counters = (zero, zero, zero, zero, zero)
    records, status = (starts, stops), (jnp.array(True), Result.successful)
    carry = begin, begin, records, ends, (samples_at, owner), counters, status, Sums.start(y0)

    def body(carry) -> Any:
        start, origin, (starts, stops), (times, after), (ys, owner), counters, _, sums = carry
        k, events, steps, parts, idle = counters
        stop, y, slope, window, (taken, accepted), sums = locate(
            system, options, start, t1, samples, span, sums
        )
        t, y, mode, status = cross(system, start, stop, y, slope, t1, start.t)
        # The mean step of this phase becomes the first step of the next phase and of this phase's
        # repetition. Between simultaneous events, a phase is as short as a rounding error. The mean
        # step of such a phase is not used, because so short a step does not advance the time.
        learnt = (accepted > 0) & (
            t - start.t > jnp.sqrt(jnp.finfo(dtype).eps) * (span + jnp.abs(t))
        )
        dt = start.dt
        if options.dt0 is None:
            mean = (t - start.t) / jnp.maximum(accepted, 1)
            dt = jnp.where(learnt, mean, dt).astype(dtype)
        again = Start(origin.t, origin.y, origin.mode, dt, origin.sample)
        # The derivative of the event time is computed at this end, after the Newton step.
        at = Stop(t, stop.fired)
        starts, stops = jax.tree.map(
            lambda a, v: a.at[k].set(v.astype(a.dtype)), (starts, stops), (again, at)
        )
        sample = start.sample
        if samples is not None:
            read = jnp.sum(jax.lax.dynamic_slice(samples, (sample,), (WINDOW,)) < t).astype(
                jnp.int32
            )
            ys = jax.lax.dynamic_update_slice(ys, window, (sample, jnp.zeros_like(sample)))
            owner = jax.lax.dynamic_update_slice(owner, jnp.full(WINDOW, k, jnp.int32), (sample,))
            sample = sample + read
        events = events + (stop.fired != CUT)
        steps = steps + taken.astype(jnp.int32)
        idle = jnp.where(t - start.t <= 1e-12 * span, idle + 1, 0).astype(jnp.int32)
        # If dy/dt is not finite, the solver accepts no steps, or only shorter and shorter steps.
        stands = idle >= CHATTER + 2 * m
        sound = jnp.all(jnp.isfinite(y)) & ((stop.fired != CUT) | ((accepted > 0) & ~stands))
        sound = sound & ~jnp.any(jnp.isnan(slope.g)) & ~jnp.isnan(system.deadline(start.mode))
        result, running = Result.successful, stop.fired != END
        for failed, how in (
            ((events > room(options)) | (k + 1 >= size), Result.too_many_events),
            (steps >= options.max_steps, Result.max_steps_reached),
            (stands, Result.chatter),
            (status != 0, Result.inconsistent),
            (~sound, Result.nonfinite),
        ):
            result = Result.where(running & failed, how, result)
        running = running & (result == Result.successful)
        following = Start(t, y, mode, dt, sample)
        ends = (times.at[k].set(t), after.at[k].set(mode))
        # The parts of a split phase are recorded as one phase if one phase can repeat all steps.
        parts = parts + accepted.astype(jnp.int32)
        goes_on = (stop.fired == CUT) & (parts < STEPS) & (samples is None)
        origin = select(goes_on, origin, following)
        counters = (jnp.where(goes_on, k, k + 1), events, steps, jnp.where(goes_on, parts, 0), idle)
        records, status = (starts, stops), (running, result)
        return following, origin, records, ends, (ys, owner), counters, status, sums

    carry = jax.lax.while_loop(lambda c: c[6][0], body, carry)
    end, _, (starts, stops), (times, after), (ys, owner), counters, (_, result), sums = carry
    count, _, steps, _, _ = counters
    last = jnp.where(result == Result.successful, end.y, jnp.nan)
    if samples is None:
        ys = jnp.stack([y0, last][: ts.shape[0]])
        modes = jnp.stack([mode0, end.mode][: ts.shape[0]])
    else:
        size = ts.shape[0] - 1
        reached = jnp.arange(size) < end.sample
        ys = jnp.concatenate([jnp.where(reached[:, None], ys[:size], jnp.nan), last[None]])
        modes = jnp.concatenate([starts.mode[owner[:size]], end.mode[None]])
    judged = slice(system.judged_states())
    error = relative_error(*(entries(x[judged]) for x in (sums.errors, sums.ranges, end.y)))
    accuracy = error.astype(dtype), jnp.ones_like(count)
    whole = modes, stops.fired, starts.mode, after, count, result, steps, *accuracy
    return (ys, times), whole, _Record(starts, stops, count)


def map_lanes_in_turn(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a version of `function` for which `jax.vmap` computes the batch entries ("lanes") one
    by one. `function` takes two trees of arrays.

    When batch entries are computed together, each entry takes as many steps as the slowest entry
    and evaluates the branches of all entries. If only the second tree is batched, such as the
    tangents of a Jacobian, its entries are still computed together.

    On other devices than a CPU, return `function` itself. The returned function cannot be
    differentiated.
    """
    if jax.default_backend() != "cpu":
        return function
    wrapped = jax.custom_batching.custom_vmap(function)

    @wrapped.def_vmap
    def lanes(size: int, many, still, along) -> Any:
        of_still, of_along = many
        axes = lambda many: jax.tree.map(lambda is_many: 0 if is_many else None, many)  # noqa: E731
        if not any(jax.tree.leaves(of_still)):
            one = jax.vmap(function, in_axes=(None, axes(of_along)))
            out = map_lanes_in_turn(one)(still, along)
        else:
            at = lambda tree, many, i: jax.tree.map(  # noqa: E731
                lambda x, is_many: x[i] if is_many else x, tree, many
            )
            out = jax.lax.map(
                lambda i: wrapped(at(still, of_still, i), at(along, of_along, i)), jnp.arange(size)
            )
        return out, jax.tree.map(lambda _: True, out)

    return wrapped
