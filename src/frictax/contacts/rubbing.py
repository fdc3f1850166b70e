"""Contacts that may have a bristle, and the values of a contact's law that a bristle needs."""

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frictax.bristles import AbstractBristle
from frictax.bristles.bristle import absolute_speed
from frictax.laws import AbstractLaw
from frictax.parameters import (
    AtLeast,
    Declaration,
    Integer,
    Number,
    check,
    field_children,
    is_traced,
)

from .contact import AbstractByLaws


@dataclasses.dataclass(frozen=True)
class _PeakOfBristle(AtLeast):
    def suggestion(self) -> str:
        return f"{super().suggestion()} and without a bristle"


# Lower bound of the force limit g, as a fraction of the law at rest. Bristles divide by g.
_LEAST_LIMIT = 1e-6
_PEAK_HELD = Declaration(_PeakOfBristle(1.0), "1", fit=False)


class AbstractRubbing(AbstractByLaws):
    """A contact with the field `bristle`, which may be None."""

    def parameter_children(self: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield name, value and declaration of each field. With a bristle, `peak` must be 1, so a
        fit of the whole contact must not change `peak`.
        """
        for name, child, declaration in field_children(self):
            held = name == "peak" and self.bristle is not None
            yield name, child, _PEAK_HELD if held else declaration

    def __check_init__(self: Any) -> None:
        if not isinstance(self.bristle, AbstractBristle):
            return
        check(self)
        bristle: Any = self.bristle
        if (speed := gives_energy_from(self)) is not None:
            # A class without `rotational`, such as `Brake`, acts on turning or sliding bodies.
            turns = getattr(self, "rotational", None)
            unit = "" if turns is None else " rad/s" if turns else " m/s"
            warnings.warn(
                f"`{type(self).__name__}.bristle`: sigma_1 = {float(bristle.sigma_1):g} gives"
                f" energy from {speed:.3g}{unit} on, where a bristle that is still bent meets the"
                " speed at which the law is low. Leave out v_d, or make it or sigma_1 less.",
                stacklevel=2,
            )

    def check_rules(self: Any) -> None:
        super().check_rules()
        kind, bristle = type(self).__name__, self.bristle
        if bristle is None:
            return
        if not isinstance(bristle, AbstractBristle):
            raise ValueError(
                f"`{kind}.bristle` must be a bristle, got {bristle!r}. Write LuGre(sigma_0=1e5)."
            )
        peak = self.peak
        if not is_traced(peak) and float(peak) != 1.0:
            raise ValueError(
                f"`{kind}.peak` must be 1 with a bristle, got {float(peak):g}: the bristle breaks"
                " away at the law's value at rest. Write it as F_Stribeck."
            )
        for direction in (1, -1):
            law = self.law(direction)
            f0 = law.f0
            if is_traced(f0):
                continue
            if not float(f0) > 0:
                raise ValueError(
                    f"`{kind}` must have a law > 0 at rest with a bristle, got {float(f0):g}. Leave"
                    " out the bristle, or write a small F_Coulomb."
                )
            if not any(map(is_traced, jax.tree.leaves(law))):
                speeds = np.asarray(law.breaks)
                speeds = speeds[np.isfinite(speeds)]
                low = speeds[np.asarray(law(jnp.asarray(speeds))) <= 0] if speeds.size else speeds
                if low.size:
                    raise ValueError(
                        f"`{kind}` must have a law > 0 at all speeds with a bristle, got one that"
                        f" is 0 at a speed of {low[0]:g}. Leave out the bristle, add a row, or"
                        " write Table(rows, extrapolation='hold')."
                    )
            start, share = bristle.start(), getattr(bristle, "share", 1.0)
            if any(map(is_traced, (start, share))):
                continue
            beyond = direction * np.asarray(start) - float(f0) * np.asarray(share)
            if np.any(beyond > float(f0) * 1e-9):
                what = "sigma_0" if bristle.elements == 0 else "k, times the share of each element"
                raise ValueError(
                    f"`{kind}.bristle.z` must lie within breakaway, {float(f0):g} over {what}, got"
                    f" {getattr(bristle, 'z', None)}, which holds {np.asarray(start)}. Start less"
                    " bent."
                )


def bristle_of(contact: object) -> AbstractBristle | None:
    """Return the bristle of a contact; None for a contact without bristle."""
    return getattr(contact, "bristle", None)


def no_bristle(machine: object, name: str, contact: object) -> None:
    """Raise `ValueError` if the friction in the field `name` of a user's machine has a bristle."""
    if bristle_of(contact) is not None:
        raise ValueError(
            f"`{type(machine).__name__}.{name}` must not have a bristle, got"
            f" {bristle_of(contact)!r}. Build the machine as a `Mechanism` of parts, or leave the"
            " bristle out."
        )


def bristle_law(contact: Any, v: Number) -> tuple[Number, Number | float, Number]:
    """Return the bristle's force limit g > 0 at velocity v, the viscous slope of the law, and the
    smallest g over all speeds.
    """
    parts = [_parts(law, absolute_speed(v)) for law in _laws(contact)]
    return tuple(_by_direction(v, list(part)) for part in zip(*parts, strict=True))


def element_law(contact: Any, v: Number, s: Integer) -> tuple[Number, Number | float, Number]:
    """Return the results of `bristle_law` for a bristle whose elements slip in direction s (+1 or
    -1), or whose elements all stick (s = 0).
    """
    laws = _laws(contact)
    parts = [_parts(law, s * v) for law in laws]
    g, viscous, least = (list(part) for part in zip(*parts, strict=True))
    return _by_direction(s, g), _by_direction(v, viscous), _by_direction(s, least)


def element_limits(contact: Any, v: Number) -> tuple[Number, Number]:
    """Return the force limits of a bristle for forward and for backward motion at velocity `v`. For
    motion opposite to `v`, the limit is the law at rest.
    """
    forward, backward = (
        _parts(contact.law(m), jnp.where(m * v > 0, m * v, 0.0))[0] for m in (1, -1)
    )
    return forward, backward


def bristle_damping(contact: Any, v: Number) -> Number:
    """Return the damping sigma_1 [N.s/m] of a contact's bristle at velocity v."""
    values = [contact.bristle.damping(absolute_speed(v), law) for law in _laws(contact)]
    return _by_direction(v, values)


def _laws(contact: Any) -> list[AbstractLaw]:
    """Return a list of the forward law, and of the backward law if it is another law."""
    forward, backward = contact.law(1), contact.law(-1)
    return [forward] if backward is forward else [forward, backward]


def _parts(law: AbstractLaw, speed: Number) -> tuple[Number, Number | float, Number]:
    most = law.f0
    least = most if law.stribeck_dip is None else law.stribeck_dip[0]
    # The equation of a bristle divides by the limit g. The checks ensure a positive limit only for
    # known values, not for traced values.
    floor = _LEAST_LIMIT * most
    g = law(speed) - law.viscous_slope * speed
    g = jnp.where(g < floor, floor, g)
    return g, law.viscous_slope, jnp.where(g < least, g, least)


def _by_direction(v: Number | Integer, values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else jnp.where(v < 0, values[1], values[0])


def gives_energy_from(contact: Any) -> float | None:
    """Return the lowest speed at which the bristle of a contact may generate energy. Return None if
    the bristle never generates energy, or if JAX traces the values of the contact.

    Energy is generated if the dissipated power f*v - dW/dt is negative, where W is the stored
    energy. The power is computed at the deflection that gives the smallest power; this deflection
    is in the direction of motion.
    """
    bristle = contact.bristle
    known = jax.tree.leaves((bristle, contact.law(1), contact.law(-1)))
    if any(map(is_traced, known)) or not getattr(bristle, "sigma_1", None):
        return None
    with jax.ensure_compile_time_eval():
        found = [_first_loss(contact, m, np.geomspace(1e-9, 1e3, 1201)) for m in (1, -1)]
        finer = [
            _first_loss(contact, m, np.geomspace(v / 1.03, v, 301))
            for m, v in zip((1, -1), found, strict=True)
            if v is not None
        ]
    return min((v for v in finer if v is not None), default=None)


def _first_loss(contact: Any, m: int, speeds: np.ndarray) -> float | None:
    law, v = contact.law(m), jnp.asarray(speeds)
    viscous, most = law.viscous_slope, law.f0
    g = law(v) - viscous * v
    sigma_1 = contact.bristle.damping(v, law)
    bent = jnp.clip(0.5 * sigma_1 * v, 0.0, most)
    out = (viscous + sigma_1 * (1 - bent / g)) * v + bent**2 / g
    wrong = np.flatnonzero(np.asarray(out < 0))
    return float(speeds[wrong[0]]) if wrong.size else None
