"""`frictax init`: from a measured file, or an example, to a problem file."""

import dataclasses
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import DATA, FIT, OUT, Overwrite, option, positive_number
from .working import USAGE, end, plain_errors

if TYPE_CHECKING:
    from frictax.problems.starting import Draft

_COLUMN = "COLUMN[UNIT]"


def _column(what: str) -> Any:
    return option(DATA, metavar=_COLUMN, help=what)


def _number(what: str, *names: str) -> Any:
    return option(FIT, *names, metavar="NUMBER", help=what, callback=positive_number)


def init(
    record: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.csv", help="A text file of a motion, or of steady speeds."),
    ] = None,
    machine: Annotated[
        str | None,
        option(FIT, metavar="KIND", help="rotor, axis, gear, pendulum, servo, brake or sweep."),
    ] = None,
    time: Annotated[str | None, _column("The time: 't[ms]', '1[s]'.")] = None,
    rate: Annotated[
        float | None,
        option(
            DATA,
            metavar="HZ",
            help="Samples in a second, where no column holds the time.",
            callback=positive_number,
        ),
    ] = None,
    position: Annotated[
        str | None, _column("The position: 'q[mm]', 'phi[deg]', 'enc[counts/4096]'.")
    ] = None,
    velocity: Annotated[str | None, _column("The velocity: 'n[rpm]', 'v[mm/s]'.")] = None,
    force: Annotated[str | None, _column("The force or torque: 'F[N]', 'M[mN.m]'.")] = None,
    current: Annotated[
        str | None, _column("A motor's current: 'i[A]'; needs --torque-constant.")
    ] = None,
    reference: Annotated[
        str | None, _column("What a controller is asked for: 'q_ref[rad]'.")
    ] = None,
    pressing: Annotated[str | None, _column("A brake's normal force: 'fn[N]'.")] = None,
    torque_constant: Annotated[
        float | None,
        _number(
            "Torque [N.m/A], or force [N/A], per ampere, of a current in mA too.",
            "--torque-constant",
            "--force-constant",
        ),
    ] = None,
    ratio: Annotated[
        float | None, _number("Of a gear: turns of the motor in a turn of the load.")
    ] = None,
    inertia: Annotated[
        float | None, _number("Of a gear's motor alone, or of a brake's wheel [kg.m2].")
    ] = None,
    radius: Annotated[
        float | None, _number("Of a brake's face, times the number of faces [m].")
    ] = None,
    kp: Annotated[float | None, _number("Of a servo: gain of the position loop [1/s].")] = None,
    kv: Annotated[
        float | None, _number("Of a servo: gain of the speed loop [N.m.s/rad or N.s/m].")
    ] = None,
    mgl: Annotated[
        float | None, _number("Of a pendulum: torque of gravity when horizontal [N.m].")
    ] = None,
    yes: Annotated[
        bool, option(DATA, "--yes", "-y", help="Ask nothing: what is guessed is taken.")
    ] = False,
    example: Annotated[
        str | None,
        option(
            DATA,
            "--example",
            metavar="NAME",
            help="In place of a file, a bundled problem: motor or screw_drive.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            OUT, "--out", metavar="FOLDER", help="Where the problem goes; named as the file is."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a problem file for a measured record, to be checked and identified.

    Reads names and numbers, guesses which column is what, asks what it cannot know (five questions
    at most, none where options answer them), proposes machine, what is free and an objective, and
    says what to run next.
    """
    given = dict(locals())
    if (record is None) == (example is None):
        end("Name the file of a record, FILE.csv, or a bundled problem, --example motor.")
    with plain_errors(options=False):
        from frictax.problems.starting import copy_example, write_problem

        if example is not None:
            folder = Path(example) if out is None else out
            written = copy_example(example, folder, overwrite=overwrite)
            simulated = "[sweep]" not in (folder / "problem.toml").read_text(encoding="utf-8")
        else:
            assert record is not None
            draft = _decided(_drafted(record, given), yes)
            name = record.stem if record.suffix else f"{record.name}-problem"
            folder = record.with_name(name) if out is None else out
            written = write_problem(draft, folder, overwrite=overwrite)
            simulated = draft.machine != "sweep"
            typer.echo(_told(draft))
    typer.echo(f"Written: {', '.join(map(str, written))}")
    code = any(path.suffix == ".py" for path in written)
    for line in next_commands(folder, allow_code=code, simulated=simulated):
        typer.echo(line)


def next_commands(folder: Path, *, allow_code: bool = False, simulated: bool = True) -> list[str]:
    """What to run next; a sweep is not simulated."""
    name = shlex.quote(str(folder)) + (" --allow-code" if allow_code else "")
    commands = {
        f"simulate {name}": "a look: the machine with its start values beside the record",
        f"identify {name} --check": "what the record can tell of the machine",
        f"identify {name}": "parameters with intervals, and a report",
    }
    shown = [c for c in commands if simulated or not c.startswith("simulate")]
    wide = max(map(len, shown))
    return ["Next:", *(f"  frictax {c:{wide}}   # {commands[c]}" for c in shown)]


def _drafted(record: Path, given: dict[str, Any]) -> "Draft":
    """What the file and the options tell."""
    from frictax.problems.starting import CONSTANTS, MACHINES, ROLES, first_draft
    from frictax.text import suggestion

    draft = first_draft(record)
    constants = {name: given[name] for name in CONSTANTS if given[name] is not None}
    draft = dataclasses.replace(draft, constants=constants)
    machine = given["machine"]
    if machine is None and given["ratio"] is not None:
        machine = "gear"
    if machine is not None:
        if machine not in MACHINES:
            end(
                f"--machine must be one of {', '.join(MACHINES)}, got"
                f" {machine!r}.{suggestion(machine, MACHINES)}"
            )
        draft = _as(draft, machine)
    named = {role: given[role] for role in ROLES if given[role] is not None}
    if given["rate"] is not None:
        if "time" in named:
            end("--rate and --time both say when samples were taken. Leave out one of the two.")
        columns = {r: c for r, c in draft.columns.items() if r != "time"}
        draft = dataclasses.replace(draft, rate=given["rate"], columns=columns)
    return _with(draft, named)


def _as(draft: "Draft", machine: str) -> "Draft":
    """The draft of another machine: units that were guessed are those of its kind of motion."""
    from frictax.problems.starting import guessed

    columns = guessed(draft.shape, linear=machine == "axis") if machine == "axis" else draft.columns
    if draft.rate is not None:
        columns = {r: c for r, c in columns.items() if r != "time"}
    return dataclasses.replace(draft, machine=machine, sure=True, columns=columns)


def _with(draft: "Draft", named: dict[str, str]) -> "Draft":
    """The draft with columns as the user names them; a column has one role."""
    from frictax.problems.starting import told

    columns, by = dict(draft.columns), dict[int, str]()
    for role, text in named.items():
        chosen = told(role, text, draft.shape, columns.get(role), draft.turns)
        if (other := by.setdefault(chosen.number, role)) != role:
            raise ValueError(
                f"{chosen.label} is named both as --{other} and as --{role}. Leave out one of them."
            )
        columns = {r: c for r, c in columns.items() if c.number != chosen.number or r in named}
        columns[role] = chosen
    if "force" in named and "current" not in named:
        columns.pop("current", None)
    if "velocity" in named and "position" not in named:
        columns.pop("position", None)
    return dataclasses.replace(draft, columns=columns)


def _decided(draft: "Draft", yes: bool) -> "Draft":
    """The draft with nothing left open: by the options, by questions, or by its guesses."""
    if not yes and _asks():
        return _asked(draft)
    lack = draft.lacking()
    open_ = [lack] if lack else (draft.unknown() if yes else draft.undecided())
    if open_:
        end(open_[0].says, USAGE)
    return draft


def _asks() -> bool:
    """Whether there is somebody to answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _asked(draft: "Draft") -> "Draft":
    """At most five questions, each with the guess as its default."""
    from frictax.problems.starting import CONSTANTS, MACHINES

    if not draft.sure:
        for name, what in MACHINES.items():
            typer.echo(f"  {name:9} {what}")
        machine = typer.prompt("Which machine?", default=draft.machine)
        while machine not in MACHINES:
            machine = typer.prompt(f"One of {', '.join(MACHINES)}", default=draft.machine)
        draft = _as(draft, machine)
    while draft.lacking() or not all(c.sure for c in draft.used) or draft.unknown_counts():
        draft = _columns_asked(draft)
    for name in draft.asked_constants():
        if name not in draft.constants:
            number = typer.prompt(draft.question(name), type=float)
            while not number > 0:
                number = typer.prompt("A number > 0", type=float)
            draft = dataclasses.replace(draft, constants={**draft.constants, name: number})
    flags = [CONSTANTS[name][0] for name in draft.constants]
    assert len(flags) <= 3, flags
    return draft


def _columns_asked(draft: "Draft") -> "Draft":
    """Show what each column is taken for, and take corrections."""
    from frictax.problems.starting import ROLES

    typer.echo(_told(draft))
    others = [
        name or str(i + 1)
        for i, name in enumerate(draft.shape.names)
        if i + 1 not in {c.number for c in draft.used} | {c.clock for c in draft.used}
    ]
    if others:
        typer.echo(f"  not used: {', '.join(others)}")
    lack = draft.lacking()
    if lack:
        typer.echo(f"  {lack.says}")
    elif draft.unknown_counts():
        typer.echo("  Counts need those in a turn: position=NAME[counts/4096]")
    answer = typer.prompt(
        "Right? Enter, or what differs, as position=enc[deg] time=t[ms]",
        default="",
        show_default=False,
    )
    pairs = re.findall(r"(\w+)=((?:[^\s\[]|\s(?!\w+=))+(?:\[[^\]]*\])?)", answer)
    if answer.strip() and not pairs:
        typer.echo("  Write ROLE=COLUMN[UNIT], such as position=enc[deg].")
        return draft
    named = dict[str, str]()
    for role, text in pairs:
        if role == "rate":
            number = float(re.sub(r"[^\d.eE+-]", "", text) or "nan")
            if number > 0:
                columns = {r: c for r, c in draft.columns.items() if r != "time"}
                draft = dataclasses.replace(draft, rate=number, columns=columns)
        elif role in ROLES:
            named[role] = text
        else:
            typer.echo(f"  {role!r} is no role: {', '.join(ROLES)}, rate.")
    try:
        draft = _with(draft, named)
    except ValueError as error:
        typer.echo(f"  {error}")
        return draft
    if pairs:
        return draft
    columns = {r: dataclasses.replace(c, sure=True) for r, c in draft.columns.items()}
    return dataclasses.replace(draft, columns=columns)


def _told(draft: "Draft") -> str:
    """What each column is taken for."""
    import numpy as np

    from frictax.problems.starting import with_article

    lines = [f"{draft.file.name}, taken for {with_article(draft.machine)}:"]
    if draft.rate is not None:
        lines.append(f"  {'rate':9}  {draft.rate:g} Hz")
    wide = max((len(c.shown) for c in draft.used), default=0)
    for column in draft.used:
        x = draft.shape.values[:, column.number - 1]
        sure = "" if column.sure else "   (guessed)"
        lines.append(
            f"  {column.role:9}  {column.shown:{wide}}  {np.nanmin(x):.6g} to"
            f" {np.nanmax(x):.6g}{sure}"
        )
    return "\n".join(lines)
