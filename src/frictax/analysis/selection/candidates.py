"""Usual structures for a comparison, made from one machine: `default_structures`."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from frictax.arguments import check_count
from frictax.contacts import AbstractContact
from frictax.fitting import Smooth
from frictax.laws import AbstractLaw, Coulomb, Stribeck, Table
from frictax.measurements import Record
from frictax.mechanism import (
    LinearPositionDependentForce,
    Mechanism,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
)
from frictax.parameters import select

from .folds import body_speeds, sliding_speed
from .structure import Structure

# For each force: the name of the structure that frees it, and the fields that are freed.
_FORCES: dict[type, tuple[str, tuple[str, ...]]] = {
    LinearPositionDependentForce: ("linear in position", ("slope",)),
    PeriodicPositionDependentForce: ("periodic in position", ("f_cos", "f_sin")),
    QuadraticSpeedDependentForce: ("quadratic in speed", ("f_nominal",)),
    QuadraticSpeedDependentTorque: ("quadratic in speed", ("tau_nominal",)),
}


def default_structures(
    model: Mechanism,
    contact: str,
    record: Record,
    free: Iterable[str] = (),
    *,
    nodes: int = 8,
    cutoff: float = 50.0,
) -> dict[str, Structure]:
    """Return structures for `compare` at one contact of a machine, the simplest first.

    1. Coulomb friction, symmetric and by direction.
    2. Coulomb friction by direction with one further force, if the machine has that part:
       `LinearPositionDependentForce`, `PeriodicPositionDependentForce`,
       `QuadraticSpeedDependentForce` or `QuadraticSpeedDependentTorque`.
    3. By direction: Stribeck with exponent 1 and 2, and a table, free and smooth.

    **Arguments:**

    - `model`: the machine. Its law in `contact` gives the start values. `contact`: the name of a
      contact with a law for each direction, such as `f_pos` and `f_neg`.
    - `record`: its highest speed, smoothed at `cutoff` [Hz], is the last node of the tables.
    - `free`: further parameters that every structure fits, such as ``["mass.m"]``.
    - `nodes` >= 3: number of evenly spaced speeds of a table. Its smoothness prior has the scale of
      a tenth of the friction for second differences.

    **Returns:** structures by name, for `compare`.

    **Raises:** `KeyError` for an unknown contact, `ValueError` for a part that is not a contact, or
    whose speed is not measured.

    >>> import frictax as fx, numpy as np
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(1.0, 0.1)),
    ...     drive=fx.Force("mass", 0.0),
    ... )
    >>> t = np.linspace(0.0, 5.0, 501)
    >>> record = fx.Record(t, {"drive": np.sin(t)}, {"mass.v": 0.1 * np.sin(t)})
    >>> list(fx.default_structures(block, "friction", record, ["mass.m"]))
    ['symmetric', 'by direction', 'Stribeck, exponent 1', 'Stribeck, exponent 2', 'table of 8',
    'smooth table of 8']
    """
    part, pos = _contact(model, contact)
    neg = pos.replace("_pos", "_neg")
    law, free = part.law(1), [p.path for p in select(model, list(free))] if free else []
    if any(path.startswith((f"{contact}.{pos}", f"{contact}.{neg}")) for path in free):
        raise ValueError(
            f"`default_structures` frees the laws of {contact!r} itself. Leave them out of `free`."
        )
    check_count("`default_structures`: `nodes`", nodes, 3)
    top = _highest(record, part, contact, cutoff)
    force = lambda v: float(law(jnp.asarray(float(v))))  # noqa: E731
    rest, end = force(0.0), force(top)
    least = 0.01 * max(abs(rest), abs(end))
    straight = {"F_Coulomb": max(rest, least), "F_prop": max((end - rest) / top, least / top)}

    def with_laws(f_pos: AbstractLaw, f_neg: AbstractLaw | None) -> Mechanism:
        both = lambda m: (getattr(m[contact], pos), getattr(m[contact], neg))  # noqa: E731
        return eqx.tree_at(both, model, (f_pos, f_neg), is_leaf=lambda x: x is None)

    def each(made: AbstractLaw, more: Iterable[str] = (), **options: Any) -> Structure:
        return Structure(
            with_laws(made, made), [*free, f"{contact}.{pos}", f"{contact}.{neg}", *more], **options
        )

    line = Coulomb(**straight)
    out = {
        "symmetric": Structure(with_laws(line, None), [*free, f"{contact}.{pos}"]),
        "by direction": each(line),
    }
    for name, other in model.named_parts():
        called, fields = _FORCES.get(type(other), ("", ()))
        more = [f"{name}.{field}" for field in fields if f"{name}.{field}" not in free]
        if more:
            out[called] = each(line, more)
    dip = {**straight, "F_Stribeck": 0.2 * straight["F_Coulomb"], "fexp": 5.0 / top}
    for exponent in (1.0, 2.0):
        out[f"Stribeck, exponent {exponent:g}"] = each(Stribeck(**dip, exponent=exponent))
    v = np.linspace(0.0, top, nodes)
    rows = Table(np.column_stack([v, straight["F_Coulomb"] + straight["F_prop"] * v]))
    out[f"table of {nodes}"] = each(rows)
    priors = [Smooth(f"{contact}.{way}.f", 0.1 * max(abs(end), abs(rest))) for way in (pos, neg)]
    out[f"smooth table of {nodes}"] = each(rows, priors=priors)
    return out


def _contact(model: Any, contact: str) -> tuple[Any, str]:
    """Return the contact and the name of its law for motion forward."""
    if not isinstance(model, Mechanism):
        raise ValueError(
            f"`default_structures` needs a `Mechanism`, got {model!r}. Write the structures of a"
            " machine of your own yourself."
        )
    part: Any = model[contact]
    laws = [f.name for f in dataclasses.fields(part) if f.name.endswith("_pos")]
    both = bool(laws) and hasattr(part, laws[0].replace("_pos", "_neg"))
    if not isinstance(part, AbstractContact) or not both:
        raise ValueError(
            f"`default_structures`: {contact!r} must be a contact with a law for each direction,"
            f" got {part!r}."
        )
    return part, laws[0]


def _highest(record: Any, part: Any, contact: str, cutoff: float) -> float:
    """Return the highest speed of the record."""
    if not isinstance(record, Record):
        raise ValueError(
            f"`default_structures` takes the record whose speeds it reads, got {record!r}."
        )
    ends = part.between()
    v = sliding_speed(ends, body_speeds(record, cutoff))
    if v is None:
        raise ValueError(
            "`default_structures`: the record must measure the speed or position of the bodies of"
            f" {contact!r}, {ends[0].split('.')[0]}."
        )
    return float(np.max(np.abs(v)))
