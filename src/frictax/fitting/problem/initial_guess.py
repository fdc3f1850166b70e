"""Start values from the data, so that a user need give none."""

from typing import Any, TypeVar

import numpy as np

from frictax.annotations import ArrayLike
from frictax.bristles import AbstractBristle, Dahl, ElastoPlastic, LuGre, MaxwellSlip
from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table
from frictax.measurements import Sweep
from frictax.measurements.reversals import rises

Law = TypeVar("Law", bound=AbstractLaw)
Bristle = TypeVar("Bristle", bound=AbstractBristle)


def starting_law(
    kind: type[Law], sweep: Sweep, *, exponent: float = 1.0, nodes: ArrayLike | None = None
) -> Law:
    """A law of that kind near the sweep, each value inside its domain, from which a fit can start.

    The terms that enter linearly are found by least squares with values >= 0; `fexp` is searched on
    a grid between the inverse of the highest speed and that of the lowest. A table gets `nodes`
    speeds, one of them 0, the others at quantiles of the measured ones.

    **Arguments:** `kind`: `Coulomb`, `Stribeck` or `Table`; `exponent` for `Stribeck`; `nodes` for
    `Table`: how many (>= 2), or which speeds; a third of the number of measured speeds unless
    given, at most 6.

    **Raises:** `ValueError` for another kind of law.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.0, 8.0, 9.0, 10.0], velocity_unit="m/s", force_unit="N")
    >>> law = fx.starting_law(fx.Coulomb, sweep)
    >>> round(float(law.F_Coulomb), 6), round(float(law.F_prop), 6)
    (6.0, 1.0)
    """
    sliding = ~sweep.breakaway
    v = np.abs(sweep.velocity[sliding])
    f = (sweep.force * sweep.direction)[sliding]
    w = np.ones_like(v) if sweep.sigma is None else sweep.sigma.mean() / sweep.sigma[sliding]
    size = max(float(np.mean(np.abs(f))), 1e-30)
    least = 0.01 * size  # a start on the edge of its domain could not leave it
    law: Any  # of that kind
    if kind is Coulomb:
        (constant, slope), _ = _nonnegative(w, f, np.ones_like(v), v)
        law = Coulomb(F_Coulomb=max(constant, least), F_prop=max(slope, least / v.max()))
        return law
    if kind is Stribeck:
        best: Any = None
        for fexp in np.geomspace(0.5 / v.max(), 2.0 / v.min(), 60):
            terms, misfit = _nonnegative(
                w, f, v, np.ones_like(v), np.exp(-((fexp * v) ** exponent))
            )
            if best is None or misfit < best[0]:
                best = (misfit, fexp, terms)
        _, fexp, (slope, constant, dip) = best
        values = {
            "F_prop": max(slope, least / v.max()),
            "F_Coulomb": max(constant, least),
            "F_Stribeck": max(dip, least),
        }
        law = Stribeck(**values, fexp=fexp, exponent=exponent)
        return law
    if kind is Table:
        at = (
            table_nodes(v, nodes)
            if nodes is None or isinstance(nodes, int)
            else np.asarray(nodes, dtype=float)
        )
        if at.size == 1:
            law = Table([[at[0], size]])
            return law
        hats = [np.interp(v, at, row) for row in np.eye(at.size)]
        # a faint pull towards the mean keeps a node between whose neighbours nothing was measured
        # near the curve
        pull = [
            np.concatenate([hat * w, 1e-3 * row])
            for hat, row in zip(hats, np.eye(at.size), strict=True)
        ]
        terms, _ = _nonnegative(
            np.ones(v.size + at.size), np.concatenate([f * w, np.full(at.size, 1e-3 * size)]), *pull
        )
        law = Table(np.column_stack([at, np.maximum(terms, least)]))
        return law
    name = getattr(kind, "__name__", repr(kind))
    raise ValueError(
        f"A start is known for Coulomb, Stribeck and Table, not for {name}. Give a law with start"
        f" values: {name}(...)."
    )


