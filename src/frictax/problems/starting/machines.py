"""The machines that a problem may begin with: parts, what is free, and the objective, as TOML."""

import dataclasses
from collections.abc import Callable

import numpy as np

from .draft import Draft
from .sizes import Sizes


@dataclasses.dataclass(frozen=True)
class Template:
    """`drive` and `output`: the names of the record's channels; `text`: the tables [machine] and
    [fit]; `files`: what stands beside them, by name.
    """

    drive: str
    output: str
    text: str
    files: dict[str, str] = dataclasses.field(default_factory=dict)


def template(draft: Draft, found: Sizes) -> Template:
    """The machine of a draft, with start values."""
    return _TEMPLATES[draft.machine](draft, found)


def _windows(found: Sizes, first: bool = True) -> str:
    """Short runs from the smoothed motion; `first`: after a fit by inverse dynamics, for which each
    body's motion must be measured.
    """
    start = (
        f'start = {{ kind = "InverseDynamics", cutoff = {found.cutoff!r} }} # Hz, of the filter\n'
    )
    return f"""\
{start if first else ""}\
objective = {{ kind = "Windows", length = {found.window!r} }} # s
"""


def _law(found: Sizes) -> str:
    return f'{{ kind = "Coulomb", F_Coulomb = {found.dry!r}, F_prop = {_viscous(found)!r} }}'


def _viscous(found: Sizes) -> float:
    """Not 0, from where a search could not leave."""
    return float(f"{max(found.viscous, 1e-3 * found.dry):.2g}")


def _variable(draft: Draft, body: str) -> str:
    """What is measured of a body."""
    moves = draft.columns.get("position") is not None
    return f"{body}.{('phi' if moves else 'w') if draft.turns else ('s' if moves else 'v')}"


def _bearing(body: str, found: Sizes) -> str:
    return f"""\
[machine.bearing] # its friction: dry and viscous, the same in both directions
kind = "BearingFriction"
body = "{body}"
tau_pos = {_law(found)} # N.m, N.m.s/rad
peak = 1.0 # breakaway over sliding friction; free it where the record breaks away often
"""


def _torque(body: str) -> str:
    return f"""\
[machine.drive]
kind = "Torque"
body = "{body}"
tau = 0.0 # the record's input takes its place
"""


def _rotor(draft: Draft, found: Sizes) -> Template:
    text = f"""\
[machine.rotor]
kind = "Inertia"
J = {found.inertia!r} # kg.m2

{_bearing("rotor", found)}
{_torque("rotor")}
[fit]
free = ["rotor.J", "bearing.tau_pos"]
{_windows(found)}"""
    return Template("drive", _variable(draft, "rotor"), text)


def _axis(draft: Draft, found: Sizes) -> Template:
    text = f"""\
[machine.mass]
kind = "Mass"
m = {found.inertia!r} # kg

{_support(found)}
[machine.drive]
kind = "Force"
body = "mass"
f = 0.0 # the record's input takes its place

[fit]
free = ["mass.m", "friction.f_pos"]
{_windows(found)}"""
    return Template("drive", _variable(draft, "mass"), text)


def _support(found: Sizes) -> str:
    return f"""\
[machine.friction] # of the guide: dry and viscous, the same in both directions
kind = "SupportFriction"
body = "mass"
f_pos = {_law(found)} # N, N.s/m
peak = 1.0 # breakaway over sliding friction; free it where the record breaks away often
"""


def _gear(draft: Draft, found: Sizes) -> Template:
    ratio, rotor = draft.constants["ratio"], draft.constants["inertia"]
    load = float(f"{max(found.inertia - rotor, 0.1 * rotor) * ratio**2:.2g}")
    text = f"""\
[machine.rotor]
kind = "Inertia"
J = {rotor!r} # kg.m2, of the motor alone, from its data sheet: a record tells only the sum

[machine.load]
kind = "Inertia"
J = {load!r} # kg.m2, on the other side of the gear

[machine.gear]
kind = "IdealGear"
a = "rotor"
b = "load"
ratio = {ratio!r}

{_bearing("rotor", found).replace("its friction", "all friction, as the motor feels it")}
{_torque("rotor")}
[fit]
free = ["load.J", "bearing.tau_pos"]
{_windows(found, False)}"""
    return Template("drive", _variable(draft, "rotor"), text)


