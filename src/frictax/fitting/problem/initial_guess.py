"""Start values from the data, so that users do not have to give them."""

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
    """Return a law of that kind near the sweep, from which a fit can start: each value is inside
    its domain.

    The linear terms are estimated by least squares with values >= 0. `fexp` is searched on a grid
    between the inverses of the highest and the lowest speed. The nodes of a table are the speed 0
    and quantiles of the measured speeds.

    **Arguments:** `kind`: `Coulomb`, `Stribeck` or `Table`; `exponent` for `Stribeck`; `nodes` for
    `Table`: their number (>= 2) or their speeds. The default is a third of the number of measured
    speeds, at most 6.

    **Raises:** `ValueError` for another kind of law.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 4], [7.0, 8.0, 10.0], velocity_unit="m/s", force_unit="N")
    >>> law = fx.starting_law(fx.Coulomb, sweep)
    >>> round(float(law.F_Coulomb), 6), round(float(law.F_prop), 6)
    (6.0, 1.0)
    """
    sliding = ~sweep.breakaway
    v = np.abs(sweep.velocity[sliding])
    f = (sweep.force * sweep.direction)[sliding]
    w = np.ones_like(v) if sweep.sigma is None else sweep.sigma.mean() / sweep.sigma[sliding]
    size = max(float(np.mean(np.abs(f))), 1e-30)
    least = 0.01 * size  # A search cannot leave a start at the bound of its domain.
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
        # A weak prior at the mean keeps a node near the curve if no speed was measured between its
        # neighbours.
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
    """Return a bristle of that kind near a record of motion and friction, for the start of a fit.

    `sigma_0` is the force divided by the distance from a reversal in full sliding to 63 % of the
    change between the limits. This is exact for `Dahl`; for a spring that yields near its limit the
    factor is 1.26. The start must be right within a factor of a few: the motion of a contact that
    slides far does not depend on `sigma_0`, so no search corrects it. Without a reversal it is the
    largest force over 5 um (ground steel), or over 1 mrad (geared joints).

    One element of `MaxwellSlip` has this stiffness. Several elements share the force equally and
    slip at distances on a geometric grid, from half to twice the distance of a single element.

    **Arguments:** `kind`: `Dahl`, `LuGre`, `ElastoPlastic` or `MaxwellSlip`; `motion` [m or rad]
    and `friction` [N or N.m] at each sample; `m` [kg or kg.m2]: the moving mass, with which
    `viscous` [N.s/m] and `sigma_1` damp sticking critically (`sigma_1` is 0 without `m`);
    `rotational`: True for rotation; `elements`: number of elements of `MaxwellSlip`.

    **Raises:** `ValueError` for another kind of bristle, for `elements` < 1, and for several
    elements of another bristle than `MaxwellSlip`.

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
            f"`elements` must be >= 1, and 1 except for MaxwellSlip, got {elements} for {name}."
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
        # Explicit shares are parameters that a fit can change.
        bristle = MaxwellSlip(stiffness / (elements * grid), share=np.ones(elements))
        return bristle
    values = {"sigma_0": stiffness}
    if kind is not Dahl:
        damping = 0.0 if m is None else 2 * np.sqrt(stiffness * m) - viscous
        values["sigma_1"] = max(float(damping), 0.0)
    bristle = kind(**values)
    return bristle


def near_law(law: AbstractLaw, sweep: Sweep) -> AbstractLaw | None:
    """Return a law of the same form as `law` near the sweep; None for another form of law."""
    if isinstance(law, Coulomb):
        return starting_law(Coulomb, sweep)
    if isinstance(law, Stribeck):
        return starting_law(Stribeck, sweep, exponent=float(law.exponent))
    if isinstance(law, Table):
        return starting_law(Table, sweep, nodes=np.asarray(law.v))
    return None


def table_nodes(speeds: np.ndarray, nodes: int | None = None) -> np.ndarray:
    """Return the speeds of a table: 0, the highest measured speed, and quantiles between them."""
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
