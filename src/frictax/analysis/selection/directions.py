"""Test whether a sweep of both directions needs an offset, or a law for each direction."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import fdtrc

from frictax.fitting import FitResult, SteadyFriction, fit
from frictax.fitting.problem.problem import Unknown
from frictax.fitting.problem.steady import as_steady
from frictax.fitting.result.sweep_checks import independent, outliers
from frictax.fitting.steady_model import movable
from frictax.notice import Notice
from frictax.parameters import parameters
from frictax.text import format_estimate

from .row_autocorrelation import restricted_likelihood, whiten_rows

OFFSET, EACH = "offset", "each direction"
# p values below which the two directions differ, and differ by more than an offset.
_DIFFERENT, _MORE = 0.002, 0.02
_EXACT = 1e-9  # largest ratio of residuals to forces that is a rounding error
_UNSEEN = 1e-6  # ratio of singular values below which the rows do not identify a direction
_SPEEDS = 7  # number of speeds at which the forces of both directions are compared
# A test must be significant at each autocorrelation whose restricted likelihood (twice its
# logarithm) is within _NEARLY of the largest. With these numbers 0 of 384 symmetric sweeps with
# white errors are found to differ, and 17 of 384 with an autocorrelation of 0.8.
_CORRELATIONS, _NEARLY = np.linspace(0.0, 0.8, 9), 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class Difference:
    """The two directions differ as `kind` says: a better fit, the call for it, and the size of
    the difference in words and in SI units.
    """

    kind: str
    found: FitResult
    call: str
    words: str
    size: float
    lower: float
    upper: float
    unit: str


def difference_of(found: FitResult) -> Difference | None:
    """Return how the two directions of a fitted sweep differ beyond its model, or None.

    F tests of an offset and of a law for each direction, to first order about the fit, find a
    difference. The model is then fitted, and has to have a lower AICc and an interval of the
    difference without 0. A law for each direction is tried after an offset if the same tests of
    that fit ask for it. Fits with priors, ties, bounds or logarithmic scales are not examined.
    """
    best, least = None, found.aicc
    kinds = [EACH] if "offset" in found.names else [OFFSET, EACH]
    for kind in kinds if _different(found) else ():
        other = _difference(found, kind)
        if other is None or not other.found.aicc < least or not 0 < other.lower * other.upper:
            continue
        best, least = other, other.found.aicc
        if kind == OFFSET and not _different(other.found):
            break
    return best


def _difference(found: FitResult, kind: str) -> Difference | None:
    """Return the fit of this kind with the size of the difference, None if it has no end.

    The difference is that of the parameter which differs most clearly. If none does, it is that of
    the friction forces at the speed at which these differ most clearly.
    """
    try:
        call, better = _fit_kind(found, kind)
    except ValueError:  # too few rows for the parameters of both directions
        return None
    found_apart = list(_of_parameters(better, kind))
    if kind == EACH and all(one.clearness() < 1 for one in found_apart):
        # Parameters can be strongly correlated although the laws differ.
        found_apart += _of_forces(better)
    if not found_apart:
        return None
    best = max(found_apart, key=_SizedDifference.clearness)
    ends = best.size - best.half, best.size + best.half
    text = format_estimate(best.size, best.half / 2, best.unit, ends)
    words = f"{best.what} {text.value} {text.unit} ({text.interval} {text.unit})"
    return Difference(kind, better, call, words, best.size, *ends, best.unit)


@dataclasses.dataclass(frozen=True)
class _SizedDifference:
    """A difference `size` with `half` of its interval, and the words that precede it."""

    what: str
    size: float
    half: float
    unit: str

    def clearness(self) -> float:
        """Return the size over half of the interval, 1 if the interval ends at 0."""
        return abs(self.size) / max(self.half, 1e-300)


def _of_parameters(better: FitResult, kind: str) -> Iterator[_SizedDifference]:
    """Yield the offset, or each parameter of the law forward minus that of the law backward."""
    for i, name in enumerate(better.names):
        row = np.eye(len(better.names))[i : i + 1]
        what = "the offset is"
        if kind == EACH and name.startswith("f_pos.") and better.active[i]:
            row[0, better.names.index(name.replace("f_pos.", "f_neg."))] = -1.0
            what = f"f_pos.{name[6:]} is larger than f_neg.{name[6:]} by"
        elif kind == EACH or name != "offset":
            continue
        half = float(better.spread.half_width(better.level, row)[0])
        yield _SizedDifference(what, float(row[0] @ better.x), half, better[name].unit)


def _of_forces(better: FitResult) -> Iterator[_SizedDifference]:
    """Yield friction forward minus friction backward, at speeds that were measured both ways, with
    intervals for white errors.
    """
    sweep, machine_at = better.sweep, better.problem.setup_at
    speeds = [np.abs(sweep.velocity[sweep.velocity * way > 0]) for way in (1.0, -1.0)]
    ends = max(v.min() for v in speeds), min(v.max() for v in speeds)
    if not ends[0] < ends[1]:
        return
    v, unit = np.linspace(*ends, _SPEEDS), sweep.velocity_unit

    def difference(x: Array) -> Array:
        law = as_steady(machine_at(x, None).machine)
        assert law.f_neg is not None
        return law.f_pos(jnp.asarray(v)) - law.f_neg(jnp.asarray(v))

    x = jnp.asarray(better.x)
    size, rows = np.asarray(difference(x)), np.asarray(jax.jacfwd(difference)(x))
    # A direction that the rows do not identify changes forces at these speeds by rounding only.
    j = better.full_jacobian[: better.n] * better.active
    norms = np.linalg.norm(j, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    root = (rows / norms) @ np.linalg.pinv(j / norms, rcond=_UNSEEN)
    half = better.quantile * better.noise_scale * np.linalg.norm(root, axis=1)
    for speed, this, h in zip(v / unit.si, size, half, strict=True):
        what = f"at {speed:.3g} {unit.name} friction forward is larger than backward by"
        yield _SizedDifference(what, float(this), float(h), better.shown_force.si_name)


def with_directions(
    fits: Mapping[str, FitResult],
) -> tuple[dict[str, FitResult], dict[str, str]]:
    """Return `fits` with further fits if the two directions differ, and in words by how much.

    The fit with the least AICc shows which model they ask for: each law has it then.
    """
    out, words = dict(fits), {}
    for _ in range(2):  # an offset first may show that the laws differ, too
        least = min(out.values(), key=lambda found: found.aicc, default=None)
        kind = _different(least) if least is not None else ""
        others = {n: _difference(found, kind) for n, found in fits.items() if kind}
        new = {f"{name}, {kind}": other for name, other in others.items() if other is not None}
        out |= {name: other.found for name, other in new.items()}
        words |= {name: other.words for name, other in new.items()}
    return out, words


def direction_notices(found: FitResult) -> tuple[Notice, ...]:
    """Return a notice if the two directions of a sweep differ beyond the model of the fit."""
    other = difference_of(found)
    if other is None:
        return ()
    numbers = {"difference": other.words, "call": other.call, "gain": found.aicc - other.found.aicc}
    numbers |= {"size": other.size, "lower": other.lower, "upper": other.upper, "unit": other.unit}
    if other.kind == OFFSET:
        return (Notice("offset-missing", "", numbers),)
    return (Notice("directions-differ", "", numbers),)


def _different(found: FitResult) -> str:
    """Return which term the residuals lack: an offset, a law for each direction, or neither ("").

    The F tests use generalised least squares. Among the likely autocorrelations of neighbouring
    rows, the one with the largest p value counts. Outliers are excluded.
    """
    problem, model = found.problem, found.start
    declared = {p.path: p.declaration for p in parameters(problem.setup.machine)}
    plain = all(declared.get(u.path) == u.declaration for u in problem.unknowns)
    if not found.sweep.both_directions or problem.priors or problem.ties or not plain:
        return ""
    if as_steady(model).f_neg is not None or not found.active.any():
        return ""
    r, jacobian = found.full_residuals, found.full_jacobian[: found.n]
    weight = problem.weights()
    if np.linalg.norm(r) < _EXACT * np.linalg.norm(weight * found.sweep.force):
        return ""
    law = np.array([name not in ("offset", "peak") for name in found.names])
    base = jacobian[:, found.active]
    each = jacobian[:, found.active & law] * found.sweep.direction[:, None]
    offset = weight[:, None]
    all_columns = np.column_stack([base, offset, each])
    off = np.flatnonzero(outliers([found.sweep], r, independent(all_columns)))
    base = np.column_stack([base, np.eye(found.n)[:, off]])  # a column excludes an outlier
    with_offset = np.column_stack([base, offset])
    all_columns = np.column_stack([with_offset, each])
    likelihood = restricted_likelihood(r, independent(all_columns))
    levels = np.array([likelihood(rho) for rho in _CORRELATIONS])
    correlations = _CORRELATIONS[levels <= levels.min() + _NEARLY]

    def chance_of(smaller: np.ndarray, larger: np.ndarray) -> float:
        return max(_chance(r, smaller, larger, rho) for rho in correlations)

    of_offset = chance_of(base, with_offset)
    if of_offset < _DIFFERENT and chance_of(with_offset, all_columns) >= _MORE:
        return OFFSET
    of_each = chance_of(base, np.column_stack([base, each]))
    return EACH if of_each < _DIFFERENT else OFFSET if of_offset < _DIFFERENT else ""


def _chance(
    r: Float[np.ndarray, " n"],
    smaller: Float[np.ndarray, "n p"],
    larger: Float[np.ndarray, "n q"],
    correlation: float,
) -> float:
    """Return the p value of the F test of the larger model against the smaller."""
    y, squares, ranks = whiten_rows(r, correlation), [], []
    for columns in (smaller, larger):
        basis = independent(whiten_rows(columns, correlation))
        squares.append(float(np.sum((y - basis @ (basis.T @ y)) ** 2)))
        ranks.append(basis.shape[1])
    more, dof = ranks[1] - ranks[0], len(r) - ranks[1]
    if more < 1 or dof < 2:
        return 1.0
    least = max(squares[1], 1e-24 * squares[0])
    return float(fdtrc(more, dof, max(squares[0] - squares[1], 0.0) / more / least * dof))


def _fit_kind(found: FitResult, kind: str) -> tuple[str, FitResult]:
    """Return the call for the model of this kind, and its fit."""
    bare = not isinstance(found.start, SteadyFriction)
    law = found.start if bare else found.start.f_pos
    own = [_paths(u, kind) for u in found.problem.unknowns if u.path != "offset"]
    free = [path for paths in own for path in paths]
    options: dict[str, Any] = {"offset": 0.0} if kind == OFFSET else {"f_neg": law}
    usual, _ = movable(found.start, found.sweep, None)
    name = "found.start" if bare else "found.start.f_pos"
    said = "offset=0.0" if kind == OFFSET else f"f_neg={name}"
    if len(usual) > len(found.problem.unknowns):
        options["free"] = [*free, *(["offset"] if kind == OFFSET else [])]
        said += f", free={options['free']}"
    if found.loss.rounds > 1:
        said += ", loss=found.loss"
    made = fit(law, found.sweep, **options, loss=found.loss, method=found.method, level=found.level)
    return f"fx.fit({name}, found.sweep, {said})", made


def _paths(unknown: Unknown, kind: str) -> list[str]:
    path = unknown.path
    if path == "peak":
        return [path]
    path = path.removeprefix("f_pos.")
    return [f"f_pos.{path}", *([f"f_neg.{path}"] if kind == EACH else [])]