def _servo(draft: Draft, found: Sizes) -> Template:
    kp, kv, turns = draft.constants["kp"], draft.constants["kv"], draft.turns
    body, contact = ("rotor", "bearing.tau_pos") if turns else ("mass", "friction.f_pos")
    parts = _rotor(draft, found).text if turns else _axis(draft, found).text
    machine = parts.partition("[fit]")[0]
    text = f"""\
{machine}[fit]
free = ["{body}.{"J" if turns else "m"}", "{contact}"]

[fit.objective] # one run, in which the known controller follows the recorded reference
kind = "ClosedLoop"

[fit.objective.controllers.drive]
kind = "PositionController"
body = "{body}"
s_ref = 0.0 # the record's reference takes its place
kp = {kp!r} # 1/s
kv = {kv!r} # {"N.m.s/rad" if turns else "N.s/m"}
"""
    return Template("drive", _variable(draft, body), text)


def _brake(draft: Draft, found: Sizes) -> Template:
    inertia, radius = draft.constants["inertia"], draft.constants["radius"]
    text = f"""\
[machine.wheel]
kind = "Inertia"
J = {inertia!r} # kg.m2, known: a record tells only the coefficient over the inertia

[machine.brake]
kind = "Brake"
body = "wheel"
mu_pos = {{ kind = "Coulomb", F_Coulomb = 0.3, F_prop = 0.001 }} # 1, s/rad
cgeo = {radius!r} # m, mean radius times the number of faces
fn_max = 1.0 # N, so that the record's normal force counts as it is

[fit]
free = ["brake.mu_pos"]
{_windows(found, False)}"""
    return Template("brake", _variable(draft, "wheel"), text)


def _coasting(draft: Draft, found: Sizes) -> Template:
    """A body of known inertia that friction alone slows; drag is a structure beside it."""
    turns = draft.turns
    body, known = ("rotor", "J") if turns else ("mass", "m")
    contact, law = ("bearing", "tau_pos") if turns else ("friction", "f_pos")
    kind = "QuadraticSpeedDependentTorque" if turns else "QuadraticSpeedDependentForce"
    field, unit = ("tau_nominal", "N.m.s2/rad2") if turns else ("f_nominal", "N.s2/m2")
    support = "BearingFriction" if turns else "SupportFriction"
    dry = f'{{ kind = "Coulomb", F_Coulomb = {found.dry!r} }}'
    variable = _variable(draft, body)
    start = (
        [variable]
        if variable.endswith((".w", ".v"))
        else [variable, f"{body}.{'w' if turns else 'v'}"]
    )
    own = ", ".join(f'"{name}"' for name in start)
    part = f"""\
[machine.rotor]
kind = "Inertia"
J = {found.inertia!r} # kg.m2, known: a record without a drive tells friction only over the inertia
"""
    if not turns:
        part = f"""\
[machine.mass]
kind = "Mass"
m = {found.inertia!r} # kg, known: a record without a drive tells friction only over the mass
"""
    note = "" if turns else ", and of a slope, which only a record of the other direction separates"
    text = f"""\
{part}
{_bearing("rotor", found) if turns else _support(found)}
[fit]
free = ["{contact}.{law}"]
own = [{own}] # the start, which is measured with noise
objective = "FreeRun"

[compare]
given = "dry and viscous" # F_Coulomb is the sum of dry friction{note}

[structures."dry and drag"] # drag grows with the square of the speed
free = ["{contact}.{law}.F_Coulomb", "drag.{field}"]
machine.{contact} = {{ kind = "{support}", body = "{body}", {law} = {dry} }}
machine.drag = {{ kind = "{kind}", body = "{body}", {field} = {-_drag(found)!r} }} # {unit}
{_slope(draft, contact, law, body)}"""
    return Template("", variable, text)


