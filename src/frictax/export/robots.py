"""Write the Coulomb and viscous friction of a joint for robot simulators (MuJoCo, URDF)."""

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
from frictax.fitting.options import refuse
from frictax.fitting.problem.steady import as_steady
from frictax.laws import Coulomb, Stribeck
from frictax.mechanism import (
    Fixed,
    LinearPositionDependentForce,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
)
from frictax.parameters import UnknownName

from .fitted_machine import machine_of_parts

# Parts that resist the motion of a joint but are not friction.
_RESIST = (
    LinearPositionDependentForce,
    PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque,
)

_NO_BRISTLE = "Lost: the bristle. Motion before sliding is not modelled."


@dataclasses.dataclass(frozen=True)
class JointFriction:
    """The Coulomb `friction` [N or N.m] and viscous `damping` [N.s/m or N.m.s/rad] that approximate
    a friction law best at speeds up to `v_max` [m/s or rad/s].

    - `lost`: a sentence on each property of the law that `friction` and `damping` cannot represent.
    - `lugre`: the arguments sigma_0, sigma_1, F_C, F_S, v_S and viscous coefficient of MuJoCo's
      ``dcmotor``, for a contact with a bristle; otherwise None.
    """

    friction: float
    damping: float
    unit: str
    v_max: float
    lost: tuple[str, ...]
    lugre: tuple[float, ...] | None = None

    def mujoco(self, joint: str = "joint") -> str:
        """Return the XML of a MuJoCo joint. With `frictionloss`, a joint at rest creeps slowly.

        For a contact with a bristle, return a motor without torque for the element ``<actuator>``,
        which needs MuJoCo 3.8 or later.
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
        """Return URDF's ``<dynamics>`` element for a ``<joint>``."""
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
    found: FitResult,
    contact: str | None = None,
    v_max: float | None = None,
    label: str | None = None,
) -> JointFriction:
    """Return the Coulomb friction and the damping, both >= 0, that approximate a friction law best.

    These two values minimise the sum of squared force errors over speeds from 0 to `v_max`. `lost`
    lists the properties of the law that this approximation does not have.

    **Arguments:** `found`: fit of a sweep or machine; `contact`: name of a machine's contact;
    `v_max` [m/s or rad/s]: by default the highest speed of the sweep, required for a machine;
    `label`: name of the record whose values are used, required if they differ by record.

    **Raises:** `ValueError` for a contact with a normal force, or a machine without `v_max` or
    `label` that are required; `KeyError` for an unknown contact or record.

    >>> import frictax as fx
    >>> sweep = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")

    >>> print(joint_friction(fx.fit(fx.Coulomb, sweep)).urdf())
    <!-- friction in N, damping in N per m/s, found by frictax up to 4 m/s. -->
    <dynamics friction="6.1" damping="0.96"/>
    """
    from scipy.optimize import nnls

    if v_max is not None and not (np.isfinite(v_max) and v_max > 0):
        raise ValueError(f"`v_max` must be a speed > 0, got {v_max!r}.")
    beside: list[str] = []  # sentences on forces that the friction law does not contain
    lugre = None
    if found.of_sweep:
        refuse({"label": label}, "the records of a machine", "a law's sweep")
        friction, sweep = as_steady(found.model), found.sweep
        v_max = float(np.max(np.abs(sweep.velocity))) if v_max is None else float(v_max)
        unit = "N.m" if sweep.rotational else "N"
        if friction.offset is not None and (offset := float(friction.offset)):
            beside = [f"Lost: a constant force of {offset:.3g} {unit} in addition to the friction."]
    else:
        name, *_ = _find_contact(found.model, contact)
        _, part, beside = _find_contact(machine_of_parts(found, label, [name]), name)
        if v_max is None:
            raise ValueError(
                "A machine's friction is asked for up to a speed: give `v_max`, the highest of the"
                " motion [m/s or rad/s]."
            )
        forward, backward, v_max = part.law(1), part.law(-1), float(v_max)
        f_neg = None if backward is forward else backward
        friction = SteadyFriction(forward, f_neg, part.breakaway(), None)
        unit = "N.m" if getattr(type(part), "rotational", False) else "N"
        if bristle_of(part) is not None:
            lugre, more = _lugre(name, part)
            beside += more
    v = np.linspace(0.0, v_max, 401)[1:]
    ways = [friction.f_pos] if friction.f_neg is None else [friction.f_pos, friction.f_neg]
    curves = [np.asarray(law(jnp.asarray(v))) for law in ways]
    columns = np.column_stack([np.ones(v.size), v / v_max])
    (level, slope), _ = nnls(np.tile(columns, (len(ways), 1)), np.concatenate(curves))
    level, slope = float(level), float(slope / v_max)
    lost = []
    bent = float(np.max(np.abs(np.stack(curves) - level - slope * v)))
    if len(ways) == 2:
        apart = float(np.max(np.abs(curves[0] - curves[1])))
        lost.append(
            f"Lost: the two directions differ by up to {apart:.3g} {unit}; one line fits both, and"
            f" is off by up to {bent:.3g} {unit}."
        )
    elif bent > 1e-3 * float(np.max(np.abs(curves))):
        lost.append(
            f"Lost: the curve bends (Stribeck); this line is off by up to {bent:.3g} {unit}."
        )
    if float(friction.peak) > 1.0:
        lost.append(
            f"Lost: breakaway at {float(friction.peak):.4g} times the sliding friction at rest."
        )
    return JointFriction(level, slope, unit, v_max, (*lost, *beside), lugre)


