"""A part's variables at one moment, under their Modelica names."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from frictax.contacts import AbstractContact, Clutch, OneWayClutch
from frictax.contacts.contact import f0
from frictax.contacts.mode import FREE, STUCK

from . import dynamics
from .bodies import AbstractBody, Fixed
from .energy import conducted, loss
from .forces import AbstractMotion, AbstractSource, PositionController, Torque
from .gears import AbstractGear, IdealGear
from .lossy_gear import LossyGear
from .snapshot import Snapshot
from .state_forces import QuadraticSpeedDependentTorque
from .thermal import HeatCapacitor, ThermalConductor

# Over whatever a run is asked at: scalars at one moment, a row over time.
Values = Float[Array, "..."]
Modes = Int[Array, "..."]
Flags = Bool[Array, "..."]


class MassVariables(eqx.Module):
    """Position of the centre `s` [m], velocity `v` [m/s], acceleration `a` [m/s2]."""

    s: Values
    v: Values
    a: Values


class FrictionVariables(eqx.Module):
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


class CompliantVariables(eqx.Module):
    """Extension `s_rel` [m], its rate `v_rel` [m/s], force `f` [N], power lost in a damper
    `lossPower` [W].
    """

    s_rel: Values
    v_rel: Values
    f: Values
    lossPower: Values


class ForceVariables(eqx.Module):
    """Position of the flange `s` [m] and force `f` [N]."""

    s: Values
    f: Values


class ControllerVariables(ForceVariables):
    """Position of the flange `s` [m], force `f` [N], position asked for `s_ref` [m]."""

    s_ref: Values


class InertiaVariables(eqx.Module):
    """Angle `phi` [rad], angular velocity `w` [rad/s], angular acceleration `a` [rad/s2]."""

    phi: Values
    w: Values
    a: Values


class RotationalFrictionVariables(eqx.Module):
    """The variables of a friction element on a body that turns: as `FrictionVariables`, with `phi`
    [rad], `w` [rad/s], `tau` [N.m].
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


class ClutchVariables(eqx.Module):
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


class OneWayClutchVariables(ClutchVariables):
    """The variables of a freewheel: those of a clutch, with sa = a_rel + tau0 while it slides, and
    `stuck`: whether it is locked.
    """

    stuck: Flags


class RotationalCompliantVariables(eqx.Module):
    """Twist `phi_rel` [rad], its rate `w_rel` [rad/s], torque `tau` [N.m], power lost in a damper
    `lossPower` [W].
    """

    phi_rel: Values
    w_rel: Values
    tau: Values
    lossPower: Values


class TorqueVariables(eqx.Module):
    """Angle of the body `phi` [rad] and torque `tau` [N.m]."""

    phi: Values
    tau: Values


class IdealGearVariables(eqx.Module):
    """Angles of the two bodies [rad]."""

    phi_a: Values
    phi_b: Values


class IdealPlanetaryVariables(eqx.Module):
    """Angles of the three bodies [rad]."""

    phi_sun: Values
    phi_ring: Values
    phi_carrier: Values


class LossyGearVariables(eqx.Module):
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


class FixedVariables(eqx.Module):
    """Position `s` [m]."""

    s: Values


class HeatCapacitorVariables(eqx.Module):
    """Temperature `T` [K]."""

    T: Values


class ThermalConductorVariables(eqx.Module):
    """The heat that flows from a to b, `Q_flow` [W]."""

    Q_flow: Values


def variables_at(now: Snapshot, part: int) -> Any:
    """The variables of part number `part`, all scalars."""
    lay, element = now.layout, now.mechanism.parts[part]
    if isinstance(element, Fixed):
        return FixedVariables(element.s0)
    if isinstance(element, AbstractBody):
        i = lay.bodies.index(part)
        kind = InertiaVariables if element.rotational else MassVariables
        return kind(now.s[i], now.v[i], now.accelerations[i])
    if isinstance(element, AbstractSource):
        return _source_at(now, next(k for k, (i, _, _) in enumerate(lay.forces) if i == part))
    if isinstance(element, AbstractContact):
        return _friction_at(
            now, next(c for c, contact in enumerate(lay.contacts) if contact.part == part)
        )
    if isinstance(element, AbstractGear):
        angles = [now.s[b] for gear in lay.gears if gear.part == part for b in gear.bodies]
        return (
            IdealGearVariables(*angles)
            if isinstance(element, IdealGear)
            else IdealPlanetaryVariables(*angles)
        )
    if isinstance(element, AbstractMotion):
        return FixedVariables(next(now.s[body] for i, body, _ in lay.motions if i == part))
    if isinstance(element, HeatCapacitor):
        return HeatCapacitorVariables(
            next(now.temperature[k] for k, node in enumerate(lay.nodes) if node.part == part)
        )
    if isinstance(element, ThermalConductor):
        return ThermalConductorVariables(
            next(conducted(now, *conductor) for conductor in lay.conductors if conductor[0] == part)
        )
    k = next(k for k, (i, _, _) in enumerate(lay.compliants) if i == part)
    (s_rel, v_rel), (elastic, viscous) = dynamics.stretch(now, k), dynamics.forces(now, k)
    kind = RotationalCompliantVariables if element.rotational else CompliantVariables
    return kind(s_rel, v_rel, elastic + viscous, viscous * v_rel)


def _source_at(now: Snapshot, k: int) -> Any:
    part, flange, signal = now.layout.forces[k]
    source, s = now.mechanism.parts[part], dynamics.position(now.mechanism, flange, now.s)
    f = now.driven[k] + source.elastic(s)
    if isinstance(source, Torque | QuadraticSpeedDependentTorque):
        return TorqueVariables(s, f)
    if signal is None or not isinstance(source, PositionController):
        return ForceVariables(s, f)
    return ControllerVariables(s, f, now.drive[signal])


def _friction_at(now: Snapshot, c: int) -> Any:
    contact, mode = now.layout.contacts[c], now.mode[c]
    part, v, a, f = now.part(c), now.v_rel[c], now.a_rel[c], now.friction[c]
    locked, free = mode == STUCK, mode == FREE
    if isinstance(part, LossyGear):
        (bodies,) = (gear.bodies for gear in now.layout.gears if gear.part == contact.part)
        phi_a, phi_b = (now.s[b] for b in bodies)
        sa = jnp.where(locked, f, a + f)
        return LossyGearVariables(
            phi_a, phi_b, v, a, now.transmitted_torque(c), f, mode, sa, locked, loss(now, c)
        )
    # Of two laws, the one of the direction of motion, or of the direction about to slide.
    forward = jnp.where(locked, f >= 0, now.direction[c] >= 0) | part.blocks_backward
    scale = now.scale[c]
    low = jnp.where(forward, f0(part, 1, scale), f0(part, -1, scale))
    most = jnp.where(forward, part.holds(1, scale), part.holds(-1, scale))
    one_way = isinstance(part, OneWayClutch)
    sa = jnp.where(locked, f, a + (low if one_way else now.direction[c] * most))
    s = dynamics.contact_position(now, contact)
    shared = (s, v, a, f, mode, sa, locked, free, low, most, v, a, loss(now, c), now.normal[c])
    if one_way:
        return OneWayClutchVariables(*shared, locked)
    if isinstance(part, Clutch):
        return ClutchVariables(*shared)
    body, _ = contact.ends[0]
    if now.mechanism.parts[now.layout.bodies[body]].rotational:
        return RotationalFrictionVariables(*shared)
    return FrictionVariables(*shared, None if contact.wall is None else now.mode[contact.wall])
