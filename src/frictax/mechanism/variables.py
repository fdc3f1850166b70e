"""Result variables of each part, named as in Modelica: their classes and values at one time."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from frictax.contacts import AbstractContact, Clutch, OneWayClutch
from frictax.contacts.contact import f0
from frictax.contacts.mode import BACKWARD, FORWARD, FREE, STUCK
from frictax.pytree import pytree_dataclass

from . import dynamics
from .bodies import AbstractBody, Fixed
from .dynamics import MachineSnapshot
from .energy import bristle_loss, conducted_heat, loss
from .forces import (
    AbstractMotion,
    AbstractSource,
    PositionController,
    QuadraticSpeedDependentTorque,
    Torque,
)
from .gears import AbstractGear, IdealGear, LossyGear
from .layout import Layout
from .thermal import HeatCapacitor, ThermalConductor
from .variable_table import VARIABLES, rotational_name

# Names of the velocity and acceleration of the sliding faces. The three pairs of names are for a
# part that slides, a part that turns, and a gear.
_FACES = (("v_relfric", "a_relfric"), ("w_relfric", "a_relfric"), ("w_a", "a_a"))

# Types of result variables: a scalar (at one time) or an array (at all times of a run).
Values = Float[Array, "..."]
Modes = Int[Array, "..."]
Flags = Bool[Array, "..."]


class Breakaway:
    """Modelica's two flags of a contact at breakaway, `startForward` and `startBackward`.

    A flag is true if the contact begins to slide forward or backward at this time. In Modelica, the
    mode stays stuck and the flag stays true until the speed is not 0. In frictax, the mode becomes
    the direction of motion at once, and the flag is true only at the time of the event.
    """

    mode: Modes

    @property
    def startForward(self) -> Flags:
        return (self.mode == FORWARD) & self._begins(1)

    @property
    def startBackward(self) -> Flags:
        return (self.mode == BACKWARD) & self._begins(-1)

    def _begins(self, direction: int) -> Flags:
        """Return whether the sliding faces are at rest and accelerate in `direction`."""
        has = vars(self)
        v, a = next((has[v], has[a]) for v, a in _FACES if v in has)
        # Tools for Modelica change the mode when the speed exceeds 1e-10 m/s or rad/s. Rounding at
        # breakaway can change an acceleration of 0 to -1e-6 m/s2 or rad/s2.
        return (jnp.abs(v) <= 1e-10) & (direction * a >= -1e-6)


class NoBreakaway(Breakaway):
    """The breakaway flags of a contact with a bristle, which are always False, because the contact
    moves before it slides.
    """

    def _begins(self, direction: int) -> Flags:
        return jnp.zeros(jnp.shape(self.mode), bool)


class Flanges:
    """The variables `s_a` and `s_b`: positions of the two flanges relative to the support [m].

    The flanges are joined rigidly, so both positions equal `s`. A mass with stops does not have
    `s_a` and `s_b`.
    """

    s: Values
    stopped: Modes | None

    @property
    def s_a(self) -> Values:
        if self.stopped is not None:
            raise AttributeError(
                "A `MassWithStopAndFriction` has no `s_a` and `s_b`, in Modelica neither: its"
                " flanges are at s - L/2 and s + L/2. Read `s`, the position of its centre."
            )
        return self.s

    @property
    def s_b(self) -> Values:
        return self.s_a


class RotationalFlanges:
    """The variables `phi_a` and `phi_b`: both flange angles equal `phi` [rad]."""

    phi: Values

    @property
    def phi_a(self) -> Values:
        return self.phi

    @property
    def phi_b(self) -> Values:
        return self.phi


_TYPES = {"number": Values, "mode": Modes, "flag": Flags}


def _variable_class(kind: str, description: str, names: str, *bases: type, turns: bool) -> Any:
    """Return a new class with the name `kind` for the variables of a part: a dataclass and pytree.

    The class has the fields of its `bases`, followed by the fields `names`. Meaning and unit of
    each field are in the table `VARIABLES`. If `turns`, each name becomes its `rotational_name`.
    """
    own = [rotational_name(name) if turns else name for name in names.split()]
    types: dict[str, Any] = {name: _TYPES[VARIABLES[name].kind] for name in own}
    # `fn` and `stopped` may be None: only a brake or a clutch has a normal force, and only a mass
    # with stops can be at a stop.
    types |= {name: types[name] | None for name in ("fn", "stopped") if name in types}
    inherited = [name for base in bases for name in getattr(base, "__dataclass_fields__", ())]
    rows = [(name, VARIABLES[name]) for name in [*inherited, *own]]
    listed = "\n".join(
        f"- `{name}`: {row.meaning} [{row.rotational_unit if turns else row.unit}]"
        for name, row in rows
    )
    members = {
        "__doc__": f"{inspect.cleandoc(description)}\n\n{listed}\n",
        "__module__": __name__,
        "__annotations__": types,
    }
    return pytree_dataclass(type(kind, bases, members))


_translational = functools.partial(_variable_class, turns=False)
_rotational = functools.partial(_variable_class, turns=True)

_FRICTION = "f mode sa locked free f0 f0_max v_relfric a_relfric lossPower fn"
_OF_FRICTION = """

    The force (torque) is positive if it opposes positive velocity. While stuck, it is the force
    that keeps the contact at rest, including the reaction of a mechanical stop. `sa` is the force
    while locked, a + f0_max while sliding forward, a - f0_max while sliding backward, a while free.
    `lossPower` is the force times the velocity of the sliding faces. `startForward` and
    `startBackward`: whether the contact begins to slide in this direction at this time."""
_OF_BRISTLE = """

    `mode` is the direction of motion, and the contact is never locked. A bristle with elements is
    an exception: until all its elements slip, its `mode` is stuck and the contact is locked. `sa`
    is the force, and the friction at rest is the breakaway force. The force in the bristle is
    sigma_0*z, or the sum of the forces of the elements. `lossPower` is the heating power: the power
    of the friction force minus the power that bends the bristle."""

MassVariables = _translational("MassVariables", "Variables of a mass; `s` is its centre.", "s v a")
InertiaVariables = _rotational("InertiaVariables", "Variables of an inertia.", "s v a")
FixedVariables = _translational(
    "FixedVariables", "Variables of a fixed flange or a given motion.", "s"
)
FrictionVariables = _translational(
    "FrictionVariables",
    f"Variables of a friction element, relative to its support.{_OF_FRICTION}",
    f"s v a {_FRICTION} stopped",
    Breakaway,
    Flanges,
)
RotationalFrictionVariables = _rotational(
    "RotationalFrictionVariables",
    f"Variables of a friction element on a body that turns.{_OF_FRICTION}",
    f"s v a {_FRICTION}",
    Breakaway,
    RotationalFlanges,
)
BristleVariables = _translational(
    "BristleVariables",
    f"Variables of a friction element with a bristle.{_OF_BRISTLE}",
    "z f_z",
    NoBreakaway,
    FrictionVariables,
)
RotationalBristleVariables = _rotational(
    "RotationalBristleVariables",
    f"Variables of a friction element with a bristle on a body that turns.{_OF_BRISTLE}",
    "z f_z",
    NoBreakaway,
    RotationalFrictionVariables,
)
ClutchVariables = _rotational(
    "ClutchVariables",
    "Variables of a clutch between a and b: phi_rel = phi_b - phi_a. The torque slows b and drives"
    f" a.{_OF_FRICTION}",
    f"s_rel v_rel a_rel {_FRICTION}",
    Breakaway,
)
BristleClutchVariables = _rotational(
    "BristleClutchVariables",
    f"Variables of a clutch with a bristle.{_OF_BRISTLE}",
    "z f_z",
    NoBreakaway,
    ClutchVariables,
)
OneWayClutchVariables = _rotational(
    "OneWayClutchVariables",
    "Variables of a freewheel: those of a clutch, with sa = a_rel + tau0 while it slides.",
    "stuck",
    ClutchVariables,
)
CompliantVariables = _translational(
    "CompliantVariables", "Variables of a spring, a damper or a gap.", "s_rel v_rel f lossPower"
)
RotationalCompliantVariables = _rotational(
    "RotationalCompliantVariables",
    "Variables of a spring, a damper or a backlash between bodies that turn.",
    "s_rel v_rel f lossPower",
)
ForceVariables = _translational(
    "ForceVariables", "Variables of an external force; `s` is the flange's position.", "s f"
)
TorqueVariables = _rotational("TorqueVariables", "Variables of an external torque.", "s f")
ControllerVariables = _translational(
    "ControllerVariables",
    "Variables of a position controller; `s_ref` is the reference.",
    "s_ref",
    ForceVariables,
)
IdealGearVariables = _rotational("IdealGearVariables", "Variables of an ideal gear.", "phi_a phi_b")
IdealPlanetaryVariables = _rotational(
    "IdealPlanetaryVariables",
    "Variables of an ideal planetary gear.",
    "phi_sun phi_ring phi_carrier",
)
LossyGearVariables = _rotational(
    "LossyGearVariables",
    "Variables of a `LossyGear`. `tau_a` is the torque that enters at a, and `tauLoss` is the part"
    " of `tau_a` that is lost. `sa` is tauLoss while locked, and a_a + tauLoss otherwise.",
    "phi_a phi_b w_a a_a tau_a tauLoss mode sa locked lossPower",
    Breakaway,
)
HeatCapacitorVariables = _translational(
    "HeatCapacitorVariables", "Variables of a heat capacitor.", "T"
)
ThermalConductorVariables = _translational(
    "ThermalConductorVariables", "Variables of a thermal conductor: heat from a to b.", "Q_flow"
)


def variables_at(now: MachineSnapshot, part: int) -> Any:
    """Return an object with the variables of part number `part`. All values are scalars."""
    lay, element = now.layout, now.mechanism.parts[part]
    kind = _class_of(now.mechanism, lay, part)
    if isinstance(element, Fixed):
        return kind(element.s0)
    if isinstance(element, AbstractBody):
        i = lay.bodies.index(part)
        return kind(now.s[i], now.v[i], now.accelerations[i])
    if isinstance(element, AbstractSource):
        k = next(k for k, (i, _, _) in enumerate(lay.forces) if i == part)
        _, flange, signal = lay.forces[k]
        s = dynamics.position(now.mechanism, flange, now.s)
        f = now.driven[k] + element.elastic(s)
        if kind is not ControllerVariables:
            return kind(s, f)
        assert signal is not None
        return kind(s, f, now.drive[signal])
    if isinstance(element, AbstractContact):
        if (b := _bristle_number(lay, part)) is not None:
            return _bristle_at(now, b, kind)
        c = next(c for c, contact in enumerate(lay.contacts) if contact.part == part)
        return _friction_at(now, c, kind)
    if isinstance(element, AbstractGear):
        return kind(*(now.s[b] for gear in lay.gears if gear.part == part for b in gear.bodies))
    if isinstance(element, AbstractMotion):
        return kind(next(now.s[body] for i, body, _ in lay.motions if i == part))
    if isinstance(element, HeatCapacitor):
        return kind(next(now.temperature[k] for k, n in enumerate(lay.nodes) if n.part == part))
    if isinstance(element, ThermalConductor):
        return kind(next(conducted_heat(now, *c) for c in lay.conductors if c[0] == part))
    k = next(k for k, (i, _, _) in enumerate(lay.compliants) if i == part)
    (s_rel, v_rel), (elastic, viscous) = dynamics.stretch(now, k), dynamics.forces(now, k)
    return kind(s_rel, v_rel, elastic + viscous, viscous * v_rel)


def structure_of_variables(mechanism: Any, lay: Layout, part: int) -> Any:
    """Return the pytree structure of a result of `variables_at` without tracing that function."""
    kind = _class_of(mechanism, lay, part)
    leaves: dict[str, Any] = dict.fromkeys((f.name for f in dataclasses.fields(kind)), 0)
    if isinstance(mechanism.parts[part], AbstractContact):
        contact = _contact(lay, part)
        has = {"fn": contact.is_pressed, "stopped": contact.wall is not None}
        leaves |= {name: None for name, is_there in has.items() if name in leaves and not is_there}
    # The object is created without its constructor, which expects arrays.
    like = object.__new__(kind)
    vars(like).update(leaves)
    return jax.tree.structure(like)


# Class of a part -> class of its variables, if no other property matters. The first match is used.
_CLASSES: tuple[tuple[Any, Any], ...] = (
    (Fixed | AbstractMotion, FixedVariables),
    (Torque | QuadraticSpeedDependentTorque, TorqueVariables),
    (LossyGear, LossyGearVariables),
    (IdealGear, IdealGearVariables),
    (AbstractGear, IdealPlanetaryVariables),
    (OneWayClutch, OneWayClutchVariables),
    (HeatCapacitor, HeatCapacitorVariables),
    (ThermalConductor, ThermalConductorVariables),
)


def _class_of(mechanism: Any, lay: Layout, part: int) -> Any:
    """Return the class of the variables of part number `part`."""
    element = mechanism.parts[part]
    for parts, kind in _CLASSES:
        if isinstance(element, parts):
            return kind
    if isinstance(element, AbstractBody):
        return InertiaVariables if element.rotational else MassVariables
    if isinstance(element, AbstractSource):
        follows = isinstance(element, PositionController) and element.signal_name() is not None
        return ControllerVariables if follows else ForceVariables
    if isinstance(element, Clutch):
        return ClutchVariables if element.bristle is None else BristleClutchVariables
    if isinstance(element, AbstractContact):
        turns = mechanism.parts[lay.bodies[_contact(lay, part).ends[0][0]]].rotational
        if _bristle_number(lay, part) is not None:
            return RotationalBristleVariables if turns else BristleVariables
        return RotationalFrictionVariables if turns else FrictionVariables
    return RotationalCompliantVariables if element.rotational else CompliantVariables


def _contact(lay: Layout, part: int) -> Any:
    """Return the `Contact` in the layout for part number `part`."""
    return next(contact for contact in (*lay.contacts, *lay.bristles) if contact.part == part)


def _bristle_number(lay: Layout, part: int) -> int | None:
    return next((b for b, contact in enumerate(lay.bristles) if contact.part == part), None)


def _friction_at(now: MachineSnapshot, c: int, kind: Any) -> Any:
    contact, mode = now.layout.contacts[c], now.mode[c]
    part, v, a, f = now.part(c), now.v_rel[c], now.a_rel[c], now.friction[c]
    locked, free = mode == STUCK, mode == FREE
    if kind is LossyGearVariables:
        (bodies,) = (gear.bodies for gear in now.layout.gears if gear.part == contact.part)
        phi_a, phi_b = (now.s[b] for b in bodies)
        sa = jnp.where(locked, f, a + f)
        return kind(
            phi_a, phi_b, v, a, now.transmitted_torque(c), f, mode, sa, locked, loss(now, c)
        )
    # If a contact has two laws, use the law for the direction of motion or, at rest, for the
    # direction of breakaway.
    forward = jnp.where(locked, f >= 0, now.direction[c] >= 0) | part.blocks_backward
    scale = now.scale[c]
    low = jnp.where(forward, f0(part, 1, scale), f0(part, -1, scale))
    most = jnp.where(forward, part.holds(1, scale), part.holds(-1, scale))
    one_way = kind is OneWayClutchVariables
    sa = jnp.where(locked, f, a + (low if one_way else now.direction[c] * most))
    s = dynamics.contact_position(now, contact)
    shared = (s, v, a, f, mode, sa, locked, free, low, most, v, a, loss(now, c), now.normal[c])
    if one_way:
        return kind(*shared, locked)
    if kind is FrictionVariables:
        return kind(*shared, None if contact.wall is None else now.mode[contact.wall])
    return kind(*shared)


def _bristle_at(now: MachineSnapshot, b: int, kind: Callable[..., Any]) -> Any:
    """Return the variables of bristle contact number `b`, as an object of the class `kind`."""
    part, contact, modes = now.bristle_elements[b], now.layout.bristles[b], now.element_modes[b]
    v, f, f_z = now.bristle_v[b], now.bristle_friction[b], now.bristle_force[b]
    a = sum((sign * now.accelerations[body] for body, sign in contact.ends), now.zero)
    scale, normal = now.bristle_scale[b], now.bristle_normal[b]
    mode = jnp.where(v < 0, BACKWARD, FORWARD)
    if modes is not None:  # A bristle with elements slides when all its elements slip.
        mode = jnp.where(jnp.all(modes != 0), now.element_slip[b], STUCK)
        f_z = jnp.sum(now.element_force[b])
    z = f_z / part.bristle.sigma_0
    free = jnp.zeros(jnp.shape(mode), bool)
    if scale is not None:
        free, f_z = now.bristle_press[b] == 0, scale * f_z
        mode = jnp.where(free, FREE, mode)
    locked, s = mode == STUCK, dynamics.contact_position(now, contact)
    size = 1.0 if scale is None else scale
    f0_ = jnp.where(v < 0, f0(part, -1, size), f0(part, 1, size))
    shared = (s, v, a, f, mode, f, locked, free, f0_, f0_, v, a, bristle_loss(now, b), normal)
    stopped = (None,) if kind is BristleVariables else ()
    return kind(*shared, *stopped, z, f_z)
