"""A draft of a problem: columns and machine of a data file, and open questions to the user."""

import dataclasses
from pathlib import Path

import numpy as np

from frictax.measurements.checks import FEWEST
from frictax.measurements.clocks import mean_rate
from frictax.measurements.reading.tables import csv_table
from frictax.measurements.units import FORCE, POSITION, TIME, VELOCITY

from .evidence import coasts, speed_scale, swings_down
from .roles import (
    COUNTS,
    Chosen,
    clocks_of,
    guess_columns,
    is_linear,
    side_of,
    times_in_seconds,
    turns_by_words,
    without_wraps,
)
from .shape import Shape, shape_of

MACHINES = {
    "rotor": "a motor or shaft that turns under a current or torque",
    "axis": "a slide or screw axis that moves under a force",
    "gear": "a motor with a gear and a load",
    "pendulum": "an arm that hangs at the angle 0, free or driven",
    "arm": "a joint of a robot in gravity that turns alone, under a current or torque",
    "spindown": "a rotor that runs down while nothing drives it",
    "coastdown": "a vehicle or slide that rolls out while nothing drives it",
    "servo": "a drive under a position controller that is known",
    "brake": "a wheel slowed by a brake whose normal force is recorded",
    "sweep": "a table of steady speeds and forces",
}
# Machine that coasts without a drive -> the constant that the user must give.
COASTING = {"spindown": "inertia", "coastdown": "mass"}
# Machine -> True if it turns, False if it moves along a line. Other machines can turn or slide.
_TURNS = {
    **dict.fromkeys(("rotor", "gear", "pendulum", "arm", "spindown", "brake"), True),
    **dict.fromkeys(("axis", "coastdown"), False),
}
# Constant that no record contains -> option with which the user gives it, and its description.
CONSTANTS = {
    "torque_constant": (
        "--torque-constant",
        "Torque (or force) per {base} of {drive} [{to}/{base}]",
    ),
    "ratio": ("--ratio", "Ratio of the gear, turns of the motor per turn of the load"),
    "inertia": ("--inertia", "Moment of inertia of the {body} [kg.m2]"),
    "mass": ("--mass", "Mass of the moving body [kg]"),
    "radius": ("--radius", "Mean radius of the brake's face, times the number of faces [m]"),
    "kp": ("--kp", "Gain kp of the position loop [1/s]"),
    "kv": ("--kv", "Gain kv of the speed loop [N.m.s/rad or N.s/m]"),
    "mgl": ("--mgl", "Torque of gravity where the arm is horizontal, m*g*l [N.m]"),
}
_ALWAYS = {
    "gear": ("ratio", "inertia"),
    "brake": ("inertia", "radius"),
    "servo": ("kp", "kv"),
    **{machine: (constant,) for machine, constant in COASTING.items()},
}
DRIVEN = ("rotor", "axis", "gear", "pendulum", "arm")  # machines with a current or a force as input
_OF_GRAVITY = ("pendulum", "arm")
_BODIES = {"gear": "rotor alone", "brake": "wheel", "spindown": "rotor"}


