"""Friction compensation: code for a motor controller that computes the friction of a contact."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np

import frictax
from frictax.contacts import BearingFriction, SupportFriction
from frictax.contacts.contact import AbstractContact, AbstractPressed, f0, law_value
from frictax.fitting import FitResult
from frictax.fitting.options import refuse
from frictax.fitting.problem.steady import SteadyFriction, as_steady
from frictax.parameters import UnknownName

from ..fitted_machine import machine_of_parts
from .languages import C, JavaScript, StructuredText
from .lowering import Program
from .machine import NumberTree
from .statements import REAL

LANGUAGES = ("c", "st", "javascript")
ARGUMENTS = ("command", "speed", "last", "dt")


def to_feedforward(
    source: AbstractContact | FitResult,
    name: str | None = None,
    *,
    language: str = "c",
    still: float = 1e-3,
    rate: float | None = None,
    label: str | None = None,
) -> str:
    """Return code that computes the friction of a contact in single precision. The motor controller
    adds this friction to its force in each cycle.

    The force has the sign of the commanded speed and the magnitude of the friction law at this
    speed. While the axis is at rest, the force is at least the breakaway force. In each cycle of
    length dt the force changes by at most dt times `rate`. Therefore the force does not jump when
    the commanded speed changes its sign.

    **Arguments:**

    - `source`: a contact such as `SupportFriction`, or a fit of a machine or of a sweep. For a fit,
      a comment in the code lists the intervals of the parameters. `name`: the name of the contact,
      required if the machine has several. A constant force in addition to friction, such as the
      offset of a sweep, is not included.
    - `language`: "c" for C99, "st" for structured text of IEC 61131-3, "javascript", which computes
      in double precision.
    - `still`: the speed [m/s or rad/s] below which the axis counts as at rest.
    - `rate`: the largest rate of change of the force [N/s or N.m/s]; by default the breakaway force
      (of the direction with the larger one) divided by 10 ms.
    - `label`: name of the record whose values are used, required if values of the contact differ by
      record.

    **Raises:** `ValueError` for another language, a contact with a normal force, numbers that are
    not positive, or a `label` that is required; `KeyError` for a contact or record that the fit
    does not have.

    >>> import frictax as fx
    >>> guide = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=5.0, F_prop=1.0), peak=1.2)
    >>> print(to_feedforward(guide).splitlines()[1])
    // p[0] = f_pos.F_Coulomb: 5 N
    """
    if language not in LANGUAGES:
        raise ValueError(f"`language` must be one of {', '.join(LANGUAGES)}, got {language!r}.")
    contact, intervals = _contact_of(source, name, label)
    at_rest = max(float(contact.breakaway() * f0(contact, way, 1.0)) for way in (1, -1))
    if rate is None and at_rest == 0:
        raise ValueError(
            "`rate` must be a number > 0 for a contact without friction at rest, got None. Write"
            " the largest rate of change of the force, such as rate=100.0."
        )
    rate = at_rest / 0.01 if rate is None else rate
    for what, value in (("still", still), ("rate", rate)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"`{what}` must be a number > 0, got {value!r}.")
    tree = NumberTree(contact)
    values = np.array([number.value for number in tree.numbers] + [still, rate])

    def friction_step(p: Any, command: Any, speed: Any, last: Any, dt: Any) -> Any:
        now: Any = tree.with_numbers(p)
        direction = jnp.where(command < 0, -1, 1)
        moving = law_value(now, direction, jnp.abs(command), None)
        standing = now.breakaway() * jnp.where(command < 0, f0(now, -1, 1.0), f0(now, 1, 1.0))
        size = jnp.where(jnp.abs(speed) < p[-2], jnp.maximum(moving, standing), moving)
        wanted, change = jnp.sign(command) * size, p[-1] * dt
        return last + jnp.clip(wanted - last, -change, change)

    program, zero = Program(), jnp.asarray(0.0)
    given = {"p": jnp.asarray(values)} | dict.fromkeys(ARGUMENTS, zero)
    program.trace("friction_step", friction_step, given)
    comment = [f"Friction of a {type(contact).__name__}, written by frictax {frictax.__version__}."]
    for i, x in enumerate(tree.numbers):
        within = intervals.get(x.name)
        known = (
            f" ({within[0]:.6g} to {within[1]:.6g})" if within and np.isfinite(sum(within)) else ""
        )
        unit = "" if x.unit in ("", "1") else f" {x.unit}"
        comment.append(f"p[{i}] = {x.name}: {x.value:.9g}{unit}{known}")
    n, turns = len(tree.numbers), bool(getattr(type(contact), "rotational", False))
    speed, force = ("rad/s", "N.m") if turns else ("m/s", "N")
    comment += [
        f"p[{n}]: below this speed the axis is at rest: {still:.9g} {speed}",
        f"p[{n + 1}]: largest change of the force: {rate:.9g} {force}/s",
        f"command, speed [{speed}]; last: the force of the cycle before [{force}]; dt [s]",
    ]
    write = {"c": _c, "st": _st, "javascript": _javascript}
    return write[language](program, values, comment)


def _single(values: np.ndarray) -> list[float]:
    """Round to nine digits, which is enough to identify any number in single precision."""
    return [float(f"{x:.9g}") for x in values]


def _c(program: Program, values: np.ndarray, comment: list[str]) -> str:
    language = C(real="float")
    numbers = ", ".join(language.literal(x, REAL) for x in _single(values))
    given = ", ".join(f"float {name}" for name in ARGUMENTS)
    body = language.print(program)
    return "\n".join(
        [
            *(f"// {line}" for line in comment),
            language.head(body),
            f"float friction_feedforward(const float *p, {given});",
            f"static const float friction_numbers[{values.size}] FX_MAYBE = {{{numbers}}};",
            body,
            f"float friction_feedforward(const float *p, {given}) {{",
            "  float o[1];",
            f"  friction_step(p ? p : friction_numbers, {', '.join(ARGUMENTS)}, o);",
            "  return o[0];",
            "}",
            "",
        ]
    )


def _st(program: Program, values: np.ndarray, comment: list[str]) -> str:
    language = StructuredText("REAL")
    numbers = ", ".join(language.literal(x, REAL) for x in _single(values))
    return "\n".join(
        [
            *(f"(* {line} *)" for line in comment),
            language.print(program).strip(),
            "",
            "FUNCTION_BLOCK Friction_Feedforward",
            "VAR_INPUT",
            *(f"  {name} : REAL;" for name in ARGUMENTS if name != "last"),
            "END_VAR",
            "VAR_OUTPUT",
            "  force : REAL;",
            "END_VAR",
            "VAR",
            f"  p : ARRAY[0..{values.size - 1}] OF REAL := [{numbers}];",
            "END_VAR",
            "  friction_step(p := p, command := command, speed := speed, last := force, dt := dt,"
            " o0 => force);",
            "END_FUNCTION_BLOCK",
            "",
        ]
    )


def _javascript(program: Program, values: np.ndarray, comment: list[str]) -> str:
    language = JavaScript()
    numbers = ",".join(language.literal(float(x), REAL) for x in values)
    given = ",".join(ARGUMENTS)
    return "\n".join(
        [
            *(f"// {line}" for line in comment),
            f"const friction_numbers=[{numbers}];",
            language.print(program).strip(),
            f"function friction_feedforward(p,{given}){{",
            f"friction_step(p||friction_numbers,{given});return friction_step_o[0]}}",
            "",
        ]
    )


def _contact_of(
    source: Any, name: str | None, label: str | None
) -> tuple[Any, dict[str, tuple[float, float]]]:
    """Return the contact, and a dict from the name of each fitted parameter to its interval."""
    contact, of, is_fit = source, "", isinstance(source, FitResult)
    of_sweep = is_fit and source.of_sweep
    if of_sweep or not is_fit:
        refuse({"label": label}, "the records of a machine", "a contact or a sweep")
    if of_sweep:
        steady, turns = as_steady(source.model), source.sweep.rotational
        kind, of = (BearingFriction, "tau_") if turns else (SupportFriction, "f_")
        contact = kind("axis", steady.f_pos, steady.peak, steady.f_neg)
    elif is_fit:
        machine: Any = source.model
        named = machine.named_parts() if hasattr(machine, "named_parts") else ()
        contacts = {n: part for n, part in named if isinstance(part, AbstractContact)}
        name = next(iter(contacts)) if name is None and len(contacts) == 1 else name
        if name not in contacts:
            raise UnknownName(
                f"`name` must be a contact of the machine: {', '.join(contacts) or 'none'}."
                f" Got {name!r}."
            )
        machine, of = machine_of_parts(source, label, [str(name)]), f"{name}."
        contact, label = dict(machine.named_parts())[name], label or next(iter(source.records))
    intervals = dict[str, tuple[float, float]]()
    for e in source.estimates if is_fit else ():
        known = e.name.removeprefix(of).removesuffix(f"@{label}")
        if of_sweep:
            known = e.name if isinstance(source.model, SteadyFriction) else f"f_pos.{e.name}"
            known = re.sub("^f_", of, known)
        intervals[known] = e.lower, e.upper
    if not isinstance(contact, AbstractContact):
        raise ValueError(
            f"`to_feedforward` must be given a contact or a fit, got a {type(contact).__name__}."
        )
    if isinstance(contact, AbstractPressed):
        raise ValueError(
            f"`{type(contact).__name__}` has a normal force, which is not an input of the"
            " function. Take a `SupportFriction`, `BearingFriction` or `MassWithStopAndFriction`."
        )
    return contact, intervals
