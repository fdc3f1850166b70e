"""Profile likelihood: how much worse the best fit becomes where one number, or two, are held
elsewhere.
"""

import dataclasses
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked
from frictax.fitting import FitResult
from frictax.fitting.problem.problem import bounds, upper_bounds
from frictax.fitting.result.estimates import quantile
from frictax.handover import Verb
from frictax.parameters import UnknownName
from frictax.progress import SILENT, Progress, Work, watched
from frictax.summary import Summarised, Summary
from frictax.text import shown

from ..interval_end import interval_end
from .accounts import AbstractErrors, White
from .guarded import Guarded
from .refits import least_cost_with
from .uncertainty import Uncertainty

_AT_BOUND = 0.1  # of a number at its bound or of its start: the first step of its profile
_ON = 0.1  # of that step: so near its bound a number lies on it
_USUAL = 14  # points that a profile takes


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Profile(Summarised):
    """The profile of one fitted number. Print it.

    - `values` (n,), sorted [SI]; `ratio` (n,): likelihood ratio 2*(log L_best - log L) there, 0 at
      the best; `others` (n, q): all fitted numbers at each.
    - `lower`, `upper`: ends of the interval; `one_sided`: whether the bound of the number's domain
      lies in it, so that there is no lower end to find; `threshold` on `ratio` that it was found
      with; `level`.
    - `sentence`: the interval in words.

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
    """The profile of two fitted numbers: `ratio` (n, m) at `first` (n,) by `second` (m,) [SI];
    inside `threshold` lies the region of that `level`.

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
    by: AbstractErrors | Uncertainty | None = None,
    level: float | None = None,
    progress: Checked[bool | Progress] = False,
) -> Profile: ...


@overload
def profile_of(
    found: FitResult,
    path: tuple[str, str],
    *,
    by: AbstractErrors | Uncertainty | None = None,
    level: float | None = None,
    points: int = 15,
    progress: Checked[bool | Progress] = False,
) -> ProfilePair: ...