def starting_bristle(
    kind: type[Bristle],
    motion: ArrayLike,
    friction: ArrayLike,
    *,
    m: float | None = None,
    viscous: float = 0.0,
    rotational: bool = False,
    elements: int = 1,
) -> Bristle:
    """A bristle of that kind near a record of motion and friction, from which a fit can start.

    `sigma_0` is the force over the way from a reversal in full sliding to 63 % of the swing between
    the limits: exact for `Dahl`, 1.26 times that for a spring that yields near its limit. It must
    be known within a factor of a few: once a contact slides far, nothing of it is left in the
    motion, and no search finds the way back. Where no reversal is seen it is the greatest force
    over 5 um, as of ground steel, or over 1 mrad, as of geared joints.

    One element of `MaxwellSlip` gets that stiffness; several bear equal shares, and slip after ways
    on a geometric grid from half to twice that of one alone.

    **Arguments:** `kind`: `Dahl`, `LuGre`, `ElastoPlastic` or `MaxwellSlip`; `motion` [m or rad]
    and `friction` [N or N.m], sample by sample; `m` [kg or kg.m2]: what rubs; of it and `viscous`
    [N.s/m] `sigma_1` is made to damp it critically while it does not slide, without it there is
    none; `rotational`: whether it turns; `elements`: how many of `MaxwellSlip`.

    **Raises:** `ValueError` for another kind of bristle, and for fewer elements than 1 or more of
    a bristle that has none.

    >>> import frictax as fx, numpy as np
    >>> way = np.linspace(0.0, 1e-3, 2001)
    >>> s, rise = np.concatenate([way, way[::-1]]), -np.expm1(-way / 2e-5)
    >>> f = np.concatenate([3.0 * rise, 3.0 - 6.0 * rise])
    >>> bristle = fx.starting_bristle(fx.LuGre, s, f, m=2.0)
    >>> f"{float(bristle.sigma_0):.2g} N/m, {float(bristle.sigma_1):.2g} N.s/m"
    '1.5e+05 N/m, 1.1e+03 N.s/m'
    """
    name = getattr(kind, "__name__", repr(kind))
    if kind not in (Dahl, LuGre, ElastoPlastic, MaxwellSlip):
        raise ValueError(
            f"A start is known for Dahl, LuGre, ElastoPlastic and MaxwellSlip, not for {name}. Give"
            f" a bristle with start values: {name}(...)."
        )
    if elements < 1 or (elements > 1 and kind is not MaxwellSlip):
        raise ValueError(
            f"`elements` must be 1 or more, and 1 but for MaxwellSlip, got {elements} for {name}."
        )
    s, f = np.asarray(motion, dtype=float), np.asarray(friction, dtype=float)
    found = rises(s, f, (1 - np.exp(-1.0),))
    way, force = (1e-3 if rotational else 5e-6), float(np.max(np.abs(f)))
    if len(found):
        way, force = (float(x) for x in np.median(found, axis=0))
    straight = kind in (ElastoPlastic, MaxwellSlip) and len(found)
    stiffness = (1.26 if straight else 1.0) * force / way
    bristle: Any  # of that kind
    if kind is MaxwellSlip:
        grid = np.geomspace(0.5, 2.0, elements) if elements > 1 else np.ones(1)
        # of shares that are named, so that a fit can move them
        bristle = MaxwellSlip(stiffness / (elements * grid), share=np.ones(elements))
        return bristle
    values = {"sigma_0": stiffness}
    if kind is not Dahl:
        damping = 0.0 if m is None else 2 * np.sqrt(stiffness * m) - viscous
        values["sigma_1"] = max(float(damping), 0.0)
    bristle = kind(**values)
    return bristle


def near_law(law: AbstractLaw, sweep: Sweep) -> AbstractLaw | None:
    """A law of the same form as `law`, near the sweep; None for a form that is not known here."""
    if isinstance(law, Coulomb):
        return starting_law(Coulomb, sweep)
    if isinstance(law, Stribeck):
        return starting_law(Stribeck, sweep, exponent=float(law.exponent))
    if isinstance(law, Table):
        return starting_law(Table, sweep, nodes=np.asarray(law.v))
    return None


def table_nodes(speeds: np.ndarray, nodes: int | None = None) -> np.ndarray:
    """Speeds for a table: 0, the highest measured speed, and quantiles between."""
    distinct = np.unique(speeds)
    count = int(np.clip(distinct.size // 3, 2, 6)) if nodes is None else nodes
    if not 2 <= count <= distinct.size:
        raise ValueError(
            f"A table of this sweep must have 2 to {distinct.size} nodes, one for each speed at"
            f" most, got {count}."
        )
    inner = np.quantile(distinct, np.linspace(0.0, 1.0, count)[1:])
    return np.concatenate([[0.0], inner])


def _nonnegative(
    weight: np.ndarray, f: np.ndarray, *columns: np.ndarray
) -> tuple[np.ndarray, float]:
    from scipy.optimize import nnls

    matrix = np.column_stack(columns) * weight[:, None]
    size = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    terms, misfit = nnls(matrix / size, f * weight)
    return terms / size, float(misfit)
