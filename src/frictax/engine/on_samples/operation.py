"""A run on samples as one JAX primitive, with rules for `jax.vmap`, for compilation, and for unused
results. A "lane" is one run of a batch. A tangent is the derivative along a direction ("seed").
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from frictax.jax_internals import JaxprEqn, Operation, ShapedArray

from ..options import OnSamples
from .lanes import march_lanes, partition_lanes
from .march import march, shapes_of

# Positions in the flat list of results of a run. The states are entry 0. The modes are entry 2, or
# entry 4 if the run has tangents. Both slices are for a run with tangents.
_STATES, _MODES = 0, (2, 4)
_TANGENTS = slice(2, 4)
_COUNT_AND_RESULT = slice(8, 10)


@dataclasses.dataclass(frozen=True)
class Run:
    """The parameters of the JAX primitive `run_p` that are not arrays.

    - `structure`, `rest`, `rest_structure`: data to rebuild the arguments from a list of arrays.
    - `kinds`: the kind of each array. Arrays of kind "own" may differ between runs, those of kind
      "options" may not, and arrays of kind "along" are tangents.
    - `pushes`: whether tangents are computed. `keeps`: whether the steps are stored for
      reverse-mode differentiation.
    - `asked`: a flag for each result that is True if the run returns it; None: return all results.
    """

    structure: Any
    rest: tuple[Any, ...]
    rest_structure: Any
    kinds: tuple[str, ...]
    pushes: bool
    keeps: bool
    asked: tuple[bool, ...] | None = None

    def arguments(self, flat: Sequence[Any]) -> Any:
        rest = jax.tree.unflatten(self.rest_structure, self.rest)
        return eqx.combine(jax.tree.unflatten(self.structure, flat), rest)

    def of_asked(self, given: Sequence[Any]) -> list[Any]:
        if self.asked is None:
            return list(given)
        return [x for x, is_asked in zip(given, self.asked, strict=True) if is_asked]

    def shows(self) -> tuple[bool, bool]:
        """Return two flags: whether the run must compute the states, and the modes, at the
        samples."""
        if self.keeps or self.asked is None:
            return True, True
        return self.asked[_STATES], self.asked[_MODES[self.pushes]]


def value(moved, rest, t0, y0, mode0, ts, options: OnSamples, *, keeps: bool) -> Any:
    """Return the results of `march`: floats, integers, and the data for reverse mode."""
    return _bind_run((moved, rest, t0, y0, mode0, ts), options, None, keeps)


def push(moved, rest, t0, y0, mode0, ts, options: OnSamples, along) -> Any:
    """Return the float results of `march`, their tangents, and its integer results. `along`:
    tangents of moved, y0 and t0 (None if t0 is fixed).
    """
    return _bind_run((moved, rest, t0, y0, mode0, ts), options, along, False)


def push_alone(moved, rest, t0, y0, mode0, ts, options: OnSamples, along) -> Any:
    """Return the tangents of `push`, the number of events and the `Result`, but not the values."""
    own = moved, rest, t0, y0, mode0, ts
    _, tangents, whole = _bind_run(own, options, along, False, alone=True)
    return tangents, *whole[4:6]


def _bind_run(own, options: OnSamples, along, keeps: bool, alone: bool = False) -> Any:
    whole = (own, options, along)
    arrays, rest = eqx.partition(whole, lambda x: eqx.is_array(x) or isinstance(x, np.ndarray))
    flat, structure = jax.tree.flatten(arrays)
    kinds = [
        kind
        for kind, part in zip(("own", "options", "along"), arrays, strict=True)
        for _ in jax.tree.leaves(part)
    ]
    rest_flat, rest_structure = jax.tree.flatten(rest)
    run = Run(structure, tuple(rest_flat), rest_structure, tuple(kinds), along is not None, keeps)
    shapes, given = jax.tree.flatten(_shapes(run, options, own))
    asked = np.ones(len(shapes), bool)
    if alone:
        asked[:] = False
        asked[_TANGENTS] = asked[_COUNT_AND_RESULT] = True
        run = dataclasses.replace(run, asked=tuple(asked.tolist()))
    nobody = (False,) * len(flat)
    out = iter(run_p.bind(*flat, run=run, lanes=None, seeds=None, many=nobody, seeded=nobody))
    return jax.tree.unflatten(given, [next(out) if is_asked else None for is_asked in asked])


def _shapes(run: Run, options: OnSamples, own) -> Any:
    *_, y0, mode0, ts = own
    floats, whole, record = shapes_of(options, y0, mode0, ts, record=run.keeps)
    return (floats, floats, whole) if run.pushes else (floats, whole, record)


def _compute(*flat, run: Run, together: bool, **how: Any) -> list[Any]:
    return run.of_asked(_compute_all(*flat, run=run, together=together, **how))


def _compute_all(*flat, run: Run, lanes, seeds, many, seeded, together: bool) -> list[Any]:
    """Return all results of `lanes` runs with `seeds` tangents each; None means one.

    The axes of an argument are, in this order: seeds (if flagged in `seeded`), lanes (if flagged in
    `many`), and the argument's own axes. The axes of a result are: lanes, the result's own axes,
    and for tangents the seeds. `together`: if True, compute 8 or more lanes by `march_lanes` and
    fewer lanes one by one; if False, use `jax.vmap`.
    """
    one_by_one = together
    own, options, along = run.arguments(flat)
    put = lambda flags: jax.tree.unflatten(run.structure, flags)  # noqa: E731
    of_lanes, _, along_of_lanes = put(many)
    in_seeds = put(seeded)[2]
    count = 0 if lanes is None else lanes
    together = together and count >= 8  # Fewer than 8 lanes are faster one by one.
    if not run.pushes:
        if together:
            *values, record = march_lanes(
                count, own, of_lanes, options, keeps=run.keeps, shows=run.shows()
            )
            return [*_leaves_with_none(values), *jax.tree.leaves(record)]
        return jax.tree.leaves(
            _march_apart(own, of_lanes, lanes, options, one_by_one, keeps=run.keeps)
        )
    moved, rest, t0, y0, mode0, ts = own
    at = (moved, y0, t0)
    if lanes is not None:
        at, along, many_at = _broadcast_lanes(
            lanes, at, along, (of_lanes[0], of_lanes[3], of_lanes[2]), along_of_lanes, in_seeds
        )
        of_lanes = (many_at[0], of_lanes[1], many_at[2], many_at[1], *of_lanes[4:])
    if together:
        along = jax.tree.map(
            lambda d, has_seeds: d if has_seeds else jnp.broadcast_to(d, (seeds or 1, *d.shape)),
            along,
            in_seeds,
        )
        moved, y0, t0 = at
        d_moved, d_y0, d_t0 = along
        floats, d_floats, whole = march_lanes(
            count,
            (moved, rest, t0, y0, mode0, ts),
            of_lanes,
            options,
            along=(d_moved, d_t0, d_y0),
            shows=run.shows(),
        )
        if seeds is None:
            d_floats = jax.tree.map(lambda d: d[..., 0], d_floats)
        return _leaves_with_none((floats, d_floats, whole))

    def run_at(nought, moved, y0, t0=at[2]) -> Any:
        own = (moved, rest, t0, y0, mode0, ts)
        floats, whole, _ = _march_apart(
            own, of_lanes, lanes, options, one_by_one, nought, keeps=False
        )
        return floats, whole

    nought = jnp.zeros((), y0.dtype)
    moving = slice(0, 2 if along[2] is None else 3)
    along_one = lambda d_nought, along: jax.jvp(  # noqa: E731
        run_at, (nought, *at[moving]), (d_nought, *along[moving]), has_aux=True
    )
    if seeds is None:
        return jax.tree.leaves(along_one(nought, along))
    # With an axis of seeds on the tangent of `nought`, JAX traces each loop only once.
    axes = 0, jax.tree.map(lambda is_seeded: 0 if is_seeded else None, in_seeds)
    of_seeds = jax.vmap(along_one, in_axes=axes, out_axes=(None, -1, None))
    return jax.tree.leaves(of_seeds(jnp.zeros(seeds, y0.dtype), along))


def _leaves_with_none(tree) -> list[Any]:
    """Return a tree's leaves as a list, in which None also counts as a leaf."""
    return jax.tree.leaves(tree, is_leaf=lambda x: x is None)


