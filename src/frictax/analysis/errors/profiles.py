"""Profile likelihood: increase of the cost if one or two parameters are fixed at other values."""

import dataclasses
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked
from frictax.fitting import FitResult
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.result.estimates import quantile
from frictax.handover import Verb
from frictax.interrupts import Keys
from frictax.parameters import UnknownName
from frictax.progress import SILENT, Progress, Work, show_progress
from frictax.summary import Summarised, Summary
from frictax.text import format_estimate

from .guarded import Guarded
from .linearization import NoiseModel, White
from .resampling import minimize_with_fixed
from .uncertainty import Uncertainty


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Profile(Summarised):
    """The profile likelihood of one fitted parameter. `print` shows `sentence`.

    - `values` (n,) of the parameter, sorted [SI]; `ratio` (n,): likelihood ratio 2*(log L_best -
      log L) at `values`, 0 at the fit; `others` (n, q): all fitted parameters at `values`.
    - `lower`, `upper`: ends of the interval [SI]; `one_sided`: True if the interval begins at the
      bound of the parameter's domain; `threshold`: value of `ratio` at the ends; `level`:
      probability of the interval; `sentence`: the interval in words.

    **Example:** at `FitResult.profile`.
    """

    name: str
    unit: str
    best: float
    values: Float[np.ndarray, " n"]
    ratio: Float[np.ndarray, " n"]
    others: Float[np.ndarray, "n q"]
    lower: float
    upper: float
    one_sided: bool
    threshold: float
    level: float
    sentence: str

    _repr_html_ = Verb("frictax.report.cards:profile_html")

    def _summary(self) -> Summary:
        return Summary(self.sentence)


@dataclasses.dataclass(frozen=True, eq=False)
class ProfilePair:
    """The profile likelihood of two parameters. `ratio[i, j]`: likelihood ratio at the values
    `first[i]`, `second[j]` [SI]. In the confidence region, the ratio is below `threshold`.

    **Example:** at `FitResult.profile`.
    """

    names: tuple[str, str]
    units: tuple[str, str]
    first: Float[np.ndarray, " n"]
    second: Float[np.ndarray, " m"]
    ratio: Float[np.ndarray, "n m"]
    threshold: float
    level: float

    def __repr__(self) -> str:
        size = f"{self.first.size} by {self.second.size} points"
        return f"ProfilePair({', '.join(self.names)}: {size}, {100 * self.level:g} %)"


@overload
def profile_of(
    found: FitResult,
    path: str,
    *,
    by: NoiseModel | Uncertainty | None = None,
    level: float | None = None,
    progress: Checked[bool | Progress] = False,
) -> Profile: ...


@overload
def profile_of(
    found: FitResult,
    path: tuple[str, str],
    *,
    by: NoiseModel | Uncertainty | None = None,
    level: float | None = None,
    points: int = 15,
    progress: Checked[bool | Progress] = False,
) -> ProfilePair: ...


