"""Predict the accuracy of a fit, and the experiments that improve it: `outlook`."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from jaxtyping import Float

from frictax.arguments import check_names, lists_options
from frictax.engine import Engine
from frictax.fitting import (
    AbstractObjective,
    AbstractPrior,
    Data,
    FitOptions,
    FitResult,
    Instrument,
    Knowledge,
    Law,
    LevenbergMarquardt,
    Own,
    Squares,
)
from frictax.fitting.build_problem import build_problem
from frictax.fitting.checks import check_data, label_data
from frictax.fitting.fit import fit, raise_if_failed
from frictax.fitting.options import (
    DEFAULTS,
    NoSuchOption,
    ParameterOptions,
    SweepFit,
    SweepOptions,
    names_of,
    refuse,
)
from frictax.fitting.problem.problem import bounds
from frictax.fitting.problem.ties import tied_again
from frictax.fitting.result.fit_result import make_fit_result
from frictax.fitting.result.notices import standing_still
from frictax.fitting.result.spread import inverse_gram
from frictax.fitting.search.multistart import search
from frictax.interrupts import nested_work
from frictax.measurements import Sweep
from frictax.mechanism import Machine
from frictax.progress import SILENT, Progress, Work, show_progress

from ..errors.guarded import Guarded
from ..errors.linearization import NoiseModel, Samples
from ..errors.resampling import run_search
from .assessment import assess_parameters
from .expected import Outlook
from .experiments import better_motions, better_speeds


class RecordOutlookOptions(ParameterOptions, total=False):
    """The options of `outlook` for a machine and its records."""

    by: NoiseModel | None
    own: Own
    objective: AbstractObjective | None
    priors: Sequence[AbstractPrior]
    instruments: Mapping[str, Instrument] | None
    engine: Engine | None
    progress: bool | Progress


class OutlookOptions(SweepOptions, RecordOutlookOptions, total=False):
    """All options of `outlook`."""


# The options in an overload of `outlook`.
if TYPE_CHECKING:

    class RecordOutlook(RecordOutlookOptions, total=False, extra_items=NoSuchOption): ...

else:
    RecordOutlook = RecordOutlookOptions


@overload
def outlook(model: Law, data: Sweep, **options: Unpack[SweepFit]) -> Outlook: ...


@overload
def outlook(model: Machine, data: Data, **options: Unpack[RecordOutlook]) -> Outlook: ...


@lists_options(OutlookOptions, {"by": None, **DEFAULTS})
def outlook(model: Any, data: Any, **options: Any) -> Outlook:
    """Predict the standard errors of a fit of `model` to `data`, the combinations of parameters
    that it cannot distinguish, and experiments that can.

    Expected errors are those at the start values, with the residuals of a first fit. A parameter is
    weak if its error exceeds half of its size or half of its distance from its bound.

    For a weak parameter, other motions of the same machine and length are tried: faster, slower,
    both, to and fro, a slow sweep of speed. The remedy is a motion whose forces identify the
    parameter better at equal errors of force. Its notice gives the factor. For a sweep, faster and
    slower speeds, the other direction and breakaway rows are tried.

    **Arguments:** `model`, `data` and the options of `fit`. A sweep takes all options of `fit`.
    Records take `free`, `own`, `tied`, `objective`, `priors`, `instruments`, `engine`, `progress`,
    and `by`: the noise model of the errors, by default `Guarded()`. A sweep is judged at the best
    fit instead of the start values.

    A sine of 2 N hardly moves a mass. Viscous friction is not identifiable at such speeds.

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
    check_names(outlook, options)
    if isinstance(data, Sweep) and not isinstance(model, Machine):
        known, of, here = names_of(SweepOptions), "records", "a law's sweep"
    else:
        known, of, here = names_of(RecordOutlookOptions), "a law's sweep", "a machine"
    refuse({name: x for name, x in options.items() if name not in known}, of, here)
    by = options.pop("by", None)
    given = FitOptions(**options)
    with show_progress(given.progress, "Looking ahead") as work:
        if isinstance(data, Sweep) and not isinstance(model, Machine):
            asked: dict[str, Any] = {**options, "progress": work}
            return _of_sweep(data, fit(model, data, **asked))
        return _of_records(model, label_data(data), given, by, work)


