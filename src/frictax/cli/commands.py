"""The command line."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from frictax.interrupts import leave
from frictax.text import printable

from . import data_commands
from .design_command import design
from .fleet_command import fleet
from .identify_command import estimates_table, identify
from .init_command import init
from .options import (
    DATA,
    FIT,
    OUT,
    Breakaway,
    Decimal,
    Delimiter,
    Direction,
    EachDirection,
    File,
    Force,
    ForceUnit,
    Json,
    Law,
    Offset,
    Overwrite,
    Robust,
    Sigma,
    SigmaKnown,
    Sign,
    Velocity,
    VelocityUnit,
    Way,
    Where,
    inside_0_1,
    law_option,
    option,
    positive,
)
from .report_command import report as report_of
from .simulate_command import simulate
from .working import (
    DATA_FAILED,
    INTERRUPTED,
    USAGE,
    command_line,
    compare_laws,
    end,
    is_stdout,
    keep_compiled,
    keys_are_raised,
    print_error,
    show,
    start,
    with_sweep,
    write_json,
)

# What costs time to import is imported inside the commands: `frictax --help` is there at once.

app = typer.Typer(
    name="frictax",
    help="Find the friction of a machine from measurements, with intervals and notices.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(data_commands.app, name="data")
app.command(
    epilog="""**Examples**

`frictax init --example motor`

`frictax init run.csv`

`frictax init run.csv --machine rotor --time 't[ms]' --position 'enc[counts/4096]' \
  --current 'i[A]' --torque-constant 0.0525`

It ends with 0 when all is well, 1 when files fail, 2 when the command line is wrong."""
)(init)
app.command(
    epilog="""**Examples**

`frictax identify identification/emps`

`frictax identify identification/xl330_pendulum --allow-code --out results`

It ends with 0 when all is well, 1 when the problem, the data or the fit fail, 2 when the
command line is wrong, 130 when interrupted."""
)(identify)
app.command(
    epilog="""**Examples**

`frictax simulate motor`

It ends with 0 when all is well, 1 when the problem or a run fails, 2 when the command line is
wrong."""
)(simulate)
app.command(
    epilog="""**Examples**

`frictax design motor --out excitation.csv --report design.html`

It ends with 0 when all is well, 1 when the problem or the search fails, 2 when the command line is
wrong, 130 when interrupted."""
)(design)
app.command(
    name="report",
    epilog="""**Examples**

`frictax report motor/result.fit --out again.html`

It ends with 0 when all is well, 1 when the file or the report fails, 2 when the command line is
wrong.""",
)(report_of)
app.command(
    epilog="""**Examples**

`frictax fleet motor records --out fleet.parquet`

`frictax fleet motor runs.parquet --about runs.csv --jobs 8 --resume`

It ends with 0 when all is well, 1 when the problem, the files or all records fail, 2 when the
command line is wrong, 130 when interrupted."""
)(fleet)
app.command(name="table", epilog="`frictax table identification --write`")(estimates_table)


def run() -> None:
    """Run the command line."""
    # A name that the terminal cannot show is shown as it can, and does not end the run.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    # File names that a shell puts in are anybody's, and messages quote them.
    odd = next((word for word in sys.argv[1:] if printable(word) != word), None)
    if odd is not None:
        print_error(
            f"The argument {odd!r} has control characters, which a terminal obeys. Rename it."
        )
        sys.exit(USAGE)
    command_line.set(shlex.join(["frictax", *sys.argv[1:]]))
    code: Any = DATA_FAILED
    try:
        app(prog_name="frictax")
    except SystemExit as end:
        code = end.code
    except OSError as error:  # files are read and written elsewhere, see `plain_errors`
        _print_lost_output(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or DATA_FAILED
        _print_lost_output(error)
        # Python tries again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code == INTERRUPTED:
        leave(INTERRUPTED)
    sys.exit(code)


def _print_lost_output(error: OSError) -> None:
    """Say that the output is lost, unless its reader went away."""
    if not isinstance(error, BrokenPipeError):
        why = (error.strerror or str(error)).lower()
        print_error(f"The output cannot be written: {why}. Free some space, or print elsewhere.")


def _show_version(asked: bool) -> bool:
    if asked:
        import frictax

        typer.echo(f"frictax {frictax.__version__}")
        raise typer.Exit()
    return asked


@app.callback()
def _everywhere(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    del version
    # Before anything is computed: a simulation loop compiled as one function, several times faster
    # on a CPU; 64 bit numbers.
    from frictax.xla import fast_loops, has_started

    if not has_started():  # called from a program, the commands take its setting
        fast_loops()
        keep_compiled()
    import jax

    jax.config.update("jax_enable_x64", True)
    keys_are_raised()


@app.command(
    epilog="""**Examples**

`frictax fit sweep.csv --velocity omega --force torque`

`frictax fit sweep.csv --velocity rpm --velocity-unit rpm --force M \
  --force-unit mN.m --each-direction --report report.html`

`frictax fit sweep.csv --law coulomb --where drive=2 --direction positive --json -`

