"""Errors where residuals of one run remember those before them."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.fitting.problem.problem import Problem
from frictax.fitting.result.identifiability import listed
from frictax.fitting.result.spread import Memoized
from frictax.notice import Notice
from frictax.pytree import pytree_dataclass

from ..clusters import has_windows
from ..linearized import AbstractLinearErrors, Linearized, LinearSpread, axes
from .series import Series
from .wandering import Walk, wandering

_UNTOLD = 1e-9  # of what white residuals would tell: what is taken as known of any direction
_ROUNDS, _SETTLED = 12, 3e-3
_IN_TIME = ("s", "record", "Record longer, or repeat the run and take Jackknife")
_IN_ROWS = ("rows", "sweep", "Measure the sweep again, its speeds in another order")
_ROUGH, _WORTHLESS = (10.0, 4.0), (3.0, 2.0)  # memories in a record, and degrees of freedom
_SURE = 4.0  # better by that much: of 20 records without a walk one


@pytree_dataclass
class Autoregression(AbstractLinearErrors):
    """Residuals of one run as noise with a memory: each a sum of those before it, times
    coefficients, and of white noise, r[i] = phi[1] r[i-1] + ... + phi[m] r[i-m] + e[i].

    One autoregression for each record and output, of an order up to 20 that Schwarz's criterion
    chooses, over samples averaged to what the estimates see; fitted by restricted maximum
    likelihood, for what a fit of parameters took from the residuals looks like a short memory.
    covariance = W' S W, with S the covariance of that noise and W = J inv(J'J); where the size of
    residuals goes with their weight in W it is larger by as much. Student's t with degrees of
    freedom from how well the coefficients are known.

    Beside it the zero of the sensor may wander: a random walk, whose steps white noise may hide,
    while slow numbers (a constant force, a start) are read from the few waves in which it shows. It
    is put in where the restricted likelihood is better for it by Akaike's criterion.

    Right for an error that is alike all along the record, and lasts a tenth of it or less, or that
    wanders.

    **Source:** restricted likelihood: D. A. Harville, Journal of the American Statistical
    Association 72 (1977); for errors with a memory W.-K. Cheang, G. C. Reinsel, ibid. 95 (2000);
    degrees of freedom: M. G. Kenward, J. H. Roger, Biometrics 53 (1997); the walk: A. C. Harvey,
    *Forecasting, Structural Time Series Models and the Kalman Filter* (1989), chapter 2.

    **Example:** all accounts side by side, at `FitResult.uncertainty`.
    """

    def check(self, problem: Problem) -> None:
        if has_windows(problem):
            raise ValueError(
                "`Autoregression` follows the residuals of a run, and windows begin anew. Take"
                " `Clustered()`."
            )

    def of(self, linear: Linearized) -> LinearSpread:
        root, unseen = linear.axes
        columns = linear.jacobian @ root
        series = [Series(linear.residuals, columns, root, *one) for one in linear.series]
        alone = _independent_rows(linear, root)
        prior = linear.known @ root
        # A number may be told by samples alone that have no lags.
        least = _UNTOLD * np.eye(root.shape[1])
        known = (prior.T @ prior + least) / (linear.noise**2 or 1.0) + alone.information
        walks = _fit(series, known, wander=not linear.rows)
        parts = [*(one.covariances() for one in series), (alone.covariance, [], alone.rows)]
        parts += [w.covariances(one) for one, w in zip(series, walks, strict=True) if w]
        size = sum((v for v, _, _ in parts), np.zeros((root.shape[1],) * 2))
        prior = prior @ root.T * linear.noise
        more = _swelling(series, len(root))
        unknown = linear.noise**2 * unseen.T @ unseen
        times = _memories(series)
        covariance = (root @ size @ root.T) * np.outer(more, more) + prior.T @ prior + unknown

        dof = Memoized(functools.partial(_dof, root, size, parts, prior, times))
        remembers = any(one.model.phi.size for one in series) or any(walks)
        doubts = _doubts(linear, series, dof, walks)
        return LinearSpread(covariance, dof, _says(linear, series, walks), doubts, remembers)


def _dof(
    root: Float[np.ndarray, "p s"],
    size: Float[np.ndarray, "s s"],
    parts: list[tuple[Any, ...]],
    prior: Float[np.ndarray, "k p"],
    times: float,
    directions: Float[np.ndarray, "m p"],
) -> Float[np.ndarray, " m"]:
    """The degrees of freedom of each row of `directions` times the estimates; `parts` of the
    covariance `size`, each with its slopes by the coefficients of the memory and its rows.
    """
    of = directions @ root
    form = lambda v: np.einsum("mi,ij,mj->m", of, v, of)  # noqa: E731
    mine, spread = form(size), np.zeros(len(of))
    for v, slopes, rows in parts:
        spread += form(v) ** 2 * 2.0 / rows
        spread += sum((form(slope) ** 2 for slope in slopes), np.zeros(len(of)))
    said = np.sum((directions @ prior.T) ** 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        nu = np.maximum(2.0 * mine**2 / spread - 1.0, _WORTHLESS[1])
        nu = np.where(times < _WORTHLESS[0], _WORTHLESS[1], nu)
        nu *= ((mine + said) / mine) ** 2
    return np.where(np.isfinite(nu), np.minimum(nu, 1e9), 1e9)


@dataclasses.dataclass(frozen=True, eq=False)
class _Independent:
    """What rows that do not depend on each other tell of the estimates."""

    information: Float[np.ndarray, "c c"]
    covariance: Float[np.ndarray, "c c"]
    rows: float


def _independent_rows(linear: Linearized, root: np.ndarray) -> _Independent:
    """Of the rows of sweeps: HC2 of MacKinnon and White, Journal of Econometrics 29 (1985)."""
    mine = linear.counted.copy()
    for _, _, stretches in linear.series:
        mine[np.concatenate(stretches)] = False
    seen, r = linear.jacobian[mine] @ root, linear.residuals[mine]
    share = np.minimum(np.sum(seen**2, axis=1), 0.99)
    scores = seen * (r / np.sqrt(1.0 - share))[:, None]
    size = max(float(np.mean(r**2)) if r.size else 1.0, 1e-200)
    return _Independent(seen.T @ seen / size, scores.T @ scores, float(max(r.size, 1)))


def _fit(series: list[Series], information: np.ndarray, *, wander: bool) -> list[Walk | None]:
    """Fit all autoregressions by restricted likelihood: what the estimates took from the residuals
    is put back, until their covariance settles. `information`: what else tells the estimates. Gives
    the walk beside each, where they may `wander`.
    """
    columns = len(information)
    taken, moved = np.zeros((columns, columns)), np.zeros(columns)
    for _ in range(_ROUNDS):
        whitened = [one.fit(moved, taken) for one in series]
        each = [one[1:, 1:] for one in whitened]
        told = sum(each, information)
        pull = sum((one[1:, 0] for one in whitened), np.zeros(columns))
        new = np.linalg.inv(told)
        moved, change = new @ pull, np.linalg.norm(new - taken)
        taken = new
        if change < _SETTLED * np.linalg.norm(new):
            break
    if not wander:
        return [None] * len(series)
    return [
        wandering(one, moved, taken, told - mine) for one, mine in zip(series, each, strict=True)
    ]


def walks(
    residuals: Float[np.ndarray, " n"],
    jacobian: Float[np.ndarray, "n p"],
    channels: list[list[np.ndarray]],
) -> list[Walk | None]:
    """Of each channel (the numbers of its residuals in the order of time, in stretches) the walk
    from residual to residual beside its noise, or `None`; of a fit with this jacobian.
    """
    root, _ = axes(jacobian, jacobian[:0])
    columns = jacobian @ root
    series = [Series(residuals, columns, root, 0, 1.0, channel) for channel in channels]
    found = _fit(series, _UNTOLD * np.eye(root.shape[1]), wander=True)
    return [
        walk and dataclasses.replace(walk, step=walk.step / one.each)
        for one, walk in zip(series, found, strict=True)
    ]


def _swelling(series: list[Series], count: int) -> Float[np.ndarray, " p"]:
    """How many times larger the errors of the estimates, so many, are for residuals that are large
    where they count.
    """
    of_size = of_mean = np.zeros(count)
    for one in series:
        w, square = one.pull**2, one.residuals**2
        of_size, of_mean = of_size + w @ square, of_mean + square.mean() * w.sum(axis=1)
    ratio = np.divide(of_size, of_mean, out=np.ones_like(of_mean), where=of_mean > 0)
    return np.sqrt(np.maximum(ratio, 1.0))


def _memories(series: list[Series]) -> float:
    """How many times as long as they remember the records are, in all."""
    least: dict[int, float] = {}
    for one in series:
        least[one.record] = min(least.get(one.record, np.inf), one.length / one.memory)
    return sum(least.values()) if least else np.inf


def _says(linear: Linearized, series: list[Series], walks: list[Walk | None]) -> str:
    if not series:
        return "independent rows"
    worst = min(series, key=lambda one: one.length / one.memory)
    unit, order = ("rows", f", {linear.order}") if linear.rows else ("s", "")
    if any(one.model.phi.size for one in series):
        says = (
            f"residuals correlated over {worst.memory:.2g} {unit} of {worst.length:.3g} {unit}"
            f"{order} (autoregression of order {worst.model.phi.size})"
        )
    else:
        says = f"uncorrelated residuals{order}"
    ends = [np.sqrt(w.step * one.rows) for one, w in zip(series, walks, strict=True) if w]
    if not ends:
        return says
    most = max(ends) / (linear.noise or 1.0)
    return f"{says} and a zero that drifts (random walk, {most:.2g} times the noise at the end)"


def _doubts(
    linear: Linearized,
    series: list[Series],
    dof: Callable[[np.ndarray], np.ndarray],
    walks: list[Walk | None],
) -> tuple[Notice, ...]:
    """Notices where the record is too short for what its residuals remember."""
    if not series:
        return ()
    names, times = linear.found.names, _memories(series)
    freedom = np.where(linear.told, dof(np.eye(len(names))), np.inf)
    worst = min(series, key=lambda one: one.length / one.memory)
    unit, of_what, remedy = _IN_ROWS if linear.rows else _IN_TIME
    numbers = {"memory": worst.memory, "length": worst.length, "times": times}
    numbers |= {"unit": unit, "of": of_what, "remedy": remedy}
    nothing = freedom <= _WORTHLESS[1]
    rough = ~nothing & linear.told & ((times < _ROUGH[0]) | (freedom < _ROUGH[1]))

    def of(which: np.ndarray) -> dict[str, float | str]:
        return {**numbers, "names": listed([names[i] for i in np.flatnonzero(which)])}

    gains = [walk.gain for walk in walks if walk]
    if gains and times >= _ROUGH[0]:  # it is the walk of which little is known
        little = nothing | rough
        is_said = max(gains) >= _SURE and little.any()
        return (Notice("zero-wanders", "", of(little)),) if is_said else ()
    out = [Notice("memory-as-long", "", of(nothing))] if nothing.any() else []
    return (*out, *([Notice("memory-long", "", of(rough))] if rough.any() else []))
