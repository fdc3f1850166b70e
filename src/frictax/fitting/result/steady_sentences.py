"""Notices on parameters that a sweep does not identify."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from frictax.laws import Stribeck
from frictax.measurements.sweep import Sweep
from frictax.notice import Notice

from ..problem.losses import AbstractLoss
from ..problem.steady import SteadyFriction, as_steady
from .identifiability import Knowledge, join_names


def peak_unseen(model: Any) -> Notice:
    return Notice("peak-unseen", "peak", {"peak": float(as_steady(model).peak)})


def weight_or_friction(model: SteadyFriction, unit: str, size: float) -> Notice:
    """Return a notice that the sweep cannot distinguish a weight from a difference of the two laws,
    because the model does not have an offset.
    """
    assert model.f_neg is not None
    difference = float(model.f_pos.f0) - float(model.f_neg.f0)
    numbers = {"difference": difference / size, "force": difference / 2 / size, "unit": unit}
    return Notice("weight-or-friction", "", numbers)


@dataclasses.dataclass(frozen=True)
class SteadyFit:
    """A fitted sweep: weighted residuals (n,) and their Jacobian (n, p) with respect to the
    parameters `names` at the values `x` (p,).
    """

    model: Any
    sweep: Sweep
    names: list[str]
    x: Float[np.ndarray, " p"]
    jacobian: Float[np.ndarray, "n p"]
    residuals: Float[np.ndarray, " n"]
    noise_scale: float
    loss: AbstractLoss


def doubtful_dips(fit: SteadyFit, knowledge: dict[str, Knowledge]) -> list[Notice]:
    """Return notices of Stribeck terms that could be noise. Then F_Stribeck and fexp are not
    identifiable, and their `knowledge` changes to this.
    """
    model = fit.model
    if isinstance(model, SteadyFriction):
        branches = [("f_pos.", model.f_pos), ("f_neg.", model.f_neg)]
    else:
        branches = [("", model)]
    out = []
    for prefix, law in branches:
        terms = [prefix + name for name in ("F_Stribeck", "fexp") if prefix + name in knowledge]
        if not isinstance(law, Stribeck) or prefix + "F_Stribeck" not in terms:
            continue
        chance = _chance(fit, terms)
        if knowledge[terms[0]] is Knowledge.AT_BOUND or chance > 0.05:
            knowledge.update(dict.fromkeys(terms, Knowledge.UNKNOWN))
            said = f"terms {join_names(terms)} are" if len(terms) > 1 else f"term {terms[0]} is"
            out.append(Notice("doubtful-dip", terms[0], {"terms": said, "percent": 100 * chance}))
    return out


def _chance(fit: SteadyFit, terms: list[str]) -> float:
    """Return the probability that noise alone improves the fit by a Stribeck term as much as here.

    Without the term fexp does not have an effect, so the usual intervals and criteria are invalid.
    The law without the term is linear, F_Coulomb + F_prop*v with both >= 0. With normal noise the
    distribution of the best gain over all fexp depends only on the speeds. The probability follows
    from 999 draws of it.

    **Source:** R. B. Davies, Biometrika 64 (1977) for the problem; M. Dwass, Ann. Math. Stat. 28
    (1957) for the test.
    """
    from scipy.optimize import lsq_linear

    steady, sweep, names, negative = (
        as_steady(fit.model),
        fit.sweep,
        fit.names,
        terms[0].startswith("f_neg."),
    )
    law = steady.f_neg if negative else steady.f_pos
    assert isinstance(law, Stribeck)
    mine = (
        np.ones(sweep.n, bool)
        if steady.f_neg is None
        else sweep.direction == (-1 if negative else 1)
    )
    weight = np.where(mine, sweep.direction, 0.0) * (
        1.0 if sweep.sigma is None else 1.0 / sweep.sigma
    )
    speed = np.abs(sweep.velocity)

    def dip(fexp: float) -> np.ndarray:
        return weight * np.where(
            sweep.breakaway, float(steady.peak), np.exp(-((fexp * speed) ** float(law.exponent)))
        )

    x, jacobian = fit.x, fit.jacobian
    # The score limits outliers.
    residual = fit.noise_scale * np.asarray(
        fit.loss.score(jnp.asarray(fit.residuals / max(fit.noise_scale, np.finfo(float).tiny)))
    )
    # A column whose square underflows to 0 belongs to a parameter without effect.
    norms = np.linalg.norm(jacobian, axis=0)
    kept = [i for i, name in enumerate(names) if name not in terms and norms[i] > 0]
    # Own terms are unknowns by their values, so that their bound applies, and all other parameters
    # by their steps from the minimum.
    prefix = terms[0].removesuffix("F_Stribeck")
    own = np.array(
        [names[i] in (prefix + "F_Coulomb", prefix + "F_prop") for i in kept], dtype=bool
    )
    columns = jacobian[:, kept] / norms[kept]
    data = (
        float(law.F_Stribeck) * dip(float(law.fexp))
        - residual
        + jacobian[:, kept] @ np.where(own, x[kept], 0.0)
    )
    if kept:
        # With exact data scipy tries steps that are not finite, and rejects them.
        with np.errstate(invalid="ignore"):
            without = lsq_linear(
                columns, data / np.max(np.abs(data)), bounds=(np.where(own, 0.0, -np.inf), np.inf)
            ).x
        columns = columns[:, ~own | (without > 1e-6 * np.max(np.abs(without)))]

    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    basis = left[:, size > 1e-10 * np.max(size, initial=0.0)]
    moving = speed[mine & ~sweep.breakaway]
    grid = (
        np.geomspace(0.5 / moving.max(), 2.0 / moving.min(), 60)
        if len(terms) > 1
        else [float(law.fexp)]
    )
    dips = np.column_stack([dip(fexp) for fexp in grid])
    apart = dips - basis @ (basis.T @ dips)
    length = np.linalg.norm(apart, axis=0)
    seen = length > 1e-6 * np.linalg.norm(dips, axis=0)
    if not seen.any():
        return 1.0
    draws = np.column_stack([data, np.random.default_rng(0).standard_normal((sweep.n, 999))])
    draws -= basis @ (basis.T @ draws)
    gain = np.max(np.maximum((apart[:, seen] / length[seen]).T @ draws, 0.0) ** 2, axis=0)
    if not sweep.sigma_known:
        gain = gain / np.maximum(np.sum(draws**2, axis=0), 1e-300)
    return float(np.mean(gain >= gain[0]))
