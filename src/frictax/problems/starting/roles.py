"""Which column of a file is what, and in which unit: guessed from names and numbers."""

import dataclasses
import re

import numpy as np

from frictax.measurements.units import (
    ELECTRIC,
    FORCE,
    POSITION,
    TIME,
    VELOCITY,
    named_in,
    spelled,
)
from frictax.text import suggestion

from .shape import Shape

COUNTS = ("count", "counts", "tick", "ticks")
PRESSING = {"N": 1.0, "kN": 1e3}  # N
# Words of English, German, French and Spanish; of a name the first role that it fits counts.
_WORDS = {
    "reference": "ref reference setpoint soll sollwert target desired demand consigne cmd command",
    "time": "t time zeit temps tiempo tempo timestamp clock sec seconds ms us",
    "pressing": "fn normal pressing clamp clamping normalkraft andruck",
    "velocity": "v w vel velocity speed omega rpm drehzahl geschwindigkeit vitesse velocidad qd dq",
    "current": "i iq current strom courant corriente amps ampere",
    "force": "f u m tau force torque moment drehmoment kraft couple effort fuerza drive",
    "position": "s x q phi theta pos position angle winkel weg lage enc encoder counts angulo ist",
}
_UNITS = {
    "time": TIME,
    "position": {**POSITION, **dict.fromkeys(COUNTS)},
    "reference": POSITION,
    "velocity": VELOCITY,
    "current": dict.fromkeys(("A", "mA", "V", "mV")),
    "force": FORCE,
    "pressing": PRESSING,
}
ROLES = tuple(_UNITS)
_COUNTERS = {"n", "nr", "no", "index", "sample", "samples", "row", "#"}


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A column and what it is.

    - `number`: where it stands, the first being 1; `name`: as the file has it, "" if it has none.
    - `unit`; `per_turn`: of an encoder's counts, None elsewhere or where it is not known.
    - `sure`: whether the file or the user says the unit, so that it is no guess.
    - `clock`: the number of the column that holds its own times; None for the record's.
    """

    role: str
    number: int
    name: str
    unit: str
    sure: bool
    per_turn: float | None = None
    clock: int | None = None

    @property
    def label(self) -> str:
        return self.name or f"column {self.number}"

    @property
    def shown(self) -> str:
        """The column as a user would name it: ``angle[deg]``, ``3[counts/4096]``."""
        if self.per_turn is None and named_in(self.name) == self.unit:
            return self.name
        turn = "" if self.per_turn is None else f"/{self.per_turn:.15g}"
        return f"{self.name or self.number}[{self.unit}{turn}]"


def guessed(shape: Shape, linear: bool = False) -> dict[str, Chosen]:
    """What each role is played by; roles that no column fits are left out.

    **Arguments:** `linear`: whether the machine is known to move along a line.
    """
    columns = range(shape.values.shape[1])
    said = {j: _role_of(shape, j) for j in columns}
    clocks = [j for j in columns if said[j] == "time" and _rises(shape.values[:, j])]
    if not clocks:  # one that does not rise as it should, by its unit, so that this is told
        clocks = [j for j in columns if said[j] == "time" and shape.units[j] in TIME][:1]
    if not clocks:
        clocks = [
            j
            for j in columns
            if said[j] is None and _is_clock(shape.values[:, j]) and not _is_counter(shape, j)
        ][:1]
    free = [j for j in columns if j not in clocks and _changes(shape.values[:, j])]
    roles = dict[str, int]()
    for j in free:
        role = said[j]
        if role is not None and role != "time" and role not in roles:
            roles[role] = j
    rest = [
        j
        for j in free
        if j not in roles.values() and said[j] in (None, "time") and not _is_counter(shape, j)
    ]
    for likely in (("current", "force", "reference", "pressing"), ("position", "velocity")):
        if not set(likely) & set(roles):  # then one that never changes, by its unit
            for j in columns:
                if (role := said[j]) in likely[:2] and shape.units[j] in _UNITS[role]:
                    roles.setdefault(role, j)
    moving = {"position", "velocity"} & set(roles)
    if rest and not moving:  # what moves is smoother than what drives it
        smoothest = min(rest, key=lambda j: _roughness(shape.values[:, j]))
        roles["position"] = smoothest
        rest.remove(smoothest)
    if rest and not {"current", "force", "reference"} & set(roles):
        roles["force"] = rest[0]
    out = dict[str, Chosen]()
    base = roles.get("position", roles.get("velocity"))
    if clocks:
        own = _clock_of(clocks, base) if base is not None else clocks[0]
        out["time"] = _chosen("time", shape, own, turns=True)
    turns = not linear and _turns(shape, roles)
    for role, j in roles.items():
        chosen = _chosen(role, shape, j, turns)
        if clocks and len(clocks) > 1 and (own := _clock_of(clocks, j)) + 1 != out["time"].number:
            chosen = dataclasses.replace(chosen, clock=own + 1)
        out[role] = chosen
    return out


def told(role: str, text: str, shape: Shape, before: Chosen | None, turns: bool) -> Chosen:
    """The column that a user names: ``angle``, ``angle[deg]``, ``3[counts/4096]``.

    **Raises:** `ValueError` for a column that is not there and a unit of another kind.
    """
    name, unit = text.strip(), None
    if name not in shape.names and (found := re.fullmatch(r"(.*?)\s*\[([^\[\]]*)\]", name)):
        name, unit = found[1].strip(), found[2].strip()
    if name in shape.names:
        j = shape.names.index(name)
    elif name.isdigit() and 1 <= int(name) <= len(shape.names):
        j = int(name) - 1
    else:
        known = [known or str(i + 1) for i, known in enumerate(shape.names)]
        raise ValueError(
            f"There is no column {name!r} for the {role}.{suggestion(name, known, 0.5)} There are:"
            f" {', '.join(known)}."
        )
    clock = before.clock if before is not None and before.number == j + 1 else None
    if unit is None:
        return dataclasses.replace(_chosen(role, shape, j, turns), clock=clock)
    plain, _, turn = unit.partition("/") if unit.startswith(COUNTS) else (unit, "", "")
    plain = spelled(plain)
    if plain not in _UNITS[role]:
        of = next((other for other, known in _UNITS.items() if plain in known), None)
        hint = f" A {of} is named by --{of}." if of else suggestion(plain, _UNITS[role], 0.5)
        raise ValueError(
            f"The {role} must be in one of {', '.join(_UNITS[role])}, got {unit!r}.{hint}"
        )
    if turn and not (turn.replace(".", "", 1).isdigit() and float(turn) > 0):
        raise ValueError(f"Counts in a turn must be a number > 0, got {turn!r}. Write counts/4096.")
    return Chosen(role, j + 1, shape.names[j], plain, True, float(turn) if turn else None, clock)


def _chosen(role: str, shape: Shape, j: int, turns: bool) -> Chosen:
    unit = shape.units[j]
    name = shape.names[j].strip()
    if role == "time" and unit is None and spelled(name) in TIME and name != "t":
        unit = spelled(name)
    if role == "velocity" and unit is None and "rpm" in _tokens(name):
        unit = "rpm"
    if role == "position" and unit is None and set(COUNTS) & set(_tokens(name)):
        unit = "counts"
    if unit is not None and unit in _UNITS[role]:
        return Chosen(role, j + 1, shape.names[j], unit, True)
    return Chosen(role, j + 1, shape.names[j], _likely(role, shape.values[:, j], turns), False)


def _likely(role: str, values: np.ndarray, turns: bool) -> str:
    """The unit that the size of the numbers makes likely."""
    x = values[np.isfinite(values)]
    wide = float(np.ptp(x))
    if role == "time":
        step = float(np.median(np.diff(x)))
        return "s" if step < 0.2 else "ms" if step <= 100 else "us"
    if role == "position" and np.all(x == np.round(x)) and wide > 20:
        return "counts" if turns else "um" if wide > 5000 else "mm"
    if role in ("position", "reference"):
        return ("deg" if wide > 60 else "rad") if turns else ("mm" if wide > 5 else "m")
    if role == "velocity":
        return ("rpm" if wide > 1000 else "rad/s") if turns else ("mm/s" if wide > 10 else "m/s")
    if role == "force":
        return "N.m" if turns else "N"
    return {"current": "A", "pressing": "N"}[role]


def _role_of(shape: Shape, j: int) -> str | None:
    """The role that name or unit of a column tells."""
    words, unit = _tokens(shape.names[j]), shape.units[j]
    by_name = next(
        (role for role, known in _WORDS.items() if set(words) & set(known.split())), None
    )
    if unit is None:
        return by_name
    if unit in ELECTRIC and unit not in COUNTS:
        return "current"
    if by_name in ("reference", "pressing") and unit in _UNITS[by_name]:
        return by_name
    kinds = ("time", "position", "velocity", "force")
    return next((role for role in kinds if unit in _UNITS[role]), by_name)


def _tokens(name: str) -> list[str]:
    """The words of a name, small: "motorCurrent [A]" has motor and current."""
    text = re.sub(r"[\[(].*?[\])]", " ", name)
    text = re.sub(r"([a-zäöüé])([A-Z])", r"\1 \2", text)
    return [word.lower() for word in re.split(r"[^A-Za-zÄÖÜäöüéèó#]+", text) if word]


def _turns(shape: Shape, roles: dict[str, int]) -> bool:
    """Whether the machine turns, as far as names and units tell; what is not told turns."""
    for role, j in roles.items():
        unit = shape.units[j]
        for known in (POSITION, VELOCITY, FORCE):
            if unit in known and role != "pressing":
                return known[unit].rotational
    return True


def is_linear(columns: dict[str, Chosen]) -> bool:
    """Whether a unit of these columns is one of a translation."""
    for chosen in columns.values():
        for known in (POSITION, VELOCITY, FORCE):
            if chosen.unit in known and chosen.role != "pressing":
                return not known[chosen.unit].rotational
    return False


def _clock_of(clocks: list[int], j: int) -> int:
    """The clock that stands before a column, nearest to it."""
    before = [c for c in clocks if c < j]
    return before[-1] if before else clocks[0]


def _whole(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def _rises(values: np.ndarray) -> bool:
    x = _whole(values)
    return x.size > 3 and bool(np.all(np.diff(x) > 0))


def _is_clock(values: np.ndarray) -> bool:
    """Whether it rises in steps that are mostly alike."""
    if not _rises(values):
        return False
    step = np.diff(_whole(values))
    return bool(np.mean(np.abs(step - np.median(step)) < 0.2 * np.median(step)) > 0.8)


def _is_counter(shape: Shape, j: int) -> bool:
    return bool(set(_tokens(shape.names[j])) & _COUNTERS) and _rises(shape.values[:, j])


def _changes(values: np.ndarray) -> bool:
    x = _whole(values)
    return x.size > 3 and bool(np.ptp(x) > 0)


def _roughness(values: np.ndarray) -> float:
    """How much of a column is in its bends, beside its range."""
    x = _whole(values)
    return float(np.sqrt(np.mean(np.diff(x, 2) ** 2)) / np.ptp(x))
