"""Guess the role and unit of each column of a file from its name and its numbers."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from frictax.measurements.reading.wraps import USUAL_COUNTS, find_wrap, unwrap_column
from frictax.measurements.units import (
    ACCELERATION,
    ELECTRIC,
    FORCE,
    POSITION,
    TIME,
    VELOCITY,
    known_unit,
    named_in,
    normalize_unit,
)
from frictax.text import suggestion

from .evidence import coasts, is_speed_of, position_units, speed_scale, time_units
from .shape import Shape

COUNTS = ("count", "counts", "tick", "ticks")
PRESSING = {"N": 1.0, "kN": 1e3}  # [N] size of each unit of a pressing force.
# Role -> words in English, German, French and Spanish. If a name has words of several roles, the
# role that is listed first is used.
_WORDS = {
    "reference": "ref reference setpoint soll sollwert target desired demand consigne cmd command"
    " commanded goal set",
    "time": "t time zeit temps tiempo tempo timestamp stamp clock sec second seconds ms us micros"
    " millis",
    "pressing": "fn normal pressing clamp clamping normalkraft andruck",
    "velocity": "v w vel velocity speed omega rpm drehzahl geschwindigkeit vitesse velocidad qd dq"
    " gyro",
    "current": "i iq current cur strom courant corriente amps ampere",
    "force": "f u m tau force torque moment drehmoment kraft couple effort fuerza drive",
    "position": "s x q phi theta pos position angle winkel weg lage enc encoder counts cnt angulo"
    " ist",
}
# words in a name that show that the column is not a motion or a drive
_OTHER_WORDS = set(
    "acc accel acceleration beschleunigung qdd ddq temp temperature temperatur status state id isd"
    " sd err error mode flag enable enabled".split()
)
_TORQUE_AXIS = {"q", "iq", "isq"}  # words in the name of the motor current that gives the torque
_TURNING_WORDS = set(
    "current iq strom torque moment drehmoment couple effort angle theta phi winkel angulo enc"
    " encoder omega rpm drehzahl qd dq joint".split()
)
# words for the two sides of a gear
_MOTOR_WORDS = {"motor", "rotor", "antrieb", "moteur"}
_LOAD_WORDS = set(
    "load joint output arm link last abtrieb gelenk charge sortie carga salida".split()
)
_UNITS = {
    "time": TIME,
    "position": {**POSITION, **dict.fromkeys(COUNTS)},
    "reference": {**POSITION, **dict.fromkeys(COUNTS)},
    "velocity": VELOCITY,
    "current": dict.fromkeys(("A", "mA", "V", "mV", "%")),
    "force": FORCE,
    "pressing": PRESSING,
}
ROLES = tuple(_UNITS)
_COUNTERS = {"n", "nr", "no", "index", "sample", "samples", "row", "seq", "unnamed", "#"}
# role -> unit that ROS (robot operating system) prescribes, by REP 103
_ROS = {"position": "rad", "velocity": "rad/s", "force": "N.m"}
# Unit -> usual range of the largest value in a record. Outside this range, a guessed unit is
# doubtful.
_USUAL = {"A": (1e-3, 60.0), "N.m": (1e-5, 15.0), "N": (1e-2, 5000.0)}
# words for an angle; a column with such a name is not in rev
_ANGLES = {"angle", "theta", "phi", "winkel", "angulo", "q"}
# function names of microcontroller clocks, with their units
_TICKS = {"micros": "us", "millis": "ms", "nanos": "ns", "nanosec": "ns"}
_TURNS = {"deg": 360.0, "rad": 2 * np.pi, "rev": 1.0, "mrad": 2000 * np.pi}
# Ranges of counters that wrap because of their number of bits, not after a turn.
_COUNTERS_OF_BITS = (2.0**15, 2.0**16, 2.0**31, 2.0**32)
# text in brackets that may be a unit: letters in [ ], or letters and a sign of a product in ( )
_UNKNOWN_UNIT = re.compile(r"\[[^\]]*[^\W\d_][^\]]*\]|\([^)]*[^\W\d_][-/.*·^²][^)]*\)")
# largest relative deviation of position/integrated velocity from the ratio of a pair of units
_SAME_SCALE = 0.02


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A column with its role and unit.

    - `number`: position in the file, from 1; `name`: name in the file, or "".
    - `per_turn`: counts of an encoder in a turn, None if unknown or if the unit is not counts.
    - `factor`: size of one recorded unit in `unit`, if the user scales the column.
    - `sure`: whether file, numbers or user determine role and unit, which then are not a guess.
    - `doubt`: a sentence that says why the user must confirm the guess, or "".
    - `others`: further units that the numbers allow.
    - `clock`: number of the column with the times of this column; None for the times of the record.
    """

    role: str
    number: int
    name: str
    unit: str
    sure: bool
    per_turn: float | None = None
    clock: int | None = None
    factor: float | None = None
    doubt: str = ""
    others: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.name or f"column {self.number}"

    @property
    def size(self) -> float:
        """The size of one recorded unit of a motion, force or torque in SI units."""
        if self.per_turn is not None:
            return 2 * np.pi / self.per_turn
        known = known_unit(self.unit)
        return (1.0 if known is None else known.si) * (self.factor or 1.0)

    @property
    def as_typed(self) -> str:
        """The column as a user types it, such as ``angle[deg]`` or ``3[counts/4096]``."""
        return self.in_unit(self.unit)

    @property
    def choices(self) -> str:
        """The texts that a user can type for the column, one for each plausible unit."""
        if self.unit in COUNTS and self.per_turn is None:
            return f"'{self.name or self.number}[counts/4096]' with the counts in a turn"
        return " or ".join(f"'{self.in_unit(unit)}'" for unit in (self.unit, *self.others))

    def in_unit(self, unit: str) -> str:
        if self.per_turn is None and self.factor is None and named_in(self.name) == unit:
            return self.name
        turn = "" if self.per_turn is None else f"/{self.per_turn:.15g}"
        factor = "" if self.factor is None else f"{self.factor:.15g} "
        return f"{self.name or self.number}[{factor}{unit}{turn}]"


