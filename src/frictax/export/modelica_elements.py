"""The elements of a machine's Modelica text: those of the Modelica Standard Library, and frictax's
own where that has none.
"""

import functools
import re
from importlib.resources import files

_SLIDES, _TURNS = "Modelica.Mechanics.Translational", "Modelica.Mechanics.Rotational"
_HEAT, _SIGNALS = "Modelica.Thermal.HeatTransfer", "Modelica.Blocks.Sources"

# The library's name of each element that it has, by that in `elements.mo`.
_HOMES = {
    f"{_SLIDES}.Components": (
        "Mass Fixed Rod Spring Damper SpringDamper ElastoGap SupportFriction Brake"
        " MassWithStopAndFriction"
    ),
    f"{_SLIDES}.Sources": "Force Position QuadraticSpeedDependentForce",
    f"{_TURNS}.Components": (
        "Inertia BearingFriction Clutch OneWayClutch ElastoBacklash IdealGear IdealPlanetary"
        " LossyGear RotationalFixed RotationalSpring RotationalDamper RotationalSpringDamper"
        " RotationalBrake"
    ),
    f"{_TURNS}.Sources": "Torque RotationalPosition QuadraticSpeedDependentTorque",
    f"{_HEAT}.Components": "HeatCapacitor ThermalConductor",
    f"{_HEAT}.Sources": "FixedTemperature PrescribedHeatFlow",
    _SIGNALS: "Constant Step Ramp Sine Trapezoid Pulse",
}
LIBRARY = {
    **{
        name: f"{home}.{name.removeprefix('Rotational')}"
        for home, names in _HOMES.items()
        for name in names.split()
    },
    **dict.fromkeys(("Sampled", "Held"), f"{_SIGNALS}.CombiTimeTable"),
}
# What joins an element of `elements.mo` to one of the library.
_CONNECTORS = {
    "Flange": f"{_SLIDES}.Interfaces.Flange_a",
    "RotationalFlange": f"{_TURNS}.Interfaces.Flange_a",
    "HeatPort": f"{_HEAT}.Interfaces.HeatPort",
    "RealInput": "Modelica.Blocks.Interfaces.RealInput",
    "RealOutput": "Modelica.Blocks.Interfaces.RealOutput",
}
_HEAD = re.compile(r"^  (?:partial model|model|function|connector) (\w+)", re.MULTILINE)


@functools.cache
def elements() -> dict[str, str]:
    """The text of each element of `elements.mo`, by name.

    >>> print(elements()["RealInput"])
      connector RealInput = input Real "A signal that comes in";
    """
    whole = files("frictax.export").joinpath("elements.mo").read_text(encoding="utf-8")
    blocks = (block.rstrip() for block in re.split(r"\n\n", whole.removesuffix("end Elements;\n")))
    return {head[1]: block for block in blocks if (head := _HEAD.match(block))}


def with_all_that_they_need(names: set[str], self_contained: bool) -> list[str]:
    """The texts of the elements called `names` and of those that they are made of, in the order of
    `elements.mo`.
    """
    known, needed, left = elements(), set(), list(names)
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left += [
                n for n in re.findall(r"\w+", re.sub(r'"[^"]*"', "", known[name])) if n in known
            ]
    texts = {name: text for name, text in known.items() if name in needed}
    if not self_contained:
        texts |= {
            name: f"  connector {name} = {path};"
            for name, path in _CONNECTORS.items()
            if name in needed
        }
    return list(texts.values())
