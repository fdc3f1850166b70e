"""Machines with a missing term as a part, for `fx.compare`, and fits with a body split in two."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from frictax.contacts import MassWithStopAndFriction
from frictax.fitting import Estimate, FitResult, FreeRun, LevenbergMarquardt, Windows
from frictax.fitting.fit import fit
from frictax.fitting.problem.initial_state import begun_at
from frictax.fitting.problem.objectives import PreparedRecord
from frictax.fitting.problem.readings import measured_starts
from frictax.fitting.problem.ties import tied_again
from frictax.laws import Coulomb, Stribeck, Table
from frictax.measurements.record import Record
from frictax.mechanism import (
    Force,
    LinearPositionDependentForce,
    Mass,
    Mechanism,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
    RotationalSpringDamper,
    SpringDamper,
    Torque,
)
from frictax.parameters import Between, LogScale, get, parameters, replace

from ..selection.structure import Structure
from .candidates import (
    OTHER_WAY,
    WIDTHS,
    Candidate,
    MoreFriction,
    bodies_of,
    catalogue,
    contact_bodies,
    drives_of,
    fitted_instruments,
    fitted_paths,
    motion_of,
    with_fields,
    with_part,
)
from .likelihood import autoregression
from .sensitivities import operating_range
from .table import Missing, MissingTerm

_NODES = 0.0, 0.05, 0.15, 0.3, 0.5, 0.75, 1.0  # speeds of a `Table` / highest sliding speed


def structures(table: Missing) -> dict[str, Structure]:
    """Return structures (machines with free parameters) for `compare`: the machine ``"as fitted"``,
    and one machine for each term of the table that was refitted or found.

    - A Stribeck dip turns a Coulomb law into a `Stribeck` law.
    - Drag between a body and the housing becomes a `QuadraticSpeedDependentForce` or
      `QuadraticSpeedDependentTorque`.
    - Other drag (between bodies, under a normal force) or a bend turns a law into a `Table`.
    - Friction that differs by direction becomes a separate law for backward motion. A constant
      force is a `Force` or `Torque`, and a spring is a `LinearPositionDependentForce`.
    - A ripple is a `PeriodicPositionDependentForce`, whose period is fitted too.
    - A stiffness in series splits a body in two. A parameter that was not fitted becomes free.

    The fit's options `own`, `priors`, `bounds`, `tied` and `log_scale` apply to all structures. If
    one of them names a parameter of a law, this law does not become a `Table` or two laws. Terms
    that no part describes, such as a drifting force, are left out.

    **Returns:** name -> structure; only ``"as fitted"`` if no part describes any of the terms.

    >>> import frictax as fx, numpy as np
    >>> t = np.linspace(0.0, 8.0, 801)
    >>> v = np.sin(1.3 * t) + np.sin(3.1 * t)

    >>> a = 1.3 * np.cos(1.3 * t) + 3.1 * np.cos(3.1 * t)
    >>> noise = 0.05 * np.random.default_rng(0).standard_normal(801)
    >>> force = a + np.sign(v) + 0.3 * v * np.abs(v) + noise
    >>> record = fx.Record(t, {"drive": force}, {"mass.v": v}, name="run")
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> free, objective = "friction.f_pos.F_Coulomb", fx.InverseDynamics(20.0)
    >>> found = fx.fit(block, record, free=free, objective=objective)
    >>> list(found.missing().structures())[:2]
    ['as fitted', 'drag over v^2 of friction']
    """
    found = table.of
    base = _as_fitted(found)
    machine: Any = base.model
    out = {"as fitted": base}
    if not isinstance(found.model, Mechanism):
        return out
    by_name = {one.name: one for one in catalogue(found)}
    for term in (*table.found, *(term for term in table.terms if term.is_refitted)):
        if term.name in out:
            continue
        body = term.name.removeprefix(SERIES)
        if body != term.name:
            split = split_body(machine, body, term.value)
            options = split_options(base, split, body)
            out[term.name] = dataclasses.replace(base, model=split, **options)
        for name in (term.name, *term.alike):
            if name in by_name and name not in out:
                made = _with_term(found, base, by_name[name], term)
                if made is not None:
                    out[name] = dataclasses.replace(base, model=made[0], free=made[1])
                    break
    return out


def _as_fitted(found: FitResult) -> Structure:
    """Return the fitted machine with the options of its fit. A value at a bound is replaced by its
    start value, because a search cannot leave a bound."""
    problem, own, moved = found.problem, dict[str, list[Any]](), dict[str, Any]()
    here = {p.path for p in parameters(found.model)}
    x = np.where(found.active, found.x, problem.x0)
    shown = [u for u in problem.unknowns if not u.hidden]
    for u in shown:
        value = np.reshape(x[u.place], u.shape)
        if u.record is not None:
            own.setdefault(u.path, []).append(value)
        elif u.path in here:
            moved[u.path] = value
    before = {p.path: p.declaration.domain for p in parameters(problem.setup)}
    domains = {u.path: u.declaration.domain for u in shown}
    return Structure(
        replace(found.model, moved),
        list(dict.fromkeys(u.path for u in shown if u.record is None)),
        own,
        problem.priors,
        fitted_instruments(found),
        bounds={
            path: (domain.bound(), domain.upper())
            for path, domain in domains.items()
            if isinstance(domain, Between) and domain != before[path]
        },
        tied=tied_again(problem.ties),
        log_scale=[path for path, domain in domains.items() if domain == LogScale()],
    )


def _with_term(
    found: FitResult, base: Structure, one: Candidate, term: MissingTerm
) -> tuple[Mechanism, list[str]] | None:
    """Return the machine with candidate `one`, and its free parameters; None if no part fits."""
    value = term.value if term.name == one.name else 0.0
    machine: Any = base.model
    free = list(base.free or ())
    if one.kind == "held":
        if not one.least < value < one.most:  # A search that starts at a bound stays there.
            return None
        if not _has(machine, one.of):  # a parameter of a sensor, or of a controller
            return machine, [*free, one.of]
        return replace(machine, {one.of: float(get(machine, one.of)) + value}), [*free, one.of]
    if one.kind == "law":
        return _with_law(found, base, one, value)
    if one.kind not in ("force", "wave"):
        return None
    rotational = bool(bodies_of(machine)[one.of])
    if one.term == "offset":
        new = (Torque if rotational else Force)(one.of, value)
        return _with_force(machine, "offset", new, free, "tau.k" if rotational else "f.k")
    if one.term == "drag":
        return _with_drag(machine, one.of, value, free)
    centre = float(operating_range(found.problem, np.asarray(found.x))[0].centre[one.of])
    if one.term == "spring":
        new = LinearPositionDependentForce(one.of, slope=-value, s0=centre)
        return _with_force(machine, "guide", new, free, "slope")
    period, phase = term.period, term.phase
    if one.term == "ripple" and term.name == one.name and period is not None and phase is not None:
        at = phase - 2 * np.pi * centre / period
        f_cos, f_sin = value * np.cos(at), value * np.sin(at)
        new = PeriodicPositionDependentForce(
            one.of, f_cos=f_cos, f_sin=f_sin, period=period, s0=centre
        )
        return _with_force(machine, "ripple", new, free, "f_cos", "f_sin", "period")
    return None


def _has_options(base: Structure, begin: str) -> bool:
    """Return whether an option other than `free` names a parameter whose path begins with `begin`,
    or may do so: a tie by a function can use any parameter."""
    ties, named = base.tied.values(), [*base.own, *base.bounds, *base.log_scale, *base.tied]
    named += [p.path for p in base.priors]
    named += [to.rpartition("* ")[2] for to in ties if isinstance(to, str)]
    return any(map(callable, ties)) or any(name.startswith(begin) for name in named)


def _with_drag(
    machine: Mechanism, body: str, value: float, free: list[str]
) -> tuple[Mechanism, list[str]]:
    if bodies_of(machine)[body]:
        new, field = QuadraticSpeedDependentTorque(body, tau_nominal=-value), "tau_nominal"
    else:
        new, field = QuadraticSpeedDependentForce(body, f_nominal=-value), "f_nominal"
    return _with_force(machine, "drag", new, free, field)


def _with_force(
    machine: Mechanism, name: str, part: Any, free: list[str], *fields: str
) -> tuple[Mechanism, list[str]]:
    """Return the machine with `part` added, and `free` plus the paths of the part's `fields`."""
    while name in machine.names:
        name += "_"
    return with_part(machine, name, part), [*free, *(f"{name}.{field}" for field in fields)]


