"""Fit the machine with a body in two halves and a spring between: a stiffness in series."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from frictax.contacts import MassWithStopAndFriction
from frictax.fitting import FitResult, FreeRun, Windows
from frictax.fitting.fit import fit
from frictax.fitting.problem.readings import cutoffs_of, known_states
from frictax.measurements.record import Record
from frictax.mechanism import Mass, Mechanism, RotationalSpringDamper, SpringDamper
from frictax.parameters import parameters, replace

from .candidates import bodies_of, drives_of, fitted_instruments, motion_of, with_fields
from .likelihood import autoregression

SERIES = "stiffness in series with "
_FAR, _JOINT = "beyond_{}", "series_{}"  # names of the second half and of the spring
_HALF = 0.5  # [1] share of the inertia of each half at the start
_DAMPING = 0.3  # [critical damping] at the start; a damped oscillation has a smooth misfit
_SAME = 1e-4  # relative difference of the sums of squares of two searches with one minimum
_PERIODS = 8.0, 14.0, 24.0, 5.0, 3.5  # [samples] periods of the oscillation at the starts


@dataclasses.dataclass(frozen=True, eq=False)
class SplitBody:
    """A fit with `body` in two halves: the `stiffness` of the spring between and its `error`, in
    `unit`, and the fit.

    The error is infinite if the search did not converge, or if its residuals are not white: the
    misfit has many minima, one for each phase of the oscillation.
    """

    body: str
    stiffness: float
    error: float
    unit: str
    found: FitResult

    @property
    def cost(self) -> float:
        return float(np.sum(self.found.full_residuals**2))

    @property
    def numbers(self) -> int:
        """The number of additional parameters."""
        return 3


def split_bodies(found: FitResult) -> Iterator[SplitBody]:
    """Return a fit for each body that is driven and measured, with a stiffness between the drive
    and the rest of the machine. The fit must be of free runs of a mechanism.
    """
    machine, problem = found.model, found.problem
    if not isinstance(problem.objective, FreeRun) or not _is_plain(found):
        return
    records: dict[str, Any] = dict(found.records)
    seen = {name for r in records.values() for name in r.outputs}
    step = float(np.median([np.median(np.diff(r.t)) for r in records.values()]))
    for body in bodies_of(machine):
        if not seen & set(motion_of(machine, body)) or not drives_of(machine, body):
            continue
        best = None
        for samples in _PERIODS:
            try:
                new = _fit_split(found, records, body, 2 * np.pi / (samples * step))
            except ValueError:  # Such a machine cannot be built.
                continue
            again = best is not None and abs(new.cost - best.cost) < _SAME * best.cost
            if best is None or new.cost < best.cost:
                best = new
            if again or _is_white(best.found):  # Two starts with one end suffice.
                break
        if best is not None:
            yield best


def refit_by_free_runs(found: FitResult) -> FitResult | None:
    """Return a fit on windows, refitted by free runs, or None.

    Windows need the measured motion of each body as their start, which a split body does not have.
    The free runs start from the machine's own start or, if it fits better, from that of the only
    record.
    """
    windows = found.problem.objective
    if not isinstance(windows, Windows) or windows.free_starts or not _is_plain(found):
        return None
    problem, machines, fits = found.problem, [found.model], list[FitResult]()
    if len(found.records) == 1:
        (record,) = (r for r in found.records.values() if isinstance(r, Record))
        known = known_states(found.model, record, cutoffs_of(record, windows.cutoff))
        begun = {name: x[0] for name, x in known.items() if _has(found.model, name)}
        machines.append(replace(found.model, begun))
    for machine in machines:
        try:
            new = fit(
                machine, found.records, free=[u.path for u in problem.unknowns], rounds=0,
                engine=problem.engine, loss=problem.loss, instruments=fitted_instruments(found),
                level=found.level,
            )  # fmt: skip
        except ValueError:  # The run from this start fails.
            continue
        fits += [new] * new.converged
    return min(fits, key=lambda new: np.sum(new.full_residuals**2), default=None)


def _is_plain(found: FitResult) -> bool:
    """Return whether a mechanism was fitted to records, without parameters of one record or of a
    sensor.
    """
    problem = found.problem
    return (
        isinstance(found.model, Mechanism)
        and all(isinstance(record, Record) for record in found.records.values())
        and not problem.priors
        and not problem.ties
        and all(u.record is None for u in problem.unknowns)
        and not any(side in u.path for u in problem.unknowns for side in ("inputs.", "outputs."))
    )


def _fit_split(found: FitResult, records: dict[str, Record], body: str, w: float) -> SplitBody:
    machine = found.model
    rotational, inertia = bool(bodies_of(machine)[body]), "J" if bodies_of(machine)[body] else "m"
    whole = float(getattr(machine[body], inertia))
    c = w**2 * _HALF * (1 - _HALF) * whole
    split = split_body(machine, body, c)
    joint, free = _JOINT.format(body), free_parameters(found, split, body)
    problem = found.problem
    new = fit(
        split, records, free=free, objective=problem.objective, engine=problem.engine,
        loss=problem.loss, instruments=fitted_instruments(found), level=found.level, rounds=0,
    )  # fmt: skip
    value = float(new.values[f"{joint}.c"])
    at = list(new.names).index(f"{joint}.c")
    is_settled = new.converged and _is_white(new)
    error = float(np.sqrt(new.covariance[at, at])) if is_settled else np.inf
    return SplitBody(body, value, error, "N.m/rad" if rotational else "N/m", new)


def _is_white(found: FitResult) -> bool:
    return not autoregression([found.full_residuals])[0].size


def free_parameters(found: FitResult, split: Mechanism, body: str) -> list[str]:
    """Return the free parameters of `split`, whose `body` is in two: the fitted ones, and
    those of the spring.
    """
    far, joint = _FAR.format(body), _JOINT.format(body)
    free = [f"{joint}.c", f"{joint}.d"]
    for u in found.problem.unknowns:
        part, _, rest = u.path.partition(".")
        if part == body and rest in ("m", "J"):
            free += [u.path, f"{far}.{rest}"]
        elif part == body and not _has(split, u.path):
            free.append(f"{far}.{rest}")
        else:
            free.append(u.path)
    return free


def split_body(machine: Mechanism, body: str, c: float) -> Mechanism:
    """Return `machine` with half of `body` beyond a spring of stiffness `c`. The drives and
    the name of the body stay with the first half. All other parts are attached to the second
    half.
    """
    rotational = bool(bodies_of(machine)[body])
    inertia = "J" if rotational else "m"
    old, far = machine[body], _FAR.format(body)
    whole = float(getattr(old, inertia))
    d = 2 * _DAMPING * np.sqrt(c * _HALF * (1 - _HALF) * whole)
    near_share, far_share = (jnp.asarray(x * whole) for x in (1 - _HALF, _HALF))
    driven = {name.partition(".")[0] for name in drives_of(machine, body)}
    near: Any = with_fields(old, {inertia: near_share})
    if isinstance(old, MassWithStopAndFriction):
        near = Mass(m=near_share, s=old.s, v=old.v, L=old.L)
    parts: dict[str, Any] = {}
    for name, part in machine.named_parts():
        if name == body:
            parts[name] = near
            parts[far] = with_fields(old, {inertia: far_share})
        else:
            parts[name] = part if name in driven else _attached_to(part, body, far)
    joint = (RotationalSpringDamper if rotational else SpringDamper)(body, far, c=c, d=d)
    return Mechanism(**parts, **{_JOINT.format(body): joint})


def _attached_to(part: Any, body: str, far: str) -> Any:
    """Return `part` attached to `far` instead of `body`."""
    new = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if isinstance(value, str) and value.partition(".")[0] == body:
            new[field.name] = far + value[len(body) :]
    return with_fields(part, new) if new else part


def _has(machine: Mechanism, path: str) -> bool:
    return any(p.path == path for p in parameters(machine))
