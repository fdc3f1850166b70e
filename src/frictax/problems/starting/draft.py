"""A problem in the making: what is known of file, columns and machine, and what is still to be
asked.
"""

import dataclasses
from pathlib import Path

import numpy as np

from frictax.measurements.checks import FEWEST

from .roles import COUNTS, Chosen, guessed, is_linear
from .shape import Shape, shape_of

MACHINES = {
    "rotor": "a motor or shaft that turns under a current or torque",
    "axis": "a slide or screw axis that moves under a force",
    "gear": "a motor with a gear and a load",
    "pendulum": "an arm in gravity, free or driven",
    "servo": "a drive under a position controller that is known",
    "brake": "a wheel slowed by a brake whose normal force is recorded",
    "sweep": "a table of steady speeds and forces",
}
# What no record tells: flag, question, and for which machines it is always asked.
CONSTANTS = {
    "torque_constant": (
        "--torque-constant",
        "Torque (or force) per {base} of {drive} [{to}/{base}]",
    ),
    "ratio": ("--ratio", "Ratio of the gear, turns of the motor in a turn of the load"),
    "inertia": ("--inertia", "Moment of inertia of the {body} [kg.m2]"),
    "radius": ("--radius", "Mean radius of the brake's face, times the number of faces [m]"),
    "kp": ("--kp", "Gain kp of the position loop [1/s]"),
    "kv": ("--kv", "Gain kv of the speed loop [N.m.s/rad or N.s/m]"),
    "mgl": ("--mgl", "Torque of gravity where the arm is horizontal, m*g*l [N.m]"),
}
_ALWAYS = {"gear": ("ratio", "inertia"), "brake": ("inertia", "radius"), "servo": ("kp", "kv")}


@dataclasses.dataclass(frozen=True)
class Missing:
    """Something that is not decided: the `flag` that decides it, and a sentence."""

    flag: str
    says: str


