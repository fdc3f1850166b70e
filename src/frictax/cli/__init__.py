"""The command line: `frictax fit`, `frictax compare`, `frictax data`."""

import os
import signal
import sys
from typing import Any

_INTERRUPTED = b"frictax: Interrupted.\n"


def main() -> None:
    """Run the command line, and end with one sentence and code 130 when a key or SIGTERM stops it."""
    # The first process of a container gets only signals that it handles.
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing is lost while modules are loaded, and some of them abort where a key is raised.
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = _unraisable
    from .commands import run

    run()


def _leave(number: int, frame: Any) -> None:
    os.write(2, _INTERRUPTED)
    os._exit(130)


def _terminate(number: int, frame: Any) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and "frictax.cli.working" not in sys.modules:
        _leave(number, frame)
    from frictax.interrupts import stop_as_by_key

    stop_as_by_key(number, frame)


def _unraisable(what: Any) -> None:
    """A key that comes while Python collects garbage is raised again, see `frictax.interrupts`."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .commands import app

    return app
