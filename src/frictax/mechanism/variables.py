"""A part's variables at one moment, under their Modelica names."""

import dataclasses
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
from .bristles.reading import bristle_at
from .energy import conducted, loss
from .forces import AbstractMotion, AbstractSource, PositionController, Torque
from .gears import AbstractGear, IdealGear
from .layout import Layout
from .lossy_gear import LossyGear
from .snapshot import Snapshot
from .state_forces import QuadraticSpeedDependentTorque
from .thermal import (
    HeatCapacitor,
    HeatCapacitorVariables,
    ThermalConductor,
    ThermalConductorVariables,
)

# [m/s or rad/s] The speed up to which a contact begins to slide: that from which on Modelica's
# tools let the mode change.
_NO_SPEED = 1e-10
_NO_RATE = 1e-6  # [m/s2 or rad/s2] Rounding of an acceleration that is 0 at breakaway.
# Velocity and acceleration of the sliding faces: of what slides, of what turns, of a gear.
_OF_FACES = (("v_relfric", "a_relfric"), ("w_relfric", "a_relfric"), ("w_a", "a_a"))

# Over whatever a run is asked at: scalars at one moment, a row over time.
Values = Float[Array, "..."]
Modes = Int[Array, "..."]
Flags = Bool[Array, "..."]


@pytree_dataclass
class MassVariables:
    """Position of the centre `s` [m], velocity `v` [m/s], acceleration `a` [m/s2]."""

    s: Values
    v: Values
    a: Values


class Breakaway:
    """Modelica's two flags of a contact at breakaway.

    `startForward`, `startBackward`: whether it begins to slide in that direction at this time. A
    solver of Modelica keeps the mode stuck and the flag true until there is a speed. Here the mode
    is the direction of motion at once, and the flag is true at the time of the event alone.
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
        v, a = next((has[v], has[a]) for v, a in _OF_FACES if v in has)
        return (jnp.abs(v) <= _NO_SPEED) & (direction * a >= -_NO_RATE)


class NoBreakaway:
    """A contact with a bristle moves before it slides: Modelica's two flags are never true."""

    mode: Modes

    @property
    def startForward(self) -> Flags:
        return jnp.zeros(jnp.shape(self.mode), bool)

    @property
    def startBackward(self) -> Flags:
        return jnp.zeros(jnp.shape(self.mode), bool)


@pytree_dataclass
class FrictionVariables(Breakaway):
    """The variables of a friction element.

    - `s`, `v`, `a`: position [m], velocity [m/s], acceleration [m/s2] relative to the support.
    - `f`: friction force [N], positive against positive velocity; stuck: what holds, with a stop's
      reaction.
    - `mode`: a `Mode`; `locked`, `free`: whether it is STUCK, FREE.
    - `sa`: the curve parameter [1]: f when locked, a + f0_max forward, a - f0_max backward, a when
      free.
    - `f0`, `f0_max`: sliding friction at rest and breakaway force [N].
    - `v_relfric`, `a_relfric`: velocity and acceleration of the sliding faces; `lossPower` =
      f*v_relfric [W].
    - `fn`: normal force [N] (brake); `stopped`: -1, 0, 1 at the lower stop, at none, at the upper
      one (mass with stops).
    - `startForward`, `startBackward`: whether it begins to slide forward or backward at this time.
    - `s_a`, `s_b`: positions of its two flanges relative to the support [m]. They are joined
      rigidly, so both are `s`; a mass with stops does not have them.
    """

    s: Values
    v: Values
    a: Values
    f: Values
    mode: Modes
    sa: Values
    locked: Flags
    free: Flags
    f0: Values
    f0_max: Values
    v_relfric: Values
    a_relfric: Values
    lossPower: Values
    fn: Values | None
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


@pytree_dataclass
class CompliantVariables:
    """Extension `s_rel` [m], its rate `v_rel` [m/s], force `f` [N], power lost in a damper
    `lossPower` [W].
    """

    s_rel: Values
    v_rel: Values
    f: Values
    lossPower: Values


@pytree_dataclass
class ForceVariables:
    """Position of the flange `s` [m] and force `f` [N]."""

    s: Values
    f: Values


@pytree_dataclass
class ControllerVariables(ForceVariables):
    """Position of the flange `s` [m], force `f` [N], position asked for `s_ref` [m]."""

    s_ref: Values


@pytree_dataclass
class InertiaVariables:
    """Angle `phi` [rad], angular velocity `w` [rad/s], angular acceleration `a` [rad/s2]."""

    phi: Values
    w: Values
    a: Values