def guess_columns(
    shape: Shape,
    linear: bool = False,
    rate: float | None = None,
    gear: bool = False,
    time: Chosen | None = None,
) -> dict[str, Chosen]:
    """Return a dict from role to its guessed column; roles without a column are left out.

    `linear`: whether the machine certainly moves along a line; `rate` [Hz]: sampling rate if no
    column contains the time; `gear`: whether columns of the motor are preferred to those of a load;
    `time`: the column of the time if it is known.
    """
    clocks = [] if rate is not None else clocks_of(shape)
    named = [] if time is None else [time.number - 1]
    first = time or (_with_unit("time", shape, clocks[0], turns=True) if clocks else None)
    t = times_in_seconds(shape, first, rate)
    roles, doubts = _assign_roles(shape, clocks + named, t, gear)
    out = dict[str, Chosen]()
    base = roles.get("position", roles.get("velocity"))
    if time is not None:
        out["time"] = time
    elif clocks:
        own = _clock_of(clocks, base) if base is not None else clocks[0]
        out["time"] = _with_unit("time", shape, own, turns=True)
    turns = not linear and _turns({role: shape.units[j] for role, j in roles.items()})
    for role, j in roles.items():
        chosen = _with_unit(role, shape, j, turns, t)
        clock = _own_clock(shape, out.get("time"), j)
        if j in doubts:
            chosen = dataclasses.replace(chosen, sure=False, doubt=doubts[j])
        out[role] = dataclasses.replace(chosen, clock=clock)
    return match_units(out, shape, t)