@dataclasses.dataclass(frozen=True)
class Missing:
    """An open question to the user. `flag`: the option that answers the question, with an example;
    `says`: the question with a remedy; `doubtful`: whether the question remains open after `--yes`.
    """

    flag: str
    says: str
    doubtful: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Draft:
    """A problem file in progress: the record, its columns and its machine.

    - `file`, `shape`: the data file, and its layout and numbers.
    - `machine`: one of `MACHINES`; `sure`: whether the file or the user determines the machine.
    - `columns`: role -> column; `rate` [Hz]: sampling rate if no column contains the time;
      `constants`: name -> value.
    - `where`: column -> value of the rows that are read; `part`: number (from 1) of the part that
      is read, for a file whose clock starts again.
    - `reversed`: whether a positive drive accelerates the machine in the negative direction.
    """

    file: Path
    shape: Shape
    machine: str
    sure: bool
    columns: dict[str, Chosen]
    rate: float | None
    constants: dict[str, float]
    where: dict[str, str] = dataclasses.field(default_factory=dict)
    part: int | None = None
    reversed: bool = False

    @property
    def turns(self) -> bool:
        return _TURNS.get(self.machine, not is_linear(self.columns))

    @property
    def drive(self) -> Chosen | None:
        """The column of the drive, or None. A current has precedence over a force."""
        if self.machine in ("servo", "brake"):
            return self.columns.get("reference" if self.machine == "servo" else "pressing")
        if self.machine in COASTING:
            return None
        drive = self.columns.get("current") or self.columns.get("force")
        free = self.machine == "pendulum" and drive is not None and self._still(drive)
        return None if free else drive

    @property
    def gain(self) -> float:
        """Torque (or force) [SI] per recorded unit of the drive's current."""
        if self.drive is None:
            return 1.0
        milli = 1e-3 if self.drive.unit in ("mA", "mV") else 1.0
        return self.constants.get("torque_constant", 1.0) * milli * (self.drive.factor or 1.0)

    @property
    def output(self) -> Chosen | None:
        """The column to fit: the position, else the velocity if it is recorded, else None."""
        return self.columns.get("position") or self.columns.get("velocity")

    def of_motor(self, column: Chosen) -> Chosen:
        """Return a column of motion or torque, referred to the motor. The motion of the load of a
        gear is multiplied by the ratio, and its torque is divided by the ratio.
        """
        ratio, moves = self.constants.get("ratio"), column.role in ("position", "velocity")
        if self.machine != "gear" or ratio is None or side_of(column.name) != 1:
            return column
        if not moves and column.role != "force":
            return column
        if column.per_turn is not None:
            return dataclasses.replace(column, per_turn=column.per_turn / ratio)
        size = ratio if moves else 1.0 / ratio
        return dataclasses.replace(column, factor=size * (column.factor or 1.0))

    @property
    def used_columns(self) -> list[Chosen]:
        if self.machine == "sweep":
            chosen = [self.columns.get("velocity"), self.columns.get("force")]
        else:
            chosen = [self.columns.get("time"), self.drive, self.output]
        return [column for column in chosen if column is not None]

    @property
    def notes(self) -> list[str]:
        """Sentences on how the file was read, on a drive of a machine that nothing drives, and on a
        speed that contradicts the position.
        """
        notes, columns = [*self.shape.notes], self.columns
        drive = columns.get("current") or columns.get("force")
        if self.machine in COASTING and drive is not None and self._still(drive) is None:
            notes.append(
                f"{drive.label} changes, but nothing drives {with_article(self.machine)}. Leave the"
                " time before the drive is switched off out of the record."
            )
        position, velocity = columns.get("position"), columns.get("velocity")
        t = times_in_seconds(self.shape, columns.get("time"), self.rate)
        if position is None or velocity is None or t is None or self.unknown_counts():
            return notes
        x, v = (self.shape.values[:, column.number - 1] for column in (position, velocity))
        scale = speed_scale(t, x, v) if position.clock == velocity.clock else None
        sizes = [self.of_motor(column).size for column in (position, velocity)]
        if scale is not None and abs(share := scale * sizes[0] / sizes[1] - 1) > 0.02:
            notes.append(
                f"{position.label} changes by {share + 1:.4g} times the integral of"
                f" {velocity.label}. Check the units of both, or a gear is between the two."
            )
        return notes

    @property
    def not_used(self) -> list[str]:
        """The names of the columns that are not used, or their numbers if they have no name."""
        used = {c.number for c in self.used_columns} | {c.clock for c in self.used_columns}
        names = enumerate(self.shape.names, start=1)
        return [name or str(i) for i, name in names if i not in used]

    def asked_constants(self) -> list[str]:
        """Return the names of the constants that the user must give."""
        out = list[str]()
        drive = self.drive
        if self.machine in DRIVEN and drive is not None:
            out += ["torque_constant"] if drive.role == "current" else []
        out += _ALWAYS.get(self.machine, ())
        out += ["mgl"] if self.machine == "pendulum" and drive is None else []
        return out

    def question(self, constant: str) -> str:
        """Return a phrase that describes the value to give for a constant."""
        drive, turns = self.drive, self.turns
        return CONSTANTS[constant][1].format(
            drive="" if drive is None else drive.label,
            base="" if drive is None else drive.unit.removeprefix("m"),
            to="N.m" if turns else "N",
            body=_BODIES.get(self.machine, "rotor"),
        )

    def lacking(self) -> Missing | None:
        """Return the first reason why the columns are insufficient for this machine, or None.
        Reasons are a missing or constant column, an unsuitable unit, and repeated times.
        """
        have, machine = self.columns, self.machine
        needed: dict[str, tuple[str, ...]] = {
            "servo": ("reference", "position"),
            "brake": ("pressing",),
            "sweep": ("velocity", "force"),
        }
        for role in needed.get(machine, ()):
            if role not in have:
                return self._no_column(role)
        if machine != "sweep" and self.output is None:
            return self._no_column("velocity" if machine in COASTING else "position")
        free = machine == "pendulum" and "reference" not in have
        if machine in DRIVEN and not free and self.drive is None:
            return self._no_column("current" if self.turns else "force")
        if machine != "sweep" and "time" not in have and self.rate is None:
            return Missing(
                "--rate HZ",
                f"No time column was recognised in {self.file.name}. Give --rate HZ, or --time"
                f" COLUMN. {self._list_columns()}",
            )
        checks = (
            check(column)
            for column in self.used_columns
            for check in (self._still, self._of_other_kind)
        )
        return next(filter(None, (*checks, self._repeats())), None)

    def _list_columns(self) -> str:
        names = ", ".join(name or str(i + 1) for i, name in enumerate(self.shape.names))
        return f"The columns are: {names}."

    def _no_column(self, role: str) -> Missing:
        return Missing(
            f"--{role} COLUMN",
            f"{with_article(self.machine).capitalize()} needs a column of its {role}, and none was"
            f" recognised. Give --{role} COLUMN. {self._list_columns()}",
        )

    def _still(self, column: Chosen) -> Missing | None:
        """Return a `Missing` if a column is constant; otherwise None."""
        x = self.shape.values[:, column.number - 1]
        x = x[np.isfinite(x)]
        if x.size and np.ptp(x) > 0:
            return None
        says = f"is {x[0]:g} in every row" if x.size else "has no numbers"
        free = column.role in ("current", "force") and self.turns and self.machine != "sweep"
        return Missing(
            f"--{column.role} COLUMN",
            f"{column.label} of {self.file.name} {says}, so it identifies nothing of"
            f" {with_article(self.machine)}. Name another column as --{column.role}, or record a"
            " motion"
            + (
                "; for an arm that swings freely give --machine pendulum, for a rotor that runs"
                " down --machine spindown."
                if free
                else "."
            ),
        )

    def _of_other_kind(self, column: Chosen) -> Missing | None:
        """Return a `Missing` if the unit of a column does not fit the machine: translation for a
        machine that turns, rotation for a machine that moves along a line, a factor for a sweep.
        """
        if column.role in ("time", "current", "pressing"):
            return None
        if column.factor is not None and self.machine == "sweep":
            says = f"{column.doubt} A sweep does not have factors, got {column.as_typed!r}."
            flag = f"--{column.role} COLUMN[UNIT]"
            more = f" Scale the column in the file, and give {flag} with its unit."
            return Missing(flag, says.strip() + more)
        if column.unit in COUNTS:
            if self.turns:
                return None
            kind, example = "counts", f"'{column.name or column.number}[0.001 mm]'"
            remedy = f"Give --{column.role} {example} if one count is 0.001 mm."
        else:
            known = {**POSITION, **VELOCITY, **FORCE}[column.unit]
            if known.rotational == self.turns:
                return None
            kind = (
                f"{column.unit}, a unit of {'a rotation' if known.rotational else 'a translation'}"
            )
            others = {"rotor": "axis", "axis": "rotor", "spindown": "coastdown"}
            other = others.get(self.machine, "spindown" if known.rotational else "axis")
            remedy = f"Give --machine {other}, or --{column.role} COLUMN[UNIT] with its unit."
        does = "turns" if self.turns else "moves along a line"
        return Missing(
            f"--{column.role} COLUMN[UNIT]",
            f"{with_article(self.machine).capitalize()} {does}, and {column.label} is in {kind}."
            f" {remedy}",
        )

    def _repeats(self) -> Missing | None:
        """Return a `Missing` if times repeat or start again; otherwise None."""
        time = self.columns.get("time")
        if self.machine == "sweep" or time is None or self._still(time) is not None:
            return None
        t = self.shape.values[:, time.number - 1]
        there = np.flatnonzero(np.isfinite(t))
        steps = np.diff(t[there])
        starts = there[1:][steps < 0]
        # If times decrease in at most 1 % of the rows, the file consists of several parts. If more
        # than 1 % of the times repeat, the times have too few digits.
        if 0 < starts.size <= 0.01 * t.size:
            by = ""
            for j, name in enumerate(self.shape.names if self.shape.header else ()):
                parts = np.split(self.shape.values[:, j], starts)
                firsts = [part[0] for part in parts]
                alike = all(np.all(part == part[0]) for part in parts)
                # Find a column that is constant in each part, with different values in all parts.
                if not by and name and alike and len(set(firsts)) == len(parts):
                    by = f"{name}={firsts[0]:.15g}"
            flag = f"--where '{by}'" if by else "--part 1"
            return Missing(
                flag,
                f"The time {time.label} of {self.file.name} starts again in row {starts[0] + 1} of"
                f" the numbers, so the file has {starts.size + 1} parts. Give {flag} to read the"
                f" first{', or --part with its number' if by else ''}.",
            )
        if starts.size:
            return Missing(
                "--time COLUMN",
                f"The time {time.label} of {self.file.name} decreases in {starts.size} rows, so it"
                " is not a clock. Sort the rows, or give --time COLUMN or --rate HZ.",
            )
        if not np.mean(steps == 0) > 0.01:
            return None
        rate = mean_rate(t) / TIME[time.unit].si
        count = int(np.sum(steps == 0))
        often = "once" if count == 1 else f"{count} times"
        return Missing(
            f"--rate {rate:.4g}",
            f"{time.label} of {self.file.name} repeats the time of the row before"
            f" {often}. Give --rate {rate:.4g}, its mean rate in Hz, if the"
            " samples are evenly spaced, or write the time with more digits.",
        )

    def open_questions(self) -> list[Missing]:
        """Return the questions about guessed or unknown properties, in the order for the user."""
        out = list[Missing]()
        if not self.sure:
            says = (
                f"{self.file.name} does not state its machine, which looks like"
                f" {with_article(self.machine)}. Give --machine {'|'.join(MACHINES)}."
            )
            out.append(Missing(f"--machine {self.machine}", says, doubtful=True))
        lack = self.lacking()
        if lack is not None:
            return [*out, lack]
        for column in self.used_columns:
            counted = column.unit in COUNTS and column.per_turn is None
            if column.sure or counted:
                continue
            if column.per_turn is not None:
                flag, doubtful = f"--{column.role} '{column.as_typed}'", bool(column.doubt)
                wraps = (
                    f"{column.label} wraps at {column.per_turn:.15g}, which may be its counts in"
                )
                says = column.doubt or f"{wraps} a turn."
                says += f" Give {flag} if that is so{'' if doubtful else ', or --yes to take it'}."
            elif column.factor is not None:
                flag = f"--{column.role} '{column.name or column.number}[FACTOR {column.unit}]'"
                doubtful = True
                says = f"{column.doubt} Give {flag} with the {column.unit} of one recorded unit."
            else:
                flag, doubtful = f"--{column.role} {column.choices}", bool(column.doubt)
                unstated = f"The unit of {column.label} in {self.file.name} is not stated."
                more = "" if column.others or doubtful else f", or --yes to take {column.unit}"
                says = f"{column.doubt or unstated} Give {flag}{more}."
            out.append(Missing(flag, says, doubtful))
        return out + self.unknown()

    def unknown_counts(self) -> list[Missing]:
        """Return a question for each encoder whose number of counts in a turn is unknown."""
        return [
            Missing(
                f"--{column.role} '{column.name or column.number}[counts/4096]'",
                f"The file does not state how many counts of {column.label} make a turn. Give"
                f" --{column.role} '{column.name or column.number}[counts/4096]' with that number.",
            )
            for column in self.used_columns
            if column.unit in COUNTS and column.per_turn is None
        ]

    def unknown(self) -> list[Missing]:
        """Return a question for each number that cannot be guessed."""
        out = self.unknown_counts()
        for name in self.asked_constants():
            if name not in self.constants:
                flag, what = CONSTANTS[name][0], self.question(name)
                says = f"No record contains this number: {what}. Give {flag} NUMBER."
                out.append(Missing(f"{flag} NUMBER", says))
        return out

    def unused_option(self, roles: list[str]) -> str | None:
        """Return a sentence if an option is not used, or None. `roles`: roles that options name."""
        used = {column.role for column in self.used_columns}
        for role in roles:
            if role not in used:
                why = self._why_no_column(role)
                return f"--{role} is not used: {why}. Leave it out, or give another --machine."
        if self.machine == "sweep" and (self.rate is not None or self.part is not None):
            flag = "--part" if self.rate is None else "--rate"
            return f"{flag} is not used: a sweep has no times. Leave it out."
        unused = [name for name in self.constants if name not in self.asked_constants()]
        return self._unused_constant(unused[0]) if unused else None

    def _why_no_column(self, role: str) -> str:
        """Return a clause that says why this machine does not use a column with this `role`."""
        a = with_article(self.machine)
        if self.machine == "sweep":
            return "a sweep is a table of speeds and forces"
        if self.machine in COASTING and role in ("force", "current"):
            return f"nothing drives {a}"
        if role in ("velocity", "force"):
            first = "position" if role == "velocity" else "current"
            return f"{a} is fitted with its {first} where both are named"
        return f"{a} has no such column"

    def _unused_constant(self, name: str) -> str:
        """Return a sentence that says why this machine does not use a constant, with the remedy."""
        flag, drive = CONSTANTS[name][0], self.drive
        if name == "torque_constant" and drive is not None and drive.role == "force":
            return (
                f"{flag} is not used: {drive.label} is taken for a"
                f" {'torque' if self.turns else 'force'} in {drive.unit}. Name the current as"
                f" --current '{drive.name or drive.number}[A]', or leave {flag} out."
            )
        able = [m for m, names in _ALWAYS.items() if name in names]
        able += list(DRIVEN) if name == "torque_constant" else []
        able += ["pendulum"] if name == "mgl" else []
        more = ", or give --machine " + " or ".join(able) if self.machine not in able else ""
        free = " that nothing drives" if self.machine in _OF_GRAVITY else ""
        why = f"{with_article(self.machine)} does not need it"
        if name == "mgl":
            why = f"only a pendulum{free} needs it"
        return f"{flag} is not used: {why}. Leave it out{more}."