@pytree_dataclass
class RotationalFrictionVariables(Breakaway):
    """The variables of a friction element on a body that turns: as `FrictionVariables`, with `phi`,
    `phi_a`, `phi_b` [rad], `w` [rad/s], `tau` [N.m].
    """

    phi: Values
    w: Values
    a: Values
    tau: Values
    mode: Modes
    sa: Values
    locked: Flags
    free: Flags
    tau0: Values
    tau0_max: Values
    w_relfric: Values
    a_relfric: Values
    lossPower: Values
    fn: Values | None

    @property
    def phi_a(self) -> Values:
        return self.phi

    @property
    def phi_b(self) -> Values:
        return self.phi


@pytree_dataclass
class BristleVariables(NoBreakaway, FrictionVariables):
    """The variables of friction with a bristle: those of `FrictionVariables`, never locked, with
    sa = f, f0 = f0_max, `mode` the direction of motion, and the bristle's.

    - `z`: how far it is bent [m]; `f_z` = sigma_0*z, the force in it [N]; of a bristle with
      elements the sum of what these bear, and `mode` is stuck, and it locked, until all slip.
    - `lossPower`: what becomes heat, f*v less what bends the bristle [W].
    """

    z: Values
    f_z: Values


@pytree_dataclass
class RotationalBristleVariables(NoBreakaway, RotationalFrictionVariables):
    """The variables of friction with a bristle on a body that turns: as `BristleVariables`, with
    `z` [rad] and `tau_z` [N.m].
    """

    z: Values
    tau_z: Values


@pytree_dataclass
class ClutchVariables(Breakaway):
    """The variables of a clutch between a and b: `phi_rel` = phi_b - phi_a [rad], `w_rel` [rad/s],
    `a_rel` [rad/s2]; the torque `tau` [N.m] slows b and drives a; the others as of
    `FrictionVariables`.
    """

    phi_rel: Values
    w_rel: Values
    a_rel: Values
    tau: Values
    mode: Modes
    sa: Values
    locked: Flags
    free: Flags
    tau0: Values
    tau0_max: Values
    w_relfric: Values
    a_relfric: Values
    lossPower: Values
    fn: Values | None


@pytree_dataclass
class BristleClutchVariables(NoBreakaway, ClutchVariables):
    """The variables of a clutch with a bristle: as `BristleVariables`, with `z` [rad] and `tau_z`
    [N.m].
    """

    z: Values
    tau_z: Values


@pytree_dataclass
class OneWayClutchVariables(ClutchVariables):
    """The variables of a freewheel: those of a clutch, with sa = a_rel + tau0 while it slides, and
    `stuck`: whether it is locked.
    """

    stuck: Flags


@pytree_dataclass
class RotationalCompliantVariables:
    """Twist `phi_rel` [rad], its rate `w_rel` [rad/s], torque `tau` [N.m], power lost in a damper
    `lossPower` [W].
    """

    phi_rel: Values
    w_rel: Values
    tau: Values
    lossPower: Values


@pytree_dataclass
class TorqueVariables:
    """Angle of the body `phi` [rad] and torque `tau` [N.m]."""

    phi: Values
    tau: Values


@pytree_dataclass
class IdealGearVariables:
    """Angles of the two bodies [rad]."""

    phi_a: Values
    phi_b: Values


@pytree_dataclass
class IdealPlanetaryVariables:
    """Angles of the three bodies [rad]."""

    phi_sun: Values
    phi_ring: Values
    phi_carrier: Values


@pytree_dataclass
class LossyGearVariables(Breakaway):
    """The variables of a `LossyGear`.

    - `phi_a`, `phi_b` [rad]; `w_a` [rad/s], `a_a` [rad/s2]; `tau_a` [N.m], the torque that enters
      at a, and `tauLoss` [N.m], what is lost of it; `lossPower` [W].
    - `mode`: a `Mode`; `locked`; `sa`: tauLoss when locked, else a_a + tauLoss.
    """

    phi_a: Values
    phi_b: Values
    w_a: Values
    a_a: Values
    tau_a: Values
    tauLoss: Values
    mode: Modes
    sa: Values
    locked: Flags
    lossPower: Values


@pytree_dataclass
class FixedVariables:
    """Position `s` [m]."""

    s: Values