def _march_apart(
    own, many, lanes, options, one_by_one: bool, nought: Any = 0.0, *, keeps: bool
) -> Any:
    """Return the results of `march`. A batch of runs is computed `one_by_one` or by `jax.vmap`."""

    def one(own) -> Any:
        moved, rest, t0, y0, mode0, ts = own
        model = eqx.combine(moved, rest)
        return march(model, t0, y0, mode0, ts, options, nought, keeps=keeps)

    if lanes is None:
        return one(own)
    differing, same = partition_lanes(own, many)
    each = lambda differing: one(eqx.combine(differing, same))  # noqa: E731
    return jax.lax.map(each, differing) if one_by_one else jax.vmap(each)(differing)


def _broadcast_lanes(lanes: int, values, tangents, many, along_many, seeded) -> Any:
    """Return values, tangents, and a flag for each pair with an axis of lanes. If only the value or
    only its tangent has this axis, the other array is repeated along a new axis of lanes."""

    def both(x, d, is_many, is_along, has_seeds) -> Any:
        if x is None or d is None:
            return x, d, is_many
        if not is_many and is_along:
            x = jnp.broadcast_to(x, (lanes, *x.shape))
        if is_many and not is_along:
            d = jnp.expand_dims(d, int(has_seeds))
            d = jnp.broadcast_to(d, (*d.shape[: int(has_seeds)], lanes, *d.shape[1 + has_seeds :]))
        return x, d, is_many or is_along

    is_none = lambda x: x is None  # noqa: E731
    flat, structure = jax.tree.flatten(values, is_leaf=is_none)
    # An entry without a tangent is returned unchanged.
    parts = [
        jax.tree.leaves(tree, is_leaf=is_none) for tree in (tangents, many, along_many, seeded)
    ]
    done = [both(*one) for one in zip(flat, *parts, strict=True)]
    return [jax.tree.unflatten(structure, part) for part in zip(*done, strict=True)]


