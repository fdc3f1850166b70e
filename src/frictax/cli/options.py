"""The options of the commands."""

import enum
import math
from pathlib import Path
from typing import Annotated, Any

import typer


class Law(enum.StrEnum):
    """Laws that the command line can fit."""

    COULOMB = "coulomb"
    STRIBECK = "stribeck"
    TABLE = "table"


class Direction(enum.StrEnum):
    """Which rows to take."""

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


def law_option(help: str) -> Any:
    return option(
        FIT, help=help, parser=_law, metavar="|".join(Law), autocompletion=lambda: list(Law)
    )


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


def option(panel: str, *names: str, help: str, **more: Any) -> Any:
    """An option below the heading `panel`; its name is that of the argument unless given."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


Problem = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A folder with a problem.toml, or such a file.")
]
AllowCode = Annotated[
    bool,
    option(
        FIT,
        "--allow-code",
        help="Let the problem call functions of Python files beside it. Read them first.",
    ),
]
Tolerance = Annotated[
    float | None,
    option(
        FIT,
        "--tolerance",
        callback=positive_number,
        metavar="NUMBER",
        help=(
            "The largest error of a step of the simulation, relative to the range of each state;"
            " 1e-7, or what the problem says in fit.tolerance."
        ),
    ),
]
File = Annotated[
    Path,
    typer.Argument(
        metavar="SWEEP.csv",
        help="A text file: a line of column names, then one row for each steady speed.",
    ),
]
Velocity = Annotated[
    str,
    option(DATA, metavar="COLUMN", help="The column of the speed."),
]
Force = Annotated[
    str,
    option(
        DATA,
        metavar="COLUMN",
        help="The column of the force or torque.",
    ),
]
VelocityUnit = Annotated[
    str, option(DATA, metavar="UNIT", help="rad/s, rpm, deg/s, m/s, mm/s, ...")
]
ForceUnit = Annotated[str, option(DATA, metavar="UNIT", help="N.m, mN.m, N, kN, ...")]
Where = Annotated[
    list[str] | None,
    option(DATA, metavar="COLUMN=VALUE", help="Only rows with this value. May be repeated."),
]
Way = Annotated[Direction, option(DATA, help="Only rows of this direction.")]
Sign = Annotated[
    int,
    option(
        DATA,
        metavar="1|-1",
        help="-1 for a force recorded as acting on the body.",
    ),
]
Sigma = Annotated[
    str | None,
    option(
        DATA,
        metavar="COLUMN",
        help="Relative accuracy of each row, in the unit of the force.",
    ),
]
SigmaKnown = Annotated[
    bool,
    option(
        DATA,
        "--sigma-known",
        help="Take --sigma as known standard deviations; do not estimate the noise.",
    ),
]
Breakaway = Annotated[
    str | None,
    option(
        DATA,
        metavar="COLUMN",
        help="1 where the force is the one at which motion began, else 0.",
    ),
]
Delimiter = Annotated[
    str,
    option(
        DATA,
        metavar="TEXT",
        help="What separates the cells; \\t for a tab.",
    ),
]
Decimal = Annotated[str, option(DATA, metavar="TEXT", help="The decimal sign.")]
EachDirection = Annotated[
    bool,
    option(
        FIT,
        "--each-direction",
        help="Each direction has a law of its own; else one law is mirrored.",
    ),
]
Offset = Annotated[
    bool, option(FIT, "--offset", help="Fit a constant force too, such as a payload's weight.")
]
Robust = Annotated[
    bool, option(FIT, "--robust", "--huber", help="Huber's loss: outliers pull less.")
]
Json = Annotated[
    Path | None,
    option(
        OUT,
        metavar="FILE",
        help="Results as JSON, in SI units; - for the standard output.",
    ),
]
Overwrite = Annotated[
    bool, option(OUT, "--overwrite", "-f", help="Replace files that are already there.")
]