def variables_at(now: Snapshot, part: int) -> Any:
    """The variables of part number `part`, all scalars."""
    lay, element = now.layout, now.mechanism.parts[part]
    kind = _kind(now.mechanism, lay, part)
    if isinstance(element, Fixed):
        return kind(element.s0)
    if isinstance(element, AbstractBody):
        i = lay.bodies.index(part)
        return kind(now.s[i], now.v[i], now.accelerations[i])
    if isinstance(element, AbstractSource):
        return _source_at(now, next(k for k, (i, _, _) in enumerate(lay.forces) if i == part), kind)
    if isinstance(element, AbstractContact):
        if (b := _bristle_number(lay, part)) is not None:
            return bristle_at(now, b, kind)
        return _friction_at(now, _contact_number(lay, part), kind)
    if isinstance(element, AbstractGear):
        return kind(*(now.s[b] for gear in lay.gears if gear.part == part for b in gear.bodies))
    if isinstance(element, AbstractMotion):
        return kind(next(now.s[body] for i, body, _ in lay.motions if i == part))
    if isinstance(element, HeatCapacitor):
        return kind(next(now.temperature[k] for k, n in enumerate(lay.nodes) if n.part == part))
    if isinstance(element, ThermalConductor):
        return kind(next(conducted(now, *c) for c in lay.conductors if c[0] == part))
    k = next(k for k, (i, _, _) in enumerate(lay.compliants) if i == part)
    (s_rel, v_rel), (elastic, viscous) = dynamics.stretch(now, k), dynamics.forces(now, k)
    return kind(s_rel, v_rel, elastic + viscous, viscous * v_rel)


def structure_of_variables(mechanism: Any, lay: Layout, part: int) -> Any:
    """The structure of what `variables_at` returns, which takes no trace to tell."""
    kind = _kind(mechanism, lay, part)
    left: dict[str, Any] = dict.fromkeys((f.name for f in dataclasses.fields(kind)), 0)
    if isinstance(mechanism.parts[part], AbstractContact):
        contact = _contact(lay, part)
        has = {"fn": contact.is_pressed, "stopped": contact.wall is not None}
        left |= {name: None for name, is_there in has.items() if name in left and not is_there}
    like = object.__new__(kind)  # which holds no arrays
    vars(like).update(left)
    return jax.tree.structure(like)


def _kind(mechanism: Any, lay: Layout, part: int) -> Any:
    """The class of the variables of part number `part`."""
    element = mechanism.parts[part]
    if isinstance(element, Fixed | AbstractMotion):
        return FixedVariables
    if isinstance(element, AbstractBody):
        return InertiaVariables if element.rotational else MassVariables
    if isinstance(element, Torque | QuadraticSpeedDependentTorque):
        return TorqueVariables
    if isinstance(element, AbstractSource):
        asked = isinstance(element, PositionController) and element.signal_name() is not None
        return ControllerVariables if asked else ForceVariables
    if isinstance(element, LossyGear):
        return LossyGearVariables
    if isinstance(element, OneWayClutch):
        return OneWayClutchVariables
    if isinstance(element, Clutch):
        return ClutchVariables if element.bristle is None else BristleClutchVariables
    if isinstance(element, AbstractContact):
        contact, bent = _contact(lay, part), _bristle_number(lay, part) is not None
        turns = mechanism.parts[lay.bodies[contact.ends[0][0]]].rotational
        return _FRICTION[bool(turns), bent]
    if isinstance(element, AbstractGear):
        return IdealGearVariables if isinstance(element, IdealGear) else IdealPlanetaryVariables
    if isinstance(element, HeatCapacitor):
        return HeatCapacitorVariables
    if isinstance(element, ThermalConductor):
        return ThermalConductorVariables
    return RotationalCompliantVariables if element.rotational else CompliantVariables


_FRICTION = {
    (False, False): FrictionVariables,
    (True, False): RotationalFrictionVariables,
    (False, True): BristleVariables,
    (True, True): RotationalBristleVariables,
}


def _contact(lay: Layout, part: int) -> Any:
    """Where the contact stands that part number `part` is."""
    return next(contact for contact in (*lay.contacts, *lay.bristles) if contact.part == part)


def _contact_number(lay: Layout, part: int) -> int:
    return next(c for c, contact in enumerate(lay.contacts) if contact.part == part)


def _bristle_number(lay: Layout, part: int) -> int | None:
    return next((b for b, contact in enumerate(lay.bristles) if contact.part == part), None)


def _source_at(now: Snapshot, k: int, kind: Any) -> Any:
    part, flange, signal = now.layout.forces[k]
    source, s = now.mechanism.parts[part], dynamics.position(now.mechanism, flange, now.s)
    f = now.driven[k] + source.elastic(s)
    if kind is not ControllerVariables:
        return kind(s, f)
    assert signal is not None
    return kind(s, f, now.drive[signal])


def _friction_at(now: Snapshot, c: int, kind: Any) -> Any:
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
    # Of two laws, the one of the direction of motion, or of the direction about to slide.
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