def _assign_roles(
    shape: Shape, clocks: list[int], t: Any, gear: bool
) -> tuple[dict[str, int], dict[int, str]]:
    """Return a dict from role (except time) to column, and a dict from each column whose role is
    doubtful to a sentence with the reason.
    """
    columns = range(shape.values.shape[1])
    stated = {j: role_of(shape, j) for j in columns}
    finite = [*map(_finite, shape.values.T)]
    others = sorted({*columns} - {*clocks})
    changing = [j for j in others if finite[j].size > 3 and np.ptp(finite[j]) > 0]
    if gear:
        changing.sort(key=lambda j: side_of(shape.names[j]))
    order, roles = _order_of_candidates(shape, stated, changing), dict[str, int]()
    ordered = sorted(changing, key=order)
    for j in ordered:
        if (by_name := stated[j]) is not None and by_name != "time":
            roles.setdefault(by_name, j)
    doubts, currents = dict[int, str](), [j for j in ordered if stated[j] == "current"]
    equal = [shape.names[j] for j in currents if order(j) == order(currents[0])]
    if len(equal) > 1:
        doubts[currents[0]] = f"One of {', '.join(equal)} gives the torque or force."
    rest = [
        j
        for j in changing
        if j not in roles.values()
        and stated[j] in (None, "time")
        and not (_is_counter(shape, j) or _is_other(shape, j))
        and shape.units[j] in (None, *ELECTRIC)
    ]
    # If no changing column is the drive (or the motion), use a constant column with a fitting unit.
    for likely in (("current", "force", "reference", "pressing"), ("position", "velocity")):
        if not set(likely) & set(roles):
            for j in columns:
                if (role := stated[j]) in likely[:2] and shape.units[j] in _UNITS[role]:
                    roles.setdefault(role, j)
    guessed = {*rest}
    if rest and not {"position", "velocity"} & set(roles):
        # A motion is smoother than a drive: its second differences are small relative to its range.
        smoothest = min(
            rest, key=lambda j: np.sqrt(np.mean(np.diff(finite[j], 2) ** 2)) / np.ptp(finite[j])
        )
        roles[_role_of_motion(shape, smoothest, roles, rest, t)] = smoothest
        rest.remove(smoothest)
    _without_speeds(shape, roles, rest, t)
    if rest and not {"current", "force", "reference"} & set(roles):
        roles["current" if shape.units[rest[0]] in ELECTRIC else "force"] = rest[0]
        _without_speeds(shape, roles, rest[1:], t)
    for role, j in roles.items():
        if j in guessed:
            label = shape.names[j] or f"column {j + 1}"
            doubts[j] = f"Only its numbers indicate that {label} is the {role}."
    return roles, doubts


def _order_of_candidates(
    shape: Shape, stated: dict[int, str | None], changing: list[int]
) -> Callable[[int], tuple[bool, ...]]:
    """Return a key that sorts the columns for one role, the most likely first. Columns with a
    mechanical unit come first. Of two axes, the first with a motion and a drive comes first.
    References come last.
    """
    axes = {_number_of_axis(shape.names[j]) for j in changing if stated[j] in ("current", "force")}
    moving = (j for j in changing if stated[j] in ("position", "velocity"))
    numbers = [i for i in map(_number_of_axis, map(shape.names.__getitem__, moving)) if i in axes]
    first = next(filter(None, numbers), "")

    def order(j: int) -> tuple[bool, ...]:
        words = set(_tokens(shape.names[j]))
        is_reference = bool(words & set(_WORDS["reference"].split()))
        vague = shape.units[j] in (None, "V", "mV", "%")
        other_axis = bool(first) and _number_of_axis(shape.names[j]) not in ("", first)
        return is_reference, vague, other_axis, stated[j] == "current" and not words & _TORQUE_AXIS

    return order


def _number_of_axis(name: str) -> str:
    """Return the number of an axis in a name, such as "2" for "tau2 [N.m]", or its letter x, y, z
    after a separator, as in "F_x"; "" for a name without one, or with several numbers.
    """
    plain = re.sub(r"[\[(](?!\d+[\])])[^\])]*[\])]", " ", name)
    found = re.findall(r"\d+|(?<=[_ .])[xyz](?=[_ .]|$)", plain.strip().lower())
    return found[0] if len(found) == 1 else ""


def _role_of_motion(shape: Shape, j: int, roles: dict[str, int], rest: list[int], t: Any) -> str:
    """Return "velocity" or "position" for a column of motion whose name does not show its role."""
    x = shape.values[:, j]
    for k in rest if t is None else ():
        # In a table of steady speeds, the sign of the force changes with the sign of the speed.
        y = shape.values[:, roles.get("force", k)]
        whole = np.isfinite(x) & np.isfinite(y)
        v, force = x[whole], y[whole]
        if v.size < 8 or not min(np.max(v, initial=0), -np.min(v, initial=0)) > 0:
            continue
        moving = np.abs(v) > 0.05 * np.max(np.abs(v))
        if abs(np.mean(np.sign(v[moving]) * np.sign(force[moving]))) > 0.9:
            return "velocity"
    return "velocity" if coasts(_finite(x)) else "position"


