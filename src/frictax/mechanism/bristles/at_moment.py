"""What contacts with a bristle do at one moment."""

import dataclasses
from functools import cached_property
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from frictax.contacts.rubbing import bristle_damping, bristle_law, element_law
from frictax.laws import AbstractLaw

from ..layout import Contact
from ..snapshot import Snapshot


class BristlesAtMoment(Snapshot):
    """The part of a snapshot that is of contacts with a bristle."""

    y: Array
    numbers: Array
    imposed: Any

    def relative_velocity(self, contact: Contact) -> Array:
        """The velocity of a contact [m/s]."""
        raise NotImplementedError

    def press(self, contact: Contact, part: Any, v: Array) -> Array:
        """What presses a contact on, over fn_max."""
        raise NotImplementedError

    @cached_property
    def bristle_elements(self) -> list[Any]:
        """These contacts, their laws at their temperatures."""
        found = [self.mechanism.parts[contact.part] for contact in self.layout.bristles]
        for T, node in zip(self.temperature, self.layout.nodes, strict=True):
            for b in node.bristles:
                found[b] = at_temperature(found[b], T)
        return found

    @cached_property
    def bristle_force(self) -> list[Array]:
        """What each bristle holds [N], which is a state: of elements what each does, (n,)."""
        found, first = [], self.layout.first_bristle
        for n in self.layout.elements:
            found.append(self.y[first : first + n] if n else self.y[first])
            first += max(n, 1)
        return found

    @cached_property
    def element_modes(self) -> list[Any]:
        """In which direction each element of a bristle slips (n,), 0 for one that sticks; None of a
        bristle without elements.
        """
        found, first = [], self.layout.first_element
        for n in self.layout.elements:
            found.append(self.numbers[first : first + n] if n else None)
            first += n
        return found

    @cached_property
    def element_slip(self) -> list[Any]:
        """In which direction those slip that do, 0 where none does."""
        return [None if m is None else jnp.sign(jnp.sum(m)) for m in self.element_modes]

    @cached_property
    def bristle_press(self) -> list[Any]:
        """Whether each is pressed on: 0, 1, or -1 from the other side; None of one that always
        is.
        """
        found, place = [], self.layout.first_press
        for contact in self.layout.bristles:
            found.append(self.numbers[place] if contact.is_pressed else None)
            place += contact.is_pressed
        return found

    @cached_property
    def bristle_normal(self) -> list[Any]:
        """What presses each on [N]; None of one that always is."""
        return [
            part.normal(jnp.where(side < 0, -1.0, 1.0) * self.press(contact, part, v))
            if contact.is_pressed
            else None
            for contact, part, v, side in zip(
                self.layout.bristles,
                self.bristle_elements,
                self.bristle_v,
                self.bristle_press,
                strict=True,
            )
        ]

    @cached_property
    def bristle_scale(self) -> list[Any]:
        """The factor on all that it says, of the normal force; None of one that always is pressed
        on.
        """
        at = zip(self.bristle_elements, self.bristle_normal, self.bristle_press, strict=True)
        return [
            None if normal is None else jnp.where(side == 0, 0.0, part.scale(normal))
            for part, normal, side in at
        ]

    @cached_property
    def bristle_v(self) -> list[Array]:
        """Their velocities [m/s]."""
        return [self.relative_velocity(contact) for contact in self.layout.bristles]

    @cached_property
    def _bristle_laws(self) -> list[Any]:
        """What bends each, the viscous slope beside and the least that may bend it."""
        at = zip(self.bristle_elements, self.bristle_v, self.element_slip, strict=True)
        return [bristle_law(part, v) if s is None else element_law(part, v, s) for part, v, s in at]

    @cached_property
    def bristle_limits(self) -> list[Array]:
        """What each is bent by at most [N] at its velocity; of elements, those that slip."""
        return [g for g, _, _ in self._bristle_laws]

    @cached_property
    def bristle_rate(self) -> list[Array]:
        """The rates of the forces in them [N/s]."""
        at = zip(
            self.bristle_elements,
            self.bristle_v,
            self.bristle_force,
            self._bristle_laws,
            self.element_modes,
            strict=True,
        )
        rates = [
            part.bristle.rate(v, f, g, least)
            if modes is None
            else part.bristle.rates(v, f, g, modes)
            for part, v, f, (g, _, least), modes in at
        ]
        return [
            rate if press is None else jnp.where(press == 0, 0.0, rate)
            for rate, press in zip(rates, self.bristle_press, strict=True)
        ]

    @cached_property
    def element_force(self) -> list[Any]:
        """What each element bears [N], (n,); None of a bristle without elements."""
        return [
            None
            if modes is None
            else self.bristle_elements[b].bristle.held(
                self.bristle_force[b], self.bristle_limits[b], modes
            )
            for b, modes in enumerate(self.element_modes)
        ]

    @cached_property
    def bristle_friction(self) -> list[Array]:
        """Their friction [N], positive against positive velocity."""
        if self.imposed is not None:
            return self.imposed[0]
        found = []
        for part, v, f, rate, (_, viscous, _), borne in zip(
            self.bristle_elements,
            self.bristle_v,
            self.bristle_force,
            self.bristle_rate,
            self._bristle_laws,
            self.element_force,
            strict=True,
        ):
            if borne is not None:
                found.append(jnp.sum(borne) + viscous * v)
                continue
            damping = bristle_damping(part, v)
            found.append(f + damping * rate / part.bristle.sigma_0 + viscous * v)
        return _scaled(found, self.bristle_scale)

    @cached_property
    def bristle_stores(self) -> list[Array]:
        """The power [W] that is stored in them."""
        if self.imposed is not None:
            return self.imposed[1]
        at = zip(self.bristle_elements, self.bristle_force, self.bristle_rate, strict=True)
        found = [
            f * rate / part.bristle.sigma_0
            if part.bristle.elements == 0
            else jnp.sum(f * rate / part.bristle.k)
            for part, f, rate in at
        ]
        return _scaled(found, self.bristle_scale)

    @cached_property
    def bristle_energy(self) -> list[Array]:
        """What is stored in each [J]."""
        at = zip(self.bristle_elements, self.bristle_force, strict=True)
        return _scaled([part.bristle.energy(f) for part, f in at], self.bristle_scale)


def _scaled(values: list[Array], scales: list[Any]) -> list[Array]:
    """Each times its scale, None for 1."""
    both = zip(values, scales, strict=True)
    return [x if scale is None else scale * x for x, scale in both]


def at_temperature(part, T: Array) -> Any:
    """A friction element with its laws at the temperature `T` [K]."""
    names = [field.name for field in dataclasses.fields(part)]
    laws = [name for name in names if isinstance(getattr(part, name), AbstractLaw)]
    if not laws:
        return part
    new = [getattr(part, name).at_temperature(T) for name in laws]
    return eqx.tree_at(lambda p: [getattr(p, name) for name in laws], part, new)
