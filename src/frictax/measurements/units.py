"""Units of measurements: names in files, sizes in SI, and units that tables print."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence

from frictax.mechanism.variable_table import VARIABLES as _TABLE
from frictax.text import suggestion

_TURN = 2.0 * math.pi
_POUND = 4.4482216152605  # [N] international pound-force, exact
_INCH = 0.0254  # [m] inch, exact
_MILE = 1609.344  # [m] international mile, exact
_SEA_MILE = 1852.0  # [m] international nautical mile, exact
_KILOPOND = 9.80665  # [N] kilopond, exact
_GRAVITY = 9.80665  # [m/s2] standard gravity, exact


@dataclasses.dataclass(frozen=True)
class Unit:
    """A unit: its name, its size in SI (`si`), the SI unit's name, and a flag for rotation."""

    name: str
    si: float
    si_name: str
    rotational: bool


def _units(si_name: str, rotational: bool, sizes: dict[str, float]) -> dict[str, Unit]:
    return {name: Unit(name, size, si_name, rotational) for name, size in sizes.items()}


VELOCITY = {
    **_units("m/s", False, {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2, "um/s": 1e-6}),
    **_units("m/s", False, {"m/min": 1 / 60, "mm/min": 1e-3 / 60, "in/s": _INCH}),
    **_units("m/s", False, {"ft/s": 12 * _INCH, "km/h": 1 / 3.6, "mph": _MILE / 3600}),
    **_units("m/s", False, {"kn": _SEA_MILE / 3600}),
    **_units("rad/s", True, {"rad/s": 1.0, "mrad/s": 1e-3, "deg/s": math.pi / 180}),
    **_units("rad/s", True, {"rpm": _TURN / 60, "rev/s": _TURN}),
}
FORCE = {
    **_units(
        "N", False, {"N": 1.0, "mN": 1e-3, "uN": 1e-6, "kN": 1e3, "lbf": _POUND, "kgf": _KILOPOND}
    ),
    **_units(
        "N.m",
        True,
        {"N.m": 1.0, "mN.m": 1e-3, "uN.m": 1e-6, "kN.m": 1e3, "N.cm": 1e-2, "N.mm": 1e-3},
    ),
    **_units(
        "N.m",
        True,
        {"lbf.in": _POUND * _INCH, "lbf.ft": 12 * _POUND * _INCH, "ozf.in": _POUND * _INCH / 16},
    ),
}
POSITION = {
    **_units("m", False, {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6, "nm": 1e-9, "km": 1e3}),
    **_units("m", False, {"in": _INCH, "ft": 12 * _INCH}),
    **_units("rad", True, {"rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "rev": _TURN}),
}
ACCELERATION = {
    **_units("m/s2", False, {"m/s2": 1.0, "mm/s2": 1e-3, "cm/s2": 1e-2, "g": _GRAVITY}),
    **_units("rad/s2", True, {"rad/s2": 1.0, "deg/s2": math.pi / 180, "rev/s2": _TURN}),
}
TIME = _units("s", False, {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0})
_POWER = _units("W", False, {"W": 1.0, "mW": 1e-3, "kW": 1e3})
_RATIO = _units("1", False, {"1": 1.0, "%": 1e-2})
_MECHANICAL = {**POSITION, **VELOCITY, **ACCELERATION, **FORCE, **TIME, **_POWER, **_RATIO}
_QUANTITY = {
    "m": "position",
    "rad": "angle",
    "m/s": "velocity",
    "rad/s": "angular velocity",
    "m/s2": "acceleration",
    "rad/s2": "angular acceleration",
    "N": "force",
    "N.m": "torque",
    "s": "time",
    "W": "power",
    "1": "fraction",
}
# `_MEASURABLE`: variables that a sensor may measure. `VARIABLES`: variable -> SI units for
# translation and rotation. A rotation may also use the names s, v, a, f: "mass.s" may be in rad.
_MEASURABLE = (
    *("s", "s_rel", "v", "v_rel", "v_relfric", "a", "a_rel", "a_relfric", "f", "fn", "f0"),
    *("f0_max", "phi", "phi_rel", "w", "w_rel", "w_relfric", "tau", "lossPower"),
)
VARIABLES = {
    name: tuple(dict.fromkeys((_TABLE[name].unit, _TABLE[name].rotational_unit)))
    for name in _MEASURABLE
}
VARIABLES["fn"] = ("N", "N.m")  # A record of a rotation may give all of its forces in N.m.
# Name of a variable in other programs -> name in frictax.
ELSEWHERE = {
    **dict.fromkeys(("x", "q", "pos", "position", "displacement"), "s"),
    **dict.fromkeys(("velocity", "speed", "vel", "qd", "dq"), "v"),
    **dict.fromkeys(("acceleration", "acc", "qdd", "ddq"), "a"),
    **dict.fromkeys(("force",), "f"),
    **dict.fromkeys(("angle", "theta", "fi"), "phi"),
    **dict.fromkeys(("omega", "angular_velocity"), "w"),
    **dict.fromkeys(("torque", "moment"), "tau"),
}


def split_channel(name: str) -> tuple[str, str]:
    """Split the name of an output into part and variable. In an output of a machine of the user's
    own class, the part is empty or a joint number, as in ``phi1``.

    >>> split_channel("mass.s"), split_channel("phi"), split_channel("w2"), split_channel("rod.f0")
    (('mass', 's'), ('', 'phi'), ('2', 'w'), ('rod', 'f0'))
    """
    part, dot, last = name.rpartition(".")
    variable = last.rstrip("0123456789").rstrip("_")
    if dot or last in VARIABLES or variable not in VARIABLES:
        return part, last
    return last[len(variable) :], variable


def related_channel(name: str, of: Mapping[str, str]) -> str | None:
    """Return the name of the output for another variable of the same body or joint. `of`: variable
    -> other variable, such as `VELOCITY_OF`. Return None if `of` does not contain the variable.

    >>> [related_channel(name, VELOCITY_OF) for name in ("arm.phi", "phi1", "arm.f")]
    ['arm.w', 'w1', None]
    """
    _, variable = split_channel(name)
    _, dot, last = name.rpartition(".")
    body = name[: len(name) - len(last)] if dot else ""
    rest = last[len(variable) :]
    return f"{body}{of[variable]}{rest}" if variable in of else None


# Names of variables: position -> velocity, velocity -> position, variable -> its time derivative.
VELOCITY_OF = {"s": "v", "phi": "w"}
POSITION_OF = {v: s for s, v in VELOCITY_OF.items()}
RATE_OF = {**VELOCITY_OF, "s_rel": "v_rel", "phi_rel": "w_rel", "v": "a", "w": "a"}
RATE_OF |= dict.fromkeys(("v_rel", "w_rel"), "a_rel")
# Units of sensors and amplifiers. A gain converts such a unit to a mechanical unit.
ELECTRIC = ("V", "mV", "A", "mA", "count", "counts", "tick", "ticks")
# SI units of inputs: of forces, of prescribed motions, and "1" for a relative normal force.
DRIVEN = ("N", "N.m", "m", "rad", "m/s", "rad/s", "m/s2", "rad/s2", "1")
# Other spellings of a unit.
_ALIASES = {
    alias: name
    for name, aliases in {
        "N.m": "Nm",
        "mN.m": "mNm",
        "uN.m": "uNm",
        "kN.m": "kNm",
        "N.cm": "Ncm",
        "N.mm": "Nmm",
        "rpm": "RPM r/min rev/min 1/min min-1 min^-1 U/min",
        "rev/s": "rps turns/s",
        "deg/s": "°/s dps degree/s",
        "lbf": "lb",
        "kgf": "kp",
        "lbf.in": "lbf.inch",
        "deg": "° degree degrees Grad Deg",
        "rev": "turn turns",
        "s": "sec second seconds",
        "ms": "msec millisecond milliseconds",
        "us": "usec microsecond microseconds",
        "mm": "millimeter millimeters millimetre millimetres",
        "um": "micron microns micrometer micrometers micrometre micrometres",
        "rad/s": "rad/sec",
        "km/h": "kmh km/hr kph",
        "mph": "mi/h",
        "kn": "knot knots kts",
        "in": "inch inches",
        "ft": "foot feet",
        "ft/s": "fps",
        "V": "Volt volts",
        "A": "Amps",
        "deg/s2": "°/s2",
    }.items()
    for alias in aliases.split()
}


def velocity_unit(name: str) -> Unit:
    """Return the velocity unit called `name`. A wrong name raises `ValueError`.

    >>> velocity_unit("rpm").si_name, round(velocity_unit("rpm").si, 6)
    ('rad/s', 0.10472)
    """
    return _look_up("velocity_unit", name, VELOCITY)


def force_unit(name: str) -> Unit:
    """Return the force or torque unit called `name`.

    >>> force_unit("N*mm").si
    0.001
    """
    return _look_up("force_unit", name, FORCE)


def known_unit(name: str | None) -> Unit | None:
    """Return the mechanical unit called `name`; None for other units and for None.

    >>> known_unit("mm").si, known_unit("V")
    (0.001, None)
    """
    return _MECHANICAL.get(normalize_unit(name or ""))


def quantity(unit: Unit) -> str:
    """Return the quantity that is measured in `unit`.

    >>> quantity(force_unit("kN"))
    'force'
    """
    return _QUANTITY[unit.si_name]


def channel_unit(what: str, name: str, si_names: Sequence[str]) -> Unit:
    """Return the unit called `name`. Raise `ValueError` unless its SI unit is one of `si_names`.

    **Arguments:** `what`: first words of the error message.

    >>> channel_unit("`Record` output 'mass.s'", "mm", VARIABLES["s"]).si
    0.001
    >>> channel_unit("`Record` output 'mass.s'", "N", VARIABLES["s"])
    Traceback (most recent call last):
    ...
    ValueError: `Record` output 'mass.s' must be in a unit of position or angle (m,
    mm, cm, um, nm, km, in, ft, rad, mrad, ...), got 'N', ...
    """
    plain = normalize_unit(name)
    if plain in _MECHANICAL and _MECHANICAL[plain].si_name in si_names:
        return _MECHANICAL[plain]
    known = [unit.name for unit in _MECHANICAL.values() if unit.si_name in si_names]
    listed = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    words = [_QUANTITY[si] for si in si_names]
    kinds = (", ".join(words[:-1]) + " or " if len(words) > 1 else "") + words[-1]
    if plain in _MECHANICAL:
        hint = (
            f", a unit of {quantity(_MECHANICAL[plain])}. Correct the unit, or name the variable"
            " that the column measures."
        )
    elif plain not in ELECTRIC and (near := suggestion(plain, known, 0.5)):
        hint = f".{near}"
    elif si_names == ("s",):
        hint = ". Name one of these."
    else:
        hint = f'. Convert it: gain=<{si_names[0]} per {name}>, to="{si_names[0]}" in its `Column`.'
    raise ValueError(f"{what} must be in a unit of {kinds} ({listed}), got {name!r}{hint}")


def named_in(header: str) -> str | None:
    """Return the last known unit in brackets in a column's name; None without a known unit.

    >>> named_in("Position [mm]"), named_in("angle (°)"), named_in("x [mm] (raw)"), named_in("q[1]")
    ('mm', 'deg', 'mm', None)
    """
    for before, bracket, inside in reversed(_BRACKETS.findall(header)):
        unit = normalize_unit(inside)
        # A number behind a name is an index, as in "position[1]". "mu [1]" is a fraction.
        is_index = unit == "1" and (bracket == "(" or before.strip())
        if (unit in _MECHANICAL or unit in ELECTRIC) and not is_index:
            return unit
    return None


def unread_unit(header: str, si_names: Sequence[str]) -> tuple[str, str | None] | None:
    """Return a text in a column's name that may be a unit but is not read as one; None without such
    a text. Also return the unit with this name (None if no unit has exactly this name).

    **Arguments:** `si_names`: SI units of the column. "min" in "t_min" is a unit only of a time.

    >>> unread_unit("x / mm", ("m",)), unread_unit("F (KN)", ("N",)), unread_unit("F_min", ("N",))
    (('mm', 'mm'), ('KN', None), None)
    """
    if named_in(header) is not None:
        return None
    for before, bracket, inside in reversed(_BRACKETS.findall(header)):
        if before and len(re.sub(r"[\W\d_]", "", inside)) > (bracket == "("):
            return inside.strip(), None
    after = re.findall(r"(?s)^[^/]*[^/ ()\[\]][^/]*/[ ()\[\]]*(.*?)[ ()\[\]]*\Z", header)
    words = re.findall(r"[^\s_,:]*[/.][^\s_,:]*", header)
    tokens = re.findall(r"[^\s_,:/()\[\]-]+", header)
    # The first of several words is the quantity, as in "cm_x".
    tokens = tokens[len(tokens) > 1 and len(tokens[0]) <= 2 :]
    for text in (*reversed(words), *after, *reversed(tokens)):
        unit, word = normalize_unit(text), "" if text in after else text.lower()
        if word in _WORDS:
            continue
        if unit in ELECTRIC:
            return text, unit
        exact, alike = unit in _MECHANICAL, _ALIKE.get(unit.lower(), [])
        fits = any(_MECHANICAL[u].si_name in si_names for u in ([unit] if exact else alike))
        clear = (exact or len(text) > 2) and word not in _VAGUE
        if alike and (fits or clear):
            return text, unit if exact and (fits or len(alike) == 1) else None
    return None


_BRACKETS = re.compile(r"(.?)([\[(])([^\[\]()]*)[\])]")
# Lower-case name -> units other than SI. Names that are also words, and names of few letters.
_ALIKE: dict[str, list[str]] = {}
for _name, _unit in [*((u, u) for u in _MECHANICAL), *_ALIASES.items()]:
    if _unit in _MECHANICAL and _MECHANICAL[_unit].si != 1.0:
        _ALIKE.setdefault(_name.lower(), []).append(_unit)
_WORDS = ("in", "turn", "foot", "feet", "kp", "grad", "knot", "knots")
_WORDS += ("v", "volt", "volts", "a", "amps", "count", "tick")
_VAGUE = ("min", "h", "ft", "g", "rev", "nm", "ns")


def same_kind(velocity: Unit, force: Unit) -> None:
    """Raise `ValueError` if one unit belongs to a rotation and the other to a translation."""
    if velocity.rotational != force.rotational:
        partner = "N.m" if velocity.rotational else "N"
        raise ValueError(
            "`Sweep` units must both be of a rotation or both of a translation, got"
            f" {velocity.name!r} with {force.name!r}. Declare force_unit={partner!r} or one like"
            " it, or convert the speed at the transmission."
        )


def shown_force(unit: Unit, size: float) -> Unit:
    """Return the force unit in which a table prints values of about `size` [SI]. This is the
    declared unit `unit`, unless the printed numbers would be very large or small.

    >>> shown_force(force_unit("N.m"), 2.1e-3).name
    'mN.m'
    """
    if (
        unit.si_name == unit.name[-len(unit.si_name) :]
        and size > 0
        and not 0.1 <= size / unit.si < 1e4
    ):
        for prefix in ("k", "", "m", "u"):
            candidate = FORCE[prefix + unit.si_name]
            if size / candidate.si >= 1.0:
                return dataclasses.replace(candidate, name=candidate.name.replace("u", "µ"))
    return unit


def display_unit(si_unit: str, force: Unit) -> tuple[str, float]:
    """Return the unit in which a parameter with the unit `si_unit` is printed, and its size in SI.
    If `si_unit` begins with N or N.m, the unit `force` replaces it; otherwise return `si_unit`.

    >>> display_unit("N.m.s/rad", force_unit("mN.m"))
    ('mN.m.s/rad', 0.001)
    """
    if si_unit.startswith(force.si_name):
        return force.name + si_unit[len(force.si_name) :], force.si
    return si_unit, 1.0


def _look_up(argument: str, name: str, known: dict[str, Unit]) -> Unit:
    plain = normalize_unit(name)
    if plain not in known:
        raise ValueError(
            f"`{argument}` must be one of {', '.join(known)}, got"
            f" {name!r}.{suggestion(plain, known, 0.5)}"
        )
    return known[plain]


def normalize_unit(name: str) -> str:
    """Return the name of a unit as frictax writes it: "°" is "deg", "Nm" is "N.m"."""
    plain = str(name).strip().translate({ord("·"): ".", ord("*"): ".", ord(" "): "", ord("µ"): "u"})
    plain = plain.replace("μ", "u").replace("^2", "2").replace("²", "2")
    return _ALIASES.get(plain, plain)
