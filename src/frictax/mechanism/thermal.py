"""Thermal parts of a mechanism: nodes, and what conducts between them."""

import dataclasses
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from frictax.parameters import AtLeast, CheckedModule, Positive, Scalar, parameter
from frictax.pytree import pytree_dataclass

from .attachments import misfit


def _names(value) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class HeatCapacitor(CheckedModule):
    """A body of one temperature that friction and dampers heat: C*dT/dt = sum of the loss powers
    and of the heat that is conducted here.

    A law that depends on temperature takes that of the node that its element heats. What a hit at a
    stop takes heats nothing.

    **Arguments:** `sources`: the name of the friction element or damper that heats it, or several
    names; `C` > 0 [J/K]; `T` > 0 [K], its temperature at the start.

    **Raises:** `ValueError` for a value outside its domain; in a `Mechanism`, for a source that
    loses no power or heats another node too.

    **Source:** Modelica Standard Library 4.1.0, Thermal.HeatTransfer, where each element has a heat
    port.

    A brake that stops 2 kg from 3 m/s has 9 J to lose:

    >>> import frictax as fx, jax.numpy as jnp
    >>> machine = fx.Mechanism(
    ...     mass=fx.Mass(m=2.0, v=3.0),
    ...     brake=fx.Brake("mass", fn_max=10.0),
    ...     disc=fx.HeatCapacitor("brake", C=0.5, T=300.0),
    ... )
    >>> round(float(fx.simulate(machine, jnp.array([0.0, 2.0]))["disc"].T[-1]), 6)
    318.0
    """

    sources: tuple[str, ...] = eqx.field(static=True, converter=_names)
    C: Scalar = parameter(Positive(), "J/K")
    T: Scalar = parameter(Positive(), "K", fit=False, default=293.15)


class ThermalConductor(CheckedModule):
    """Heat flows from a to b with the power G*(T_a - T_b).

    **Arguments:** `a`, `b`: names of two `HeatCapacitor`; without `b`, heat flows to surroundings
    of the temperature `T_ambient` > 0 [K]; `G` >= 0 [W/K].

    **Raises:** `ValueError` for a value outside its domain; in a `Mechanism`, for names of
    something else.

    **Source:** Modelica Standard Library 4.1.0, Thermal.HeatTransfer.

    >>> import frictax as fx
    >>> float(fx.ThermalConductor("disc", G=4.0).G)
    4.0
    """

    a: str = eqx.field(static=True)
    b: str | None = eqx.field(static=True, default=None)
    G: Scalar = parameter(AtLeast(0.0), "W/K", default=1.0)
    T_ambient: Scalar = parameter(Positive(), "K", fit=False, default=293.15)


@dataclasses.dataclass(frozen=True)
class Node:
    """A thermal node: its part, and the numbers of the contacts, compliants and contacts with a
    bristle that heat it.
    """

    part: int
    contacts: tuple[int, ...]
    compliants: tuple[int, ...]
    bristles: tuple[int, ...] = ()


def thermal_nodes(
    mechanism: Any, lay: Any
) -> tuple[tuple[Node, ...], tuple[tuple[int, int, int | None], ...]]:
    """The thermal nodes of a mechanism of layout `lay`, with what heats them, and what conducts
    between them.
    """
    names, parts = mechanism.names, mechanism.parts
    contacts = {names[contact.part]: c for c, contact in enumerate(lay.contacts)}
    compliants = {names[part]: k for k, (part, _, _) in enumerate(lay.compliants)}
    bristles = {names[contact.part]: b for b, contact in enumerate(lay.bristles)}
    everything = contacts | compliants | bristles
    nodes, heats = [], {}
    for i, part in enumerate(parts):
        if not isinstance(part, HeatCapacitor):
            continue
        for source in part.sources:
            if source not in everything:
                raise misfit(
                    f"{names[i]!r} must be heated by friction elements or dampers, got"
                    f" {source!r}. Here are: {', '.join(everything) or 'none'}."
                )
            if source in heats:
                raise misfit(
                    f"{source!r} must heat one node, got {heats[source]!r} and"
                    f" {names[i]!r}. Drop one of them."
                )
            heats[source] = names[i]
        mine = [
            tuple(known[s] for s in part.sources if s in known)
            for known in (contacts, compliants, bristles)
        ]
        nodes.append(Node(i, *mine))
    numbers = {names[node.part]: k for k, node in enumerate(nodes)}
    conductors = []
    for i, part in enumerate(parts):
        if isinstance(part, ThermalConductor):
            for end in (part.a, part.b):
                if end is not None and end not in numbers:
                    known = ", ".join(numbers) or "none"
                    raise misfit(
                        f"{names[i]!r} must conduct between heat capacitors, got"
                        f" {end!r}. Here are: {known}."
                    )
            conductors.append((i, numbers[part.a], None if part.b is None else numbers[part.b]))
    return tuple(nodes), tuple(conductors)


@pytree_dataclass
class HeatCapacitorVariables:
    """Temperature `T` [K]."""

    T: Float[Array, "..."]


@pytree_dataclass
class ThermalConductorVariables:
    """The heat that flows from a to b, `Q_flow` [W]."""

    Q_flow: Float[Array, "..."]
