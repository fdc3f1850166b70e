"""The command line, `frictax`: one module for each command or group of commands."""

import os
import signal
import sys
from typing import Any

_INTERRUPTED = b"frictax: Interrupted.\n"


def main() -> None:
    """Run the command line. After Ctrl-C or SIGTERM, print one sentence and exit with code 130."""
    # If a standard stream is closed, the next opened file gets the file number of this stream and
    # receives its output. Therefore the null device replaces closed streams.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))
    # In a container the first process receives only signals for which it has a handler.
    signal.signal(signal.SIGTERM, _leave)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # While modules are loaded, an interrupt may end the process at once, because nothing is
        # lost. Some modules abort if an exception is raised while they are loaded.
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = _unraisable
    from .commands import run

    run()


def _leave(number: int, frame: Any) -> None:
    os.write(2, _INTERRUPTED)
    os._exit(130)


def _unraisable(what: Any) -> None:
    """Hide the traceback of a `KeyboardInterrupt` that `frictax.interrupts` raises again later."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .commands import app

    return app
