"""Estimates with their standard errors and intervals."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from frictax.notice import Notice
from frictax.parameters import UnknownName
from frictax.text import Shown, figures, format_estimate, suggestion

from .identifiability import Knowledge


@dataclasses.dataclass(frozen=True)
class Estimate:
    """One estimated parameter in SI units. Each entry of a `Table` counts as a parameter.

    `standard_error` and the ends of the interval are nan if they are unknown. `dof`: degrees of
    freedom of Student's t in the interval; inf for the normal distribution. `declared`: the unit in
    which tables show the estimate, and the value of this unit in SI. `shown`: the estimate as a
    table prints it. `tied`: the parameter or expression that determines a tied parameter.

    **Example:** at `FitResult`.
    """

    name: str
    path: str
    value: float
    standard_error: float
    lower: float
    upper: float
    unit: str
    knowledge: Knowledge
    dof: float = float("nan")
    declared: tuple[str, float] | None = None
    tied: str = ""

    def __repr__(self) -> str:
        name, value, unit, error, interval = self.cells
        more = f", std. error {error}, {interval}" if error else f", {self.knowledge.value}"
        return f"Estimate({name}: {value}{'' if unit == '1' else f' {unit}'}{more})"

    @property
    def shown(self) -> Shown:
        """Value, standard error and interval as text, rounded to two digits of the error."""
        of = self.value, self.standard_error, self.unit
        return format_estimate(*of, (self.lower, self.upper), self.declared)

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """Name, value, unit, standard error and interval (or why it is missing) as printed."""
        row, known, says = self.shown, self.knowledge, self.knowledge.value
        size, value, error = abs(self.value) or 1.0, row.value, row.error
        name = f"{self.name} {self.tied}".rstrip()
        if known in (Knowledge.FIXED, Knowledge.AT_BOUND):
            return name, figures(self.value / row.size, 6), row.unit, "", says
        if known is not Knowledge.UNKNOWN and 0 <= self.standard_error < 1e-12 * size:
            return name, figures(self.value / row.size, 6), row.unit, "", "exact to rounding"
        if known is Knowledge.UNKNOWN:
            error = "unbounded" if self.standard_error >= 1e4 * size else error
            return name, value, row.unit, error, says
        return name, value, row.unit, error, row.interval

    def __str__(self) -> str:
        name, value, unit, error, interval = (cell.strip() for cell in self.cells)
        of = "" if unit == "1" else f" {unit}"
        error = f", std. error {error}{of}" if error and error != "unbounded" else ""
        interval += of if interval == self.shown.interval else ""
        return f"{name} {value}{of}{error}, {interval}"


@dataclasses.dataclass(frozen=True)
class Band:
    """A curve with its confidence band (SI). The band excludes the scatter of new measurements.

    **Example:** the band of a friction curve, at `FitResult`.
    """

    velocity: Float[np.ndarray, " n"]
    force: Float[np.ndarray, " n"]
    lower: Float[np.ndarray, " n"]
    upper: Float[np.ndarray, " n"]
    level: float

    def __repr__(self) -> str:
        n, level = np.size(self.velocity), 100 * self.level
        ends = f" from {np.min(self.velocity):g} to {np.max(self.velocity):g}" if n else ""
        return f"Band({n} velocities{ends}, {level:g} %)"


@dataclasses.dataclass(frozen=True, eq=False)
class Replicates:
    """Fits of the same model to many measurements: k fits of p entries, in SI units.

    - `values` (k, p): the estimates; `converged` (k,): whether the search met its tolerance;
      `level`: confidence level of the intervals.
    - `cost` (k,): half the weighted sum of squares at the end of each search, or the sum of a
      robust loss.
    - `standard_errors`, `lower`, `upper` (k, p): as for a single fit, computed on first use; nan if
      the search did not converge, and for an entry at its bound.
    - `notices`: remarks for the user, computed on first use; `warnings`: the notices as sentences.

    **Example:** at `fit_many`.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "k p"]
    converged: Bool[np.ndarray, " k"]
    level: float
    cost: Float[np.ndarray, " k"]
    find_errors: Callable[[], tuple[np.ndarray, ...]] = dataclasses.field(repr=False)
    said: Callable[[], Sequence[Notice]] = dataclasses.field(default=tuple, repr=False)

    def __repr__(self) -> str:
        done, names = int(np.sum(self.converged)), ", ".join(self.names)
        return f"Replicates({len(self.converged)} fits of {names}; {done} converged)"

    @functools.cached_property
    def _errors(self) -> Float[np.ndarray, "3 k p"]:
        return np.where(self.converged[:, None], np.asarray(self.find_errors()), np.nan)

    @property
    def standard_errors(self) -> Float[np.ndarray, "k p"]:
        return self._errors[0]

    @property
    def lower(self) -> Float[np.ndarray, "k p"]:
        return self._errors[1]

    @property
    def upper(self) -> Float[np.ndarray, "k p"]:
        return self._errors[2]

    @functools.cached_property
    def notices(self) -> tuple[Notice, ...]:
        open_, count = int(np.sum(~self.converged)), len(self.converged)
        unsettled = [Notice("fits-unsettled", "", {"open": open_, "count": count})] * (open_ > 0)
        return (*self.said(), *unsettled)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notices as plain sentences."""
        return tuple(map(str, self.notices))


class Estimated:
    """Estimates with their `covariance` and `notices`: the base class of all results of a fit."""

    estimates: tuple[Estimate, ...]
    covariance: Float[np.ndarray, "p p"]
    notices: tuple[Notice, ...]

    def __getitem__(self, name: str) -> Estimate:
        """Return the estimate called `name`."""
        known = self.names
        if name not in known:
            raise UnknownName(
                f"There is no fitted number {name!r}.{suggestion(name, known)} Fitted are:"
                f" {', '.join(known)}."
            )
        return self.estimates[known.index(name)]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notices as plain sentences."""
        return tuple(map(str, self.notices))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.estimates)

    @property
    def values(self) -> Mapping[str, Any]:
        """Fitted values by path: a number, or an array for the forces of a `Table`."""
        return self._by_path(e.value for e in self.estimates)

    @property
    def standard_errors(self) -> Mapping[str, Any]:
        return self._by_path(e.standard_error for e in self.estimates)

    @property
    def intervals(self) -> Mapping[str, Any]:
        """Intervals (lower, upper) by path; arrays (M, 2) for the M forces of a `Table`."""
        return self._by_path((e.lower, e.upper) for e in self.estimates)

    @property
    def degrees_of_freedom(self) -> Mapping[str, Any]:
        """Degrees of freedom of Student's t in each interval, by path."""
        return self._by_path(e.dof for e in self.estimates)

    @property
    def correlation(self) -> Float[np.ndarray, "p p"]:
        """Correlation of the estimates; nan for entries at their bound."""
        sd = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.covariance / sd[:, None] / sd[None, :]

    def _by_path(self, cells: Iterable[Any]) -> dict[str, Any]:
        return by_path(((e.name, e.path) for e in self.estimates), cells)


