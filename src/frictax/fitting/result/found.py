"""The answer of a fit."""

import dataclasses
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.fitting.problem.losses import AbstractLoss
from frictax.fitting.problem.steady import as_steady
from frictax.fitting.result.identifiability import Identifiability, Knowledge
from frictax.fitting.search.estimation import with_values
from frictax.fitting.search.methods import AbstractMethod
from frictax.handover import Verb
from frictax.laws import AbstractLaw
from frictax.measurements import units as unit_names
from frictax.measurements.sweep import Sweep


@dataclasses.dataclass(frozen=True)
class Estimate:
    """One number that was fitted (an entry of a table has its own), in SI units.

    `standard_error` is nan, and an end of the interval is nan, where none can be given. `dof`: degrees of freedom of Student's t in the
    interval, inf for a normal one.
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


@dataclasses.dataclass(frozen=True)
class Band:
    """A curve with its confidence band (of the curve, not of a next measurement), in SI units."""

    velocity: Float[np.ndarray, " n"]
    force: Float[np.ndarray, " n"]
    lower: Float[np.ndarray, " n"]
    upper: Float[np.ndarray, " n"]
    level: float


@dataclasses.dataclass(frozen=True)
class Replicates:
    """Fits of the same model to many force vectors: k fits of p entries, in SI units.

    `standard_errors`, `lower` and `upper` are nan where an entry has reached its bound.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "k p"]
    standard_errors: Float[np.ndarray, "k p"]
    lower: Float[np.ndarray, "k p"]
    upper: Float[np.ndarray, "k p"]
    converged: np.ndarray
    level: float


