"""The machine with a missing term as a part that a user can write, for `fx.compare`."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from frictax.contacts import MassWithStopAndFriction
from frictax.fitting import FitResult
from frictax.fitting.problem.ties import tied_again
from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table
from frictax.mechanism import (
    Force,
    LinearPositionDependentForce,
    Mechanism,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
    Torque,
)
from frictax.parameters import LogScale, get, replace

from ..selection.structure import Structure
from .candidates import (
    OTHER_WAY,
    WIDTHS,
    Candidate,
    MoreFriction,
    bodies_of,
    catalogue,
    contact_bodies,
    fitted_instruments,
    with_fields,
)
from .sensitivities import operating_range
from .split_bodies import SERIES, free_parameters, split_body
from .table import Missing, MissingTerm

_NODES = 0.0, 0.05, 0.15, 0.3, 0.5, 0.75, 1.0  # [highest speed] speeds of a table
_AWAY = 0.02  # [Coulomb friction] smallest start of a dip, whose bound is 0


def structures(table: Missing) -> dict[str, Structure]:
    """Return structures for `compare`: the machine ``"as fitted"``, and the machine with each term
    of the table that was refitted or found, by its name.

    - A dip turns a Coulomb law into a `Stribeck`.
    - Drag of a body in its housing is a `QuadraticSpeedDependentForce` or
      `QuadraticSpeedDependentTorque`.
    - Drag between two bodies or under a normal force, and a bend, turn a law into a `Table` of
      seven speeds.
    - Friction that differs by direction is a law for motion backward. A constant force is a `Force`
      or `Torque`, and a spring is a `LinearPositionDependentForce`.
    - A ripple is a `PeriodicPositionDependentForce`, whose period is fitted too.
    - A stiffness in series splits a body in two. A parameter that was not fitted becomes free.

    Terms that no part describes, such as a drifting force, are left out.

    **Returns:** structures by name; only the first one if no term can be described.

    >>> import jax.numpy as jnp, numpy as np, frictax as fx
    >>> t = np.linspace(0.0, 4.0, 401)
    >>> force = 2.5 * np.sin(4.0 * t) + np.sin(9.0 * t)
    >>> def block(law, f=0.0):
    ...     friction = fx.SupportFriction("mass", f_pos=law)
    ...     return fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=fx.Force("mass", f))
    >>> truth = block(fx.Coulomb(F_Coulomb=1.0, F_prop=0.2), fx.Sampled(t, force + 0.05))
    >>> v = np.asarray(fx.simulate(truth, jnp.asarray(t), fx.OnSamples())["mass"].v)
    >>> v = v + 1e-3 * np.random.default_rng(0).standard_normal(t.size)
    >>> record = fx.Record(t, {"drive": force}, {"mass.v": v}, name="run")
    >>> free = ["friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
    >>> found = fx.fit(block(fx.Coulomb(F_Coulomb=0.9, F_prop=0.3)), record, free=free)
    >>> sorted(found.missing().structures())[0]
    'as fitted'
    """
    found = table.of
    out = {"as fitted": _as_fitted(found)}
    if not isinstance(found.model, Mechanism):
        return out
    by_name = {one.name: one for one in catalogue(found)}
    for term in (*table.found, *(term for term in table.terms if term.is_refitted)):
        if term.name in out:
            continue
        body = term.name.removeprefix(SERIES)
        if body != term.name:
            split = split_body(found.model, body, term.value)
            free = free_parameters(found, split, body)
            out[term.name] = dataclasses.replace(out["as fitted"], model=split, free=free)
        for name in (term.name, *term.alike):
            if name in by_name and name not in out:
                made = _with_term(found, by_name[name], term)
                if made is not None:
                    out[name] = dataclasses.replace(out["as fitted"], model=made[0], free=made[1])
                    break
    return out


def _as_fitted(found: FitResult) -> Structure:
    problem = found.problem
    shared = [u.path for u in problem.unknowns if not u.hidden and u.record is None]
    own = [u.path for u in problem.unknowns if not u.hidden and u.record is not None]
    return Structure(
        found.model, list(dict.fromkeys(shared)), tuple(dict.fromkeys(own)), problem.priors,
        fitted_instruments(found), tied=tied_again(problem.ties),
        log_scale=[u.path for u in problem.unknowns if u.declaration.domain == LogScale()],
    )  # fmt: skip


def _with_term(
    found: FitResult, one: Candidate, term: MissingTerm
) -> tuple[Mechanism, list[str]] | None:
    """Return the machine with a candidate of the size that was found, and its free parameters."""
    machine, value = found.model, term.value if term.name == one.name else 0.0
    free = list(_as_fitted(found).free or ())
    if one.kind == "held":
        if not one.least < value < one.most:  # A fit cannot leave a bound.
            return None
        if one.of.startswith(("inputs.", "outputs.")):
            return machine, [*free, one.of]
        return replace(machine, {one.of: float(get(machine, one.of)) + value}), [*free, one.of]
    if one.kind == "law":
        return _with_law(found, one, value, free)
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
    """Return the machine with one more part, whose `fields` are free."""
    name = _unused_name(machine, name)
    return _with_part(machine, name, part), [*free, *(f"{name}.{field}" for field in fields)]


def _with_law(
    found: FitResult, one: Candidate, value: float, free: list[str]
) -> tuple[Mechanism, list[str]] | None:
    machine, path = found.model, one.of
    name, _, field = path.rpartition(".")
    part, ranges = get(machine, name), operating_range(found.problem, np.asarray(found.x))[0]
    vmax = float(ranges.slip[path])
    of_stops = isinstance(part, MassWithStopAndFriction)
    law: AbstractLaw = part.law(1)
    where = name if of_stops else path
    if one.term == "viscous" and hasattr(law, "F_prop"):
        return machine, [*free, f"{where}.F_prop"]
    body, support = contact_bodies(machine, path)
    if one.term == "drag" and support is None and not hasattr(part, "f_normalized"):
        return _with_drag(machine, body, value, free)
    if not isinstance(law, Coulomb | Stribeck):
        return None
    dry = float(law.F_Coulomb)
    if one.term == "Stribeck":
        least, fexp = _AWAY * max(dry, 1e-12), 1.0 / (np.sqrt(np.prod(WIDTHS)) * vmax)
        dip, more = max(value, least), [f"{where}.F_Stribeck", f"{where}.fexp"]
        if of_stops:
            return replace(machine, {more[0]: dip, more[1]: fexp}), [*free, *more]
        viscous = float(law.F_prop)
        new = Stribeck(F_prop=viscous, F_Coulomb=dry, F_Stribeck=dip, fexp=fexp)
        return _with_new_fields(machine, name, {field: new}), [*free, *more]
    back = "f_neg" if of_stops else field.replace("_pos", "_neg")
    if one.term == OTHER_WAY and getattr(part, back) is None:
        own = [u for u in free if u.startswith(f"{where}.F_")]
        more = [f"{name}.{back}.{u.rpartition('.')[2]}" for u in own]
        new = replace(law, {"F_Coulomb": max(dry - value, 0.1 * dry)})
        changed = _with_new_fields(machine, name, {back: new})
        changed = replace(changed, {f"{where}.F_Coulomb": max(dry + value, 0.1 * dry)})
        return changed, [*free, *more]
    if one.term in ("drag", "bend") and not of_stops and getattr(part, back) is None:
        more = MoreFriction(jnp.array([value]), jnp.asarray(vmax), (one.term,)).on(law, 1)
        speeds = vmax * np.array(_NODES)
        new = Table(np.stack([speeds, np.asarray(more(jnp.asarray(speeds)))], axis=1))
        rest = [u for u in free if not u.startswith(f"{path}.")]
        return _with_new_fields(machine, name, {field: new}), [*rest, f"{path}.f"]
    return None


def _with_new_fields(machine: Mechanism, name: str, fields: dict[str, Any]) -> Mechanism:
    return _with_part(machine, name, with_fields(machine[name], fields))


def _with_part(machine: Mechanism, name: str, part: Any) -> Mechanism:
    return Mechanism(**{**dict(machine.named_parts()), name: part})


def _unused_name(machine: Mechanism, name: str) -> str:
    """Return `name`, with underscores until no part of the machine has this name."""
    while name in machine.names:
        name += "_"
    return name