def _with_law(
    found: FitResult, base: Structure, one: Candidate, value: float
) -> tuple[Mechanism, list[str]] | None:
    machine: Any = base.model
    free, path = list(base.free or ()), one.of
    name, _, field = path.rpartition(".")
    part, ranges = get(machine, name), operating_range(found.problem, np.asarray(found.x))[0]
    vmax = float(ranges.slip[path])
    of_stops = isinstance(part, MassWithStopAndFriction)
    law: Any = part.law(1)
    where = name if of_stops else path
    if one.term == "viscous" and hasattr(law, "F_prop"):
        if f"{where}.F_prop" in fitted_paths(found):
            return None
        # A search cannot leave the bound 0, so `F_prop` starts at 2 % of the friction or more.
        least = 0.02 * float(law(jnp.asarray(vmax))) / vmax
        slope = max(float(law.F_prop) + value, least)
        return replace(machine, {f"{where}.F_prop": slope}), [*free, f"{where}.F_prop"]
    body, support = contact_bodies(machine, path)
    if one.term == "drag" and support is None and not hasattr(part, "f_normalized"):
        return _with_drag(machine, body, value, free)
    if not isinstance(law, Coulomb | Stribeck) and (
        one.term != OTHER_WAY or not hasattr(law, "F_Coulomb")
    ):
        return None
    dry = float(law.F_Coulomb)
    if one.term == "Stribeck":
        more = [f"{where}.F_Stribeck", f"{where}.fexp"]
        if isinstance(law, Stribeck) and float(law.F_Stribeck) > 0:  # A fixed dip becomes free.
            more = [p for p in more if p not in fitted_paths(found)]
            return (machine, [*free, *more]) if more else None
        # A search cannot leave the bound 0, so `F_Stribeck` starts at 2 % of the friction or more.
        least, fexp = 0.02 * max(dry, 1e-12), 1.0 / (np.sqrt(np.prod(WIDTHS)) * vmax)
        dip = max(value, least)
        if of_stops or isinstance(law, Stribeck):
            return replace(machine, {more[0]: dip, more[1]: fexp}), [*free, *more]
        new = Stribeck(F_prop=float(law.F_prop), F_Coulomb=dry, F_Stribeck=dip, fexp=fexp)
        return with_part(machine, name, with_fields(part, {field: new})), [*free, *more]
    back = "f_neg" if of_stops else field.replace("_pos", "_neg")
    if getattr(part, back) is not None or _has_options(base, f"{where}.{'F_' * of_stops}"):
        return None
    if one.term == OTHER_WAY:
        own = [u for u in free if u.startswith(f"{where}.F_")]
        more = [f"{name}.{back}.{u.rpartition('.')[2]}" for u in own]
        new = replace(law, {"F_Coulomb": max(dry - value, 0.1 * dry)})
        changed = with_part(machine, name, with_fields(part, {back: new}))
        changed = replace(changed, {f"{where}.F_Coulomb": max(dry + value, 0.1 * dry)})
        return changed, [*free, *more]
    if one.term in ("drag", "bend") and not of_stops:
        more = MoreFriction(jnp.array([value]), jnp.asarray(vmax), (one.term,)).on(law, 1)
        speeds = vmax * np.array(_NODES)
        new = Table(np.stack([speeds, np.asarray(more(jnp.asarray(speeds)))], axis=1))
        rest = [u for u in free if not u.startswith(f"{path}.")]
        return with_part(machine, name, with_fields(part, {field: new})), [*rest, f"{path}.f"]
    return None