It ends with 0 when all is well, 1 when the data or the fit fail, 2 when the command line is
wrong."""
)
def fit(
    sweep: File,
    velocity: Velocity = "velocity",
    force: Force = "force",
    velocity_unit: VelocityUnit = "rad/s",
    force_unit: ForceUnit = "N.m",
    where: Where = None,
    direction: Way = Direction.BOTH,
    sign: Sign = 1,
    sigma: Sigma = None,
    sigma_known: SigmaKnown = False,
    breakaway: Breakaway = None,
    delimiter: Delimiter = ",",
    decimal: Decimal = ".",
    citation: Annotated[
        str,
        option(DATA, metavar="TEXT", help="Where the data are from, for the report."),
    ] = "",
    law: Annotated[Law, law_option("The law of friction over speed.")] = Law.STRIBECK,
    exponent: Annotated[
        float | None,
        option(
            FIT,
            metavar="NUMBER",
            help="Of the Stribeck law: 1 (the default) or 2.",
            callback=positive,
        ),
    ] = None,
    each_direction: EachDirection = False,
    neg_law: Annotated[Law | None, law_option("The law for v < 0; means --each-direction.")] = None,
    neg_exponent: Annotated[
        float | None,
        option(
            FIT,
            metavar="NUMBER",
            help="Its exponent; means --each-direction.",
            callback=positive,
        ),
    ] = None,
    offset: Offset = False,
    robust: Robust = False,
    level: Annotated[
        float,
        option(
            FIT,
            metavar="NUMBER",
            help="Of the intervals.",
            callback=inside_0_1,
        ),
    ] = 0.95,
    report: Annotated[
        Path | None,
        option(OUT, metavar="FILE", help="A self-contained HTML report with the picture."),
    ] = None,
    title: Annotated[str | None, option(OUT, metavar="TEXT", help="Of the report.")] = None,
    compare: Annotated[
        bool, option(OUT, "--compare", help="Compare the usual laws as well (some seconds).")
    ] = False,
    modelica: Annotated[
        bool, option(OUT, "--modelica", help="Print the friction as a Modelica modifier.")
    ] = False,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the friction that explains a measured sweep of steady speeds.

    Prints each parameter with its unit, standard error and interval, and says in words what the
    data cannot tell.
    """
    given = dict(locals())  # all options by name, as typer has converted them
    each_direction = each_direction or neg_law is not None or neg_exponent is not None
    neg_law = law if neg_law is None else neg_law
    if exponent is not None and law is not Law.STRIBECK:
        end(
            f"--exponent belongs to the Stribeck law, not to --law {law.value}. Leave it out, or"
            " write --law stribeck."
        )
    if neg_exponent is not None and neg_law is not Law.STRIBECK:
        end(
            f"--neg-exponent belongs to the Stribeck law, not to {neg_law.value}. Leave it out, or"
            " write --neg-law stribeck."
        )
    if title is not None and report is None:
        end("--title is the title of a report: give --report FILE too, or leave it out.")
    if citation and report is None and json is None:
        end("--citation is for the report and the JSON: give --report FILE too, or leave it out.")
    if modelica and is_stdout(json):
        end("--modelica is not used: --json - prints the JSON alone. Name a file for --json.")
    exponent = 1.0 if exponent is None else exponent
    with with_sweep(given, each_direction) as (data, doing):
        import frictax.fitting as fitting
        from frictax.report import found_json

        doing("Fitting")
        loss = fitting.Huber() if robust else fitting.Squares()
        arguments: dict[str, Any] = {"level": level, "loss": loss}
        if each_direction:
            power = exponent if neg_exponent is None else neg_exponent
            arguments["f_neg"] = start(neg_law, data.negative(), power)
        if offset:
            arguments["offset"] = 0.0
        law_here = start(law, data.positive() if each_direction else data, exponent)
        found = fitting.fit(law_here, data, **arguments)
        if compare:
            doing("Comparing")
        made = compare_laws(data, each_direction, robust, offset) if compare else []
        doing("Writing")
        text = None if json is None else found_json(found, made)
        if report is not None:
            from frictax.report import write_sweep_report

            write_sweep_report(
                found, report, made, title=title, command=command_line.get(), overwrite=overwrite
            )
        if json is not None and text is not None:
            write_json(json, text, overwrite)
    if not is_stdout(json):
        from frictax.report import comparison_table, found_table

        show(
            found_table(found),
            *map(comparison_table, made),
            *([found.to_modelica()] if modelica else []),
            *_written(report, json),
        )
    if not found.converged:
        end(
            "The fit did not converge: its numbers are not the answer. Try another law, or look at"
            " the data.",
            DATA_FAILED,
        )


@app.command()
def compare(
    sweep: File,
    each_direction: EachDirection = False,
    offset: Offset = False,
    robust: Robust = False,
    velocity: Velocity = "velocity",
    force: Force = "force",
    velocity_unit: VelocityUnit = "rad/s",
    force_unit: ForceUnit = "N.m",
    where: Where = None,
    direction: Way = Direction.BOTH,
    sign: Sign = 1,
    sigma: Sigma = None,
    sigma_known: SigmaKnown = False,
    breakaway: Breakaway = None,
    delimiter: Delimiter = ",",
    decimal: Decimal = ".",
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Fit Coulomb, Stribeck (exponents 1 and 2) and table laws to a sweep and say which one it asks
    for.

    By the small-sample AIC among laws whose terms are all identifiable, with BIC and the
    leave-one-out error beside it. Measured machines are rarely symmetric: compare
    `--each-direction`, or one `--direction`.
    """
    given = dict(locals())  # all options by name, as typer has converted them
    with with_sweep(given, each_direction) as (data, doing):
        doing("Comparing")
        made = compare_laws(data, each_direction, robust, offset)
        from frictax.report import comparison_json, comparison_table

        if json is not None:
            write_json(json, comparison_json(made), overwrite)
    if not is_stdout(json):
        show(*map(comparison_table, made), *_written(json))


def _written(*paths: Path | None) -> list[str]:
    """Where the files are, to be found after all the numbers."""
    files = [f"Written: {path}" for path in paths if path is not None and not is_stdout(path)]
    return ["\n".join(files)] if files else []
