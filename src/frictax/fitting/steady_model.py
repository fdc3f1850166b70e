"""The friction model that is fitted to a sweep, and start values of laws and bristles from data."""

import dataclasses
from collections.abc import Container
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from frictax.annotations import ArrayLike
from frictax.bristles import AbstractBristle, Dahl, ElastoPlastic, LuGre, MaxwellSlip
from frictax.laws import LAWS_WITH_START, AbstractLaw, as_law, has_start
from frictax.measurements import Sweep
from frictax.measurements.reversals import rises
from frictax.notice import Notice
from frictax.parameters import (
    Parameter,
    as_array,
    check,
    on_edge_unasked,
    parameters,
    replace,
    select,
    to_unconstrained,
)

from .options import FitOptions
from .problem.initial_state import named_paths
from .problem.problem import Problem, residuals_and_jacobian
from .problem.steady import SteadyFriction, as_steady
from .result.identifiability import null_directions
from .result.sweep_checks import peak_unseen

Law = TypeVar("Law", bound=AbstractLaw)
Bristle = TypeVar("Bristle", bound=AbstractBristle)


def starting_law(
    kind: type[Law], sweep: Sweep, *, exponent: float = 1.0, nodes: ArrayLike | None = None
) -> Law:
    """Return a law of class `kind` that is close to the sweep, with start values for a fit. Each
    start value is inside its domain.

    The terms that are linear in their parameters are estimated by least squares with values >= 0.
    `fexp` is searched on a grid between about 1/highest and 1/lowest speed. The nodes of a table
    are the speed 0 and quantiles of the measured speeds.

    **Arguments:** `kind`: the class `Coulomb`, `Stribeck`, `Table`, or your own with a method
    `start_near` (see `AbstractLaw`); `exponent`: the exponent of `Stribeck`; `nodes`: the number
    (>= 2) of the nodes of `Table`, or their speeds. The default number of nodes is a third of the
    number of measured speeds, at most 6.

    **Raises:** `ValueError` for any other `kind`.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 4], [7.0, 8.0, 10.0], velocity_unit="m/s", force_unit="N")
    >>> law = fx.starting_law(fx.Coulomb, sweep)
    >>> round(float(law.F_Coulomb), 6), round(float(law.F_prop), 6)
    (6.0, 1.0)
    """
    if not (isinstance(kind, type) and issubclass(kind, AbstractLaw) and has_start(kind)):
        name = getattr(kind, "__name__", repr(kind))
        *first, last = [law.__name__ for law in LAWS_WITH_START]
        raise ValueError(
            f"A start is known for {', '.join(first)} and {last}, not for {name}. Give a law with"
            f" start values: {name}(...)."
        )
    return kind.start_near(SlidingRows.from_sweep(sweep), exponent=exponent, nodes=nodes)