SERIES = "stiffness in series with "
# Names of two new parts: the second half of a body, and the spring between the halves.
_FAR, _JOINT = "beyond_{}", "series_{}"
# Start values: period [samples] at which the two halves oscillate on their spring, and damping
# [share of critical]. Fast, hardly damped motion needs more starts: its misfit has many minima.
_STARTS = [(period, 0.3) for period in (4.2, 8.0, 14.0, 24.0)]
_STARTS += [(period, 0.05) for period in (2.6, 2.9, 3.2, 3.6, 4.0, 5.0)]
# Largest number of iterations from each start value, of iterations from the two best results and
# from neighbours of the best result, and of fits.
_FIRST_STEPS, _MORE_STEPS, _MOST_FITS = 8, 20, 18


class SplitBody(NamedTuple):
    """A fit with `body` split into two halves: the `stiffness` of the spring between them and its
    standard error `error`, the sum of squared residuals `cost`, and the fit `found`. If the search
    did not converge to white residuals, its minimum may be wrong and the error is infinite.
    """

    body: str
    stiffness: Estimate
    error: float
    cost: float
    found: FitResult


def split_bodies(found: FitResult) -> Iterator[SplitBody]:
    """Yield a fit for each body that is driven and measured, with a stiffness between motor drive
    and other parts. If `found` is not a plain fit (`_is_plain`) of free runs, yield nothing.
    """
    if not isinstance(found.problem.objective, FreeRun) or not _is_plain(found):
        return
    seen = {name for r in found.records.values() for name in getattr(r, "outputs", ())}
    for body in bodies_of(found.model):
        if not seen & set(motion_of(found.model, body)) or not drives_of(found.model, body):
            continue
        best = _search_split(found, body)
        if best is not None:
            stiffness = best[f"{_JOINT.format(body)}.c"]
            error = stiffness.standard_error if best.converged and _is_white(best) else np.inf
            yield SplitBody(body, stiffness, error, _cost(best), best)


