"""Units of a measured sweep: what a file declares, what is stored (SI), what a table shows."""

import dataclasses
import difflib
import math

_TURN = 2.0 * math.pi
_POUND = 4.4482216152605  # N, international pound-force (exact)
_INCH = 0.0254  # m (exact)
_KILOPOND = 9.80665  # N (exact)


@dataclasses.dataclass(frozen=True)
class Unit:
    """A declared unit: its name, its size in SI, the SI unit's name, and whether it belongs to a rotation."""

    name: str
    si: float
    si_name: str
    rotational: bool


def _units(si_name: str, rotational: bool, sizes: dict[str, float]) -> dict[str, Unit]:
    return {name: Unit(name, size, si_name, rotational) for name, size in sizes.items()}


VELOCITY = {
    **_units("m/s", False, {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2, "um/s": 1e-6, "m/min": 1 / 60, "mm/min": 1e-3 / 60, "in/s": _INCH}),
    **_units("rad/s", True, {"rad/s": 1.0, "mrad/s": 1e-3, "deg/s": math.pi / 180, "rpm": _TURN / 60, "rev/s": _TURN}),
}
FORCE = {
    **_units("N", False, {"N": 1.0, "mN": 1e-3, "uN": 1e-6, "kN": 1e3, "lbf": _POUND, "kgf": _KILOPOND}),
    **_units("N.m", True, {"N.m": 1.0, "mN.m": 1e-3, "uN.m": 1e-6, "kN.m": 1e3, "N.cm": 1e-2, "N.mm": 1e-3}),
    **_units("N.m", True, {"lbf.in": _POUND * _INCH, "lbf.ft": 12 * _POUND * _INCH, "ozf.in": _POUND * _INCH / 16}),
}
_ALIASES = {
    "Nm": "N.m", "mNm": "mN.m", "uNm": "uN.m", "kNm": "kN.m", "Ncm": "N.cm", "Nmm": "N.mm", "r/min": "rpm", "rev/min": "rpm",
    "1/min": "rpm", "min-1": "rpm", "rps": "rev/s", "°/s": "deg/s", "degree/s": "deg/s", "lb": "lbf", "kp": "kgf", "lbf.inch": "lbf.in",
}  # fmt: skip


def velocity_unit(name: str) -> Unit:
    """The velocity unit called `name`; raises `ValueError` naming the nearest and all known ones.

    >>> velocity_unit("rpm").si_name, round(velocity_unit("rpm").si, 6)
    ('rad/s', 0.10472)
    """
    return _look_up("velocity_unit", name, VELOCITY)


def force_unit(name: str) -> Unit:
    """The force or torque unit called `name`.

    >>> force_unit("N*mm").si
    0.001
    """
    return _look_up("force_unit", name, FORCE)


def same_kind(velocity: Unit, force: Unit) -> None:
    """Raise `ValueError` where one unit turns and the other moves along a line."""
    if velocity.rotational != force.rotational:
        partner = "N.m" if velocity.rotational else "N"
        raise ValueError(
            f"`Sweep` units must both be of a rotation or both of a translation, got {velocity.name!r} with {force.name!r}. "
            f"Declare force_unit={partner!r} or one like it, or convert the speed at the transmission."
        )


def shown_force(unit: Unit, size: float) -> Unit:
    """The force unit for a table whose values are about `size` [SI]: as declared, unless that gives odd figures.

    >>> shown_force(force_unit("N.m"), 2.1e-3).name
    'mN.m'
    """
    if unit.si_name == unit.name[-len(unit.si_name) :] and size > 0 and not 0.1 <= size / unit.si < 1e4:
        for prefix in ("k", "", "m", "u"):
            candidate = FORCE[prefix + unit.si_name]
            if size / candidate.si >= 1.0:
                return candidate
    return unit


def shown(si_unit: str, force: Unit) -> tuple[str, float]:
    """A parameter's unit as printed and its size in SI: forces take the prefix of the table, the rest stays SI.

    >>> shown("N.m.s/rad", force_unit("mN.m"))
    ('mN.m.s/rad', 0.001)
    """
    if si_unit.startswith(force.si_name):
        return force.name + si_unit[len(force.si_name) :], force.si
    return si_unit, 1.0


def _look_up(argument: str, name: str, known: dict[str, Unit]) -> Unit:
    plain = str(name).strip().replace("·", ".").replace("*", ".").replace(" ", "").replace("µ", "u")
    plain = _ALIASES.get(plain, plain)
    if plain not in known:
        near = difflib.get_close_matches(plain, known, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"`{argument}` must be one of {', '.join(known)}, got {name!r}.{hint}")
    return known[plain]
