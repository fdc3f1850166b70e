"""What the commands share: checks, reading, progress, and errors in one sentence."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from frictax.interrupts import handle_sigterm, note_key_answered
from frictax.progress import Work, watched
from frictax.text import printable

from .options import Direction, Law

if TYPE_CHECKING:
    from frictax.analysis import Comparison
    from frictax.measurements import Sweep

# As the user typed it, for the report; None where the commands are called from a program.
command_line: ContextVar[str | None] = ContextVar("command_line", default=None)

# exit codes; 130 is the shells' for a keyboard interrupt
DATA_FAILED, USAGE, INTERRUPTED = 1, 2, 130


def say(text: str, *, err: bool = False) -> None:
    """Print a text, its control characters written out."""
    typer.echo(printable(text), err=err)


def print_error(sentence: str) -> None:
    """Print a sentence on the error stream, if it takes any."""
    with contextlib.suppress(OSError):
        say(f"frictax: {sentence}", err=True)


def end(sentence: str, code: int = USAGE) -> NoReturn:
    """Say why on the error stream, and leave with that exit code."""
    if code == INTERRUPTED:
        note_key_answered()
    print_error(sentence)
    raise typer.Exit(code)


@contextlib.contextmanager
def plain_errors(options: bool = True) -> Iterator[None]:
    """A user's mistake ends in one sentence, and no traceback; `options`: whether the library's
    arguments are the command's options.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output went away, which is no mistake
    except KeyboardInterrupt:
        end("Interrupted.", INTERRUPTED)
    except MemoryError:
        end("The memory of this machine is too small. Use a smaller part of the data.", DATA_FAILED)
    except (ValueError, KeyError, OSError, ImportError) as error:
        if isinstance(error, ImportError) and error.name is not None:
            raise  # not said by us: an installation that is broken
        end(as_option_names(_sentence(error)) if options else _sentence(error), DATA_FAILED)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        what = error.filename or "A file or the output"
        return f"{what} cannot be used: {error.strerror.lower()}."
    return str(error.args[0]) if error.args else type(error).__name__


_OPTIONS = (
    "velocity_unit force_unit breakaway sign delimiter decimal direction sigma_known sigma offset"
).split()


def as_option_names(sentence: str) -> str:
    """A sentence of the library with its arguments as options.

    >>> as_option_names("Give delimiter=';', or check `velocity_unit`.")
    "Give --delimiter ';', or check --velocity-unit."
    """
    sentence = sentence.replace(", or move fewer through free=[...]", ", or fit a law with fewer")
    sentence = sentence.replace("`f_neg`", "--each-direction")
    for name in _OPTIONS:
        option = "--" + name.replace("_", "-")
        sentence = re.sub(rf"`{name}`", option, sentence)
        sentence = re.sub(
            rf"\b{name}=(\"[^\"]*\"|'[^']*'|<[^>]*>|-?\w+)", rf"{option} \1", sentence
        )
    return sentence


@contextlib.contextmanager
def with_sweep(options: Mapping[str, Any], each_direction: bool) -> "Iterator[tuple[Sweep, Work]]":
    """The sweep that the options describe, once these are checked, and its progress."""
    with plain_errors(), progress() as doing:
        check_usage(options, each_direction=each_direction)
        check_files(options)
        doing("Reading")
        yield read(options), doing


@contextlib.contextmanager
def progress() -> Iterator[Work]:
    """How far the command is, in one line of the error stream, where that is a terminal; no key is
    lost.
    """
    with watched(sys.stderr.isatty(), "frictax") as work:
        yield work


def keys_are_raised() -> None:
    """From here on a key or SIGTERM is an exception, so that files are written whole or not at
    all.
    """
    from frictax.cli import _leave

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _leave:
        signal.signal(signal.SIGTERM, handle_sigterm)


def keep_compiled() -> None:
    """Keep what is compiled, so that the next run begins at once, where no other user can write:
    see `frictax.programs.store`.
    """
    import jax

    from frictax.programs import store
    from frictax.programs.store import check_jax_cache

    store.report_line = print_error
    check_jax_cache(keep=True)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def check_usage(options: Mapping[str, Any], *, each_direction: bool) -> None:
    """Options that contradict each other are a wrong command line: exit code 2."""
    if each_direction and options["direction"] is not Direction.BOTH:
        way = options["direction"].value
        end(
            f"A law for each direction needs both, got --direction {way}. Leave out one of the two."
        )
    if options["sigma_known"] and options["sigma"] is None:
        end(
            "--sigma-known says that --sigma is exact: name its column with --sigma COLUMN, or"
            " leave it out."
        )
    if options["sign"] not in (1, -1):
        end(
            f"--sign must be 1 or -1, got {options['sign']}. It multiplies the force; units are"
            " declared by name."
        )
    for name, known in (("delimiter", None), ("decimal", (".", ","))):
        text = options[name]
        if len(text.replace("\\t", "\t")) != 1 or (known and text not in known):
            end(
                f"--{name} must be {'one character' if known is None else 'a point or a comma'},"
                f" got {text!r}."
            )
    if options["delimiter"] == options["decimal"]:
        end(
            f"--delimiter and --decimal are both {options['decimal']!r}. Name the sign between the"
            " cells: --delimiter ';', say."
        )