def without_wraps(shape: Shape) -> Shape:
    """Return the shape with nanoseconds added to the times, and without the jumps at which times,
    angles and counts wrap at the end of their range.
    """
    values, wraps = shape.values.copy(), dict[int, float]()
    for j, more in shape.nanoseconds.items():
        first = values[np.isfinite(values[:, j]), j][:1].sum()  # 0 for a column without numbers
        values[:, j] = values[:, j] - first + 1e-9 * values[:, more]
    for j in range(values.shape[1]):
        role = role_of(shape, j)
        if role not in ("time", "position", "reference", None) or _is_other(shape, j):
            continue
        wrap = find_wrap(values[:, j], rising=role == "time")
        if wrap is not None:
            wraps[j] = wrap.range
            values[:, j] = unwrap_column(values[:, j], wrap.range, rising=role == "time")
    return dataclasses.replace(shape, values=values, wraps=wraps)


def clocks_of(shape: Shape) -> list[int]:
    """Return the indices (from 0) of the columns that contain times."""
    columns = range(shape.values.shape[1])
    said = {j: role_of(shape, j) for j in columns}
    clocks = [j for j in columns if said[j] == "time" and _rises(shape.values[:, j])]
    # If no column of times increases, take a column with a unit of time, so that the error message
    # names this column.
    if not clocks:
        clocks = [j for j in columns if said[j] == "time" and shape.units[j] in TIME][:1]
    # Otherwise take a column of times in which times repeat, or decrease in a few rows.
    if not clocks:
        clocks = [j for j in columns if said[j] == "time" and _rises(shape.values[:, j], True)][:1]
    # Otherwise take a column that increases in steps that are mostly equal.
    for j in () if clocks else columns:
        if said[j] is None and _rises(shape.values[:, j]) and not _is_counter(shape, j):
            step = np.diff(_finite(shape.values[:, j]))
            if np.mean(np.abs(step - np.median(step)) < 0.2 * np.median(step)) > 0.8:
                return [j]
    return clocks


def _is_other(shape: Shape, j: int) -> bool:
    """Return True if the name of a column shows that it is not a motion or a drive."""
    return bool(_OTHER_WORDS & set(_tokens(shape.names[j])))


def _without_speeds(shape: Shape, roles: dict[str, int], rest: list[int], t: Any) -> None:
    """Change `roles` in place. A force or current without a unit becomes the velocity if it is the
    derivative of the position.
    """
    for role in ("force", "current"):
        if "position" not in roles or t is None:
            return
        j, at = roles.get(role), shape.values[:, roles["position"]]
        if j is None or shape.units[j] is not None:
            continue
        if not is_speed_of(t, at, shape.values[:, j]):
            continue
        roles.setdefault("velocity", roles.pop(role))
        motion = (at, shape.values[:, roles["velocity"]])
        others = [
            k
            for k in rest
            if k not in roles.values()
            and not any(is_speed_of(t, x, shape.values[:, k]) for x in motion)
        ]
        if others:
            roles[role] = others[0]


def match_units(columns: dict[str, Chosen], shape: Shape, t: Any) -> dict[str, Chosen]:
    """Return the columns. Change guessed units of position and velocity such that the velocity is
    the derivative of the position. A reference without a unit has the unit of the position.
    """
    position, velocity = columns.get("position"), columns.get("velocity")
    if position is not None and velocity is not None and t is not None:
        x, v = (shape.values[:, column.number - 1] for column in (position, velocity))
        if (scale := speed_scale(t, x, v)) is not None:
            position, velocity = _match_motion(position, velocity, abs(scale))
            columns = {**columns, "position": position, "velocity": velocity}
    reference = columns.get("reference")
    if position is not None and reference is not None and not reference.sure:
        of_both = (_finite(shape.values[:, c.number - 1]) for c in (reference, position))
        wide, own = (float(np.ptp(x)) if x.size else 0.0 for x in of_both)
        if shape.units[reference.number - 1] is None and own / 3 <= wide <= 3 * own:
            same = {name: getattr(position, name) for name in ("unit", "per_turn", "factor")}
            sure = position.sure and (position.unit not in COUNTS or position.per_turn is not None)
            reference = dataclasses.replace(reference, **same, sure=sure, doubt="", others=())
        elif not reference.doubt:
            doubt = f"The unit of {reference.label} is not stated."
            reference = dataclasses.replace(reference, doubt=doubt)
        columns = {**columns, "reference": reference}
    return columns