def _search_split(found: FitResult, body: str) -> FitResult | None:
    """Return the best fit with `body` split, or None if no fit is possible. The search for further
    minima ends when the residuals are white.
    """
    machine: Any = _as_fitted(found).model
    records, c = list[Any](found.records.values()), f"{_JOINT.format(body)}.c"
    whole = float(getattr(machine[body], "J" if bodies_of(machine)[body] else "m"))
    step = float(np.median([np.median(np.diff(r.t)) for r in records]))
    fits = list[FitResult]()
    for samples, damping in _STARTS:
        # Two halves that oscillate against each other act like a quarter of the whole mass.
        stiffness = 0.25 * whole * (2 * np.pi / (samples * step)) ** 2
        fits += _refit(found, body, split_body(machine, body, stiffness, damping), _FIRST_STEPS)
        if fits and _is_white(fits[-1]):
            break
    for one in sorted(fits, key=_cost)[:2]:
        fits += [] if _is_white(one) else _refit(found, body, _end_of(one), _MORE_STEPS)
    if not fits:
        return None
    best = min(fits, key=_cost)
    # A neighbouring minimum has about one more or one fewer oscillation before the motion decays.
    for factor in (0.88, 1 / 0.88):
        while len(fits) < _MOST_FITS and not _is_white(best):
            start = replace(_end_of(best), {c: factor * float(best.values[c])})
            fits += (near := _refit(found, body, start, _MORE_STEPS))
            if not near or _cost(near[0]) > (1 - 1e-4) * _cost(best):
                break
            best = near[0]
    return min([best, *_refit(found, body, _end_of(best))], key=_cost)


def _refit(found: FitResult, body: str, start: Mechanism, steps: int = 500) -> list[FitResult]:
    """Return a list with the fit of the split machine `start`; empty if `fit` raises ValueError."""
    problem, options = found.problem, split_options(_as_fitted(found), start, body)
    with contextlib.suppress(ValueError):
        return [
            fit(
                start, found.records, objective=problem.objective, engine=problem.engine,
                method=LevenbergMarquardt(max_steps=steps), loss=problem.loss, level=found.level,
                rounds=0, instruments=fitted_instruments(found), **options,
            )
        ]  # fmt: skip
    return []


def _cost(found: FitResult) -> float:
    return float(np.sum(found.full_residuals**2))


def _end_of(found: FitResult) -> Any:
    return begun_at(found.model, found.start, found.problem)