def first_draft(
    file: Path,
    rate: float | None = None,
    where: dict[str, str] | None = None,
    part: int | None = None,
) -> Draft:
    """Return a draft from the names and numbers of a file. `rate`, `where` and `part`: see `Draft`.

    **Raises:** `FileNotFoundError`, or `ValueError` for a file without a table of numbers.
    """
    if file.suffix.lower() in (".mat", ".parquet"):
        raise ValueError(
            f"{file.name} is not a text file, and init reads text only. Write the problem file by"
            " hand: docs/problems.md shows one, and its records may be .mat and .parquet files."
        )
    shape = shape_of(file)
    if where:
        layout = (shape.delimiter, shape.decimal, shape.skip, shape.header)
        chosen = csv_table(file, *layout, drop=True).where(where).chosen
        if chosen is not None:
            shape = dataclasses.replace(shape, values=shape.values[chosen])
    shape = without_wraps(shape)
    if part is not None:
        j = next(iter(clocks_of(shape)), None)
        t = np.arange(len(shape.values)) if j is None else shape.values[:, j]
        there = np.flatnonzero(np.isfinite(t))
        ends = [0, *there[1:][np.diff(t[there]) < 0], t.size]
        if not 1 <= part < len(ends):
            raise ValueError(
                f"--part must be a number from 1 to {len(ends) - 1}, got {part}. The clock of the"
                f" file starts again {len(ends) - 2} times."
            )
        shape = dataclasses.replace(shape, values=shape.values[ends[part - 1] : ends[part]])
    if (rows := len(shape.values)) < FEWEST:
        raise ValueError(
            f"{file.name} has {rows} rows of numbers, and a record needs at least {FEWEST}. Check"
            " how it was exported."
        )
    columns = guess_columns(shape, rate=rate)
    if rate is None and "time" not in columns:
        rate = shape.rate
    machine, sure = machine_of(columns, shape, rate)
    return Draft(file, shape, machine, sure, columns, rate, {}, where or {}, part)