@dataclasses.dataclass(frozen=True)
class SlidingRows:
    """The rows of a sweep except breakaway rows, from which a law estimates its start values.

    - `v` (n,) > 0: speeds [m/s]; `f` (n,): friction force against the motion [N]; `weight` (n,):
      weight of each row in a fit [1].
    """

    v: Float[np.ndarray, " n"]
    f: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]

    @classmethod
    def from_sweep(cls, sweep: Sweep) -> "SlidingRows":
        kept = ~sweep.breakaway
        v, f = np.abs(sweep.velocity[kept]), (sweep.force * sweep.direction)[kept]
        sigma = sweep.sigma
        return cls(v, f, np.ones_like(v) if sigma is None else sigma.mean() / sigma[kept])

    @property
    def mean_force(self) -> float:
        return max(float(np.mean(np.abs(self.f))), 1e-30)

    def fit_terms(self, *columns: Any, prior: float = 0.0) -> tuple[np.ndarray, float]:
        """Fit `f` by a linear combination of the `columns` (n,). Return the coefficients (>= 0) and
        the norm of the weighted residuals. With `prior` > 0, the fit has an additional residual for
        each coefficient, (coefficient - mean force) times `prior`.
        """
        from scipy.optimize import nnls

        matrix, f = np.column_stack(columns) * self.weight[:, None], self.f * self.weight
        if prior:
            matrix = np.vstack([matrix, prior * np.eye(len(columns))])
            f = np.concatenate([f, np.full(len(columns), prior * self.mean_force)])
        size = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
        terms, misfit = nnls(matrix / size, f)
        return terms / size, float(misfit)


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
    """Return a bristle of class `kind` with start values for a fit, from motion and friction.

    After a reversal from full sliding, friction changes from one limit to the opposite one.
    `sigma_0` is the friction force divided by the distance for 63 % of this change of friction.
    This estimate is exact for `Dahl`. `ElastoPlastic` and `MaxwellSlip` are springs that yield near
    their limit, so their `sigma_0` is 1.26 times as large. The start value of `sigma_0` must be
    correct within a factor of a few. The motion of a contact that slides far does not depend on
    `sigma_0`, so a search cannot correct a larger error. If the record has no reversal, `sigma_0`
    is the largest force divided by 5 um (ground steel), or by 1 mrad (geared joints).

    A single element of `MaxwellSlip` has the stiffness `sigma_0`. If there are several elements,
    their slip forces are equal. Their deflections at slip form a geometric series, from half to
    twice the deflection of a single element.

    **Arguments:** `kind`: the class `Dahl`, `LuGre`, `ElastoPlastic` or `MaxwellSlip`; `motion`
    [m or rad] and `friction` [N or N.m] at each sample; `m` [kg or kg.m2]: the moving mass;
    `viscous` [N.s/m]: the viscous friction. `sigma_1` and `viscous` together damp the sticking mass
    critically; without `m`, `sigma_1` is 0. `rotational`: true for rotation; `elements`: number of
    elements of `MaxwellSlip`.

    **Raises:** `ValueError` for another class of bristle, for `elements` < 1, and for several
    elements if `kind` is not `MaxwellSlip`.

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
    bristle: Any  # an instance of `kind`
    if kind is MaxwellSlip:
        grid = np.geomspace(0.5, 2.0, elements) if elements > 1 else np.ones(1)
        # The shares are given explicitly, because a fit changes only shares that are given.
        bristle = MaxwellSlip(stiffness / (elements * grid), share=np.ones(elements))
        return bristle
    values = {"sigma_0": stiffness}
    if kind is not Dahl:
        damping = 0.0 if m is None else 2 * np.sqrt(stiffness * m) - viscous
        values["sigma_1"] = max(float(damping), 0.0)
    bristle = kind(**values)
    return bristle


def assemble_friction(model: Any, data: Sweep, options: FitOptions) -> Any:
    """Return the friction model to fit. The model is a law if `f_neg`, `peak` and `offset` are not
    given and the sweep has no breakaway rows. In all other cases the model is a `SteadyFriction`.
    """
    f_neg, peak, offset = options.f_neg, options.peak, options.offset
    if isinstance(model, SteadyFriction):
        if f_neg is not None or peak is not None or offset is not None:
            raise ValueError(
                "`f_neg`, `peak` and `offset` belong inside the `SteadyFriction` that is fitted,"
                " not beside it."
            )
        return model
    breakaway = bool(data.breakaway.any())
    forward = _law(model, data.positive() if f_neg is not None else data)
    if f_neg is None and peak is None and offset is None and not breakaway:
        check(forward)
        return forward
    backward = None if f_neg is None else _law(f_neg, data.negative())
    if peak is None:
        peak = 1.0
        if breakaway:
            ahead = data.breakaway & (data.direction > 0)
            peak = _peak(
                forward, data, ahead if backward is not None and ahead.any() else data.breakaway
            )
    return SteadyFriction(forward, backward, as_array(peak), as_array(offset))


def near_data(model: Any, data: Sweep, paths: tuple[str, ...]) -> list[Any]:
    """Return a list that contains `model` with the parameters `paths` estimated from the data. The
    list is empty if no parameter in `paths` can be estimated.
    """
    steady = as_steady(model)
    values: dict[str, Any] = {}
    for branch, law in (("f_pos", steady.f_pos), ("f_neg", steady.f_neg)):
        way = 1 if branch == "f_pos" else -1
        if law is None or (
            steady.f_neg is not None and not np.any((data.direction == way) & ~data.breakaway)
        ):
            continue
        own = data if steady.f_neg is None else data.select("positive" if way > 0 else "negative")
        if not has_start(type(law)):
            return []
        near = type(law).start_near(SlidingRows.from_sweep(own), **law.form)
        prefix = f"{branch}." if isinstance(model, SteadyFriction) else ""
        values |= {prefix + p.path: p.value for p in parameters(near)}
        if "peak" in paths and own.breakaway.any():
            values["peak"] = as_array(_peak(near, own, own.breakaway))
    moved = {path: value for path, value in values.items() if path in paths}
    return [replace(model, moved)] if moved else []


def _peak(law: AbstractLaw, data: Sweep, rows: np.ndarray) -> float:
    """Return the ratio (>= 1.05) of the breakaway force in `rows` to the law's force at speed 0."""
    return max(1.05, float(np.mean(np.abs(data.force[rows])) / max(float(law.f0), 1e-300)))


