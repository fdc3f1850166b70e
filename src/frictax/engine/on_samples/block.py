"""Some lanes from sample to sample together."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from frictax.parameters.shapes import row_at

from ..result import Result
from ..reused import Reused
from ..stepping import entries, together
from .log import placed, written
from .march import eventful_step, quiet_step
from .plan import Made, Plan


@dataclasses.dataclass(frozen=True)
class Block:
    """One block, with what moves of the model and the rest, each with lanes (last) and without.

    - `rest_by_lane`: what of the rest has lanes, (lanes, ...), so that a table of one lane lies
      together: an event reads it as a whole.
    - `slacks` [s] (steps,) or (steps, lanes), see `fine_grid`.
    """

    plan: Plan
    moved: Any
    rest: Any
    rest_by_lane: Any
    slacks: Array

    def run(self, y0, d_y0, mode0, grid, d_grid, d_moved, first, made: Made) -> Made:
        """The whole run, written to `made` from the lane `first` on."""
        plan, seeds = self.plan, self.plan.seeds
        log = jax.tree.map(lambda a: jnp.tile(a, (plan.lanes,) + (1,) * (a.ndim - 1)), plan.log())
        nobody = jnp.zeros(plan.lanes, jnp.int32)
        well = jax.tree.map(lambda a: jnp.full(plan.lanes, a), Result.successful)
        floats = _entries(y0), log.t1
        along = None
        if seeds is not None:
            along = jax.vmap(_entries)(d_y0), jnp.zeros((seeds, *log.t1.shape), log.t1.dtype)

        def tile(k, carry) -> Any:
            floats, along, whole, made = carry
            begin = k * plan.tile
            cut = lambda a, axis=0: jax.lax.dynamic_slice_in_dim(  # noqa: E731
                a, begin, plan.tile + 1, axis, allow_negative_indices=False
            )
            over = functools.partial(self.over, begin, whole)
            nought = jnp.zeros((), plan.y.dtype)
            y, t1 = floats
            at = self.moved, y, t1, nought, cut(grid)
            if along is None:
                (*floats, ys), (whole, modes) = over(*at)
                d_ys = None
            else:
                along = d_moved, *along, jnp.zeros(seeds, nought.dtype)
                along = along if d_grid is None else (*along, cut(d_grid, 1))
                (*floats, ys), (*along, d_ys), (whole, modes) = _pushed(over, at, along)
            put = lambda rows, tile, *axes: (  # noqa: E731
                None if rows is None else placed(rows, jnp.transpose(tile, axes), (first, begin))
            )
            made = dataclasses.replace(
                made,
                ys=put(made.ys, ys, 2, 0, 1),
                d_ys=put(made.d_ys, d_ys, 3, 1, 2, 0),
                modes=put(made.modes, modes, 2, 0, 1),
            )
            return tuple(floats), None if along is None else tuple(along), whole, made

        carry = floats, along, (_entries(mode0), log, nobody, well), made
        (_, t1), along, (_, log, count, result), made = jax.lax.fori_loop(
            0, plan.tiles, tile, carry
        )
        log = eqx.tree_at(lambda log: log.t1, log, t1)
        lane = lambda a: a.reshape(plan.lanes, plan.rows, *a.shape[1:])[:, :-1]  # noqa: E731

        def put(old, new) -> Any:
            return jax.tree.map(lambda a, b: placed(a, b, (first,)), old, new)

        made = dataclasses.replace(
            made,
            log=put(made.log, jax.tree.map(lane, log)),
            count=put(made.count, count),
            result=put(made.result, result),
        )
        if along is not None:
            d_t1 = jax.vmap(lane)(along[1])
            made = dataclasses.replace(made, d_t1=put(made.d_t1, jnp.moveaxis(d_t1, 0, -1)))
        return made

    def over(self, begin, whole, moved, y, t1, nought, grid) -> Any:
        """The steps of a tile, from the step `begin` on; `nought` as of `march`."""
        plan, options, lanes = self.plan, self.plan.options, self.plan.lanes
        mode, log, count, result = whole
        log = eqx.tree_at(lambda log: log.t1, log, t1)
        timed = grid.ndim > 1
        size = jnp.minimum(plan.tile, plan.steps - begin)
        ys = jnp.zeros((plan.tile, *plan.y.shape, lanes), plan.y.dtype) + nought
        modes = None
        if plan.shows[1]:
            modes = jnp.zeros((plan.tile, *plan.mode.shape, lanes), plan.mode.dtype)

        def step_at(j) -> Any:
            return row_at(grid, j), row_at(grid, j + 1), row_at(self.slacks, begin + j)

        def one(own, same, y, mode, step) -> Any:
            system = _system(own, same)
            y, mode, calm = quiet_step(
                system, options, step, together(y, plan.y), together(mode, plan.mode)
            )
            return entries(y), entries(mode), calm

        (across, same), (more, rest) = moved, self.rest
        all_lanes = jax.vmap(one, in_axes=(-1, None, 0, 0, 0 if timed else None))

        def quiet(carry) -> Any:
            j, y, mode, _, alive, ys, modes = carry
            y1, mode1, calm = all_lanes((across, more), (same, rest), y, mode, step_at(j))
            ys = written(ys, j, stacked(y, plan.y, lanes))
            if modes is not None:
                modes = written(modes, j, stacked(mode1, plan.mode, lanes))
            todo = alive & ~calm
            y, mode = jax.tree.map(
                lambda a, b: jnp.where(_first(todo, a), a, b), (y, mode), (y1, mode1)
            )
            return jnp.where(jnp.any(todo), j, j + 1), y, mode, todo, alive, ys, modes

        def body(carry) -> Any:
            j, y, mode, ys, modes, log, count, result = carry
            alive = result == Result.successful
            j, y, mode, todo, _, ys, modes = jax.lax.while_loop(
                lambda c: (c[0] < size) & ~jnp.any(c[3]),
                quiet,
                (j, y, mode, jnp.zeros(lanes, bool), alive, ys, modes),
            )
            here = jnp.minimum(j, plan.tile - 1)
            step = step_at(here)

            def event(carry) -> Any:
                todo, y, mode, ys, modes, log, count, result = carry
                i = jnp.argmax(todo).astype(jnp.int32)
                at = lambda tree: jax.tree.map(lambda a: row_at(a, i), tree)  # noqa: E731
                own = jax.tree.map(
                    lambda a: jax.lax.dynamic_index_in_dim(
                        a, i, -1, keepdims=False, allow_negative_indices=False
                    ),
                    across,
                )
                own = own, at(self.rest_by_lane)
                y_now, mode_now, y1, mode1, log, count1, result1 = eventful_step(
                    _system(own, (same, rest)),
                    options,
                    (*(at(step) if timed else step), begin + here),
                    jnp.array(True),
                    nought,
                    i * plan.rows,
                    together(at(y), plan.y),
                    together(at(mode), plan.mode),
                    log,
                    row_at(count, i),
                    at(result),
                )

                def put(old, new) -> Any:
                    return jax.tree.map(lambda a, b: written(a, i, b), old, new)

                def show(rows, new) -> Any:
                    return None if rows is None else placed(rows, new[None, :, None], (here, 0, i))

                return (
                    written(todo, i, jnp.array(False)),
                    put(y, entries(y1)),
                    put(mode, entries(mode1)),
                    show(ys, y_now),
                    show(modes, mode_now),
                    log,
                    written(count, i, count1),
                    put(result, result1),
                )

            stopped = jnp.any(todo)
            _, *after = jax.lax.while_loop(
                lambda c: jnp.any(c[0]), event, (todo, y, mode, ys, modes, log, count, result)
            )
            return jnp.where(stopped, j + 1, j), *after

        first = (jnp.array(0, jnp.int32), y, mode, ys, modes, log, count, result)
        _, y, mode, ys, modes, log, count, result = jax.lax.while_loop(
            lambda c: c[0] < size, body, first
        )
        return (y, log.t1, ys), ((mode, log, count, result), modes)


def _system(own, same) -> Reused:
    """Of one lane: what moves of it and the rest, its own and what it has like all others."""
    moved, rest = (eqx.combine(*parts) for parts in zip(own, same, strict=True))
    return Reused(eqx.combine(moved, rest))


def _first(todo: Array, like: Array) -> Array:
    return jnp.reshape(todo, (-1,) + (1,) * (like.ndim - 1))


def _entries(x: Array) -> list[Array]:
    return jax.vmap(entries)(x)


def stacked(parts: list[Array], like: Array, lanes: int) -> Array:
    """Entries of lanes as one array, lanes last, of what one lane has `like` it (n,)."""
    if not parts:
        return jnp.zeros((0, lanes), like.dtype)
    return jnp.stack(parts) if len(parts) == like.shape[0] else parts[0].T


def _pushed(function, at, along) -> Any:
    """What `function` gives at `at`, tangents by the first of that, seeds first, and the rest."""
    going, still = at[: len(along)], at[len(along) :]
    push = lambda along: jax.jvp(  # noqa: E731
        lambda *going: function(*going, *still), going, along, has_aux=True
    )
    return jax.vmap(push, out_axes=(None, 0, None))(along)