class Estimated:
    """What every answer of a fit offers of its `estimates` and their `covariance`."""

    estimates: tuple[Estimate, ...]
    covariance: Float[np.ndarray, "p p"]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.estimates)

    @property
    def values(self) -> Mapping[str, Any]:
        """Fitted values by path: a number, or an array for a table's forces."""
        return by_path(self.estimates, lambda e: e.value)

    @property
    def standard_errors(self) -> Mapping[str, Any]:
        return by_path(self.estimates, lambda e: e.standard_error)

    @property
    def intervals(self) -> Mapping[str, Any]:
        """(lower, upper) by path; arrays (M, 2) for a table."""
        return by_path(self.estimates, lambda e: (e.lower, e.upper))

    @property
    def degrees_of_freedom(self) -> Mapping[str, Any]:
        """Those of Student's t in each interval, by path."""
        return by_path(self.estimates, lambda e: e.dof)

    @property
    def correlation(self) -> Float[np.ndarray, "p p"]:
        """Correlation of the estimates; nan for entries at their bound."""
        sd = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.covariance / sd[:, None] / sd[None, :]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Found(Estimated):
    """What a fit found, how well it is known, and what it cannot know. Print it.

    - `model`: with the fitted values; `law` is its forward law; `sweep`: the data.
    - `estimates`: one for each fitted number; `fixed`: the parameters that were not fitted.
    - `covariance` (p, p), in the order of `estimates`; zero for entries at their bound.
    - `residuals` (n,): measured minus predicted force [N or N.m]; `weighted_residuals` are divided by sigma.
    - `noise_scale`: standard deviation of the noise [N or N.m]; with a sigma, the factor on it; 1 where sigma is known.
    - `dof`: rows minus fitted numbers; `level` of the intervals, which use Student's t (the normal where sigma is known).
    - `aicc`, `bic`: small-sample Akaike and Bayes criteria; less is better, and only differences mean something.
    - `converged`, `iterations`; `identifiability`; `warnings`: plain sentences that belong next to the numbers.

    `values`, `standard_errors` and `intervals` are the same by parameter path, in SI units.
    """

    model: Any
    sweep: Sweep
    estimates: tuple[Estimate, ...]
    fixed: tuple[Estimate, ...]
    covariance: Float[np.ndarray, "p p"]
    residuals: Float[np.ndarray, " n"]
    weighted_residuals: Float[np.ndarray, " n"]
    noise_scale: float
    dof: int
    level: float
    quantile: float
    aicc: float
    bic: float
    converged: bool
    iterations: int
    identifiability: Identifiability
    warnings: tuple[str, ...]
    method: AbstractMethod
    loss: AbstractLoss

    @property
    def law(self) -> AbstractLaw:
        """The fitted law for v > 0."""
        return as_steady(self.model).f_pos

    @property
    def units(self) -> tuple[str, ...]:
        """SI units, in the order of `names`."""
        return tuple(e.unit for e in self.estimates)

    @property
    def n(self) -> int:
        return self.sweep.n

    @property
    def rms(self) -> float:
        """Root mean square of the residuals [N or N.m], unweighted."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def shown_force(self) -> unit_names.Unit:
        """The force unit for tables and figures: the declared one, or a prefix that gives handy numbers."""
        return unit_names.shown_force(self.sweep.force_unit, float(np.median(np.abs(self.sweep.force))))

    def predict(self, velocity: Any) -> Float[np.ndarray, " n"]:
        """Sliding force at each velocity, SI; at 0 the limit from forward motion."""
        return np.asarray(as_steady(self.model).predict(jnp.asarray(velocity, dtype=float)))

    def band(self, velocity: Any, level: float | None = None) -> Band:
        """The curve with its confidence band at each velocity, by the delta method (G. A. F. Seber, C. J. Wild,
        *Nonlinear Regression* (1989), section 5.1); the band is pointwise."""
        v = np.atleast_1d(np.asarray(velocity, dtype=float))
        level = self.level if level is None else level
        paths = tuple(dict.fromkeys(e.path for e in self.estimates))
        x = jnp.asarray([e.value for e in self.estimates])
        g = np.asarray(jax.jacfwd(lambda x: as_steady(with_values(self.model, paths, x)).predict(jnp.asarray(v)))(x))
        half = quantile(level, self.dof, self.quantile_is_normal) * np.sqrt(
            np.maximum(np.einsum("ij,jk,ik->i", g, self.covariance, g), 0.0)
        )
        f = self.predict(v)
        return Band(v, f, f - half, f + half, level)

    @property
    def quantile_is_normal(self) -> bool:
        """Whether the noise is known, not estimated."""
        return self.sweep.sigma_known

    report = Verb("frictax.report.sweep_report:write_sweep_report")

    to_modelica = Verb("frictax.export.modelica:sweep_modifier")
    to_mujoco = Verb("frictax.export.robots:sweep_mujoco")
    to_urdf = Verb("frictax.export.robots:sweep_urdf")

    _text = Verb("frictax.fitting.result.printing:found_text")

    def __str__(self) -> str:
        return self._text()

    __repr__ = __str__


def by_path(estimates: Iterable[Estimate], pick: Any) -> dict[str, Any]:
    """What `pick` takes of each estimate, by path: one thing, or an array for a table's forces."""
    out: dict[str, Any] = {}
    for e in estimates:
        out.setdefault(e.path, []).append((e.name, pick(e)))
    return {
        path: cells[0][1] if len(cells) == 1 and cells[0][0] == path else np.array([value for _, value in cells])
        for path, cells in out.items()
    }


def quantile(level: float, dof: Any, known: bool) -> Any:
    """How many standard errors make an interval of that level."""
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie between 0 and 1, got {level}. Write 0.95 for 95 %.")
    x = NormalDist().inv_cdf(0.5 + level / 2)
    if known:
        return x
    if np.all(np.asarray(dof) >= 100):  # scipy takes longer to import than a record to fit
        return x + sum(g / np.asarray(dof, float) ** (k + 1) for k, g in enumerate(_student(x)))
    from scipy.special import stdtrit

    return stdtrit(dof, 0.5 + level / 2)


def _student(x: float) -> tuple[float, ...]:
    """Coefficients of 1/dof, 1/dof**2, ... between the normal quantile `x` and Student's; off by less than 1e-8 from 100 degrees on.

    **Source:** M. Abramowitz, I. A. Stegun, *Handbook of Mathematical Functions* (1964), equation 26.7.5.
    """
    return (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