def _law(model, data: Sweep) -> AbstractLaw:
    if isinstance(model, type) and issubclass(model, AbstractLaw):
        return starting_law(model, data)
    if isinstance(model, str):
        raise ValueError(
            f"`fit` takes a law, got the text {model!r}. Write fx.Stribeck, or fx.Stribeck(...)"
            " with start values."
        )
    return as_law(model)


def movable(
    model: Any, data: Sweep, free: Any, tied: Container[str] = ()
) -> tuple[list[Parameter], list[Notice]]:
    """Return the parameters that are fitted, and notices about parameters that cannot be fitted."""
    chosen = [p for p in select(model, free) if p.path not in tied]
    notes = []
    if isinstance(model, SteadyFriction):
        if not data.breakaway.any():
            chosen = [p for p in chosen if p.path != "peak"]
            notes.append(peak_unseen(model))
        for branch, rows in (("f_pos.", data.direction > 0), ("f_neg.", data.direction < 0)):
            if model.f_neg is not None and not rows.any():
                chosen = [p for p in chosen if not p.path.startswith(branch)]
                notes.append(Notice("direction-unseen", branch[:-1]))
    else:
        notes.append(peak_unseen(model))
    if not chosen:
        raise ValueError(
            f"Nothing is left to fit: `free` is {free!r}. Name some of"
            f" {', '.join(p.path for p in parameters(model))}."
        )
    edge = on_edge_unasked(chosen, named_paths(free))
    if len(edge) < len(chosen):
        chosen = [p for p in chosen if p not in edge]
        notes += [Notice("left-at-bound", p.path, {"value": float(p.value)}) for p in edge]
    # This conversion raises an error for a start value at the bound of its domain.
    to_unconstrained(model, [p.path for p in chosen])
    return chosen, notes


def check_determined(problem: Problem, data: Sweep) -> None:
    """Raise `ValueError` if the number of rows does not exceed the number of fitted parameters, or
    if the sweep cannot distinguish the offset from friction.
    """
    count = problem.x0.size
    if data.n <= count:
        raise ValueError(
            f"`Sweep` {data.name!r} has {data.n} rows, too few for {count} parameters and their"
            f" errors: {count + 1} is the least. Measure more speeds, or move fewer through"
            " free=[...]."
        )
    if any(u.path == "offset" for u in problem.unknowns):
        jacobian = np.asarray(residuals_and_jacobian(problem, problem.x0)[1])
        names = [name for u in problem.unknowns for name in u.names]
        _, null = null_directions(jacobian, names, np.linalg.norm(jacobian, axis=0) > 0)
        if any("offset" in direction for direction in null):
            why = "an asymmetry of Coulomb friction" if data.both_directions else "Coulomb friction"
            remedy = (
                "Leave out `offset` or `f_neg`"
                if data.both_directions
                else "Leave out `offset`, or measure both directions"
            )
            raise ValueError(
                f"`offset` (the payload's weight) and {why} cannot be separated here: both shift"
                f" the curve equally. {remedy}."
            )