run_p = Operation("frictax_run")


@run_p.def_abstract_eval
def _abstract(*flat, run: Run, lanes, seeds, many, seeded) -> list[Any]:
    def plain(x, is_many, is_seeded) -> Any:
        return jax.ShapeDtypeStruct(x.shape[int(is_many) + int(is_seeded) :], x.dtype)

    own, options, _ = run.arguments([plain(*one) for one in zip(flat, many, seeded, strict=True)])
    out = run.of_asked(jax.tree.leaves(_shapes(run, options, own)))
    tangents = _are_tangents(run, len(out))
    ahead = () if lanes is None else (lanes,)
    after = () if seeds is None else (seeds,)
    return [
        ShapedArray((*ahead, *x.shape, *(after if is_tangent else ())), x.dtype)
        for x, is_tangent in zip(out, tangents, strict=True)
    ]


def _are_tangents(run: Run, count: int) -> list[bool]:
    """Return a flag for each of the `count` results, which is True for a tangent."""
    places = range(_TANGENTS.start, _TANGENTS.stop) if run.pushes else ()
    given = range(count if run.asked is None else len(run.asked))
    return run.of_asked([i in places for i in given])


@run_p.def_impl
def _eager(*flat, **how) -> list[Any]:
    return jax.jit(functools.partial(run_p.bind, **how))(*flat)


