"""The loop over the samples of a record."""

from typing import Any

# unvmap_any: a loop must go on while any lane of a vmap needs it, and its counter stays one number
import jax
import jax.numpy as jnp

from frictax.jax_internals import unvmap_any
from frictax.parameters.constant import constant
from frictax.parameters.shapes import row_at

from ..implicit.stiff import keeps_bounds, step as stepped
from ..options import OnSamples, room
from ..result import CHATTER, NONFINITE, Result
from ..reused import Reused
from ..stepping import entries, every, select, together
from ..system import END
from .crossing import as_of, cross_inside, to_the_end
from .grid import at_samples, fine_grid
from .log import Log, Retrace, empty_log, written
from .search import Piece, search_end, stays_up


def march(
    model, t0, y0, mode0, ts, options: OnSamples, nought: Any = 0.0, *, keeps: bool = True
) -> Any:
    """The whole run: floats that may be differentiated forward, whole numbers, and what reverse
    mode goes over again.

    That is kept if `keeps`. `nought` is 0 with some derivative: added to all that will have one, it
    spares JAX tracing each loop until it has found out.

    All lanes of a `jax.vmap` march together from sample to sample. A step without event is a few
    lines of one tight loop; the first lane with an event takes all of them through `eventful_step`.
    """
    system = Reused(model)
    grid, slacks = fine_grid(t0, ts, options)
    steps, n, m = grid.shape[0] - 1, y0.shape[0], mode0.shape[0]
    y0 = y0 + nought
    # The last row of each, and of the log, takes what is not to be kept: choosing the row costs
    # less than reading what stands there.
    ys = jnp.concatenate([y0[None], jnp.zeros((steps + 1, n), y0.dtype) + nought])
    modes = jnp.concatenate([mode0[None], jnp.zeros((steps + 1, m), jnp.int32)])
    log = jax.tree.map(
        lambda a: a + nought if jnp.issubdtype(a.dtype, jnp.floating) else a,
        empty_log(options, y0, mode0, keeps),
    )

    def quiet(carry) -> Any:
        # Entry by entry: XLA sees through a stack that is taken apart again, and not through
        # arithmetic with it or a loop around it.
        j, y_entries, mode_entries, _, alive, ys, modes = carry
        y, mode = together(y_entries, y0), together(mode_entries, mode0)
        y1, mode1, calm = quiet_step(
            system, options, (row_at(grid, j), row_at(grid, j + 1), row_at(slacks, j)), y, mode
        )
        stop = unvmap_any(alive & ~calm)
        ys, modes = written(ys, j + 1, y1), written(modes, j, mode1)

        def goes_on(olds, news):
            return [jnp.where(stop, a, b) for a, b in zip(olds, entries(news), strict=True)]

        y_entries, mode_entries = goes_on(y_entries, y1), goes_on(mode_entries, mode1)
        return jnp.where(stop, j, j + 1), y_entries, mode_entries, stop, alive, ys, modes

    def body(carry) -> Any:
        j, y, mode, alive, ys, modes, log, count, result = carry
        first = (j, entries(y), entries(mode), jnp.array(False), alive, ys, modes)
        j, y, mode, stop, _, ys, modes = jax.lax.while_loop(
            lambda c: (c[0] < steps) & ~c[3], quiet, first
        )
        y, mode = together(y, y0), together(mode, mode0)

        def eventful(state) -> Any:
            step = grid[j], grid[j + 1], slacks[j], j
            return eventful_step(system, options, step, alive, nought, 0, *state[2:])

        now = (y, mode, y, mode, log, count, result)
        y_now, mode_now, y, mode, log, count, result = jax.lax.cond(
            stop, eventful, lambda state: state, now
        )
        # at the end of the run nothing has stopped it
        here, there = (jnp.where(stop, i, steps + 1) for i in (j, j + 1))
        ys, modes = written(written(ys, here, y_now), there, y), written(modes, here, mode_now)
        return (
            jnp.where(stop, j + 1, j),
            y,
            mode,
            result == Result.successful,
            ys,
            modes,
            log,
            count,
            result,
        )

    zero = jnp.array(0, jnp.int32)
    carry = (zero, y0, mode0, jnp.array(True), ys, modes, log, zero, Result.successful)
    _, _, _, _, ys, modes, log, count, result = jax.lax.while_loop(
        lambda c: c[0] < steps, body, carry
    )
    kept = at_samples(options, ts.shape[0])
    log = jax.tree.map(lambda rows: rows[:-1], log)
    whole = (modes[kept], log.fired, log.before, log.after, count, result, 0 * count + (steps - 1))
    return (ys[kept], log.t1), whole, (ys, modes, log, count) if keeps else None