def _match_motion(position: Chosen, velocity: Chosen, scale: float) -> tuple[Chosen, Chosen]:
    """Return the columns of position and velocity with matching units. `scale`: change of the
    recorded position divided by the integral of the recorded velocity.
    """
    if velocity.sure and not (position.sure and position.unit not in COUNTS):
        position = _match_position(position, velocity, scale)
    elif position.sure and position.unit in POSITION and not velocity.sure:
        known = POSITION[position.unit]
        unit = _unit_of_size(known.si * scale, VELOCITY, known.rotational)
        if unit is not None:
            velocity = dataclasses.replace(velocity, unit=unit, sure=True, doubt="", others=())
    elif not position.sure and not velocity.sure and position.unit in ("rad", "deg"):
        ratios = ((pair, ratio) for pair, ratio in _PAIRS.items())
        pair = next((p for p, ratio in ratios if abs(scale / ratio - 1) < _SAME_SCALE), None)
        if pair is not None:
            plain = {"sure": False, "doubt": "", "others": ()}
            position = dataclasses.replace(position, unit=pair[0], **plain)
            velocity = dataclasses.replace(velocity, unit=pair[1], **plain)
    return position, velocity


def _match_position(position: Chosen, velocity: Chosen, scale: float) -> Chosen:
    """Return the position column with the unit, or the counts in a turn, that agrees with the unit
    of the velocity. `scale`: change of the recorded position divided by the integral of the
    recorded velocity.
    """
    known = VELOCITY[velocity.unit]
    size = known.si / scale  # the size of one unit of the position, in SI units
    if position.unit not in COUNTS:
        unit = _unit_of_size(size, POSITION, known.rotational)
        if unit is None:
            return position
        return dataclasses.replace(position, unit=unit, sure=True, doubt="", others=())
    if known.rotational and position.per_turn is None:
        counts = 2 * np.pi / size
        usual = min(USUAL_COUNTS, key=lambda n: abs(counts / n - 1))
        if abs(counts / usual - 1) < _SAME_SCALE / 4:
            return dataclasses.replace(position, per_turn=usual)
        measured = float(f"{counts:.4g}")
        doubt = f"By {velocity.label}, a turn has about {measured:.15g} counts of {position.label}."
        return dataclasses.replace(position, per_turn=measured, sure=False, doubt=doubt)
    return position


def _unit_of_size(size: float, units: Any, rotational: bool) -> str | None:
    """Return the name of the unit whose value in SI is `size`, or None."""
    known = {name: unit.si for name, unit in units.items() if unit.rotational == rotational}
    return next((name for name, si in known.items() if abs(size / si - 1) < _SAME_SCALE), None)


# Frequent units of position and velocity -> ratio of the position to the integral of the velocity.
# The pairs (rad, rad/s) and (deg, deg/s) are missing, because their ratios are equal.
_PAIRS = {("deg", "rad/s"): 180 / np.pi, ("deg", "rpm"): 6.0, ("rad", "rpm"): np.pi / 30}


def named_column(role: str, text: str, shape: Shape, time: Chosen | None, turns: bool) -> Chosen:
    """Return the column that a user names, such as ``angle``, ``angle[deg]`` or ``3[counts/4096]``.
    With ``CH2[72 deg]``, one recorded unit is 72 deg. `time`: the column of the record's time.

    **Raises:** `ValueError` for a column that does not exist, a name of several columns, and a unit
    that does not suit the role.
    """
    name, unit = text.strip(), None
    if name not in shape.names and (found := re.fullmatch(r"(.*?)\s*\[([^\[\]]*)\]", name)):
        name, unit = found[1].strip(), found[2].strip()
    if (many := shape.names.count(name)) > 1 and name:
        at = " or ".join(str(i + 1) for i, known in enumerate(shape.names) if known == name)
        raise ValueError(
            f"There are {many} columns {name!r} for the {role}. Give the number of one, {at}."
        )
    if name and many:
        j = shape.names.index(name)
    elif name.isdigit() and 1 <= int(name) <= len(shape.names):
        j = int(name) - 1
    else:
        known = [known or str(i + 1) for i, known in enumerate(shape.names)]
        raise ValueError(
            f"There is no column {name!r} for the {role}.{suggestion(name, known, 0.5)} The columns"
            f" are: {', '.join(known)}."
        )
    clock = None if role == "time" else _own_clock(shape, time, j)
    if unit is None:
        chosen = _with_unit(role, shape, j, turns)
        # A user who names the column confirms the unit that the file states.
        if shape.units[j] in _UNITS[role]:
            chosen = dataclasses.replace(chosen, sure=True, doubt="")
        return dataclasses.replace(chosen, clock=clock)
    plain, factor, per_turn = _parse_unit(role, name, unit)
    return Chosen(role, j + 1, shape.names[j], plain, True, per_turn, clock, factor)