@Keys()
def profile_of(
    found: FitResult,
    path: Any,
    *,
    by: Any = None,
    level: Any = None,
    points: Any = None,
    progress: Checked[bool | Progress] = False,
) -> Profile | ProfilePair:
    """Return the profile likelihood of one fitted parameter, or of a pair.

    The parameter is fixed at values on both sides of its estimate, and at each value all other
    parameters are refitted. The interval ends where the likelihood ratio reaches a threshold. A
    pair of parameters is fixed on a grid of `points` by `points` values, up to 3.5 standard errors
    from the estimates and within the domains.

    Unlike a linearised interval, this interval accounts for a misfit that is not a parabola, and
    for the bound of the parameter's domain. If the data do not exclude the bound, the interval
    begins at the bound. If the bound is the true value, the ratio is 0 in half of all cases (50:50
    mixture). Therefore the threshold at the upper end is that of a one-sided test, 2.71 for 95 %.
    If the interval does not end at a bound, the threshold is 3.84 at both ends.

    **Arguments:**

    - `path`: one or two names of `found.estimates`, such as ``"mass.v@run2"``.
    - `by`: a noise model (`HAC()`, ...) or an `Uncertainty` of this fit, by default `Guarded()`.
      The ratio is divided by (variance by the noise model) / (variance for white residuals). The
      threshold has the degrees of freedom of the noise model.
    - `level`: by default that of the fit; `progress` as in `fit`.

    If the ratio stays below the threshold for 100 standard errors, the interval extends to the
    bound of the parameter, or to infinity without a bound.

    **Raises:** `KeyError` for a name that was not fitted; `ValueError` if the data do not identify
    the parameter at all, for an infinite interval by the noise model, and for a level outside 0.5
    to 1.

    **Source:** D. M. Bates, D. G. Watts, *Nonlinear Regression Analysis and Its Applications*
    (1988), section 6.1; at a bound: S. G. Self, K.-Y. Liang, Journal of the American Statistical
    Association 82 (1987), case 5.

    >>> import frictax as fx
    >>> v = [0.5, 1.0, 2.0, 4.0, 8.0]
    >>> f = [6.12, 6.19, 6.41, 6.78, 7.61]

    >>> sweep = fx.Sweep(v, f, velocity_unit="m/s", force_unit="N")
    >>> found = fx.fit(fx.Coulomb, sweep)
    >>> print(found.profile("F_Coulomb"))
    F_Coulomb: 6.003 N, 5.962 to 6.044 N (95 %, profile likelihood, Guarded)
    >>> pair = found.profile(("F_Coulomb", "F_prop"), points=5)
    >>> pair.ratio.shape
    (5, 5)
    """
    if isinstance(path, str):
        if points is not None:
            raise ValueError(
                f"`profile`: `points` is an option for a pair of numbers, got {points!r}. Leave it"
                " out."
            )
        with show_progress(progress, "Profile") as work:
            return _profile(found, path, by, level, work)
    if not (isinstance(path, tuple | list) and len(path) == 2):
        raise ValueError(
            f"`profile` takes the name of a fitted number or a pair of them, got {path!r}. There"
            f" are: {', '.join(found.names)}."
        )
    from scipy.stats import f

    first, second = path
    points = 15 if points is None else points
    (i, a), (j, b) = _find_parameter(found, first), _find_parameter(found, second)
    if i == j:
        raise ValueError(f"`profile` of a pair needs two different numbers, got {first!r} twice.")
    level = _check_level(found, level)
    stretch, dof = _variance_ratio(found, [i, j], by)
    axes = []
    for k, estimate in ((i, a), (j, b)):
        if not np.isfinite(estimate.standard_error):
            raise _not_identifiable(estimate.name)
        width = 3.5 * np.sqrt(stretch * found.full_covariance[k, k])
        least, most = (of(found.problem.unknowns)[k] for of in (bounds, upper_bounds))
        ends = max(found.x[k] - width, least), min(found.x[k] + width, most)
        axes.append(np.linspace(*ends, points))
    ratio = np.zeros((points, points))
    with show_progress(progress, "Profile") as work:
        at = _LikelihoodRatio(found, [i, j], stretch, SILENT)
        for n, x in enumerate(axes[0]):
            # Each search starts where the search at the neighbouring point ended.
            for m in range(points) if n % 2 == 0 else reversed(range(points)):
                ratio[n, m] = at([x, axes[1][m]])
                work.count(len(at.evaluated), points**2, "points")
    threshold = 2.0 * float(f.ppf(level, 2, min(dof, 1e9)))
    return ProfilePair((first, second), (a.unit, b.unit), axes[0], axes[1], ratio, threshold, level)


