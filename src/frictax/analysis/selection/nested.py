"""Nested models: search the larger model a second time from the fit of the smaller one."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from frictax.fitting import FitResult
from frictax.fitting.fit import misfit, resume_search
from frictax.fitting.problem.problem import Problem, Unknown, bounds
from frictax.laws import AbstractLaw, Table
from frictax.mechanism import Mechanism
from frictax.parameters import parameters

from ..errors.resampling import run_search
from .cross_validation import coordinates


def from_contained(fits: Mapping[str, FitResult]) -> dict[str, FitResult]:
    """Return the fits, after a second search of each model that contains a smaller model.

    A model contains a smaller model if its misfit at trial values is not larger. The second search
    begins at these values: common parameters have the estimates of the smaller model. Other
    parameters are at a bound, 0 or their start value, or equal those of the other direction.
    """
    out: dict[str, FitResult] = {}
    for name, found in sorted(fits.items(), key=lambda item: item[1].x.size):
        problem, out[name] = found.problem, found
        smaller = sorted((o for o in out.values() if o.x.size < found.x.size), key=misfit)
        trials = ((other, x) for other in smaller for x in _trial_values(other, problem))
        for small, x in trials:
            z = coordinates(problem, x, 1e-9)
            end = run_search(problem, found.method, z, 1, found.noise_scale, found.dof)
            squares = float(np.sum(np.asarray(end.residuals)[: found.n] ** 2))
            least = float(np.sum(small.full_residuals**2))
            if np.all(np.isfinite(z)) and squares <= least * (1 + 1e-3):
                out[name] = resume_search(found, z)
                break
    return {name: out[name] for name in fits}


def _trial_values(small: FitResult, problem: Problem) -> Iterator[np.ndarray]:
    """Yield trial values of the parameters of `problem` from the estimates of `small`. Parameters
    that `small` lacks are set to their lower bound, or to 0 without a bound. Each of the first
    trials sets only parameters of one field name, and the last trial sets all of these parameters.
    """
    known, lacking = np.array(problem.x0), []
    for u in problem.unknowns:
        setup = small.problem.setup_at(jnp.asarray(small.x), u.record)
        values = {p.path: np.asarray(p.value) for p in parameters(setup)}
        # In a model with a law for each direction, paths of the forward law begin with "f_pos.".
        if isinstance(setup.machine, AbstractLaw):
            values |= {f"f_pos.{path}": value for path, value in values.items()}
        value = next(
            (values[path] for path in (u.path, _mirror_path(u.path)) if path in values), None
        )
        if value is None or np.shape(value) != u.shape:
            # If a table replaces a law, its trial values are the forces of this law.
            place, _, field = u.path.rpartition(".")
            table, law = _part(problem.setup.machine, place), setup.machine
            if not isinstance(law, AbstractLaw):
                law = _part(law, place) or _part(law, _mirror_path(place))
            is_table = field == "f" and isinstance(table, Table) and isinstance(law, AbstractLaw)
            value = np.asarray(law(jnp.asarray(table.v))) if is_table else None
        if value is None:
            lacking.append(u)
        else:
            known[u.place] = np.ravel(value)
    kinds = dict.fromkeys(u.path.rpartition(".")[2] for u in lacking)
    low = bounds(problem.unknowns)
    ends = np.where(np.isfinite(low), low, 0.0)
    if not lacking:
        yield known
    for kind in kinds if len(kinds) > 1 else ():
        yield _with(known, ends, [u for u in lacking if u.path.rpartition(".")[2] == kind])
    if lacking:
        yield _with(known, ends, lacking)


def _with(x: np.ndarray, ends: np.ndarray, moved: list[Unknown]) -> np.ndarray:
    x = np.array(x)
    for u in moved:
        x[u.place] = ends[u.place]
    return x


def _mirror_path(path: str) -> str:
    return path.replace("_neg", "_pos")


def _part(model: Any, place: str) -> Any:
    """Return the part or field of `model` at the path `place`, or None if this does not exist."""
    for name in place.split(".") if place else ():
        try:
            model = model[name] if isinstance(model, Mechanism) else getattr(model, name, None)
        except KeyError:
            return None
    return model