def quiet_step(system: Reused, options: OnSamples, step, y, mode) -> tuple[Any, Any, Any]:
    """The step from a sample to the next as if nothing happened in it: state and mode after it, and
    whether nothing did.
    """
    t, end, slack = step
    h, still = end - t, constant(system)
    mode1 = system.tick(t + slack, mode)
    rate = system.flow(t, y, mode1)
    y1 = stepped(system, options, mode1, t, end, y, rate, sound=True)
    guard = lambda *at: still.guard(*constant(at), mode1)  # noqa: E731
    calm = every(jnp.isfinite(y1)) & stays_up(
        guard(t, y), guard(t + 0.5 * h, y + 0.5 * h * rate), guard(end, y1)
    )
    if (kept := keeps_bounds(system, options, mode1, t, end, y, y1)) is not None:
        calm = calm & kept
    return y1, mode1, calm & (system.deadline(mode1) >= end - slack)


def eventful_step(
    system: Reused,
    options: OnSamples,
    step,
    alive,
    nought,
    first_row,
    y,
    mode,
    log: Log,
    count,
    result,
) -> Any:
    """The step from a sample to the next, piece by piece between its events: state and mode after
    those at the sample, and at the end.

    The events' entries stand in the `log` from `first_row` on.
    """
    t, end, slack, j = step
    begin = t
    size, m = room(options), mode.shape[0]

    def over(now: Piece, found, cause, active) -> tuple[Any, ...]:
        *at, after, fired, status = cross_inside(
            system, options, now, found, cause, None, end, active
        )
        return *at, after, fired.astype(cause.dtype), status.astype(jnp.int32)

    def body(carry) -> Any:
        piece, (y_now, mode_now), active, idle, log, count, result = carry
        t, y = piece.t, piece.y
        mode = system.tick(t + slack, piece.mode)
        mode_now = jnp.where(active & (constant(t) <= begin + slack), mode, mode_now)
        now = Piece(t, y, mode)
        found, cause = search_end(system, options, now, end, slack, active)
        t1, y1, after, fired, status = jax.lax.cond(
            cause == END,
            lambda: to_the_end(system, options, now, end, cause),
            lambda: over(now, found, cause, active),
        )
        done = fired == END
        following = Piece(t1, y1, jnp.where(done, mode, after))
        idle = jnp.where(constant(t1 - t) <= slack, idle + 1, 0)
        for failed, how in (
            ((status == NONFINITE) | ~jnp.all(jnp.isfinite(y1)), Result.nonfinite),
            (~done & (count >= size), Result.too_many_events),
            (idle >= CHATTER + 2 * m, Result.chatter),
            (status != 0, Result.inconsistent),
        ):
            result = Result.where(active & failed & (result == Result.successful), how, result)
        entry = Log(
            t1, fired, mode, after, None if log.retrace is None else Retrace(t, y, found, y1, j)
        )
        told = active & ~done & (result == Result.successful)
        row = first_row + jnp.where(told, count, size)
        log = jax.tree.map(lambda rows, new: written(rows, row, new.astype(rows.dtype)), log, entry)
        count = jnp.where(told, count + 1, count)
        at_sample = active & ~done & (constant(t1) <= begin + slack) & (result == Result.successful)
        y_now = jnp.where(at_sample, as_of(system, t1, y1, system.tick(t1 + slack, after)), y_now)
        piece = select(active, following, piece)
        return (
            piece,
            (y_now, mode_now),
            active & ~done & (result == Result.successful),
            idle,
            log,
            count,
            result,
        )

    first = (Piece(t + nought, y, mode), (y, mode), alive, jnp.array(0), log, count, result)
    piece, now, _, _, log, count, result = jax.lax.while_loop(
        lambda c: unvmap_any(c[2]), body, first
    )
    return (
        *now,
        # whose derivative is NaN, too
        piece.y * jnp.where(result == Result.successful, 1.0, jnp.nan).astype(piece.y.dtype),
        piece.mode,
        log,
        count,
        result,
    )


def shapes_of(options: OnSamples, y0, mode0, ts, *, record: bool) -> Any:
    """What `march` gives back, as shapes and types: it need not be traced to know them."""

    def blank(y0, mode0) -> Any:
        samples = ts.shape[0]
        steps = (
            int(sum(options.steps(samples))) if options.finer else (samples - 1) * options.substeps
        )
        log = jax.tree.map(lambda rows: rows[:-1], empty_log(options, y0, mode0, record))
        rows = lambda k, like: jnp.zeros((k, *like.shape), like.dtype)  # noqa: E731
        one = jnp.array(0, jnp.int32)
        told = log.fired, log.before, log.after, one, Result.successful, one
        kept = (rows(steps + 3, y0), rows(steps + 3, mode0), log, one) if record else None
        return (rows(samples, y0), log.t1), (rows(samples, mode0), *told), kept

    return jax.eval_shape(blank, y0, mode0)