def _profile(
    found: FitResult,
    path: str,
    by: NoiseModel | Uncertainty | None,
    level: float | None,
    work: Work,
) -> Profile:
    i, estimate = _find_parameter(found, path)
    level = _check_level(found, level)
    stretch, dof = _variance_ratio(found, [i], by)
    two_sided = float(quantile(level, dof, False)) ** 2
    one_sided = float(quantile(2 * level - 1, dof, False)) ** 2
    at = _LikelihoodRatio(found, [i], stretch, work)
    bound, most = (float(of(found.problem.unknowns)[i]) for of in (bounds, upper_bounds))
    best = min(max(float(found.x[i]), bound), most)
    step = np.sqrt(stretch * found.full_covariance[i, i])
    if not (found.active[i] and 0 < step < np.inf):
        # A parameter at its bound does not have a standard error, so a first step is estimated.
        norm, start = np.linalg.norm(found.full_jacobian[:, i]), float(found.problem.x0[i])
        usual = 0.1 * max(abs(best), abs(start - bound))
        is_on_bound = best - bound <= 0.1 * usual
        if not np.isfinite(bound) or (norm == 0 and not is_on_bound):
            raise _not_identifiable(path)
        step = found.noise_scale * np.sqrt(stretch) / norm if norm > 0 else usual
        # At a bound, `norm` can be nearly 0 (as for `peak` at 1), so `usual` limits the step.
        step = min(step, usual) if is_on_bound else step
    at([best])
    to_bound = at([bound]) if best - bound < 30 * step else np.inf
    reaches = to_bound <= one_sided
    threshold = one_sided if reaches else two_sided
    to_most = at([most]) if most - best < 30 * step else np.inf
    upper = most if to_most <= threshold else interval_end(at, best, step, most, threshold)
    lower = bound
    if not reaches:
        aim = min(two_sided, max(to_bound - 1e-9, one_sided))
        lower = interval_end(at, best, -step, bound, aim)
    order = np.argsort([v for v, _, _ in at.evaluated])
    values, costs, others = (
        np.asarray(column)[order] for column in zip(*at.evaluated, strict=True)
    )
    ends, declared = (float(lower), float(upper)), estimate.declared
    row = format_estimate(best, float(step), estimate.unit, ends, declared)
    unit = "" if row.unit == "1" else f" {row.unit}"
    kind = Guarded if by is None else type(getattr(by, "by", by))
    sentence = (
        f"{path}: {row.value}{unit},"
        f" {'at most ' if reaches else f'{row.lower} to '}{row.upper}{unit} ({100 * level:g} %,"
        f" profile likelihood, {kind.__name__}{f'; {bound:g} is not ruled out' if reaches else ''})"
    )
    return Profile(
        path,
        estimate.unit,
        best,
        values,
        at.ratios(costs),
        others,
        float(lower),
        float(upper),
        bool(reaches),
        threshold,
        level,
        sentence,
    )


class _LikelihoodRatio:
    """The likelihood ratio as a function of fixed values of some parameters. For each point, one
    search begins at the result of the previous point, and another at the result of the fit.
    `evaluated`: for each point, value of the first fixed parameter, cost, all fitted parameters.
    """

    def __init__(self, found: FitResult, places: list[int], stretch: float, work: Work) -> None:
        self.found, self.places, self.stretch, self.work = found, places, stretch, work
        self.z = np.asarray(found.z)
        self.noise = np.float64(
            found.noise_scale if found.problem.loss.rounds > 1 or found.problem.priors else 1.0
        )
        self.which = np.zeros(len(self.z), bool)
        self.which[places] = True
        self.evaluated: list[tuple[float, float, np.ndarray]] = []
        self.least = float(self._minimize(self.z, np.zeros_like(self.which), found.x)[1])

    def __call__(self, values: list[float]) -> float:
        x = np.array(self.found.x)
        x[self.places] = values
        ends = [self._minimize(z, self.which, x) for z in (self.z, self.found.z)]
        z, cost, everything = min(
            ends, key=lambda end: float(end[1]) if np.isfinite(end[1]) else np.inf
        )
        if np.isfinite(cost):
            self.z = np.where(self.which, self.found.z, z)
            self.least = min(self.least, float(cost))
        self.evaluated.append((float(values[0]), float(cost), np.asarray(everything)))
        count = len(self.evaluated)
        self.work(f"point {count}", min(count / 14, 0.95))  # a typical profile has 14 points
        return float(self.ratios(np.asarray([cost]))[0])

    def _minimize(self, z: Any, which: np.ndarray, x: np.ndarray) -> Any:
        dof = np.float64(self.found.dof)
        return minimize_with_fixed(self.found.problem, z, which, x, self.noise, dof)

    def ratios(self, costs: np.ndarray) -> np.ndarray:
        found, problem = self.found, self.found.problem
        given = problem.noise_known or problem.loss.rounds > 1 or problem.objective.whitens()
        unknown = not given and not problem.priors
        variance = 2.0 * self.least / found.dof if unknown else found.noise_scale**2
        return 2.0 * (costs - self.least) / variance / self.stretch


def _not_identifiable(name: str) -> ValueError:
    return ValueError(
        f"`profile`: the data do not identify {name}, so it has no interval. Leave it out of"
        " `free`."
    )