def check_files(options: Mapping[str, Any]) -> None:
    """What would be written can be written, and nothing is lost by it: before the work,
    not after.
    """
    sweep, overwrite = options["sweep"], options["overwrite"]
    outputs = {
        name: Path(options[name])
        for name in ("report", "json")
        if options.get(name) is not None and not is_stdout(options[name])
    }
    for name, path in outputs.items():
        if path.exists() and sweep.exists() and path.samefile(sweep):
            end(
                f"--{name} {path} is the sweep itself, which is never overwritten. Name another"
                " file."
            )
    if len({path.resolve() for path in outputs.values()}) < len(outputs):
        end(f"--report and --json both name {outputs['json']}. Give each a file of its own.")
    for name, path in outputs.items():
        if path.is_file() and not overwrite:
            raise FileExistsError(
                f"{path} exists. Give --overwrite to replace it, or name another file for --{name}."
            )
        if name == "report":
            from frictax.report import check_report

            check_report(path)
        else:
            from frictax.files.targets import check_target

            check_target(path, "the JSON")


def read(options: Mapping[str, Any]) -> "Sweep":
    """The sweep that the options describe."""
    from frictax.measurements import Sweep

    path = options["sweep"]
    where = conditions(options["where"] or [])
    rows = ", ".join(f"{column} = {value}" for column, value in where.items())
    name = f"{path.stem} ({rows})" if rows else path.stem
    same = (
        "velocity force sigma breakaway sign velocity_unit force_unit sigma_known decimal".split()
    )
    return Sweep.from_csv(
        path,
        **{option: options[option] for option in same},
        where=where,
        direction=options["direction"].value,
        delimiter=options["delimiter"].replace("\\t", "\t"),
        name=name,
        citation=options.get("citation", ""),
    )


def conditions(texts: list[str]) -> dict[str, str]:
    where: dict[str, str] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            end(f"--where must be COLUMN=VALUE, got {text!r}. Write --where drive=1, say.")
        if column.strip() in where:
            end(
                f"--where names column {column.strip()!r} twice. A row has one value there: ask for"
                " one."
            )
        where[column.strip()] = value.strip()
    return where


def start(law: Law, sweep: "Sweep", exponent: float) -> Any:
    """A law of that kind near the data."""
    import frictax.laws as laws
    from frictax.fitting import starting_law

    kind = {Law.COULOMB: laws.Coulomb, Law.STRIBECK: laws.Stribeck, Law.TABLE: laws.Table}[law]
    return starting_law(kind, sweep, exponent=exponent)


def compare_laws(
    sweep: "Sweep", each_direction: bool, robust: bool, offset: bool
) -> "list[Comparison]":
    """One comparison, or one for each direction."""
    from frictax.analysis import compare
    from frictax.fitting import Huber, Squares

    loss = Huber() if robust else Squares()
    start = 0.0 if offset else None
    return [
        compare(part, loss=loss, offset=start)
        for part in ((sweep.positive(), sweep.negative()) if each_direction else (sweep,))
    ]


def is_stdout(path: Path | None) -> bool:
    """Whether JSON goes to the standard output, alone."""
    return path is not None and str(path) == "-"


def write_json(path: Path, text: str, overwrite: bool) -> None:
    if is_stdout(path):
        sys.stdout.write(text)
        return
    from frictax.files.replacing import write_whole
    from frictax.files.targets import check_target

    write_whole(check_target(path, "the JSON"), text, replace=overwrite)


def show(*parts: Any) -> None:
    """Tables and text on the standard output, an empty line between; wide where no terminal sets a
    width.
    """
    from rich.console import Console
    from rich.text import Text

    class PlainConsole(Console):
        """A console that writes out the control characters of what is printed."""

        def render(self, renderable: Any, options: Any = None) -> Iterator[Any]:
            for segment in super().render(renderable, options):
                is_own = segment.control is not None  # rich's own control codes
                yield segment if is_own else segment._replace(text=printable(segment.text))

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160
    console = PlainConsole(markup=False, highlight=False, emoji=False, width=width)
    for i, part in enumerate(parts):
        if i:
            console.print()
        # text that is to be copied, and paths, are not broken at the terminal's edge
        console.print(
            Text(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str)
        )