def to_mujoco(
    found: FitResult,
    name: str | None = None,
    *,
    v_max: float | None = None,
    joint: str = "joint",
    label: str | None = None,
) -> str:
    """Return the XML of a MuJoCo joint with the friction of a fit (see `joint_friction`).

    `name`: for a fitted machine the name of the contact, for a fitted sweep the name of the joint.
    `joint`: for a fitted machine the name of the joint. `label`: as for `joint_friction`.
    """
    contact, joint = (None, name or joint) if found.of_sweep else (name, joint)
    return joint_friction(found, contact, v_max, label).mujoco(joint)


def to_urdf(
    found: FitResult,
    contact: str | None = None,
    *,
    v_max: float | None = None,
    label: str | None = None,
) -> str:
    """Return the friction of a fit as the URDF element ``<dynamics>`` (see `joint_friction`)."""
    return joint_friction(found, contact, v_max, label).urdf()


def _find_contact(machine: Any, contact: str | None) -> tuple[str, Any, list[str]]:
    """Return a contact's name, the contact, and sentences on forces that resist its bodies.

    These forces come from parts of `_RESIST`, from other contacts, and from parts with damping.
    """
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
            f"{contact!r} has a normal force, which a joint of this format cannot have."
            " Name another contact."
        )
    bodies = _bodies(str(contact), part) - {n for n, p in named if isinstance(p, Fixed)}
    lost = [
        f"Lost: {name}, a {type(other).__name__} on the same body."
        for name, other in named
        if (name in parts or isinstance(other, _RESIST) or hasattr(other, "d"))
        and name != contact
        and bodies & _bodies(name, other)
    ]
    return str(contact), part, lost


def _bodies(name: str, part: Any) -> set[str]:
    """Return the bodies on which the part `name` acts."""
    if isinstance(part, MassWithStopAndFriction):
        return {name}
    ends = [getattr(part, end, None) for end in ("body", "a", "b")]
    ends += part.between() if hasattr(part, "between") else ()
    return {end.partition(".")[0] for end in ends if end is not None}


def _lugre(contact: str, part: Any) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return the values of `JointFriction.lugre`, and sentences on what MuJoCo lacks."""
    bristle, law, lost = part.bristle, part.law(1), [_NO_BRISTLE]
    if type(bristle) not in (LuGre, Dahl, ElastoPlastic):
        raise ValueError(
            f"{contact!r} has a bristle, a {type(bristle).__name__}, which MuJoCo has no words for."
            " Fit the contact with a `LuGre`, or without a bristle."
        )
    if isinstance(bristle, ElastoPlastic):
        lost.append("Lost: below z_ba the contact does not creep, but in MuJoCo it does.")
    if (exponent := float(getattr(bristle, "exponent", 1.0))) != 1.0:
        lost.append(f"Lost: the exponent {exponent:.4g} of the bristle; it is 1 here.")
    if part.law(-1) is not law:
        lost.append("Lost: the law for backward motion; the law for forward motion is used.")
    sigma_1, v_d = float(getattr(bristle, "sigma_1", 0.0)), getattr(bristle, "v_d", None)
    fades = float(inverse_fading_speed(jnp.asarray(sigma_1), v_d, law))
    if sigma_1 and fades:
        lost.append(
            f"Lost: sigma_1 fades over a speed of {1 / fades:.3g}; here it is constant, so the"
            " bristle adds energy at high speeds."
        )
    dip = law.stribeck_dip
    least, inverse = (float(law.f0), 1.0) if dip is None else map(float, dip)
    if isinstance(law, Stribeck) and float(law.F_Stribeck) and float(law.exponent) != 2.0:
        lost.append(f"Lost: the Stribeck exponent {float(law.exponent):.4g}; it is 2 here.")
    elif not isinstance(law, Stribeck | Coulomb):
        lost.append(f"Lost: the curve of a {type(law).__name__}; here the friction is constant.")
    speed = 1 / inverse if inverse else 1.0
    values = float(bristle.sigma_0), sigma_1, least, float(law.f0), speed, float(law.viscous_slope)
    return values, tuple(lost)


def _number(x: float) -> str:
    return repr(float(f"{x:.6g}"))