def _find_parameter(found: FitResult, path: str) -> tuple[int, Any]:
    known = {e.name: e for e in found.estimates}
    ties = {tie.path: tie for tie in found.problem.ties}
    if path in ties:
        other = ties[path].source or "a parameter that it depends on"
        raise UnknownName(
            f"`profile`: {path!r} was not free, it is tied ({ties[path].says}). Ask for {other}."
        )
    if path not in known:
        raise UnknownName(f"`profile`: {path!r} was not fitted. Fitted are: {', '.join(known)}.")
    names = [name for u in found.problem.unknowns for name in u.names]
    return names.index(path), known[path]


def _check_level(found: FitResult, level: float | None) -> float:
    level = found.level if level is None else level
    if not 0.5 < level < 1:
        raise ValueError(
            f"`level` of a profile must lie between 0.5 and 1, got {level}. Write 0.95 for 95 %."
        )
    return level


def _variance_ratio(
    found: FitResult, places: list[int], by: NoiseModel | Uncertainty | None
) -> tuple[float, float]:
    """Return the largest ratio (variance by the noise model) / (variance for white residuals) of
    all linear combinations of the parameters `places`, and their smallest degrees of freedom.
    """
    account = by.by if isinstance(by, Uncertainty) else Guarded() if by is None else by
    if isinstance(account, White):
        return 1.0, float(np.inf if found.problem.noise_known else found.dof)
    if isinstance(by, Uncertainty) and found.active[places].all():
        free, spread = found, by.spread
    else:  # In `found`, a parameter at its bound does not have a standard error.
        free = found.with_all_active()
        spread = free.uncertainty(account).spread
    names = [n for u in found.problem.unknowns for n in u.names]
    if np.any(np.isinf(spread.half_width(found.level, np.eye(len(found.x))[places]))):
        raise ValueError(
            f"`profile`: the interval of {names[places[0]]} by {type(account).__name__} is infinite"
            f" ({spread.says}), so a profile cannot bound it. Fit as `warnings` of the fit advise."
        )
    at = np.ix_(places, places)
    size = np.sqrt(np.diag(free.full_covariance)[places])
    with np.errstate(divide="ignore", invalid="ignore"):
        white, coloured = (
            c[at] / np.outer(size, size) for c in (free.full_covariance, spread.covariance)
        )
    if np.all(np.isfinite([white, coloured])):
        ratio = float(np.max(np.linalg.eigvals(np.linalg.pinv(white) @ coloured).real))
        if ratio > 0:
            return ratio, float(np.min(spread.dof(np.eye(len(found.x))[places])))
    if by is None:
        return 1.0, float(found.dof)
    raise ValueError(
        f"`profile`: {type(account).__name__} says nothing of {names[places[0]]}. Leave out `by`."
    )


def interval_end(
    at: Callable[[list[float]], float], best: float, step: float, bound: float, threshold: float
) -> float:
    """Return the parameter value at which the likelihood ratio `at` is `threshold`. The sign of
    `step` selects the side of `best`. Return `bound` if the ratio stays below `threshold`. The
    method is regula falsi for the square root of the ratio, which is nearly linear."""
    aim, inside, outside, reach = np.sqrt(threshold), (best, 0.0), None, step
    x = best + step * aim
    for _ in range(60):
        if (step < 0 and x <= bound) or (step > 0 and x >= bound):
            x = bound + 1e-3 * (inside[0] - bound)
        root = float(np.sqrt(max(at([x]), 0.0)))
        if abs(root - aim) <= 1e-3 * aim:
            return x
        if root < aim:
            inside = (x, root)
            if outside is None:
                reach = 1.5 * reach  # the root of the ratio may grow more slowly than linearly
                x = x + reach * max(aim - root, 0.3 * aim)
                if abs(x - best) > 100 * abs(step):  # The interval is open on this side.
                    return bound
                continue
        else:
            outside = (x, root)
        # At a kink of the misfit, the root of the ratio can jump. Therefore the next point keeps a
        # distance from both ends of the bracket.
        share = 0.5
        if np.isfinite(outside[1]):
            share = (aim - inside[1]) / max(outside[1] - inside[1], 1e-300)
        x = inside[0] + (outside[0] - inside[0]) * float(np.clip(share, 0.1, 0.9))
        if abs(outside[0] - inside[0]) <= 1e-3 * abs(step):
            return outside[0]
    return x if outside is not None else bound