def refit_by_free_runs(found: FitResult) -> FitResult | None:
    """Refit a fit on windows by free runs; if all refits fail, return None. Windows begin at the
    measured motion, but the motion of the second half of a split body is not measured.

    The free runs begin at the initial state of the machine. For a single record, the measured
    initial state is tried too, and the better fit is returned. If free runs of several records fit
    better from the measured initial states, None is returned.
    """
    windows = found.problem.objective
    if not isinstance(windows, Windows) or windows.free_starts or not _is_plain(found):
        return None
    problem, base, fits = found.problem, _as_fitted(found), list[FitResult]()
    machine: Any = base.model
    tried = [(machine, FreeRun())]
    if len(found.records) == 1:
        (prepared,) = (p for p in problem.prepared if isinstance(p, PreparedRecord))
        setup = problem.setup_at(jnp.asarray(found.x), 0)
        starts = measured_starts(setup, prepared, problem.delayed)
        begun = {name: x[0] for name, x in starts.items() if _has(machine, name)}
        tried.append((replace(machine, begun), FreeRun()))
    else:
        tried.append((machine, FreeRun(True, windows.cutoff)))
    for one, objective in tried:
        try:
            new = fit(
                one, found.records, free=base.free, bounds=base.bounds, log_scale=base.log_scale,
                objective=objective, rounds=0, engine=problem.engine, loss=problem.loss,
                instruments=base.instruments, level=found.level,
            )  # fmt: skip
        except ValueError:  # the simulation from this start fails
            continue
        fits += [new] * new.converged
    best: Any = min(fits, key=_cost, default=None)
    return None if best is None or best.problem.objective.measured_start else best


def _is_plain(found: FitResult) -> bool:
    """Return whether only common, untied parameters of a mechanism were fitted, by least squares
    without priors."""
    problem = found.problem
    return (
        isinstance(found.model, Mechanism)
        and all(isinstance(record, Record) for record in found.records.values())
        and not (problem.priors or problem.ties)
        and problem.loss.rounds == 1
        and all(u.record is None for u in problem.unknowns)
        and not any(side in u.path for u in problem.unknowns for side in ("inputs.", "outputs."))
    )


def _is_white(found: FitResult) -> bool:
    return not autoregression([found.full_residuals])[0].size


def split_options(base: Structure, split: Mechanism, body: str) -> dict[str, Any]:
    """Return the options `free`, `bounds` and `log_scale` for the machine `split`: those of `base`,
    with stiffness and damping. The bounds of the inertia of `body` do not apply to its halves."""
    far, joint = _FAR.format(body), _JOINT.format(body)
    inertia = "J" if bodies_of(split)[body] else "m"

    def there(path: str) -> str:
        return path if _has(split, path) else f"{far}.{path.partition('.')[2]}"

    free = [f"{joint}.c", f"{joint}.d"]
    for path in base.free or ():
        free += [there(path), *([f"{far}.{inertia}"] if path == f"{body}.{inertia}" else [])]
    bounds = {there(path): ends for path, ends in base.bounds.items()}
    bounds.pop(f"{body}.{inertia}", None)
    return {"free": free, "bounds": bounds, "log_scale": [*map(there, base.log_scale)]}


def split_body(machine: Mechanism, body: str, c: float, damping: float = 0.3) -> Mechanism:
    """Return `machine` with `body` split into two halves, joined by a spring of stiffness `c` and a
    damper (`damping`: share of critical). Motor drives act on the first half, other parts on the
    second."""
    inertia = "J" if bodies_of(machine)[body] else "m"
    old, far = machine[body], _FAR.format(body)
    whole = float(getattr(old, inertia))
    d, half = 2 * damping * np.sqrt(c * 0.25 * whole), jnp.asarray(0.5 * whole)
    driven = {name.partition(".")[0] for name in drives_of(machine, body)}
    near: Any = with_fields(old, {inertia: half})
    if isinstance(old, MassWithStopAndFriction):
        near = Mass(m=half, s=old.s, v=old.v, L=old.L)
    parts: dict[str, Any] = {}
    for name, part in machine.named_parts():
        if name == body:
            parts[name] = near
            parts[far] = with_fields(old, {inertia: half})
        else:
            ends = {} if name in driven else vars(part)
            moved = {
                field: far + value[len(body) :]
                for field, value in ends.items()
                if isinstance(value, str) and value.partition(".")[0] == body
            }
            parts[name] = with_fields(part, moved) if moved else part
    joint = (RotationalSpringDamper if inertia == "J" else SpringDamper)(body, far, c=c, d=d)
    return Mechanism(**parts, **{_JOINT.format(body): joint})


def _has(machine: Mechanism, path: str) -> bool:
    return any(p.path == path for p in parameters(machine))
