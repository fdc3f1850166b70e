"""From data to parameters and their covariance, compiled: every fit, bootstrap and cross-validation calls this."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from frictax.fitting.problem.losses import AbstractLoss
from frictax.fitting.problem.steady import as_steady
from frictax.fitting.search.methods import AbstractMethod, Residuals
from frictax.measurements.sweep import Sweep
from frictax.parameters import Parameter, replace, select


class SweepData(eqx.Module):
    """A sweep as arrays. `weight` is 1/sigma, or 1; 0 leaves a row out."""

    velocity: Float[Array, " n"]
    force: Float[Array, " n"]
    weight: Float[Array, " n"]
    breakaway: Bool[Array, " n"]
    direction: Float[Array, " n"]

    def predict(self, model: Any) -> Float[Array, " n"]:
        return as_steady(model).predict(self.velocity, self.breakaway, self.direction)


def as_data(sweep: Sweep) -> SweepData:
    weight = np.ones(sweep.n) if sweep.sigma is None else 1.0 / sweep.sigma
    arrays = (sweep.velocity, sweep.force, weight, sweep.breakaway, sweep.direction)
    return SweepData(*(jnp.asarray(a) for a in arrays))


class Estimation(eqx.Module):
    """The minimum and its neighbourhood, for the p entries of the free parameters, one after the other.

    - `x`: physical values; `covariance`; `jacobian` of the weighted predictions.
    - `active`: false where an entry has reached its bound or no longer acts on the prediction.
    - `cost`: what tells the better of two minima, the sum of squares or, for another loss, the noise scale (the loss where sigma is known).
    - `noise_scale`: of the weighted residuals, from n - p (active) degrees of freedom, or 1 where sigma is known.
    """

    x: Float[Array, " p"]
    covariance: Float[Array, "p p"]
    jacobian: Float[Array, "n p"]
    residuals: Float[Array, " n"]
    cost: Float[Array, ""]
    noise_scale: Float[Array, ""]
    dof: Int[Array, ""]
    active: Bool[Array, " p"]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


def entries(parameters: list[Parameter]) -> list[tuple[Parameter, str]]:
    """One (parameter, name) an entry: a table's forces are ``f[0]``, ``f[1]``, ..."""
    out = []
    for p in parameters:
        shape = np.shape(p.value)
        out += [(p, p.path)] if shape == () else [(p, f"{p.path}[{i}]") for i in range(shape[0])]
    return out


def lower_bounds(parameters: list[Parameter]) -> np.ndarray:
    """The bound of each entry, -inf where there is none."""
    return np.concatenate([np.full(np.size(p.value), p.declaration.domain.bound()) for p in parameters])


def with_values(model: Any, paths: tuple[str, ...], x: Float[Array, " p"]) -> Any:
    """`model` with the entries of its parameters `paths` taken from `x`."""
    return replace(model, _split(select(model, paths), x))


def estimate(
    data: SweepData, model: Any, paths: tuple[str, ...], method: AbstractMethod, loss: AbstractLoss, sigma_known: bool = False
) -> Estimation:
    """Minimise the loss over the parameters `paths` of `model`, from its values. May be jitted and vmapped over `data`.

    The search runs in unconstrained coordinates, turned and scaled by the singular vectors of the Jacobian so that 1 is
    about one standard error; each further round starts with the coordinates of the last one's end.

    **Source:** covariance of squares: G. A. F. Seber, C. J. Wild, *Nonlinear Regression* (1989), section 2.1; of other
    losses: P. J. Huber, E. M. Ronchetti, *Robust Statistics*, 2nd ed. (2009), equations 7.81 to 7.83 (first form).
    """
    free = select(model, paths)
    # A bounded value is searched in units of its start's distance from the bound, so that units of force and speed do not matter.
    start, lower = jnp.concatenate([jnp.ravel(jnp.asarray(p.value)) for p in free]), lower_bounds(free)
    origin = jnp.asarray(np.where(np.isfinite(lower), lower, 0.0))
    size = jnp.where(np.isfinite(lower), start - origin, 1.0)

    def mapped(x: Array, way: str) -> Array:
        parts = _split(free, x)
        return jnp.concatenate([jnp.ravel(getattr(p.declaration.domain, way)(parts[p.path])) for p in free])

    def physical(z: Array) -> Array:
        return origin + size * (mapped(z, "from_unconstrained") - origin)

    def residuals(x: Array) -> Array:
        return data.weight * (data.predict(replace(model, _split(free, x))) - data.force)

    z0 = mapped(origin + (start - origin) / size, "to_unconstrained")
    z, scale, settled, steps = _search(data, lambda z: residuals(physical(z)), z0, method, loss, sigma_known)
    x = physical(z)
    r, jacobian = residuals(x), jax.jacfwd(residuals)(x)

    # An entry whose way to its bound changes the curve by less than a thousandth of the noise is at its bound.
    rows, norms = jnp.sum(data.weight > 0), jnp.linalg.norm(jacobian, axis=0)
    effect = jnp.where(np.isfinite(lower), x - origin, jnp.inf) * norms / jnp.sqrt(rows)
    active = (norms > 0) & (effect > 1e-3 * scale)
    dof = rows - jnp.sum(active)
    if loss.rounds > 1:
        variance = robust_variance(loss, r / scale, data.weight > 0, dof, sigma_known) * scale**2
        noise, cost = scale, jnp.sum(jnp.where(data.weight > 0, loss.rho(r), 0.0)) if sigma_known else scale
    else:
        cost = jnp.sum(r * r)
        variance = jnp.ones_like(cost) if sigma_known else cost / jnp.maximum(dof, 1)
        noise = jnp.sqrt(variance)
    covariance = variance * inverse_gram(jacobian, norms, active)
    return Estimation(x, covariance, jacobian, r, cost, noise, dof, active, settled & jnp.all(jnp.isfinite(x)), steps)


