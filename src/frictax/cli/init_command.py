"""`frictax init`: write a problem file for a measured record, or copy an example."""

import dataclasses
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .options import (
    DATA,
    FIT,
    OUT,
    argument,
    option,
    overwrite_option,
    positive_number,
    where_option,
    with_options,
)
from .working import DATA_FAILED, USAGE, conditions, end, plain_errors, say

if TYPE_CHECKING:
    from frictax.problems.starting import Draft


def _column(what: str) -> Any:
    return option(DATA, "COLUMN[UNIT]", what)


def _number(what: str, *names: str) -> Any:
    return option(FIT, "NUMBER", what, *names, callback=positive_number)


@dataclasses.dataclass(frozen=True)
class Reading:
    """Options of `init` for the record, the kind of its machine, and the samples that are used."""

    record: Path | None = argument(
        "FILE.csv", "A text file with a motion, or with steady speeds.", default=None
    )
    machine: str | None = option(
        FIT,
        "KIND",
        "rotor, axis, gear, pendulum, arm, spindown, coastdown, servo, brake or sweep. Default: a"
        " guess from the names and numbers in the file.",
    )
    rate: float | None = option(
        DATA, "HZ", "Samples per second, if there is no time column.", callback=positive_number
    )
    where: list[str] | None = where_option()
    part: int | None = option(
        DATA, "N", "The part to read if the clock of the file starts again; 1 is the first.", min=1
    )


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of a record by their roles."""

    time: str | None = _column("The time: 't[ms]', '1[s]'.")
    position: str | None = _column(
        "The position: 'q[mm]', 'phi[deg]', 'enc[counts/4096]', 'CH3[72 deg]' (per volt)."
    )
    velocity: str | None = _column("The velocity: 'n[rpm]', 'v[km/h]'.")
    force: str | None = _column("The force or torque: 'F[N]', 'M[mN.m]'.")
    current: str | None = _column("A motor's current: 'i[A]'; needs --torque-constant.")
    reference: str | None = _column("The reference of a controller: 'q_ref[rad]'.")
    pressing: str | None = _column("A brake's normal force: 'fn[N]'.")


@dataclasses.dataclass(frozen=True)
class Constants:
    """Constants of a machine that are not in its record."""

    torque_constant: float | None = _number(
        "Torque [N.m/A] or force [N/A] per ampere, also for a current in mA.",
        "--torque-constant",
        "--force-constant",
    )
    ratio: float | None = _number("Ratio of a gear: turns of the motor per turn of the load.")
    inertia: float | None = _number(
        "Inertia of a motor (without gear), a brake's wheel or a rotor that runs down [kg.m2]."
    )
    mass: float | None = _number("Mass of a vehicle or slide that rolls to rest [kg].")
    radius: float | None = _number("Mean radius of a brake's face, times the number of faces [m].")
    kp: float | None = _number("Gain of the position loop of a servo [1/s].")
    kv: float | None = _number("Gain of the speed loop of a servo [N.m.s/rad or N.s/m].")
    mgl: float | None = _number("Torque of gravity on a horizontal pendulum [N.m].")


@dataclasses.dataclass(frozen=True)
class Writing:
    """Options for the output folder, for a bundled example, and for questions to the user."""

    yes: bool = option(
        DATA,
        "",
        "Ask no questions. Clear guesses are accepted; a doubtful guess ends the command.",
        "--yes",
        "-y",
        default=False,
    )
    example: str | None = option(
        DATA, "NAME", "Copy a bundled problem instead of reading a file: motor or screw_drive."
    )
    out: Path | None = option(OUT, "FOLDER", "Folder of the problem; default: the file's name.")
    overwrite: bool = overwrite_option()


@with_options
def init(reading: Reading, columns: Columns, constants: Constants, writing: Writing) -> None:
    """Write a problem file for a measured record, to be checked and identified.

    The command reads names and numbers, and recognises the quantity of each column. The command
    asks at most five questions about facts that file and options do not contain. The problem file
    contains the machine, free parameters and an objective. An option without effect is an error.
    """
    example, out, overwrite = writing.example, writing.out, writing.overwrite
    asked = {**vars(reading), **vars(columns), **vars(constants)}
    given = {name: value for name, value in asked.items() if value is not None}
    record = given.pop("record", None)
    if (record is None) == (example is None):
        end("Name the file of a record, FILE.csv, or a bundled problem, --example motor.")
    with plain_errors(options=False):
        from frictax.problems.starting import ROLES, copy_example, with_signs, write_problem

        if example is not None:
            for name in given:
                end(
                    f"--{name.replace('_', '-')} is not used: --example {example} is copied"
                    " without changes. Leave one of the two out."
                )
            folder = Path(example) if out is None else out
            written = copy_example(example, folder, overwrite=overwrite)
            simulated = "[sweep]" not in (folder / "problem.toml").read_text(encoding="utf-8")
        else:
            assert record is not None
            draft = with_signs(_draft(record, given, writing.yes))
            if sentence := draft.unused_option([role for role in ROLES if role in given]):
                end(sentence)
            name = record.stem if record.suffix else f"{record.name}-problem"
            folder = record.with_name(name) if out is None else out
            written = write_problem(draft, folder, overwrite=overwrite)
            simulated = draft.machine != "sweep"
            say(_describe_draft(draft))
    say(f"Written: {', '.join(map(str, written))}")
    code = any(path.suffix == ".py" for path in written)
    say("\n".join(next_commands(folder, allow_code=code, simulated=simulated)))


def next_commands(folder: Path, *, allow_code: bool = False, simulated: bool = True) -> list[str]:
    """Return lines of text with the commands to run next; for a sweep, without `simulate`."""
    name = shlex.quote(str(folder)) + (" --allow-code" if allow_code else "")
    commands = {
        f"simulate {name}": "compare the machine and its start values with the record",
        f"identify {name} --check": "predict the standard errors, before any fit",
        f"identify {name}": "fit the parameters, with intervals and a report",
    }
    shown = [c for c in commands if simulated or not c.startswith("simulate")]
    wide = max(map(len, shown))
    return ["Next:", *(f"  frictax {c:{wide}}   # {commands[c]}" for c in shown)]


def _draft(record: Path, given: dict[str, Any], yes: bool) -> "Draft":
    """Return the draft of a problem from the record file and the options. A user at a terminal
    answers the open questions of the draft. With `yes`, the command uses the guesses of the draft
    as answers. A question without an answer ends the command.
    """
    from frictax.problems.starting import CONSTANTS, MACHINES, ROLES, Options, draft_of
    from frictax.text import suggestion

    machine = given.get("machine")
    if machine is not None and machine not in MACHINES:
        end(
            f"--machine must be one of {', '.join(MACHINES)}, got"
            f" {machine!r}.{suggestion(machine, MACHINES)}"
        )
    if "rate" in given and "time" in given:
        end("--rate and --time both say when samples were taken. Leave out one of the two.")
    columns, constants = (
        {name: given[name] for name in names if name in given} for names in (ROLES, CONSTANTS)
    )
    where = conditions(given.get("where", []))
    part, rate = given.get("part"), given.get("rate")
    draft = draft_of(record, Options(machine, rate, columns, constants, where, part))
    if not yes and _can_ask():
        return _ask(draft)
    lack = draft.lacking()
    doubtful = [open_ for open_ in draft.open_questions() if open_.doubtful]
    if yes:
        open_ = doubtful + ([lack] if lack else draft.unknown())
    else:
        open_ = draft.open_questions()
    if open_:
        first, *others = open_
        more = f" Give also: {'; '.join(one.flag for one in others)}." if others else ""
        end(first.says + more, DATA_FAILED if yes and doubtful else USAGE)
    return draft


def _can_ask() -> bool:
    """Return True if a user at a terminal can answer questions."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask(draft: "Draft") -> "Draft":
    """Ask the user at most five questions, each with the draft's guess as default answer."""
    from frictax.problems.starting import MACHINES, with_machine

    if not draft.sure:
        for name, what in MACHINES.items():
            typer.echo(f"  {name:9} {what}")
        machine = typer.prompt("Which machine?", default=draft.machine)
        while machine not in MACHINES:
            machine = typer.prompt(f"One of {', '.join(MACHINES)}", default=draft.machine)
        draft = with_machine(draft, machine)
    answers = dict[str, str]()
    while draft.lacking() or not all(c.sure for c in draft.used_columns) or draft.unknown_counts():
        draft = _ask_columns(draft, answers)
    for name in draft.asked_constants():
        if name not in draft.constants:
            number = typer.prompt(draft.question(name), type=float)
            while not number > 0:
                number = typer.prompt("A number > 0", type=float)
            draft = dataclasses.replace(draft, constants={**draft.constants, name: number})
    return draft


