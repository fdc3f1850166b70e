"""Autocorrelated errors of the rows of a sweep, and tests of differences between its directions."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import fdtrc

from frictax.fitting import FitResult, SteadyFriction, fit
from frictax.fitting.problem.steady import as_steady
from frictax.fitting.result.sweep_checks import independent, outliers
from frictax.fitting.steady_model import movable
from frictax.notice import Notice
from frictax.parameters import parameters
from frictax.text import format_estimate


def autocorrelation_of(fits: Iterable[FitResult]) -> float:
    """Return the autocorrelation, from 0 to 0.98, of the errors of neighbouring rows of a sweep.
    Return 0 if it is not significant, if the sweep has few rows, and for a robust loss or priors.

    The autocorrelation is estimated by restricted maximum likelihood. The function uses the law
    with the smallest AICc for white noise, because a law that lacks a term has autocorrelated
    residuals. The result is the upper end of the 68 % interval, because with too small a value the
    criteria choose laws with too many parameters.

    **Source:** H. D. Patterson, R. Thompson, Biometrika 58(3), 1971 (restricted likelihood).
    """
    from scipy.optimize import minimize_scalar

    found = min(fits, key=lambda one: one.aicc)
    r, J = _linearise(found)
    free = r.size - J.shape[1]
    if found.loss.rounds > 1 or found.problem.priors or free < 10:
        return 0.0

    minus2log = restricted_likelihood(r, J)
    best: Any = minimize_scalar(minus2log, bounds=(0.0, 0.98), method="bounded")
    # For white noise, this likelihood ratio exceeds 2.7 by chance in 1 of 20 sweeps.
    if not minus2log(0.0) - best.fun > 2.7:
        return 0.0
    farther = np.linspace(best.x, 0.98, 100)
    return float(max(x for x in farther if minus2log(x) <= best.fun + 1.0))


def restricted_likelihood(
    r: Float[np.ndarray, " n"], J: Float[np.ndarray, "n p"]
) -> Callable[[float], float]:
    """Return a function: autocorrelation -> -2 times its log restricted likelihood, up to a
    constant. `r`, `J`: residuals and Jacobian of the fit.
    """

    def minus2log(rho: float) -> float:
        a, b = whiten_rows(J, rho), whiten_rows(r, rho)
        q, triangle = np.linalg.qr(a)
        left, least = b - q @ (q.T @ b), np.finfo(float).tiny
        size = 2.0 * np.sum(np.log(np.maximum(np.abs(np.diag(triangle)), least)))
        free = r.size - J.shape[1]
        return float(free * np.log(max(left @ left, least)) - np.log(1.0 - rho**2) + size)

    return minus2log


def criteria_with(found: FitResult, rho: float) -> tuple[float, float]:
    """Return AICc and BIC for errors with autocorrelation `rho`, which counts as a parameter.
    Generalised least squares fits the linearised law again.
    """
    if rho == 0.0:
        return found.aicc, found.bic
    sweep, (r, J), n = found.sweep, _linearise(found), found.n
    weight = np.broadcast_to(1.0 if sweep.sigma is None else 1.0 / sweep.sigma, n)
    a, b = whiten_rows(J, rho), whiten_rows(r, rho)
    left = b - a @ np.linalg.lstsq(a, b, rcond=None)[0]
    squares = max(float(left @ left), 1e-24 * float(np.sum((sweep.force * weight) ** 2)))
    misfit = squares if sweep.sigma_known else n * (np.log(squares / n) + 1.0)
    constant = n * np.log(2 * np.pi) - 2.0 * np.sum(np.log(weight))
    minus2log = misfit + constant - np.log(1.0 - rho**2)
    k = len(found.estimates) + 2 - sweep.sigma_known
    aicc = minus2log + 2 * k * n / (n - k - 1) if n > k + 1 else np.inf
    return float(aicc), float(minus2log + k * np.log(n))


def _linearise(found: FitResult) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n p"]]:
    n = found.n
    return found.full_residuals[:n], found.full_jacobian[:n, found.active]


def whiten_rows(x: Float[np.ndarray, "n ..."], rho: float) -> Float[np.ndarray, "n ..."]:
    """Transform the rows of `x` so that errors e[i] = rho*e[i-1] + w[i] become white errors w."""
    first = np.sqrt(1.0 - rho**2) * x[:1]
    return np.concatenate([first, x[1:] - rho * x[:-1]])


OFFSET, EACH = "offset", "each direction"
# Friction differs between directions if the F test has a p value below `_DIFFERENT`. An offset is
# not sufficient if the F test of the model with an offset has a p value below `_MORE`.
_DIFFERENT, _MORE = 0.002, 0.02
# A test must be significant for all likely autocorrelations in `_CORRELATIONS`. For these, twice
# the log restricted likelihood is at most `_NEARLY` below its maximum. The test wrongly finds a
# difference in 0 of 384 symmetric sweeps with white errors, and in 17 of 384 symmetric sweeps with
# an autocorrelation of 0.8.
_CORRELATIONS, _NEARLY = np.linspace(0.0, 0.8, 9), 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class Difference:
    """A difference between the two directions. `kind`: `OFFSET` (a constant force) or `EACH` (a law
    for each direction); `found`, `call`: fit with this extension, and the call of `fit` as text;
    `words`: the difference in words; `size`, `lower`, `upper`: size and interval in `unit`.
    """

    kind: str
    found: FitResult
    call: str
    words: str
    size: float
    lower: float
    upper: float
    unit: str


def _difference(found: FitResult, kind: str) -> Difference | None:
    """Fit the law with the extension `kind`. Return the most significant difference of a parameter
    between directions. If no interval of a parameter excludes 0, also compare friction at common
    speeds. Return None if the fit is not possible or both directions are equal."""
    try:
        call, better = _fit_kind(found, kind)
    except ValueError:  # too few rows for the parameters of both directions
        return None
    found_apart = []
    for i, name in enumerate(better.names):
        row = np.eye(len(better.names))[i : i + 1]
        what = "the offset is"
        if kind == EACH and name.startswith("f_pos.") and better.active[i]:
            row[0, better.names.index(name.replace("f_pos.", "f_neg."))] = -1.0
            what = f"f_pos.{name[6:]} is larger than f_neg.{name[6:]} by"
        elif kind == EACH or name != "offset":
            continue
        half = float(better.spread.half_width(better.level, row)[0])
        size = float(row[0] @ better.x)
        found_apart.append(_SizedDifference(what, size, half, better[name].unit))
    if kind == EACH and all(one.clearness() < 1 for one in found_apart):
        # If parameters are strongly correlated, only the friction forces differ significantly.
        found_apart += _force_differences(better)
    if not found_apart:
        return None
    best = max(found_apart, key=_SizedDifference.clearness)
    ends = best.size - best.half, best.size + best.half
    text = format_estimate(best.size, best.half / 2, best.unit, ends)
    words = f"{best.what} {text.value} {text.unit} ({text.interval} {text.unit})"
    return Difference(kind, better, call, words, best.size, *ends, best.unit)


@dataclasses.dataclass(frozen=True)
class _SizedDifference:
    """A difference `size`, half the width of its interval (`half`), and a description `what`."""

    what: str
    size: float
    half: float
    unit: str

    def clearness(self) -> float:
        """Return |size|/half. If it is above 1, the interval of the difference excludes 0."""
        return abs(self.size) / max(self.half, 1e-300)


def _force_differences(better: FitResult) -> list[_SizedDifference]:
    """Return the difference forward - backward of friction at seven speeds, with intervals."""
    sweep, out = better.sweep, []
    speeds = [np.abs(sweep.velocity[sweep.velocity * way > 0]) for way in (1.0, -1.0)]
    ends = max(v.min() for v in speeds), min(v.max() for v in speeds)
    if not ends[0] < ends[1]:
        return []
    v, x, unit = np.linspace(*ends, 7), jnp.asarray(better.x), sweep.velocity_unit

    def difference(x: Array) -> Array:
        law = as_steady(better.problem.setup_at(x, None).machine)
        assert law.f_neg is not None
        return law.f_pos(jnp.asarray(v)) - law.f_neg(jnp.asarray(v))

    sizes, rows = np.asarray(difference(x)), np.asarray(jax.jacfwd(difference)(x))
    # Some combinations of parameters are not identifiable and change these forces only by rounding
    # errors. The pseudoinverse ignores these combinations.
    j = better.full_jacobian[: better.n] * better.active
    norms = np.linalg.norm(j, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    root = (rows / norms) @ np.linalg.pinv(j / norms, rcond=1e-6)
    half = better.quantile * better.noise_scale * np.linalg.norm(root, axis=1)
    for speed, size, h in zip(v / unit.si, sizes.tolist(), half.tolist(), strict=True):
        what = f"at {speed:.3g} {unit.name} friction forward is larger than backward by"
        out.append(_SizedDifference(what, size, h, better.shown_force.si_name))
    return out


def with_directions(fits: Mapping[str, FitResult]) -> tuple[dict[str, FitResult], dict[str, str]]:
    """Return `fits`, with additional fits if the directions differ. Also return a dict: name of an
    additional fit -> the difference in words. Tests with the fit of smallest AICc decide whether
    the additional fits have an offset, or a law for each direction.
    """
    out, words = dict(fits), {}
    for _ in range(2):  # With an offset added, the laws of both directions may still differ.
        least = min(out.values(), key=lambda found: found.aicc, default=None)
        kind = _different(least) if least is not None else ""
        others = {n: _difference(found, kind) for n, found in fits.items() if kind}
        new = {f"{name}, {kind}": other for name, other in others.items() if other is not None}
        out |= {name: other.found for name, other in new.items()}
        words |= {name: other.words for name, other in new.items()}
    return out, words


def direction_notices(found: FitResult) -> tuple[Notice, ...]:
    """Return a notice if the two directions of a sweep differ more than the fitted model allows.

    F tests of the linearised model detect whether an offset, or a law for each direction, is
    needed. For a notice, the fit with this extension must have a lower AICc, and the interval of
    the difference must exclude 0. If the tests find a difference also with an offset, the function
    fits a law for each direction. Fits with priors, ties, bounds given by the user, or logarithmic
    scales are not examined.
    """
    other, least = None, found.aicc
    kinds = [EACH] if "offset" in found.names else [OFFSET, EACH]
    for kind in kinds if _different(found) else ():
        new = _difference(found, kind)
        if new is None or not new.found.aicc < least or not 0 < new.lower * new.upper:
            continue
        other, least = new, new.found.aicc
        if kind == OFFSET and not _different(new.found):
            break
    if other is None:
        return ()
    numbers = {"difference": other.words, "call": other.call, "gain": found.aicc - other.found.aicc}
    numbers |= {"size": other.size, "lower": other.lower, "upper": other.upper, "unit": other.unit}
    if other.kind == OFFSET:
        return (Notice("offset-missing", "", numbers),)
    return (Notice("directions-differ", "", numbers),)


def _different(found: FitResult) -> str:
    """Return the extension that the fit needs: `OFFSET`, `EACH` (a law for each direction) or "".
    The F tests use generalised least squares without outliers. Their p value is the largest one for
    the likely autocorrelations of neighbouring rows.
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
    if np.linalg.norm(r) < 1e-9 * np.linalg.norm(weight * found.sweep.force):
        return ""  # the fit is exact up to rounding
    law = np.array([name not in ("offset", "peak") for name in found.names])
    base = jacobian[:, found.active]
    each = jacobian[:, found.active & law] * found.sweep.direction[:, None]
    offset = weight[:, None]
    all_columns = np.column_stack([base, offset, each])
    off = np.flatnonzero(outliers([found.sweep], r, independent(all_columns)))
    base = np.column_stack([base, np.eye(found.n)[:, off]])  # a column for each outlier excludes it
    with_offset = np.column_stack([base, offset])
    all_columns = np.column_stack([with_offset, each])
    likelihood = restricted_likelihood(r, independent(all_columns))
    levels = np.array([likelihood(rho) for rho in _CORRELATIONS])
    correlations = _CORRELATIONS[levels <= levels.min() + _NEARLY]

    def chance_of(smaller: np.ndarray, larger: np.ndarray) -> float:
        """Return the largest p value, over `correlations`, of the F test of `larger`."""
        chances = []
        for rho in correlations:
            y, squares, ranks = whiten_rows(r, rho), [], []
            for columns in (smaller, larger):
                basis = independent(whiten_rows(columns, rho))
                squares.append(float(np.sum((y - basis @ (basis.T @ y)) ** 2)))
                ranks.append(basis.shape[1])
            more, dof = ranks[1] - ranks[0], len(r) - ranks[1]
            if more < 1 or dof < 2:
                return 1.0
            least = max(squares[1], 1e-24 * squares[0])
            gain = max(squares[0] - squares[1], 0.0)
            chances.append(float(fdtrc(more, dof, gain / more / least * dof)))
        return max(chances)

    of_offset = chance_of(base, with_offset)
    if of_offset < _DIFFERENT and chance_of(with_offset, all_columns) >= _MORE:
        return OFFSET
    of_each = chance_of(base, np.column_stack([base, each]))
    return EACH if of_each < _DIFFERENT else OFFSET if of_offset < _DIFFERENT else ""


def _fit_kind(found: FitResult, kind: str) -> tuple[str, FitResult]:
    """Fit the law with the extension `kind`. Return the text of the call of `fit`, and the fit."""
    bare = not isinstance(found.start, SteadyFriction)
    law = found.start if bare else found.start.f_pos
    free = []
    for path in (u.path for u in found.problem.unknowns if u.path != "offset"):
        last = path.removeprefix("f_pos.")
        free += [path] if path == "peak" else [f"f_pos.{last}"]
        free += [f"f_neg.{last}"] if path != "peak" and kind == EACH else []
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
