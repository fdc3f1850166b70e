"""Options of the commands. A command takes dataclasses of options; see `with_options`."""

import dataclasses
import enum
import functools
import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


class Law(enum.StrEnum):
    """Laws that the command line can fit."""

    COULOMB = "coulomb"
    STRIBECK = "stribeck"
    TABLE = "table"


class Direction(enum.StrEnum):
    """The direction of motion for which the rows of a sweep are used."""

    BOTH = "both"
    POSITIVE = "positive"
    NEGATIVE = "negative"


def _law(name: str) -> Law:
    from frictax.text import suggestion

    if name.lower() not in list(Law):
        raise typer.BadParameter(
            f"{name!r} is none of {', '.join(Law)}.{suggestion(name, [law.value for law in Law])}"
        )
    return Law(name.lower())


def positive(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"must be > 0, got {value:g}. Use 1 (Modelica) or 2 (Gaussian).")
    return value


def positive_number(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"must be > 0, got {value:g}.")
    return value


def inside_0_1(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"must lie between 0 and 1, got {value:g}. Write 0.95 for 95 %.")
    return value


DATA, FIT, OUT = "What was measured", "What is fitted", "What comes out"


def option(
    panel: str, metavar: str, help: str, *names: str, default: Any = None, **more: Any
) -> Any:
    """Return a dataclass field for an option below the heading `panel`, with a `default`. Without
    `names`, the option has the name of its field. If `metavar` is empty, typer chooses the
    placeholder.
    """
    how = {"help": help, "rich_help_panel": panel, "metavar": metavar or None, **more}
    return dataclasses.field(default=default, metadata={"names": names, "how": how})


def argument(metavar: str, help: str, **default: Any) -> Any:
    """Return a dataclass field for a positional argument of a command."""
    metadata = {"argument": typer.Argument(metavar=metavar, help=help)}
    return dataclasses.field(**default, metadata=metadata)


def law_option(help: str, default: Any) -> Any:
    laws = {"parser": _law, "autocompletion": lambda: list(Law)}
    return option(FIT, "|".join(Law), help, default=default, **laws)


def problem_argument() -> Any:
    return argument("FOLDER", "A problem.toml, or the folder that contains it.")


def where_option() -> Any:
    return option(DATA, "COLUMN=VALUE", "Use only rows with this value. Can be repeated.")


def json_option() -> Any:
    return option(OUT, "FILE", "File for the results (JSON, SI units); - is the standard output.")


def overwrite_option() -> Any:
    says = "Replace existing files."
    return option(OUT, "", says, "--overwrite", "-f", default=False)


def allow_code_option() -> Any:
    says = "Let the problem call functions in Python files of its folder. Read these files first."
    return option(FIT, "", says, default=False)


def tolerance_option() -> Any:
    says = (
        "The largest error of a simulation step, relative to the range of each state. Default:"
        " fit.tolerance of the problem, or 1e-7."
    )
    return option(FIT, "NUMBER", says, callback=positive_number)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer whose arguments and options are the fields of its dataclasses."""
    groups = {name: group for name, group in get_type_hints(command).items() if name != "return"}
    parameters = list[inspect.Parameter]()
    for group in groups.values():
        hints = get_type_hints(group)
        for f in dataclasses.fields(group):
            default = inspect.Parameter.empty if f.default is dataclasses.MISSING else f.default
            if "argument" in f.metadata:
                typers = f.metadata["argument"]
            else:
                names = f.metadata["names"]
                # A bool field without given names becomes a flag without a `--no-` form.
                if hints[f.name] is bool and not names:
                    names = (f"--{f.name.replace('_', '-')}",)
                typers = typer.Option(*names, **f.metadata["how"])
            kind = Annotated[hints[f.name], typers]
            parameters.append(
                inspect.Parameter(
                    f.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
                )
            )

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(
            **{
                name: group(**{f.name: given[f.name] for f in dataclasses.fields(group)})
                for name, group in groups.items()
            }
        )

    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@dataclasses.dataclass(frozen=True)
class SweepFile:
    """The text file with a sweep, and the options to read it."""

    sweep: Path = argument(
        "SWEEP.csv", "A text file: a line of column names, then one row for each steady speed."
    )
    velocity: str = option(DATA, "COLUMN", "The column of the speed.", default="velocity")
    force: str = option(DATA, "COLUMN", "The column of the force or torque.", default="force")
    velocity_unit: str | None = option(DATA, "UNIT", "rpm, m/s, ...; default: as in the file.")
    force_unit: str | None = option(DATA, "UNIT", "mN.m, N, ...; default: as in the file.")
    where: list[str] | None = where_option()
    direction: Direction = option(DATA, "", "Rows that are used.", default=Direction.BOTH)
    sign: int = option(DATA, "1|-1", "-1 if the recorded force acts on the body.", default=1)
    sigma: str | None = option(
        DATA, "COLUMN", "Column of the relative accuracy of each row, in the unit of the force."
    )
    sigma_known: bool = option(
        DATA,
        "",
        "Take --sigma as known standard deviations; do not estimate the noise.",
        default=False,
    )
    breakaway: str | None = option(
        DATA, "COLUMN", "Column with 1 in rows with a breakaway force, 0 in other rows."
    )
    delimiter: str = option(DATA, "TEXT", "The separator of the cells; \\t for a tab.", default=",")
    decimal: str = option(DATA, "TEXT", "The decimal sign.", default=".")


@dataclasses.dataclass(frozen=True)
class FitChoice:
    """Options for the fit of a sweep: a law for each direction, a constant force, the loss."""

    each_direction: bool = option(
        FIT, "", "Fit a law for each direction instead of one mirrored law.", default=False
    )
    offset: bool = option(
        FIT, "", "Fit a constant force too, such as a payload's weight.", default=False
    )
    robust: bool = option(
        FIT, "", "Reduce the influence of outliers.", "--robust", "--huber", default=False
    )
