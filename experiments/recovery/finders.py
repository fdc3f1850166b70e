"""The compared methods: functions that estimate parameters and intervals from a record.

To add a method, add a function such as `frictax` or `scipy` to `FINDERS`. MuJoCo can describe only
three of the machines, so its method is separate (mujoco_sysid.py).
"""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from eight_machines import Case
from scipy.optimize import least_squares
from scipy.special import stdtrit

import frictax as fx

# Codes of the notices that doubt estimates or intervals. Other notices describe an estimate, or
# what a rig cannot measure.
DOUBTS = frozenset({
    "search-flat", "search-kink", "search-unfinished", "steps-too-long", "residuals-too-large",
    "nothing-moves", "starts-elsewhere", "starts-at-another-speed", "near-bound", "at-lower-bound",
    "at-upper-bound", "ran-away", "no-effect", "little-effect", "ill-conditioned",
    "null-direction", "null-direction-always", "few-windows", "few-windows-tell", "records-differ",
    "memory-long", "memory-as-long", "doubtful-dip", "weight-or-friction", "explains-nothing",
    "no-better-than-line", "misfit-above-noise", "tells-next-to-nothing", "lack-of-fit",
    "row-lies-off", "term-missing", "remembers", "bent-between-samples", "zero-wanders",
    "force-unexplained", "residuals-unexplained", "search-above-noise", "search-edge",
})  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Found:
    """Estimates, standard errors, interval limits (p,), ordered like `Case.truth`; notice codes."""

    value: np.ndarray
    error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    codes: tuple[str, ...]


Data = fx.Record | fx.Sweep


def fitted(case: Case, data: Data) -> fx.FitResult:
    """Fit with frictax. All options except the objective are defaults."""
    if isinstance(data, fx.Sweep):
        return fx.fit(case.guess, data)
    return fx.fit(case.guess, data, free=list(case.truth), objective=case.objective)


def places(case: Case, found: fx.FitResult) -> list[int]:
    """Return the indices of the parameters of `Case.truth` among the fitted parameters."""
    names = [name.partition("[")[0] for name in found.names]
    return [names.index(path) for path in case.truth]


def frictax(case: Case, data: Data, found: fx.FitResult) -> Found:
    """Return the estimates and intervals of the fit by frictax."""
    rows = [found.estimates[k] for k in places(case, found)]
    numbers = np.array([(e.value, e.standard_error, e.lower, e.upper) for e in rows], float).T
    return Found(*numbers, codes=tuple(dict.fromkeys(n.code for n in found.notices)))


@eqx.filter_jit
def _residuals(problem: eqx.Module, x: jax.Array) -> jax.Array:
    return problem.residuals(x)  # type: ignore[attr-defined]


def scipy(case: Case, data: Data, found: fx.FitResult) -> Found:
    """Fit frictax's residuals by `least_squares`. Covariance: mean square times inv(J'J)."""
    problem, start = found.problem, np.asarray(found.problem.x0)
    end = least_squares(
        lambda x: np.asarray(_residuals(problem, jnp.asarray(x))),
        start,
        bounds=(0.0, np.inf),
        x_scale=np.abs(start),
    )
    counted = int(np.sum(np.asarray(problem.weights()) > 0))
    dof = counted - start.size
    covariance = 2 * end.cost / dof * np.linalg.pinv(end.jac.T @ end.jac)
    sd = np.sqrt(np.diag(covariance))
    half, at = stdtrit(dof, 0.975) * sd, places(case, found)
    codes = () if end.success else ("search-unfinished",)
    return Found(end.x[at], sd[at], (end.x - half)[at], (end.x + half)[at], codes)


FINDERS: dict[str, Callable[[Case, Data, fx.FitResult], Found]] = {
    "frictax": frictax,
    "scipy": scipy,
}
