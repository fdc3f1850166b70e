"""The friction that is fitted to a sweep, with starts near the data."""

from collections.abc import Container
from typing import Any

import numpy as np

from frictax.laws import AbstractLaw, as_law
from frictax.measurements import Sweep
from frictax.notice import Notice
from frictax.parameters import (
    Parameter,
    as_array,
    check,
    on_edge_unasked,
    parameters,
    replace,
    select,
    to_unconstrained,
)

from .options import FitOptions
from .problem.initial_guess import near_law, starting_law
from .problem.initial_state import named_paths
from .problem.problem import Problem, residuals_and_jacobian
from .problem.steady import SteadyFriction, as_steady
from .result.identifiability import null_directions
from .result.steady_sentences import peak_unseen


def assemble_friction(model: Any, data: Sweep, options: FitOptions) -> Any:
    """Return the friction to fit: a law alone if no other parameter is fitted."""
    f_neg, peak, offset = options.f_neg, options.peak, options.offset
    if isinstance(model, SteadyFriction):
        if f_neg is not None or peak is not None or offset is not None:
            raise ValueError(
                "`f_neg`, `peak` and `offset` belong inside the `SteadyFriction` that is fitted,"
                " not beside it."
            )
        return model
    breakaway = bool(data.breakaway.any())
    forward = _law(model, data.positive() if f_neg is not None else data)
    if f_neg is None and peak is None and offset is None and not breakaway:
        check(forward)
        return forward
    backward = None if f_neg is None else _law(f_neg, data.negative())
    if peak is None:
        peak = 1.0
        if breakaway:
            ahead = data.breakaway & (data.direction > 0)
            peak = _peak(
                forward, data, ahead if backward is not None and ahead.any() else data.breakaway
            )
    return SteadyFriction(forward, backward, as_array(peak), as_array(offset))


def near_data(model: Any, data: Sweep, paths: tuple[str, ...]) -> list[Any]:
    """Return `model` with its free parameters set near the data; an empty list for laws of the
    user's own.
    """
    steady = as_steady(model)
    values: dict[str, Any] = {}
    for branch, law in (("f_pos", steady.f_pos), ("f_neg", steady.f_neg)):
        way = 1 if branch == "f_pos" else -1
        if law is None or (
            steady.f_neg is not None and not np.any((data.direction == way) & ~data.breakaway)
        ):
            continue
        own = data if steady.f_neg is None else data.select("positive" if way > 0 else "negative")
        near = near_law(law, own)
        if near is None:
            return []
        prefix = f"{branch}." if isinstance(model, SteadyFriction) else ""
        values |= {prefix + p.path: p.value for p in parameters(near)}
        if "peak" in paths and own.breakaway.any():
            values["peak"] = as_array(_peak(near, own, own.breakaway))
    moved = {path: value for path, value in values.items() if path in paths}
    return [replace(model, moved)] if moved else []


def _peak(law: AbstractLaw, data: Sweep, rows: np.ndarray) -> float:
    """Return the ratio of breakaway to sliding force at rest, inside its domain."""
    return max(1.05, float(np.mean(np.abs(data.force[rows])) / max(float(law.f0), 1e-300)))


def _law(model, data: Sweep) -> AbstractLaw:
    if isinstance(model, type) and issubclass(model, AbstractLaw):
        return starting_law(model, data)
    if isinstance(model, str):
        raise ValueError(
            f"`fit` takes a law, got the text {model!r}. Write fx.Stribeck, or fx.Stribeck(...)"
            " with start values."
        )
    return as_law(model)


def movable(
    model: Any, data: Sweep, free: Any, tied: Container[str] = ()
) -> tuple[list[Parameter], list[Notice]]:
    """Return the parameters that are fitted, and notices of those that cannot be."""
    chosen = [p for p in select(model, free) if p.path not in tied]
    notes = []
    if isinstance(model, SteadyFriction):
        if not data.breakaway.any():
            chosen = [p for p in chosen if p.path != "peak"]
            notes.append(peak_unseen(model))
        for branch, rows in (("f_pos.", data.direction > 0), ("f_neg.", data.direction < 0)):
            if model.f_neg is not None and not rows.any():
                chosen = [p for p in chosen if not p.path.startswith(branch)]
                notes.append(Notice("direction-unseen", branch[:-1]))
    else:
        notes.append(peak_unseen(model))
    if not chosen:
        raise ValueError(
            f"Nothing is left to fit: `free` is {free!r}. Name some of"
            f" {', '.join(p.path for p in parameters(model))}."
        )
    edge = on_edge_unasked(chosen, named_paths(free))
    if len(edge) < len(chosen):
        chosen = [p for p in chosen if p not in edge]
        notes += [Notice("left-at-bound", p.path, {"value": float(p.value)}) for p in edge]
    # This raises for a start on the edge of its domain.
    to_unconstrained(model, [p.path for p in chosen])
    return chosen, notes


def check_determined(problem: Problem, data: Sweep) -> None:
    """Raise `ValueError` for fewer rows than parameters, and for an offset that the sweep cannot
    distinguish from friction.
    """
    count = problem.x0.size
    if data.n <= count:
        raise ValueError(
            f"`Sweep` {data.name!r} has {data.n} rows, too few for {count} parameters and their"
            f" errors: {count + 1} is the least. Measure more speeds, or move fewer through"
            " free=[...]."
        )
    if any(u.path == "offset" for u in problem.unknowns):
        jacobian = np.asarray(residuals_and_jacobian(problem, problem.x0)[1])
        names = [name for u in problem.unknowns for name in u.names]
        _, null = null_directions(jacobian, names, np.linalg.norm(jacobian, axis=0) > 0)
        if any("offset" in direction for direction in null):
            why = "an asymmetry of Coulomb friction" if data.both_directions else "Coulomb friction"
            remedy = (
                "Leave out `offset` or `f_neg`"
                if data.both_directions
                else "Leave out `offset`, or measure both directions"
            )
            raise ValueError(
                f"`offset` (the payload's weight) and {why} cannot be separated here: both shift"
                f" the curve equally. {remedy}."
            )
