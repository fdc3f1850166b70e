"""Progress, printing, and errors in one sentence, for all commands."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

import typer

from frictax.interrupts import handle_sigterm, note_key_answered
from frictax.progress import Work, show_progress
from frictax.text import printable

# Command line as the user typed it, for the report; None if a program calls the commands.
command_line: ContextVar[str | None] = ContextVar("command_line", default=None)

# Exit codes. Shells use 130 for a keyboard interrupt.
DATA_FAILED, USAGE, INTERRUPTED = 1, 2, 130


def say(text: str, *, err: bool = False) -> None:
    """Print a text with escaped control characters."""
    typer.echo(printable(text), err=err)


def print_error(sentence: str) -> None:
    """Print a sentence on the error stream; do nothing if this stream is closed."""
    with contextlib.suppress(OSError):
        say(f"frictax: {sentence}", err=True)


def end(sentence: str, code: int = USAGE) -> NoReturn:
    """Print a sentence on the error stream, and end with the exit code `code`."""
    if code == INTERRUPTED:
        note_key_answered()
    print_error(sentence)
    raise typer.Exit(code)


@contextlib.contextmanager
def plain_errors(options: bool = True) -> Iterator[None]:
    """After a user's mistake, end with one sentence and without a traceback. `options`: whether to
    replace argument names in messages by option names.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # The program that reads the output has ended, which is not a mistake of the user.
    except KeyboardInterrupt:
        end("Interrupted.", INTERRUPTED)
    except MemoryError:
        end("The memory of this machine is too small. Use a smaller part of the data.", DATA_FAILED)
    except OverflowError:
        end("A number is too large or too small to compute with. Check the units.", DATA_FAILED)
    except (ValueError, KeyError, OSError, ImportError) as error:
        if isinstance(error, ImportError) and error.name is not None:
            raise  # The installation of Python is incomplete, which is not a mistake of the user.
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
    """Replace argument names in a message of the library by the names of options.

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
def progress() -> Iterator[Work]:
    """Show the progress of the command in one line of the error stream, if it is a terminal."""
    with show_progress(sys.stderr.isatty(), "frictax") as work:
        yield work


def keys_are_raised() -> None:
    """Let Ctrl-C or SIGTERM raise an exception, so files are written completely or not at all."""
    from frictax.cli import _leave

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _leave:
        signal.signal(signal.SIGTERM, handle_sigterm)


def keep_compiled() -> None:
    """Store compiled programs for the next run, in a folder to which only this user can write."""
    import jax

    from frictax.programs import store
    from frictax.programs.store import check_jax_cache

    store.report_line = print_error
    check_jax_cache(keep=True)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def conditions(texts: list[str]) -> dict[str, str]:
    """Return a dict from column to value, from texts COLUMN=VALUE."""
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


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raise `FileExistsError` for a file that exists, unless `overwrite`."""
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists. Give --overwrite to replace it, or another file with --out."
        )


def is_stdout(path: Path | None) -> bool:
    """Return whether the path is "-", which means the standard output."""
    return path is not None and str(path) == "-"


def write_json(path: Path, text: str, overwrite: bool) -> None:
    """Write a JSON text to a file, or to the standard output."""
    if is_stdout(path):
        sys.stdout.write(text)
        return
    from frictax.files.replacing import check_target, write_whole

    write_whole(check_target(path, "the JSON"), text, replace=overwrite)


def show(*parts: Any) -> None:
    """Print tables and texts on the standard output, separated by empty lines. Without a terminal,
    lines have up to 160 characters.
    """
    from rich.console import Console
    from rich.text import Text

    class PlainConsole(Console):
        """A console that escapes control characters in printed texts."""

        def render(self, renderable: Any, options: Any = None) -> Iterator[Any]:
            for segment in super().render(renderable, options):
                is_own = segment.control is not None  # control codes from rich itself
                yield segment if is_own else segment._replace(text=printable(segment.text))

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160
    console = PlainConsole(markup=False, highlight=False, emoji=False, width=width)
    for i, part in enumerate(parts):
        if i:
            console.print()
        # Texts to copy, and paths, must not be wrapped at the width of the terminal.
        console.print(
            Text(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str)
        )