def _drag(found: Sizes) -> float:
    """A start value, which brakes as viscous friction does at the mean speed."""
    return float(f"{max(found.viscous**2 / max(found.dry, 1e-300), 1e-12):.2g}")


def _slope(draft: Draft, contact: str, law: str, body: str) -> str:
    """A constant force beside friction, if the record goes both ways and so separates the two."""
    output = draft.output
    assert output is not None
    x = draft.shape.values[:, output.number - 1]
    v = x[np.isfinite(x)] if output.role == "velocity" else np.diff(x[np.isfinite(x)])
    if draft.turns or not min(np.max(v), -np.min(v)) > 0.05 * np.max(np.abs(v)):
        return ""
    return f"""
[structures."dry, viscous and slope"]
free = ["{contact}.{law}", "slope.f"]
machine.slope = {{ kind = "Force", body = "{body}", f = 0.0 }} # N
"""


def _pendulum(draft: Draft, found: Sizes) -> Template:
    driven = draft.drive is not None
    free = ["J", "phi_offset", "friction.f_pos", *(["mgl"] if driven else [])]
    how = (
        _windows(found, False)
        if driven
        else """\
own = ["phi", "w"] # angle and speed at the start
objective = "FreeRun"
rounds = 12 # a decay to rest has a minimum for each number of swings
"""
    )
    known = "start value" if driven else "known: a decay tells only its ratio to the inertia"
    names = ", ".join(f'"{name}"' for name in free)
    offset = (
        ""
        if not found.offset
        else f"phi_offset = {found.offset!r} # rad, angle above hanging at phi = 0\n"
    )
    text = f"""\
[machine]
python = "pendulum:pendulum" # beside this file: needs --allow-code

[machine.arguments]
J = {found.inertia!r} # kg.m2, about the joint
mgl = {found.gravity!r} # N.m, torque of gravity where the arm is horizontal; {known}
F_Coulomb = {found.dry!r} # N.m
F_prop = {_viscous(found)!r} # N.m.s/rad
{offset}
[fit]
free = [{names}]
{how}"""
    name = "phi" if draft.columns.get("position") is not None else "w"
    return Template("drive", name, text, {"pendulum.py": _PENDULUM})


_PENDULUM = '''\
"""An arm in gravity with dry friction in its joint."""

from typing import Any

import jax.numpy as jnp

import frictax as fx
from frictax.parameters import Positive, Real, Scalar, parameter


class Pendulum(fx.AbstractAxis):
    """J*dw/dt = drive - mgl*sin(phi + phi_offset) - friction, phi = 0 hanging down."""

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    mgl: Scalar = parameter(Positive(), "N.m")
    phi_offset: Scalar = parameter(Real(), "rad", default=0.0)
    phi: Scalar = parameter(Real(), "rad", fit=False, default=0.0)
    w: Scalar = parameter(Real(), "rad/s", fit=False, default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        drive = (args or {}).get("drive", 0.0)
        return drive - self.mgl * jnp.sin(y[0] + self.phi_offset)

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.stack([self.phi, self.w]))


def pendulum(
    J: float, mgl: float, F_Coulomb: float, F_prop: float, phi_offset: float = 0.0
) -> Pendulum:
    """The machine of problem.toml."""
    law = fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    friction = fx.SupportFriction("arm", f_pos=law)
    return Pendulum(friction=friction, J=J, mgl=mgl, phi_offset=phi_offset)
'''

_TEMPLATES: dict[str, Callable[[Draft, Sizes], Template]] = {
    "rotor": _rotor,
    "axis": _axis,
    "gear": _gear,
    "pendulum": _pendulum,
    "arm": _pendulum,
    "spindown": _coasting,
    "coastdown": _coasting,
    "servo": _servo,
    "brake": _brake,
}