def machine_of(
    columns: dict[str, Chosen], shape: Shape, rate: float | None = None
) -> tuple[str, bool]:
    """Return the machine that the columns suggest, and whether the choice is certain."""
    if (by_roles := _machine_by_roles(set(columns), rate)) is not None:
        return by_roles, True
    drive = columns.get("current") or columns.get("force")
    linear = is_linear(columns)
    pushed = drive is not None and np.any(np.nan_to_num(shape.values[:, drive.number - 1]) != 0)
    motion = {role: c for role, c in columns.items() if role in ("position", "velocity")}
    moved = columns.get("velocity") or columns.get("position")
    if not pushed and moved is not None:
        # Without a drive, the speed of a machine decreases to 0.
        x = shape.values[:, moved.number - 1]
        x = x[np.isfinite(x)]
        if "velocity" not in columns:
            width = max(x.size // 100, 1)
            x = np.diff(x[: x.size // width * width].reshape(-1, width).mean(axis=1))
        if coasts(x):
            sure = all(column.sure for column in motion.values())
            return ("coastdown" if linear else "spindown"), sure
    if linear:
        return "axis", True
    samples = [shape.values[:, column.number - 1] for column in motion.values()]
    if drive is None and any(swings_down(x[np.isfinite(x)]) for x in samples):
        return "pendulum", False
    return "rotor", turns_by_words(shape, columns) or any(
        c.sure and r not in ("time", "current") for r, c in columns.items()
    )


def _machine_by_roles(roles: set[str], rate: float | None) -> str | None:
    """Return the machine if the roles of columns determine it without their numbers, or None."""
    is_timed = "time" in roles or rate is not None
    if not is_timed and {"velocity", "force"} <= roles and "position" not in roles:
        return "sweep"
    if "reference" in roles and not roles & {"current", "force"}:
        return "servo"
    return "brake" if "pressing" in roles else None


def with_article(machine: str) -> str:
    """Return the name of a machine with its article, for use in a sentence."""
    noun = {"spindown": "rotor that runs down", "coastdown": "vehicle that coasts"}
    machine = noun.get(machine, machine)
    return f"an {machine}" if machine[0] in "ae" else f"a {machine}"