def _parse_unit(role: str, name: str, unit: str) -> tuple[str, float | None, float | None]:
    """Return unit, factor and counts in a turn of a text such as ``72 deg`` or ``counts/4096``."""
    factor, turn = None, ""
    if scaled := re.fullmatch(r"([\d.]+(?:[eE][+-]?\d+)?)\s*(\S.*)", unit):
        factor, unit = float(scaled[1]), scaled[2]
        if not factor > 0:
            raise ValueError(
                f"The factor of {name!r} must be a number > 0, got {factor:g}. Write {name}[72 deg]"
                " if one recorded unit is 72 deg."
            )
    if unit.startswith(COUNTS):
        unit, _, turn = unit.partition("/")
    plain = normalize_unit(unit)
    if plain not in _UNITS[role]:
        of = next((other for other, known in _UNITS.items() if plain in known), None)
        hint = f" A {of} is named by --{of}." if of else suggestion(plain, _UNITS[role], 0.5)
        if role in ("position", "velocity", "force") and plain in ELECTRIC:
            unit = {"position": "deg", "velocity": "rpm", "force": "N.m"}[role]
            hint = f" Give what one {plain} is: '{name}[0.5 {unit}]', say."
        raise ValueError(
            f"The {role} must be in one of {', '.join(_UNITS[role])}, got {unit!r}.{hint}"
        )
    if turn and not (turn.replace(".", "", 1).isdigit() and float(turn) > 0):
        raise ValueError(f"Counts in a turn must be a number > 0, got {turn!r}. Write counts/4096.")
    return plain, factor, float(turn) if turn else None


def _with_unit(role: str, shape: Shape, j: int, turns: bool, t: Any = None) -> Chosen:
    """Return column j in the given role, with the unit that the file states or that the numbers
    suggest. `t`: times [s] if known.
    """
    name, values = shape.names[j].strip(), shape.values[:, j]
    unit = _stated_unit(role, shape, j)
    chosen = Chosen(role, j + 1, shape.names[j], "", True)
    if role in ("position", "reference") and j in shape.wraps and unit in (None, *COUNTS):
        wrap = shape.wraps[j]
        known = [u for u, turn in _TURNS.items() if abs(wrap / turn - 1) < 1e-3 and unit is None]
        if known:
            return dataclasses.replace(chosen, unit=known[0])
        # A range set by the number of bits does not show the counts in a turn.
        sure = wrap in _COUNTERS_OF_BITS
        per_turn = None if sure else wrap
        return dataclasses.replace(chosen, unit="counts", sure=sure, per_turn=per_turn)
    if unit is not None and unit in _UNITS[role]:
        chosen = dataclasses.replace(chosen, unit=unit)
        if unit in ("V", "mV", "%"):
            doubt = (
                f"{chosen.label} is in {unit}. The torque is proportional to it if it is the"
                " command of a current controller, but not if it is the motor voltage."
                if unit != "%"
                else f"{chosen.label} is in {unit}, of a rated torque that the file does not state."
            )
            return dataclasses.replace(chosen, sure=False, doubt=doubt)
        return chosen
    if unit is not None:
        doubt = f"{chosen.label} is in {unit}, which is not a unit of a {role}."
        to = _likely_units(role, values, turns, t, set())[0]
        return dataclasses.replace(chosen, unit=to, sure=False, doubt=doubt, factor=1.0)
    words = {word for name in shape.names for word in _tokens(name)}
    if ({"position", "velocity", "effort"} <= words) and role in _ROS:
        return dataclasses.replace(chosen, unit=_ROS[role])
    to, *others = _likely_units(role, values, turns, t, set(_tokens(name)))
    doubt = _doubt_of(chosen, to, tuple(others), values)
    sure = role == "time" and role == role_of(shape, j) and not others and not doubt
    return dataclasses.replace(chosen, unit=to, sure=sure, others=tuple(others), doubt=doubt)


