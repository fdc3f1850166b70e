"""The command line: all commands, and how it starts and ends."""

import os
import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from frictax.interrupts import leave
from frictax.text import printable

from . import data_commands
from .export_command import export
from .init_command import init
from .problem_commands import design, estimates_table, fleet, identify, report, simulate
from .sweep_commands import compare, fit_sweep_file
from .working import (
    DATA_FAILED,
    INTERRUPTED,
    USAGE,
    command_line,
    keep_compiled,
    keys_are_raised,
    print_error,
)

# Slow modules are imported inside the commands, so that `frictax --help` is fast.

app = typer.Typer(
    name="frictax",
    help="Find the friction of a machine from measurements, with intervals and notices.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(data_commands.app, name="data")


class Command(NamedTuple):
    """A command, the examples in its help, and the `failures` that end it with exit code 1."""

    function: Callable[..., None]
    examples: tuple[str, ...] = ()
    failures: str = ""
    interruptible: bool = False

    @property
    def epilog(self) -> str | None:
        """The text at the end of the command's help."""
        if not self.failures:
            return "\n\n".join(self.examples) or None
        codes = (
            f"Exit code: 0 after success, 1 if {self.failures}, 2 if the command line is"
            f" wrong{', 130 if interrupted' if self.interruptible else ''}."
        )
        return "\n\n".join(["**Examples**", *self.examples, codes])


COMMANDS = {
    "init": Command(
        init,
        (
            "`frictax init --example motor`",
            "`frictax init run.csv`",
            "`frictax init run.csv --machine rotor --time 't[ms]' --position 'enc[counts/4096]'"
            "   --current 'i[A]' --torque-constant 0.0525`",
        ),
        "a file cannot be read or written",
    ),
    "identify": Command(
        identify,
        (
            "`frictax identify identification/emps`",
            "`frictax identify identification/xl330_pendulum --allow-code --out results`",
        ),
        "the problem, the data or the fit fails",
        interruptible=True,
    ),
    "simulate": Command(simulate, ("`frictax simulate motor`",), "the problem or a run fails"),
    "design": Command(
        design,
        ("`frictax design motor --out excitation.csv --report design.html`",),
        "the problem or the search fails",
        interruptible=True,
    ),
    "report": Command(
        report,
        ("`frictax report motor/result.fit --out again.html`",),
        "the file or the report fails",
    ),
    "export": Command(
        export,
        (
            "`frictax export motor --to fmu --input 'motor.tau=linear'`",
            "`frictax export motor --to st --friction bearing --out friction.st`",
        ),
        "the file or the export fails",
    ),
    "fleet": Command(
        fleet,
        (
            "`frictax fleet motor records --out fleet.parquet`",
            "`frictax fleet motor runs.parquet --about runs.csv --jobs 8 --resume`",
        ),
        "the problem, a file or every record fails",
        interruptible=True,
    ),
    "table": Command(estimates_table, ("`frictax table identification --write`",)),
    "fit": Command(
        fit_sweep_file,
        (
            "`frictax fit sweep.csv --velocity omega --force torque`",
            "`frictax fit sweep.csv --velocity rpm --velocity-unit rpm --force M"
            "   --force-unit mN.m --each-direction --report report.html`",
            "`frictax fit sweep.csv --law coulomb --where drive=2 --direction positive --json -`",
        ),
        "the data or the fit fails",
    ),
    "compare": Command(compare),
}
for _name, _command in COMMANDS.items():
    app.command(_name, epilog=_command.epilog)(_command.function)


def run() -> None:
    """Run the command line."""
    # Characters that the terminal cannot show are escaped.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    # A shell may insert file names that another person has chosen, and messages quote these names.
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
    except OSError as error:
        # Only printing raises this error here, because `plain_errors` handles the errors of files.
        _print_lost_output(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or DATA_FAILED
        _print_lost_output(error)
        # Python flushes the output again at its exit, so the output now goes to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code == INTERRUPTED:
        leave(INTERRUPTED)
    sys.exit(code)


def _print_lost_output(error: OSError) -> None:
    """Print that the output is lost, unless the program that reads it has ended."""
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
    # XLA reads these settings before the first computation. `fast_loops` compiles a simulation loop
    # as one function, which is several times faster on a CPU. Numbers have 64 bits.
    from frictax.xla import fast_loops, has_started

    # If XLA has started, another program calls the commands and has chosen its own settings.
    if not has_started():
        fast_loops()
        keep_compiled()
    import jax

    jax.config.update("jax_enable_x64", True)
    keys_are_raised()