def _of_records(
    model: Any,
    records: Mapping[str, Any],
    options: FitOptions,
    by: NoiseModel | None,
    work: Work,
) -> Outlook:
    method = LevenbergMarquardt(tolerance=1e-2, max_steps=30)
    check_data(model, records)
    problem, _ = build_problem(model, records, dataclasses.replace(options, method=method))
    parts = work.parts({"first fit": 2.0, "other motions": 1.0})
    with nested_work():
        end = search(problem, method, say=parts["first fit"])
    parts["first fit"].end()
    raise_if_failed(problem, end.costs, records)
    first = make_fit_result(model, problem, records, end, method, 0.95, [])
    instruments = options.instruments or {}
    return _outlook_at_start(first, options.free, by, instruments, parts["other motions"])


def outlook_of(found: FitResult, by: NoiseModel | None = None) -> Outlook:
    """Return the outlook of the records of a fit at its start values, with its residuals."""
    setup = found.problem.setup
    shared = [u.path for u in found.problem.unknowns if u.record is None]
    instruments = {
        f"inputs.{name}": setup.inputs.at(name)
        for r in found.records.values()
        for name in getattr(r, "inputs", ())
    }
    plain = dataclasses.replace(found, problem=dataclasses.replace(found.problem, loss=Squares()))
    return _outlook_at_start(plain, shared, by, instruments)


def _outlook_at_start(
    first: FitResult,
    free: Any,
    by: NoiseModel | None,
    instruments: Mapping[str, Any],
    work: Work = SILENT,
) -> Outlook:
    """Return the outlook at the start values of `first`, with its residuals."""
    problem, records, method = first.problem, first.records, first.method
    method = method if isinstance(method, LevenbergMarquardt) else LevenbergMarquardt()
    # The first step of a search evaluates the start, by the program that is compiled for the fit.
    begun = run_search(problem, method, np.zeros(problem.x0.size), 1, dof=first.dof)
    slope = np.asarray(begun.slope)
    jacobian = np.asarray(begun.jacobian) / np.where(slope == 0, 1.0, slope)
    rows = first.n
    # Rows of the data have the unit of the data, rows of priors the unit of the noise.
    jacobian = np.concatenate([jacobian[:rows], first.noise_scale * jacobian[rows:]])
    if not np.isfinite(float(begun.cost)) and not np.any(jacobian):
        raise ValueError(
            "`outlook` cannot look from here: with the start values a run fails. Give other start"
            " values."
        )
    shown = first.shown
    norms = np.linalg.norm(jacobian, axis=0)
    seen = _independent_columns(jacobian)
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
    columns, starts = jacobian[:, shown], jacobian[:, ~shown]
    columns = columns - starts @ np.linalg.lstsq(starts, columns, rcond=None)[0]

    title = (
        f"Expected accuracy of {', '.join(records)} by {type(problem.objective).__name__}, at the"
        " start values"
    )
    said = tuple(standing_still(problem, norms))
    return assess_parameters(
        title,
        first.estimates,
        x0,
        lower,
        columns,
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
    covariance = found.noise_scale**2 * inverse_gram(
        jacobian, norms, _independent_columns(jacobian)
    )
    lower, values = bounds(found.problem.unknowns), np.asarray([e.value for e in found.estimates])
    unknown = [
        n
        for n, k in found.identifiability.knowledge.items()
        if k in (Knowledge.UNKNOWN, Knowledge.AT_BOUND)
    ]

    title = f"Expected accuracy of {sweep.name or 'the sweep'}, at the best fit"
    # A value that is near its bound in a sweep is judged by its relative error below.
    said = tuple(n for n in found.identifiability.notices if n.code != "near-bound")
    return assess_parameters(
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


def _independent_columns(jacobian: Float[np.ndarray, "n p"]) -> np.ndarray:
    """Return a mask of linearly independent columns. Each dependent combination loses one."""
    norms = np.linalg.norm(jacobian, axis=0)
    kept = norms > 1e-12 * np.max(norms, initial=0.0)
    while kept.any():
        columns = jacobian[:, kept] / norms[kept]
        _, s, vt = np.linalg.svd(columns, full_matrices=False)
        if s[-1] >= 1e-7 * s[0]:
            break
        kept[np.flatnonzero(kept)[np.argmax(np.abs(vt[-1]))]] = False
    return kept