def _ask_columns(draft: "Draft", answers: dict[str, str]) -> "Draft":
    """Show the role of each column to the user, and apply the user's corrections. Add these to
    `answers`, from role to column. After a new time or rate, apply all answers again.
    """
    from frictax.problems.starting import ROLES, with_clock, with_columns

    say(_describe_draft(draft))
    lack = draft.lacking()
    open_ = [lack] if lack else draft.unknown_counts()
    for sentence in [c.doubt for c in draft.used_columns if c.doubt] + [one.says for one in open_]:
        say(f"  {sentence}")
    answer = typer.prompt(
        "Correct? Press Enter, or type changes such as position=enc[deg]",
        default="",
        show_default=False,
    )
    parts = re.split(r"[\s,;]+(?=\w+=)", answer.strip()) if answer.strip() else []
    if not all(re.match(r"\w+=", part) for part in parts):
        say("  Write ROLE=COLUMN[UNIT], such as position=enc[deg].")
        return draft
    named = dict[str, str]()
    for role, _, text in (part.partition("=") for part in parts):
        if role == "rate":
            number = re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*(k?)(hz)?", text.lower())
            if number is None or not (rate := float(number[1] + (number[2] or ""))) > 0:
                say("  The rate must be a number > 0 [Hz], such as rate=1000.")
            else:
                draft = with_clock(draft, rate * (1000.0 if number[3] else 1.0))
                answers.pop("time", None)
                named = {**answers, **named}
        elif role in ROLES:
            named = {**(answers if role == "time" else {}), **named, role: text}
        else:
            say(f"  {role!r} is not a role. Roles are: {', '.join(ROLES)}, rate.")
    try:
        draft = with_columns(draft, named)
        answers.update(named)
    except ValueError as error:
        say(f"  {error}")
    if parts:
        return draft
    columns = {r: dataclasses.replace(c, sure=True, doubt="") for r, c in draft.columns.items()}
    return dataclasses.replace(draft, columns=columns)