@dataclasses.dataclass(frozen=True, eq=False)
class Draft:
    """What is known of a problem.

    - `file`, `shape`: the record and its layout.
    - `machine`: one of `MACHINES`; `sure`: whether the file or the user says so.
    - `columns`: by role; `rate` [Hz] where no column holds the time; `constants` by name.
    """

    file: Path
    shape: Shape
    machine: str
    sure: bool
    columns: dict[str, Chosen]
    rate: float | None
    constants: dict[str, float]

    @property
    def turns(self) -> bool:
        return not (self.machine == "axis" or is_linear(self.columns))

    @property
    def drive(self) -> Chosen | None:
        """The column that drives the machine: a current before a force."""
        if self.machine in ("servo", "brake"):
            return self.columns.get("reference" if self.machine == "servo" else "pressing")
        drive = self.columns.get("current") or self.columns.get("force")
        free = self.machine == "pendulum" and drive is not None and self._still(drive)
        return None if free else drive

    @property
    def gain(self) -> float:
        """Torque, or force, per unit of the drive's current as it was recorded."""
        milli = self.drive is not None and self.drive.unit in ("mA", "mV")
        return self.constants.get("torque_constant", 1.0) * (1e-3 if milli else 1.0)

    @property
    def output(self) -> Chosen | None:
        """The column that is explained: a position before a velocity, which is often made of it."""
        return self.columns.get("position") or self.columns.get("velocity")

    @property
    def used(self) -> list[Chosen]:
        if self.machine == "sweep":
            chosen = [self.columns.get("velocity"), self.columns.get("force")]
        else:
            chosen = [self.columns.get("time"), self.drive, self.output]
        return [column for column in chosen if column is not None]

    def asked_constants(self) -> list[str]:
        """The numbers that no record of this machine tells."""
        out = list[str]()
        drive = self.drive
        if self.machine in ("rotor", "axis", "gear", "pendulum") and drive is not None:
            out += ["torque_constant"] if drive.role == "current" else []
        out += _ALWAYS.get(self.machine, ())
        out += ["mgl"] if self.machine == "pendulum" and drive is None else []
        return out

    def question(self, constant: str) -> str:
        """What a constant is, in words."""
        drive, turns = self.drive, self.turns
        return CONSTANTS[constant][1].format(
            drive="" if drive is None else drive.label,
            base="" if drive is None else drive.unit.removeprefix("m"),
            to="N.m" if turns else "N",
            body="rotor alone" if self.machine == "gear" else "wheel",
        )

    def lacking(self) -> Missing | None:
        """A column without which this machine cannot be identified."""
        have, machine = self.columns, self.machine
        names = ", ".join(name or str(i + 1) for i, name in enumerate(self.shape.names))
        needed: dict[str, tuple[str, ...]] = {
            "servo": ("reference", "position"),
            "brake": ("pressing",),
            "sweep": ("velocity", "force"),
        }
        for role in needed.get(machine, ()):
            if role not in have:
                return _no_column(role, machine, names)
        if machine != "sweep" and self.output is None:
            return _no_column("position", machine, names)
        if machine in ("rotor", "axis", "gear") and self.drive is None:
            return _no_column("current" if self.turns else "force", machine, names)
        if machine != "sweep" and "time" not in have and self.rate is None:
            return Missing("--rate", f"{self._no_times()} It has: {names}.")
        return next(filter(None, map(self._still, self.used)), None)

    def _no_times(self) -> str:
        """That no column is a clock, and why not one that looks like it."""
        for j in self.shape.dated:
            return (
                f"Column {self.shape.names[j] or j + 1!r} of {self.file.name} holds dates or times"
                " of day, which are not read: give the samples in a second as --rate HZ, or write"
                " the time in seconds."
            )
        return (
            f"{self.file.name} has no column of times that is told as such: give --rate HZ, or"
            " --time COLUMN."
        )

    def _still(self, column: Chosen) -> Missing | None:
        """That a column tells nothing."""
        x = self.shape.values[:, column.number - 1]
        x = x[np.isfinite(x)]
        if x.size and np.ptp(x) > 0:
            return None
        says = f"is {x[0]:g} in every row" if x.size else "holds no number"
        free = column.role in ("current", "force") and self.turns and self.machine != "sweep"
        return Missing(
            f"--{column.role}",
            f"{column.label} of {self.file.name} {says}, which tells nothing of"
            f" {with_article(self.machine)}: name another column as --{column.role}, or record a"
            f" motion{'; of an arm that swings freely, give --machine pendulum' if free else ''}.",
        )

    def undecided(self) -> list[Missing]:
        """What was guessed or is not known, in the order in which it is asked."""
        out = list[Missing]()
        if not self.sure:
            out.append(
                Missing(
                    "--machine",
                    f"{self.file.name} does not tell which machine it is of: give --machine"
                    f" {'|'.join(MACHINES)}, or --yes to take it for {with_article(self.machine)}.",
                )
            )
        out += [*([lack] if (lack := self.lacking()) else [])]
        for column in self.used:
            if not column.sure:
                out.append(
                    Missing(
                        f"--{column.role}",
                        f"The unit of {column.label} in {self.file.name} is not told: give"
                        f" --{column.role} '{column.shown}' if that is right, or --yes to take it"
                        " so.",
                    )
                )
        out += self.unknown()
        return out

    def unknown_counts(self) -> list[Missing]:
        """Encoders whose counts in a turn are not told."""
        return [
            Missing(
                f"--{column.role}",
                f"How many counts of {column.label} make a turn is not told: give --{column.role}"
                f" '{column.name or column.number}[counts/4096]', say.",
            )
            for column in self.used
            if column.unit in COUNTS and column.per_turn is None
        ]

    def unknown(self) -> list[Missing]:
        """What cannot even be guessed."""
        out = self.unknown_counts()
        for name in self.asked_constants():
            if name not in self.constants:
                flag = CONSTANTS[name][0]
                out.append(
                    Missing(
                        flag,
                        f"No record tells this number, which must be given: {self.question(name)}."
                        f" Give {flag} NUMBER.",
                    )
                )
        return out


def first_draft(file: Path) -> Draft:
    """What names and numbers of a file tell.

    **Raises:** `FileNotFoundError`, or `ValueError` where it holds no table of numbers.
    """
    if file.suffix.lower() in (".mat", ".parquet"):
        raise ValueError(
            f"{file.name} is no text file, and init reads CSV only. Write the problem file by hand:"
            " docs/problems.md shows a whole one, and records there may be of .mat and .parquet."
        )
    shape = shape_of(file)
    if (rows := len(shape.values)) < FEWEST:
        raise ValueError(
            f"{file.name} has {rows} rows of numbers, and a record needs {FEWEST} at least. Check"
            " how it was exported."
        )
    columns = guessed(shape)
    machine, sure = machine_of(columns)
    return Draft(file, shape, machine, sure, columns, None, {})


def machine_of(columns: dict[str, Chosen]) -> tuple[str, bool]:
    """The machine that columns are likely of, and whether they leave hardly another."""
    have = set(columns)
    if "time" not in have and {"velocity", "force"} <= have and "position" not in have:
        return "sweep", True
    if "reference" in have and not have & {"current", "force"}:
        return "servo", True
    if "pressing" in have:
        return "brake", True
    if is_linear(columns):
        return "axis", True
    if not have & {"current", "force"}:
        return "pendulum", False
    turning = "current" in have or any(c.sure for r, c in columns.items() if r != "time")
    return "rotor", turning


def with_article(machine: str) -> str:
    """A machine in a sentence."""
    return f"an {machine}" if machine[0] in "ae" else f"a {machine}"


def _no_column(role: str, machine: str, names: str) -> Missing:
    return Missing(
        f"--{role}",
        f"{with_article(machine).capitalize()} needs a column of its {role}, and none is told as"
        f" such: give --{role} COLUMN. There are: {names}.",
    )