def by_path(places: Iterable[tuple[str, str]], cells: Iterable[Any]) -> dict[str, Any]:
    """Return a dict from path to value, or to an array of values for a `Table`. `places`: (name,
    path) of each estimate; `cells`: one value for each of them.
    """
    out: dict[str, Any] = {}
    for (name, path), cell in zip(places, cells, strict=True):
        out.setdefault(path, []).append((name, cell))
    return {
        path: here[0][1]
        if len(here) == 1 and here[0][0] == path
        else np.array([c for _, c in here])
        for path, here in out.items()
    }


def quantile(level: float, dof: Any, known: bool) -> Any:
    """Return the half width, in standard errors, of an interval of the given `level`.

    **Source:** M. Abramowitz, I. A. Stegun, *Handbook of Mathematical Functions* (1964), equation
    26.7.5, with an error below 1e-8 for at least 100 degrees of freedom.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie between 0 and 1, got {level}. Write 0.95 for 95 %.")
    x = NormalDist().inv_cdf(0.5 + level / 2)
    if known:
        return x
    if np.all(np.asarray(dof) >= 100):  # importing scipy takes longer than a fit
        terms = (
            (x**3 + x) / 4,
            (5 * x**5 + 16 * x**3 + 3 * x) / 96,
            (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
            (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
        )
        return x + sum(g / np.asarray(dof, float) ** (k + 1) for k, g in enumerate(terms))
    from scipy.special import stdtrit

    return stdtrit(dof, 0.5 + level / 2)
