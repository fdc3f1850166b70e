"""Friction as robot simulators take it: one dry level and one viscous coefficient for
each joint.
"""

import dataclasses
from typing import Any
from xml.sax.saxutils import quoteattr

import jax.numpy as jnp
import numpy as np

from frictax.bristles import Dahl, ElastoPlastic, LuGre
from frictax.bristles.bristle import inverse_fading_speed
from frictax.contacts import MassWithStopAndFriction
from frictax.contacts.rubbing import bristle_of
from frictax.fitting import FitResult, SteadyFriction
from frictax.fitting.problem.steady import as_steady
from frictax.laws import Coulomb, Stribeck
from frictax.mechanism import (
    LinearPositionDependentForce,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
)
from frictax.parameters import UnknownName

# What resists a joint too, and is no friction.
_RESIST = (
    LinearPositionDependentForce,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
)

_NO_BRISTLE = "Lost: the bristle. Motion before sliding is not modelled."


@dataclasses.dataclass(frozen=True)
class JointFriction:
    """`friction` [N or N.m] and `damping` [N.s/m or N.m.s/rad] nearest to a law; `lost`: what they
    cannot say, a sentence each.

    `lugre`, of a contact with a bristle: its sigma_0, sigma_1, F_C, F_S and v_S, and the viscous
    coefficient beside, as MuJoCo's ``dcmotor`` takes them.
    """

    friction: float
    damping: float
    unit: str
    v_max: float
    lost: tuple[str, ...]
    lugre: tuple[float, ...] | None = None

    def mujoco(self, joint: str = "joint") -> str:
        """MuJoCo's joint attributes; a `frictionloss` there resists motion and holds at rest,
        softly. Of a contact with a bristle a motor without torque, of MuJoCo 3.8 or later, to be
        written inside ``<actuator>``.
        """
        if self.lugre is not None:
            *values, damping = map(_number, self.lugre)
            bristle = f'lugre="{" ".join(values)}" damping="{damping}"'
            motor = 'motorconst="1e-9 1e-9" resistance="1"'
            said = self._comment(_NO_BRISTLE)
            return f"{said}\n<dcmotor joint={quoteattr(joint)} {motor} {bristle}/>"
        values = f'frictionloss="{_number(self.friction)}" damping="{_number(self.damping)}"'
        return f"{self._comment()}\n<joint name={quoteattr(joint)} {values}/>"

    def urdf(self) -> str:
        """URDF's ``<dynamics>`` element, to be written inside a ``<joint>``."""
        return (
            f'{self._comment()}\n<dynamics friction="{_number(self.friction)}"'
            f' damping="{_number(self.damping)}"/>'
        )

    def _comment(self, but: str = "") -> str:
        speed = "rad/s" if self.unit == "N.m" else "m/s"
        units = f"friction in {self.unit}, damping in {self.unit} per {speed}"
        reach = f"found by frictax up to {self.v_max:.4g} {speed}."
        said = " ".join((f"{units}, {reach}", *(x for x in self.lost if x != but)))
        return f"<!-- {said.replace('--', '- -')} -->"


def joint_friction(
    found: FitResult, contact: str | None = None, v_max: float | None = None
) -> JointFriction:
    """The level and the slope, both >= 0, nearest to a fitted friction over speeds from 0 to
    `v_max` (least squares), and what is lost.

    **Arguments:** `found`: the fit of a sweep, or of a machine with the name of its `contact`;
    `v_max` [m/s or rad/s]: the highest speed of the sweep unless given; for a machine it must be.

    **Raises:** `ValueError` for a contact that a normal force presses on, or a machine without
    `v_max`; `KeyError` for an unknown contact.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
    >>> print(joint_friction(fx.fit(fx.Coulomb, sweep)).urdf())
    <!-- friction in N, damping in N per m/s, found by frictax up to 4 m/s. -->
    <dynamics friction="6.1" damping="0.96"/>
    """
    friction, rotational, v_max, beside, lugre = _steady(found, contact, v_max)
    unit = "N.m" if rotational else "N"
    v = np.linspace(0.0, v_max, 401)[1:]
    ways = [friction.f_pos] if friction.f_neg is None else [friction.f_pos, friction.f_neg]
    curves = [np.asarray(law(jnp.asarray(v))) for law in ways]
    level, slope = _nearest(np.tile(v, len(ways)), np.concatenate(curves))
    lost = []
    if len(ways) == 2:
        apart = float(np.max(np.abs(curves[0] - curves[1])))
        lost.append(
            f"Lost: the two directions differ by up to {apart:.3g} {unit}; these are between them."
        )
    bent = float(np.max(np.abs(curves[0] - level - slope * v)))
    if len(ways) == 1 and bent > 1e-3 * float(np.max(np.abs(curves[0]))):
        lost.append(
            f"Lost: the curve bends (Stribeck); this line is off by up to {bent:.3g} {unit}."
        )
    if float(friction.peak) > 1.0:
        lost.append(
            f"Lost: breakaway at {float(friction.peak):.4g} times the sliding friction at rest."
        )
    return JointFriction(level, slope, unit, v_max, (*lost, *beside), lugre)