def profile_of(
    found: FitResult,
    path: Any,
    *,
    by: Any = None,
    level: Any = None,
    points: Any = None,
    progress: Checked[bool | Progress] = False,
) -> Profile | ProfilePair:
    """The profile likelihood of one fitted number, see `profile`, or of a pair on a grid of
    `points` by `points`, see `profile_pair`; `progress` as in `fit`.

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
        return profile(found, path, by, level, progress=progress)
    if not (isinstance(path, tuple | list) and len(path) == 2):
        raise ValueError(
            f"`profile` takes the name of a fitted number or a pair of them, got {path!r}. There"
            f" are: {', '.join(found.names)}."
        )
    grid = 15 if points is None else points
    return profile_pair(found, (path[0], path[1]), by, level, grid, progress=progress)


def profile(
    found: FitResult,
    path: str,
    by: AbstractErrors | Uncertainty | None = None,
    level: float | None = None,
    *,
    progress: Checked[bool | Progress] = False,
) -> Profile:
    """Hold one number at values left and right of its estimate, fit all others anew at each, and
    find where the misfit becomes too large.

    The interval holds what a linearised one does not know: that the misfit is no parabola, and that
    a number cannot lie beyond the bound of its domain. Where the bound itself is not ruled out, the
    interval begins there and its upper end is where the ratio reaches the threshold of a one-sided
    test, 2.71 for 95 % (at a bound the ratio is 0 in half of all cases, the 50:50 mixture); else
    both ends are where it reaches 3.84, but none beyond the bound.

    **Arguments:** `path`: a name of `found.estimates`, such as ``"friction.peak"`` or
    ``"mass.v@run2"``; `by`: an account of the residuals (`HAC()`, ...), or what it has made of this
    fit, by whose error over that of white residuals the ratio is made smaller, and whose degrees of
    freedom the threshold has, that of the fit's own errors unless given; `level`, that of the fit
    unless given; `progress` as in `fit`.

    An end that is not reached within 100 standard errors is open: inf, or the bound. Where the user
    gave an upper bound, and it is not ruled out, the interval ends there.

    **Raises:** `KeyError` for a name that was not fitted; `ValueError` where the data do not tell
    the number at all, or for a level outside 0.5 to 1.

    **Source:** D. M. Bates, D. G. Watts, *Nonlinear Regression Analysis and Its Applications*
    (1988), section 6.1; at a bound: S. G. Self, K.-Y. Liang, Journal of the American Statistical
    Association 82 (1987), case 5.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    >>> fx.fit(fx.Coulomb, sweep).profile("F_Coulomb")
    F_Coulomb: 6.10 N, ... to ... N (95 %, profile likelihood, Guarded)
    """
    with watched(progress, "Profile") as work:
        return _profile(found, path, by, level, work)


def _profile(
    found: FitResult,
    path: str,
    by: AbstractErrors | Uncertainty | None,
    level: float | None,
    work: Work,
) -> Profile:
    i, estimate = _place(found, path)
    level = _level(found, level)
    stretch, dof = _stretch(found, [i], by)
    two_sided = float(quantile(level, dof, False)) ** 2
    one_sided = float(quantile(2 * level - 1, dof, False)) ** 2
    at = _Held(found, [i], stretch, work)
    bound, most = (float(of(found.problem.unknowns)[i]) for of in (bounds, upper_bounds))
    best = min(max(float(found.x[i]), bound), most)
    step = np.sqrt(stretch * found.full_covariance[i, i])
    if not found.active[i] or not np.isfinite(step) or not step > 0:
        norm, start = np.linalg.norm(found.full_jacobian[:, i]), float(found.problem.x0[i])
        usual = _AT_BOUND * max(abs(best), abs(start - bound))
        if not np.isfinite(bound) or (norm == 0 and best - bound > _ON * usual):
            raise _untold(path)
        step = found.noise_scale * np.sqrt(stretch) / norm if norm > 0 else usual
        if best - bound <= _ON * usual:  # where the first derivative may vanish, as of peak at 1
            step = min(step, usual)
    at([best])
    to_bound = at([bound]) if np.isfinite(bound) and best - bound < 30 * step else np.inf
    reaches = to_bound <= one_sided
    threshold = one_sided if reaches else two_sided
    to_most = at([most]) if np.isfinite(most) and most - best < 30 * step else np.inf
    upper = most if to_most <= threshold else interval_end(at, best, step, most, threshold)
    lower = (
        bound
        if reaches
        else interval_end(at, best, -step, bound, min(two_sided, max(to_bound - 1e-9, one_sided)))
    )
    order = np.argsort([v for v, _, _ in at.seen])
    values, costs, others = (np.asarray([entry[k] for entry in at.seen])[order] for k in range(3))
    ends, declared = (float(lower), float(upper)), estimate.declared
    row = shown(best, float(step), estimate.unit, ends, declared)
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


def profile_pair(
    found: FitResult,
    paths: tuple[str, str],
    by: AbstractErrors | Uncertainty | None = None,
    level: float | None = None,
    points: int = 15,
    *,
    progress: Checked[bool | Progress] = False,
) -> ProfilePair:
    """`profile` of two numbers on a grid of `points` by `points` over three and a half standard
    errors either way, within their domains.
    """
    first, second = paths
    (i, a), (j, b) = _place(found, first), _place(found, second)
    if i == j:
        raise ValueError(f"`profile` of a pair needs two different numbers, got {first!r} twice.")
    level = _level(found, level)
    stretch, dof = _stretch(found, [i, j], by)
    axes = []
    for k, estimate in ((i, a), (j, b)):
        if not np.isfinite(estimate.standard_error):
            raise _untold(estimate.name)
        width = 3.5 * np.sqrt(stretch * found.full_covariance[k, k])
        least, most = (of(found.problem.unknowns)[k] for of in (bounds, upper_bounds))
        axes.append(
            np.linspace(max(found.x[k] - width, least), min(found.x[k] + width, most), points)
        )
    ratio = np.zeros((points, points))
    with watched(progress, "Profile") as work:
        at = _Held(found, [i, j], stretch, SILENT)
        for n, x in enumerate(axes[0]):
            # each begins where its neighbour ended
            for m in range(points) if n % 2 == 0 else reversed(range(points)):
                ratio[n, m] = at([x, axes[1][m]])
                work.count(len(at.seen), points**2, "points")
    from scipy.stats import f

    return ProfilePair(
        (first, second),
        (a.unit, b.unit),
        axes[0],
        axes[1],
        ratio,
        2.0 * float(f.ppf(level, 2, dof)),
        level,
    )


class _Held:
    """The likelihood ratio with some numbers fixed, each search begun where the one before ended;
    `seen`: value, cost, all numbers.
    """

    def __init__(self, found: FitResult, places: list[int], stretch: float, work: Work) -> None:
        self.found, self.places, self.stretch, self.work = found, places, stretch, work
        self.z = np.asarray(found.z)
        self.noise = np.float64(
            found.noise_scale if found.problem.loss.rounds > 1 or found.problem.priors else 1.0
        )
        self.which = np.zeros(len(self.z), bool)
        self.which[places] = True
        self.seen: list[tuple[float, float, np.ndarray]] = []
        self.least = float(self._end(self.z, np.zeros_like(self.which), found.x)[1])

    def __call__(self, values: list[float]) -> float:
        x = np.array(self.found.x)
        x[self.places] = values
        ends = [self._end(z, self.which, x) for z in (self.z, self.found.z)]
        z, cost, everything = min(
            ends, key=lambda end: float(end[1]) if np.isfinite(end[1]) else np.inf
        )
        if np.isfinite(cost):
            self.z = np.where(self.which, self.found.z, z)
            self.least = min(self.least, float(cost))
        self.seen.append((float(values[0]), float(cost), np.asarray(everything)))
        count = len(self.seen)
        self.work(f"point {count}", min(count / _USUAL, 0.95))
        return float(self.ratios(np.asarray([cost]))[0])

    def _end(self, z: Any, which: np.ndarray, x: np.ndarray) -> Any:
        dof = np.float64(self.found.dof)
        return least_cost_with(self.found.problem, z, which, x, self.noise, dof)

    def ratios(self, costs: np.ndarray) -> np.ndarray:
        """Costs as likelihood ratios."""
        variance = 2.0 * self.least / self.found.dof if self.noise == 1.0 else self.noise**2
        return 2.0 * (costs - self.least) / variance / self.stretch


def _untold(name: str) -> ValueError:
    return ValueError(
        f"`profile`: the data do not tell {name}, so that it has no interval. Leave it out of"
        " `free`."
    )


def _place(found: FitResult, path: str) -> tuple[int, Any]:
    known = {e.name: e for e in found.estimates}
    ties = {tie.path: tie for tie in found.problem.ties}
    if path in ties:
        other = ties[path].source or "what it is made of"
        raise UnknownName(
            f"`profile`: {path!r} was not free, it is tied ({ties[path].says}). Ask for {other}."
        )
    if path not in known:
        raise UnknownName(f"`profile`: {path!r} was not fitted. Fitted are: {', '.join(known)}.")
    names = [name for u in found.problem.unknowns for name in u.names]
    return names.index(path), known[path]


def _level(found: FitResult, level: float | None) -> float:
    level = found.level if level is None else level
    if not 0.5 < level < 1:
        raise ValueError(
            f"`level` of a profile must lie between 0.5 and 1, got {level}. Write 0.95 for 95 %."
        )
    return level


def _stretch(
    found: FitResult, places: list[int], by: AbstractErrors | Uncertainty | None
) -> tuple[float, float]:
    """How many times larger than for white residuals the variance of some numbers is, or of what of
    them is told worst, and the least degrees of freedom of its account.
    """
    account = by.by if isinstance(by, Uncertainty) else Guarded() if by is None else by
    if isinstance(account, White):
        return 1.0, float(found.dof)
    if isinstance(by, Uncertainty) and found.active[places].all():
        free, spread = found, by.spread
    else:  # at its bound a number has no error of its own
        free = found.with_all_active()
        spread = free.uncertainty(account).spread
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
    names = [n for u in found.problem.unknowns for n in u.names]
    raise ValueError(
        f"`profile`: {type(account).__name__} says nothing of {names[places[0]]}. Leave out `by`."
    )
