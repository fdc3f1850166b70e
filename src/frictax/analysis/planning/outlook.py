"""What a record or a sweep will tell, asked before the fit that is believed."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from frictax.annotations import Checked
from frictax.engine import Engine
from frictax.fitting import (
    AbstractLoss,
    AbstractMethod,
    AbstractObjective,
    AbstractPrior,
    Bounds,
    Data,
    FitResult,
    FreeRun,
    Knowledge,
    Law,
    LevenbergMarquardt,
    Own,
    Squares,
    fit,
)
from frictax.fitting.checks import check_arguments, labelled
from frictax.fitting.fit import refuse
from frictax.fitting.fit_data import raise_if_failed
from frictax.fitting.posing import fit_engine, pose
from frictax.fitting.problem.problem import bounds
from frictax.fitting.problem.sensors import Instrument
from frictax.fitting.problem.ties import Tied, tied_again
from frictax.fitting.result.answer import answer
from frictax.fitting.result.covariance import inverse_gram
from frictax.fitting.result.notices import standing_still
from frictax.fitting.search.multistart import search
from frictax.interrupts import nested_work
from frictax.measurements import Sweep
from frictax.mechanism import AbstractHybridSystem, Machine, Mechanism
from frictax.progress import SILENT, Progress, Work, watched

from ..errors.guarded import Guarded
from ..errors.refits import Samples, searched
from ..errors.uncertainty import AbstractErrors
from .expected import Outlook
from .experiments import better_motions, better_speeds
from .judged import judged


@overload
def outlook(
    model: Law,
    data: Sweep,
    *,
    free: str | Iterable[str] | None = None,
    f_neg: Law | None = None,
    peak: float | None = None,
    offset: float | None = None,
    tied: Tied | None = None,
    priors: Sequence[AbstractPrior] = (),
    bounds: Bounds | None = None,
    method: AbstractMethod | None = None,
    loss: AbstractLoss | None = None,
    level: float = 0.95,
    starts: int = 1,
    spread: float = 0.5,
    seed: int = 0,
    progress: Checked[bool | Progress] = False,
) -> Outlook: ...


@overload
def outlook(
    model: Machine,
    data: Data,
    *,
    free: str | Iterable[str] | None = None,
    objective: AbstractObjective | None = None,
    by: AbstractErrors | None = None,
    own: Own = (),
    priors: Sequence[AbstractPrior] = (),
    instruments: Mapping[str, Instrument] | None = None,
    engine: Engine | None = None,
    tied: Tied | None = None,
    progress: Checked[bool | Progress] = False,
) -> Outlook: ...


def outlook(
    model: Any,
    data: Any,
    *,
    free: Any = None,
    objective: AbstractObjective | None = None,
    by: AbstractErrors | None = None,
    own: Any = (),
    priors: Any = (),
    instruments: Any = None,
    engine: Any = None,
    tied: Any = None,
    f_neg: Any = None,
    peak: Any = None,
    offset: Any = None,
    bounds: Any = None,
    method: Any = None,
    loss: Any = None,
    level: Any = None,
    starts: Any = None,
    spread: Any = None,
    seed: Any = None,
    progress: Checked[bool | Progress] = False,
) -> Outlook:
    """How well a fit of `model` to `data` would know each parameter, what it could not tell apart,
    and which experiment would.

    Expected errors are those at the start values, with the residuals that a first fit leaves
    (coloured as they are: unless given, `by` is `HAC()`, on `Windows` `Clustered()`). A parameter
    is weak where its error is above half of its size, or of its distance from its bound.

    A cure is another motion of the same machine and length (faster, slower, both, to and fro, a
    slow sweep of speed) along which the forces would tell the weak parameter better at equal errors
    of force; how much better is computed. For a sweep: faster, slower, the other direction,
    breakaway rows.

    **Arguments:** `model`, `data`, `free`, `objective`, `f_neg` as for `fit`; of its other options
    those for a sweep, or, for records, `own`, `tied`, `priors`, `instruments` and `engine`. For a
    sweep the best fit takes the place of the start values. `progress` as in `fit`.

    A mass that a sine of 2 N hardly moves: viscous friction does not show at such speeds.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 4.0, 801)
    >>> u = 2.0 * np.sin(2 * np.pi * t)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction(
    ...         "mass", f_pos=fx.Stribeck(F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
    ...     ),
    ...     drive=fx.Force("mass", fx.Sampled(t, u)),
    ... )
    >>> noise = 2e-3 * np.random.default_rng(0).standard_normal(801)
    >>> v = np.asarray(fx.simulate(block, t)["mass"].v) + noise
    >>> record = fx.Record(t, {"drive": u}, {"mass.v": v}, name="run")
    >>> print(fx.outlook(block, record, free=["friction.f_pos"]))
    Expected accuracy of run by FreeRun, at the start values
    parameter                  start  unit   expected error  relative
    friction.f_pos.F_prop      0.2    N.s/m  ...             ... times  not identifiable
    ...
    ! Remedy: move it faster, at up to 0.37 m/s in place of 0.12; errors would be smaller, of ...
    """
    of_records = {"objective": objective, "by": by, "own": own}
    of_records |= {"instruments": instruments, "engine": engine}
    of_sweep = {"f_neg": f_neg, "peak": peak, "offset": offset, "bounds": bounds}
    of_sweep |= {"method": method, "loss": loss, "level": level, "starts": starts}
    of_sweep |= {"spread": spread, "seed": seed}
    if isinstance(data, Sweep) and not isinstance(model, Mechanism | AbstractHybridSystem):
        refuse(of_records, "records", "a law's sweep")
        given = {name: value for name, value in of_sweep.items() if value is not None}
        with watched(progress, "Looking ahead") as work:
            given |= {"free": free, "priors": priors, "tied": tied, "progress": work}
            return _of_sweep(data, fit(model, data, **given))
    refuse(of_sweep, "a law's sweep", "a machine")
    judge = FreeRun() if objective is None else objective
    instruments = {} if instruments is None else instruments
    how = judge, by, own, priors, instruments, engine, tied
    with watched(progress, "Looking ahead") as work:
        return _of_records(model, labelled(data), free, *how, work)


def _of_records(
    model: Any,
    records: Mapping[str, Any],
    free: Any,
    objective: AbstractObjective,
    by: AbstractErrors | None,
    own: Any,
    priors: Any,
    instruments: Any,
    engine: Any,
    tied: Any,
    work: Work,
) -> Outlook:
    method = LevenbergMarquardt(tolerance=1e-2, max_steps=30)
    check_arguments(model, records, objective, None, priors, instruments, engine)
    how = (objective, priors, instruments, fit_engine(engine, method), Squares())
    problem, _ = pose(model, records, free, own, *how, tied=tied)
    parts = work.parts({"first fit": 2.0, "other motions": 1.0})
    with nested_work():
        state, costs, noise, *_ = search(problem, method, say=parts["first fit"])
    parts["first fit"].end()
    raise_if_failed(problem, costs, records)
    first = answer(model, problem, records, state, costs, noise, method, 0.95, [], 0.0)
    return _expected(first, free, by, instruments, parts["other motions"])


def outlook_of(found: FitResult, by: AbstractErrors | None = None) -> Outlook:
    """`outlook` of the records of a fit, at the values that it started from, with the residuals
    that it left.
    """
    setup = found.problem.setup
    shared = [u.path for u in found.problem.unknowns if u.record is None]
    instruments = {
        f"inputs.{name}": setup.inputs.at(name)
        for r in found.records.values()
        for name in getattr(r, "inputs", ())
    }
    plain = dataclasses.replace(found, problem=dataclasses.replace(found.problem, loss=Squares()))
    return _expected(plain, shared, by, instruments)


def _expected(
    first: FitResult,
    free: Any,
    by: AbstractErrors | None,
    instruments: Mapping[str, Any],
    work: Work = SILENT,
) -> Outlook:
    """At the start values of `first`, with the residuals that it leaves."""
    problem, records, method = first.problem, first.records, first.method
    method = method if isinstance(method, LevenbergMarquardt) else LevenbergMarquardt()
    # The first step of a search evaluates the start, by the program that is compiled for the fit.
    begun = searched(problem, method, np.zeros(problem.x0.size), 1, dof=first.dof)
    slope = np.asarray(begun.slope)
    jacobian = np.asarray(begun.jacobian) / np.where(slope == 0, 1.0, slope)
    rows = first.n
    # data in their unit, priors in units of the noise
    jacobian = np.concatenate([jacobian[:rows], first.noise_scale * jacobian[rows:]])
    if not np.isfinite(float(begun.cost)) and not np.any(jacobian):
        raise ValueError(
            "`outlook` cannot look from here: with the start values a run fails. Give other start"
            " values."
        )
    shown = first.shown
    norms = np.linalg.norm(jacobian, axis=0)
    seen = _apart(jacobian)
    here = dataclasses.replace(
        first,
        full_jacobian=jacobian,
        full_covariance=first.noise_scale**2 * inverse_gram(jacobian, norms, seen),
        active=seen,
        dof=max(int(Samples(problem).counted.sum()) - int(seen.sum()), 1),
    )
    by = Guarded() if by is None else by
    covariance = by.spread(here).covariance[np.ix_(shown, shown)]
    lower = bounds(problem.unknowns)[shown]
    x0 = np.asarray(problem.x0)[shown]
    told, starts = jacobian[:, shown], jacobian[:, ~shown]
    told = told - starts @ np.linalg.lstsq(starts, told, rcond=None)[0]

    title = (
        f"Expected accuracy of {', '.join(records)} by {type(problem.objective).__name__}, at the"
        " start values"
    )
    said = tuple(standing_still(problem, norms))
    return judged(
        title,
        first.estimates,
        x0,
        lower,
        told,
        covariance,
        lambda weak: better_motions(
            first.start,
            records,
            first.names,
            weak,
            free,
            instruments,
            tied_again(problem.ties),
            work,
        ),
        said,
    )


def _of_sweep(sweep: Sweep, found: FitResult) -> Outlook:
    jacobian = found.jacobian
    norms = np.linalg.norm(jacobian, axis=0)
    covariance = found.noise_scale**2 * inverse_gram(jacobian, norms, _apart(jacobian))
    lower, values = bounds(found.problem.unknowns), np.asarray([e.value for e in found.estimates])
    unknown = [
        n
        for n, k in found.identifiability.knowledge.items()
        if k in (Knowledge.UNKNOWN, Knowledge.AT_BOUND)
    ]

    title = f"Expected accuracy of {sweep.name or 'the sweep'}, at the best fit"
    # A value that is near its bound in a sweep is judged by its relative error below.
    said = tuple(n for n in found.identifiability.notices if n.code != "near-bound")
    return judged(
        title,
        found.estimates,
        values,
        lower,
        jacobian,
        covariance,
        lambda weak: better_speeds(found, weak),
        said,
        unknown,
    )


def _apart(jacobian: Float[np.ndarray, "n p"]) -> np.ndarray:
    """Which columns have an effect of their own: of each combination that has none, all but one."""
    norms = np.linalg.norm(jacobian, axis=0)
    kept = norms > 1e-12 * np.max(norms, initial=0.0)
    while kept.any():
        columns = jacobian[:, kept] / norms[kept]
        _, s, vt = np.linalg.svd(columns, full_matrices=False)
        if s[-1] >= 1e-7 * s[0]:
            break
        kept[np.flatnonzero(kept)[np.argmax(np.abs(vt[-1]))]] = False
    return kept