def to_mujoco(
    found: FitResult, name: str | None = None, *, v_max: float | None = None, joint: str = "joint"
) -> str:
    """A MuJoCo joint with the friction of a fit as far as it can be said there: see
    `joint_friction`.

    `name`: of a machine's fit its contact; of a sweep's the joint. `joint` of a machine's.
    """
    contact, joint = (None, name or joint) if found.of_sweep else (name, joint)
    return joint_friction(found, contact, v_max).mujoco(joint)


def to_urdf(found: FitResult, contact: str | None = None, *, v_max: float | None = None) -> str:
    """The same as URDF's ``<dynamics>``."""
    return joint_friction(found, contact, v_max).urdf()


def _nearest(v: np.ndarray, f: np.ndarray) -> tuple[float, float]:
    """Level and slope >= 0 of the nearest line."""
    from scipy.optimize import nnls

    scale = float(np.max(v))
    (level, slope), _ = nnls(np.column_stack([np.ones_like(v), v / scale]), f)
    return float(level), float(slope / scale)


def _steady(
    found: FitResult, contact: str | None, v_max: float | None
) -> tuple[Any, bool, float, tuple[str, ...], tuple[float, ...] | None]:
    """Laws and peak, whether it turns, the highest speed, sentences on what is lost beside, and
    what `JointFriction.lugre` says.
    """
    if v_max is not None and not (np.isfinite(v_max) and v_max > 0):
        raise ValueError(f"`v_max` must be a speed > 0, got {v_max!r}.")
    if found.of_sweep:
        friction, sweep = as_steady(found.model), found.sweep
        offset = 0.0 if friction.offset is None else float(friction.offset)
        top = np.max(np.abs(sweep.velocity)) if v_max is None else v_max
        unit = "N.m" if sweep.rotational else "N"
        said = f"Lost: a constant force of {offset:.3g} {unit} beside the friction."
        return friction, sweep.rotational, float(top), (said,) if offset else (), None
    machine: Any = found.model
    named = tuple(machine.named_parts()) if hasattr(machine, "named_parts") else ()
    parts = {name: part for name, part in named if hasattr(part, "breakaway")}
    if contact is None and len(parts) == 1:
        (contact,) = parts
    if contact not in parts:
        raise UnknownName(
            f"There is no contact {contact!r} in this machine. It has:"
            f" {', '.join(parts) or 'none'}."
        )
    part = parts[contact]
    if hasattr(part, "f_normalized"):
        raise ValueError(
            f"{contact!r} is pressed on by a normal force, which a robot's joint does not know."
            " Name another contact."
        )
    if v_max is None:
        raise ValueError(
            "A machine's friction is asked for up to a speed: give `v_max`, the highest of the"
            " motion [m/s or rad/s]."
        )
    forward, backward = part.law(1), part.law(-1)
    law = SteadyFriction(forward, None if backward is forward else backward, part.breakaway(), None)
    ends = (contact,) if isinstance(part, MassWithStopAndFriction) else part.between()
    bodies = {end.partition(".")[0] for end in ends if end is not None}
    beside = tuple(
        f"Lost: {name}, a {type(other).__name__} on the same body."
        for name, other in named
        if isinstance(other, _RESIST) and other.body.partition(".")[0] in bodies
    )
    lugre = None
    if bristle_of(part) is not None:
        lugre, more = _lugre(str(contact), part)
        beside = (*beside, *more)
    return law, bool(getattr(type(part), "rotational", False)), float(v_max), beside, lugre


def _lugre(contact: str, part: Any) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """What `JointFriction.lugre` says of a contact, and sentences on what that loses."""
    bristle, law, lost = part.bristle, part.law(1), [_NO_BRISTLE]
    if type(bristle) not in (LuGre, Dahl, ElastoPlastic):
        raise ValueError(
            f"{contact!r} has a bristle, a {type(bristle).__name__}, which MuJoCo has no words for."
            " Fit the contact with a `LuGre`, or without a bristle."
        )
    if isinstance(bristle, ElastoPlastic):
        lost.append("Lost: below z_ba the contact does not creep, and here it does.")
    if (exponent := float(getattr(bristle, "exponent", 1.0))) != 1.0:
        lost.append(f"Lost: the exponent {exponent:.4g} of the bristle, 1 here.")
    if part.law(-1) is not law:
        lost.append("Lost: the law of motion backward; this is that of motion forward.")
    sigma_1, v_d = float(getattr(bristle, "sigma_1", 0.0)), getattr(bristle, "v_d", None)
    fades = float(inverse_fading_speed(jnp.asarray(sigma_1), v_d, law))
    if sigma_1 and fades:
        lost.append(
            f"Lost: sigma_1 fades over a speed of {1 / fades:.3g}; here it is constant, and gives"
            " energy at high speeds."
        )
    dip = law.stribeck_dip
    least, inverse = (float(law.f0), 1.0) if dip is None else map(float, dip)
    if isinstance(law, Stribeck) and float(law.F_Stribeck) and float(law.exponent) != 2.0:
        lost.append(f"Lost: the exponent {float(law.exponent):.4g} of the Stribeck law, 2 here.")
    elif not isinstance(law, Stribeck | Coulomb):
        lost.append(f"Lost: the curve of a {type(law).__name__}; this is constant.")
    speed = 1 / inverse if inverse else 1.0
    values = float(bristle.sigma_0), sigma_1, least, float(law.f0), speed, float(law.viscous_slope)
    return values, tuple(lost)


def _number(x: float) -> str:
    return repr(float(f"{x:.6g}"))