def _stated_unit(role: str, shape: Shape, j: int) -> str | None:
    """Return the unit that the file or the name of column j states, or None."""
    unit, name = shape.units[j], shape.names[j].strip()
    words = set(_tokens(name))
    if role == "time":
        if unit is None and normalize_unit(name) in TIME and name != "t":
            unit = normalize_unit(name)
        for word, short in _TICKS.items():
            unit = short if unit is None and word in words else unit
    if role == "velocity" and unit is None and "rpm" in words:
        return "rpm"
    if role == "position" and unit is None and {*COUNTS, "cnt"} & words:
        return "counts"
    return unit


def _doubt_of(chosen: Chosen, unit: str, others: tuple[str, ...], values: np.ndarray) -> str:
    """Return a sentence that says why the user must confirm a guessed unit, or ""."""
    if chosen.role == "force" and "u" in _tokens(chosen.name):
        return f"{chosen.label} can be a force, a torque or a voltage."
    if found := _UNKNOWN_UNIT.search(chosen.name):
        return f"{chosen.label} has {found[0]!r} in its name, which is not a known unit."
    if others:
        allowed = " and ".join((unit, *others))
        return f"The unit of {chosen.label} is not stated, and its numbers fit {allowed}."
    x = np.abs(_finite(values))
    low, high = _USUAL.get(unit, (0.0, np.inf))
    if x.size and not low <= np.max(x) <= high:
        size = f"{np.max(x):.3g} {unit}"
        return f"The unit of {chosen.label} is not stated, and {size} would be unusual."
    return ""


def _likely_units(
    role: str, values: np.ndarray, turns: bool, t: Any, words: set[str]
) -> tuple[str, ...]:
    """Return the units that a column's numbers and `words` suggest, the most likely unit first."""
    x = _finite(values)
    wide = float(np.ptp(x)) if x.size else 0.0
    size = float(np.max(np.abs(x), initial=0.0))
    if role == "time":
        return time_units(values)
    if role in ("position", "reference"):
        if role == "position" and np.all(x == np.round(x)) and wide > (20 if turns else 5000):
            return ("counts",) if turns else ("um", "counts")
        known = None
        if t is not None:
            there = np.isfinite(values + t)
            known, x = t[there], values[there]
        return position_units(known, x, turns, bool(words & _ANGLES))
    if role == "velocity" and turns:
        is_rpm = wide > 1000 or "drehzahl" in words
        return ("rpm", "rad/s") if is_rpm else ("rad/s", "rpm", "deg/s")
    if role == "velocity":
        return ("mm/s", "m/s", "km/h") if wide > 10 else ("m/s", "mm/s", "km/h")
    if role == "pressing":
        return ("N",)
    unit = "A" if role == "current" else "N.m" if turns else "N"
    return (unit, f"m{unit}") if size > _USUAL[unit][1] else (unit,)


def times_in_seconds(shape: Shape, time: Chosen | None, rate: float | None) -> Any:
    """Return the times of all rows [s] from column `time` or from `rate`; else return None."""
    if time is None:
        return None if rate is None else np.arange(len(shape.values)) / rate
    return TIME[time.unit].si * (time.factor or 1.0) * shape.values[:, time.number - 1]


def unit_of_clock(shape: Shape, number: int, time: Chosen | None) -> str:
    """Return the unit of a further column of times. `number`: number of this column; `time`: the
    column of the record's time, whose unit is preferred among plausible units.
    """
    own = _with_unit("time", shape, number - 1, turns=True)
    return time.unit if time is not None and time.unit in own.others else own.unit