def _search(
    data: SweepData, residuals: Residuals, start: Float[Array, " p"], method: AbstractMethod, loss: AbstractLoss, sigma_known: bool
) -> tuple[Array, Array, Array, Array]:
    """Unconstrained minimum, noise scale, whether it is settled, steps."""
    rows, p, robust, beta = jnp.sum(data.weight > 0), start.shape[0], loss.rounds > 1, loss.consistency()
    # where a model passes through every point, the noise is that of rounding
    floor = 1e-7 * jnp.sqrt(jnp.sum((data.weight * data.force) ** 2) / rows)

    def around(state: Any) -> Any:
        z, scale, _, k, steps, _ = state
        # Directions that the data do not see are not blown up beyond 1e4.
        _, s, vt = jnp.linalg.svd(jax.jacfwd(residuals)(z) / scale, full_matrices=False)
        turn = vt.T / jnp.maximum(s, 1e-4 * s[0] + jnp.finfo(s.dtype).tiny)
        found = method.minimise(lambda u: loss.root(residuals(z + turn @ u) / scale), jnp.zeros(turn.shape[1]))
        z = z + turn @ found.at
        x = residuals(z) / scale
        new = scale * jnp.sqrt(jnp.sum(loss.score(x) ** 2) / (jnp.maximum(rows - p, 1) * beta))
        if robust:  # least squares first, then the median, which outliers do not move: the start of Huber's scale
            median = jnp.nanmedian(jnp.where(data.weight > 0, jnp.abs(x), jnp.nan)) * scale / 0.6745
            new = jnp.where(k == 0, median, new)
        new = jnp.ones_like(new) if sigma_known and robust else jnp.maximum(new, floor)
        return z, new, jnp.abs(new - scale) / scale, k + 1, steps + found.steps, found.converged

    wide = jnp.maximum(jnp.sqrt(jnp.sum(residuals(start) ** 2) / rows), floor)
    zero = jnp.zeros((), dtype=int)
    state = (start, wide, jnp.full_like(wide, jnp.inf), zero, zero, jnp.asarray(False))
    last = max(10, loss.rounds)  # coordinates of a start far away, or near a bound, may be too poor for one round

    def going(s: Any) -> Array:
        return (s[3] < 2) | ((s[3] < last) & ((s[2] > 1e-10) if robust else ~s[5]))

    state = jax.lax.while_loop(going, around, state)
    z, scale, change, _, steps, converged = state
    return z, scale, converged & (change <= 1e-6) if robust else converged, steps


def robust_variance(loss: AbstractLoss, scaled: Array, counted: Array, dof: Array, sigma_known: bool) -> Array:
    """What multiplies scale**2 * inv(J^T J): K**2 * sum(score**2)/dof / mean(slope)**2, with Huber's correction K.

    Of the `scaled` residuals those `counted` enter. Where sigma is known the mean of score**2 is that of normal noise.
    """
    rows = jnp.sum(counted)
    slope = jnp.where(counted, loss.score_slope(scaled), 0.0)
    mean = jnp.sum(slope) / rows
    scatter = jnp.sum(jnp.where(counted, (slope - mean) ** 2, 0.0)) / rows
    correction = 1.0 + (rows - dof) / rows * scatter / mean**2
    square = loss.consistency() if sigma_known else jnp.sum(loss.score(scaled) ** 2) / jnp.maximum(dof, 1)
    return correction**2 * square / mean**2


# Compiled once for each structure of model, set of paths, method, loss and number of rows.
estimate_jit = eqx.filter_jit(estimate)


@eqx.filter_jit
def estimate_each(
    data: SweepData,
    forces: Float[Array, "k n"],
    model: Any,
    paths: tuple[str, ...],
    method: AbstractMethod,
    loss: AbstractLoss,
    sigma_known: bool,
) -> Estimation:
    """`estimate` of each force vector, all from the same start."""
    one = lambda f: estimate(eqx.tree_at(lambda d: d.force, data, f), model, paths, method, loss, sigma_known)  # noqa: E731
    return eqx.filter_vmap(one)(forces)


def _split(free: list[Parameter], flat: Array) -> dict[str, Array]:
    parts, start = {}, 0
    for p in free:
        shape = np.shape(p.value)
        size = int(np.prod(shape))
        parts[p.path] = jnp.reshape(flat[start : start + size], shape)
        start += size
    return parts


def inverse_gram(jacobian: Any, norms: Any, active: Any, xp: Any = jnp) -> Any:
    """inv(J^T J) over the active columns, zero elsewhere; enormous along a direction that the data do not see. `xp`: jnp or np."""
    scaled = xp.where(active, jacobian / xp.where(norms > 0, norms, 1.0), 0.0)
    padded = xp.concatenate([scaled, xp.diag(xp.where(active, 0.0, 1.0))])
    _, s, vt = xp.linalg.svd(padded, full_matrices=False)
    root = vt.T / xp.maximum(s, 1e-12)
    inverse = root @ root.T
    keep = active[:, None] & active[None, :]
    size = xp.where(active, norms, 1.0)
    return xp.where(keep, inverse / size[:, None] / size[None, :], 0.0)