def _describe_draft(draft: "Draft") -> str:
    """Return text: the machine, the sampling rate, and the role and range of each column."""
    import numpy as np

    from frictax.problems.starting import MACHINES

    guess = "" if draft.sure else " (guessed)"
    machine = f"{draft.machine}{guess}: {MACHINES[draft.machine]}"
    lines = [f"{draft.file.name} is read as {machine}."]
    if draft.rate is not None:
        lines.append(f"  {'rate':9}  {draft.rate:g} Hz")
    wide = max((len(c.as_typed) for c in draft.used_columns), default=0)
    for column in draft.used_columns:
        x = draft.shape.values[:, column.number - 1]
        x = x[np.isfinite(x)]
        values = f"{np.min(x):.6g} to {np.max(x):.6g}" if x.size else "no numbers"
        sure = "" if column.sure else f"   (guessed: {column.unit} is not stated in the file)"
        of = ""
        if draft.machine == "gear" and column.role in ("position", "velocity", "force"):
            of = " (of the motor)" if draft.of_motor(column) is column else " (of the load)"
        lines.append(f"  {column.role:9}  {column.as_typed:{wide}}  {values}{of}{sure}")
    if draft.not_used:
        lines.append(f"  not used: {', '.join(draft.not_used)}")
    lines += [f"  {note}" for note in draft.notes]
    if draft.reversed and draft.drive is not None:
        lines.append(
            f"  {draft.drive.label} brakes where force and motion are positive, so it is read with"
            " sign = -1."
        )
    return "\n".join(lines)