def role_of(shape: Shape, j: int) -> str | None:
    """Return the role of a column according to its name or unit, or None."""
    words, unit = _tokens(shape.names[j]), shape.units[j]
    by_name = next(
        (role for role, known in _WORDS.items() if set(words) & set(known.split())), None
    )
    if _OTHER_WORDS & set(words):
        by_name = None
        if unit is not None and "state" not in words:  # A state, as in ROS, can be a motion.
            return None
    if unit in ("A", "mA") and "i" in words:
        by_name = "current"  # i_v and i_w are currents of phases.
    if by_name == "current" and {"pos", "position", "angle"} & set(words):
        by_name = "position"  # In "current position", the first word is an adjective.
    # The current of the d axis does not give a torque.
    if "d" in words and (by_name == "current" or unit in ("A", "mA")):
        return None
    # LabVIEW and oscilloscopes call the time "x axis" or "x value".
    if {"x"} < set(words) and set(words) <= {"x", "axis", "value"}:
        by_name = "time"
    if unit is None:
        return by_name
    if unit == "%":
        return "current" if by_name in ("current", "force") else None
    if unit in ("V", "mV") and by_name is None:
        return None
    if unit in ELECTRIC and unit not in COUNTS:
        return "current" if by_name in (None, "current", "force", "reference") else by_name
    if by_name in ("reference", "pressing") and unit in _UNITS[by_name]:
        return by_name
    kinds = ("time", "position", "velocity", "force")
    found = next((role for role in kinds if unit in _UNITS[role]), None)
    return found or (None if unit in ACCELERATION else by_name)


def side_of(name: str) -> int:
    """Return -1 if a name is that of the motor of a gear, 1 if that of its load, otherwise 0."""
    words = set(_tokens(name))
    return -1 if words & _MOTOR_WORDS else int(bool(words & _LOAD_WORDS))


def _tokens(name: str) -> list[str]:
    """Return the words of a name in lower case: ["motor", "current"] for "motorCurrent [A]"."""
    text = re.sub(r"[\[(].*?[\])]", " ", name)
    text = re.sub(r"([a-zäöüé])([A-Z])", r"\1 \2", text)
    return [word.lower() for word in re.split(r"[^A-Za-zÄÖÜäöüéèó#]+", text) if word]


def turns_by_words(shape: Shape, columns: dict[str, Chosen]) -> bool:
    """Return True if the name of a column shows that the machine turns."""
    used = [column for role, column in columns.items() if role != "time"]
    return any(_TURNING_WORDS & set(_tokens(shape.names[c.number - 1])) for c in used)


def _turns(units: dict[str, str | None]) -> bool:
    """Return False if `units` (role -> unit) show a translation; otherwise True (rotation)."""
    for role, unit in units.items():
        for known in (POSITION, VELOCITY, FORCE):
            if unit in known and role != "pressing":
                return known[unit].rotational
    return True


def is_linear(columns: dict[str, Chosen]) -> bool:
    """Return True if the units of these columns are those of a translation."""
    return not _turns({chosen.role: chosen.unit for chosen in columns.values()})


def _own_clock(shape: Shape, time: Chosen | None, j: int) -> int | None:
    """Return the number of the column with the times of column j, in a file in which each clock
    precedes its columns. Return None for the times of the record, in column `time`.
    """
    clocks = clocks_of(shape)
    if time is None or not clocks:
        return None
    own, others = _clock_of(clocks, j), {*range(len(shape.names))} - {*clocks}
    is_separate = time.number - 1 in {_clock_of(clocks, k) for k in others} - {own}
    return own + 1 if is_separate else None


def _clock_of(clocks: list[int], j: int) -> int:
    """Return the last column of times before column j; without one, the first column of times."""
    before = [c for c in clocks if c < j]
    return before[-1] if before else clocks[0]


def _finite(values: np.ndarray) -> np.ndarray:
    """Return the finite numbers of a column."""
    return values[np.isfinite(values)]


def _rises(values: np.ndarray, mostly: bool = False) -> bool:
    """Return True if the numbers increase. If `mostly`, some numbers may repeat, and at most 1 % of
    the numbers may decrease.
    """
    steps = np.diff(_finite(values))
    if mostly and steps.size > 2:
        return bool(np.mean(steps >= 0) > 0.99 and np.mean(steps > 0) > 0.1)
    return steps.size > 2 and bool(np.all(steps > 0))


def _is_counter(shape: Shape, j: int) -> bool:
    """Return True for a column of row numbers."""
    x = shape.values[:, j]
    if not shape.names[j]:
        return bool(x[0] in (0, 1) and np.all(np.diff(x) == 1))
    return bool(set(_tokens(shape.names[j])) & _COUNTERS) and _rises(x)