@run_p.def_batching
def _add_axis(flat, dims, *, run: Run, lanes, seeds, many, seeded) -> Any:
    """Apply `jax.vmap`. The new axis is an axis of lanes, or of seeds if it is on tangents only."""
    hit = [dim is not None for dim in dims]
    size = next(x.shape[dim] for x, dim in zip(flat, dims, strict=True) if dim is not None)
    how: dict[str, Any] = {"run": run, "lanes": lanes, "seeds": seeds}
    how |= {"many": many, "seeded": seeded}

    def where(kinds: str) -> bool:
        return any(h for h, kind in zip(hit, run.kinds, strict=True) if kind == kinds)

    if where("options"):
        return _bind_one_by_one(flat, dims, how)
    along_lanes = where("own")
    before, flags = (lanes, many) if along_lanes else (seeds, seeded)
    place = [int(s) if along_lanes else 0 for s in seeded]
    joined = [
        _join_axes(x, dim, at, flag, size, before)
        for x, dim, at, flag in zip(flat, dims, place, flags, strict=True)
    ]
    flags = tuple(h or flag for h, flag in zip(hit, flags, strict=True))
    total = size * (1 if before is None else before)
    how |= {"lanes": total, "many": flags} if along_lanes else {"seeds": total, "seeded": flags}
    out = run_p.bind(*joined, **how)
    axes = [
        0 if along_lanes else x.ndim - 1 if is_tangent else None
        for x, is_tangent in zip(out, _are_tangents(run, len(out)), strict=True)
    ]
    if before is not None:
        out = [
            x if k is None else x.reshape(*x.shape[:k], size, before, *x.shape[k + 1 :])
            for x, k in zip(out, axes, strict=True)
        ]
    return out, axes


def _bind_one_by_one(flat, dims, how: dict[str, Any]) -> Any:
    """Compute runs with different options one by one. `dims`: batch axis of each array, or None."""
    moving = [jnp.moveaxis(x, d, 0) for x, d in zip(flat, dims, strict=True) if d is not None]

    def one(moving) -> Any:
        left = iter(moving)
        own = [x if d is None else next(left) for x, d in zip(flat, dims, strict=True)]
        return run_p.bind(*own, **how)

    out = jax.lax.map(one, moving)
    return out, [0] * len(out)


def _join_axes(x, dim, place: int, flag: bool, size: int, before: int | None) -> Any:
    """Return `x` with the new batch axis `dim` (length `size`) moved to `place`, and merged with
    the old batch axis (length `before`; None: no old axis). `flag`: whether `x` has the old axis.
    """
    if dim is None:
        if not flag:
            return x
        x = jnp.broadcast_to(jnp.expand_dims(x, place), (*x.shape[:place], size, *x.shape[place:]))
    else:
        x = jnp.moveaxis(x, dim, place)
        if before is None:
            return x
        if not flag:
            x = jnp.expand_dims(x, place + 1)
            x = jnp.broadcast_to(x, (*x.shape[: place + 1], before, *x.shape[place + 2 :]))
    return x.reshape(*x.shape[:place], size * x.shape[place + 1], *x.shape[place + 2 :])


@run_p.def_dead_code
def _drop_unused_results(used: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Return the operation without its unused results, so that the run does not write them."""
    if not any(used):
        return [False] * len(eqn.invars), None
    if not all(used):
        run = eqn.params["run"]
        left = iter(used)
        asked = [a and next(left) for a in run.asked or (True,) * len(used)]
        eqn = eqn.replace(
            outvars=[v for v, is_used in zip(eqn.outvars, used, strict=True) if is_used],
            params=eqn.params | {"run": dataclasses.replace(run, asked=tuple(asked))},
        )
    return [True] * len(eqn.invars), eqn


run_p.def_lowering(functools.partial(_compute, together=False))
run_p.def_lowering(functools.partial(_compute, together=True), platform="cpu")
