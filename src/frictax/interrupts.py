"""Run long computations so that Ctrl-C stops them at once.

Python raises `KeyboardInterrupt` in the main thread only between two Python operations. XLA can
compile or run for a minute without a Python operation. Therefore a helper thread makes a long call,
and the main thread waits. Ctrl-C ends this wait, and the result of the call is lost. A job of
`Workers` stops before its next call of compiled code.
"""

import atexit
import contextlib
import contextvars
import functools
import gc
import io
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, wait
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_POLL = 0.2  # [s] interval between checks for Ctrl-C; on Windows Ctrl-C does not end a wait

_idle: deque["_Helper"] = deque()
_busy: set["_Helper"] = set()
_depth: contextvars.ContextVar[int] = contextvars.ContextVar("depth", default=0)
_asked: contextvars.ContextVar["_Stop | None"] = contextvars.ContextVar("asked", default=None)


class _Stop:
    """A request to stop a group of workers; also set if the enclosing group must stop."""

    def __init__(self) -> None:
        self.above, self.here = _asked.get(), threading.Event()

    def is_set(self) -> bool:
        return self.here.is_set() or (self.above is not None and self.above.is_set())


class _Helper(threading.Thread):
    """A thread that does one job after another, and does not delay the exit of the process."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="frictax helper")
        self.given: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            self.given.get()()


class Keys(contextlib.ContextDecorator):
    """A context manager or function decorator that stores a Ctrl-C, so that it is not lost. The
    next `stop_here`, or the end of the context, raises `KeyboardInterrupt`. Without the context,
    Python drops a `KeyboardInterrupt` raised in garbage collection, which is frequent with JAX. If
    compiled code calls Python, JAX converts a `KeyboardInterrupt` to another error.
    """

    pressed = False

    if TYPE_CHECKING:

        def __call__(self, func: _Function) -> _Function: ...  # pyright: ignore

    def _recreate_cm(self) -> "Keys":
        return Keys()  # Each call of a decorated function gets a new context.

    def __enter__(self) -> "Keys":
        self.mine = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self.mine:
            Keys.pressed = False
            self.hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
            signal.signal(signal.SIGINT, _press)
        return self

    def _unraisable(self, what: Any) -> None:
        """Hide the traceback of a stored Ctrl-C, which is raised again later."""
        if not issubclass(what.exc_type, KeyboardInterrupt):
            self.hook(what)

    def __exit__(self, kind: type | None, why: Any, trace: Any) -> None:
        if self.mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.unraisablehook = self.hook
            pressed, Keys.pressed = Keys.pressed, False
            if pressed and (kind is None or issubclass(kind, Exception)):
                raise KeyboardInterrupt from why


@contextlib.contextmanager
def defer_interrupt() -> Iterator[None]:
    """Delay a Ctrl-C until this context ends. Use this context for imports, because a partly
    imported module cannot be imported again.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came = list[tuple[int, Any]]()
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])


def _press(number: int, frame: Any) -> None:
    Keys.pressed = True
    # XLA compiles in another thread. An exception during compilation frees data that the compiler
    # still reads, and the process crashes (observed with jax 0.10.2). Therefore the next
    # `stop_here` raises it. If `jax_internals` is not imported, XLA does not compile.
    internals = sys.modules.get("frictax.jax_internals")
    if internals is None or not internals.waits_for_compiler(frame):
        raise KeyboardInterrupt


def handle_sigterm(number: int, frame: Any) -> None:
    """Handle SIGTERM like Ctrl-C, also if Ctrl-C is ignored."""
    by_key = signal.getsignal(signal.SIGINT)
    (by_key if callable(by_key) else _press)(number, frame)


def stop_here() -> None:
    """Raise `KeyboardInterrupt` if this worker must stop, or if `Keys` has stored a Ctrl-C."""
    stop = _asked.get()
    is_main = threading.current_thread() is threading.main_thread()
    if (stop is not None and stop.is_set()) or (is_main and Keys.pressed):
        raise KeyboardInterrupt


def start_job(function: Callable[..., Any], *args: Any) -> Future:
    """Start `function(*args)` in a thread, and return the `Future` (job) of its result."""
    job: Future = Future()
    try:
        helper = _idle.pop()
    except IndexError:
        _at_exit_once()
        helper = _Helper()
        helper.start()

    def work() -> None:
        try:
            result = function(*args)
        except BaseException as why:
            _make_idle(helper)
            job.set_exception(why)
        else:
            _make_idle(helper)
            job.set_result(result)

    _busy.add(helper)
    helper.given.put(work)
    return job


def _make_idle(helper: _Helper) -> None:
    _busy.discard(helper)
    _idle.append(helper)


def result_of(job: Future) -> Any:
    """Wait for a job and return its result or raise its error. Ctrl-C ends the wait at once."""
    _wait(job)
    return job.result()


def results_of(jobs: Iterable[Future]) -> list[Any]:
    """Wait for all jobs and return their results. Raise the error of a failed job at once."""
    jobs = list(jobs)
    while True:
        stop_here()
        done, others = wait(jobs, _POLL, FIRST_EXCEPTION)
        for job in done:
            job.result()
        if not others:
            return [job.result() for job in jobs]


def _wait(job: Future) -> None:
    while not job.done():
        stop_here()
        with contextlib.suppress(TimeoutError, CancelledError):
            job.exception(_POLL)


def call_interruptibly(function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` in a helper thread, so that Ctrl-C stops the main thread at once. Use it for
    compiled code. After Ctrl-C the helper thread completes the call, and the result is lost.
    """
    stop_here()
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    with Keys():
        return result_of(start_job(function, *args))


@contextlib.contextmanager
def nested_work() -> Iterator[None]:
    """Mark this context's computation as a part of an enclosing computation; see `may_keep`."""
    before = _depth.set(_depth.get() + 1)
    try:
        yield
    finally:
        _depth.reset(before)


def may_keep() -> bool:
    """Return True if the user gets the partial result of an interrupted computation, False if an
    enclosing computation gets it. If True, also delete the stored Ctrl-C.
    """
    is_users = _depth.get() <= 1
    if is_users:
        note_key_answered()
    return is_users


def note_key_answered() -> None:
    """Delete the stored Ctrl-C, so that it does not also stop the next computation."""
    Keys.pressed = False


def processors() -> int:
    """Return the number of processors that this process may use."""
    with contextlib.suppress(AttributeError):  # macOS and Windows do not have `sched_getaffinity`.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Worker threads, by default one for each processor. Other threads can run Python while one
    thread compiles or runs compiled code. Use `Workers` in a `with` statement. Ctrl-C ends the
    `with` block at once: waiting jobs are cancelled, and running jobs stop before their next call
    of compiled code. After any other error the block waits for running jobs.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = processors() if most is None else most
        self.stop, self.keys, self.lock, self.running = _Stop(), Keys(), threading.Lock(), 0
        self.jobs: list[Future] = []
        self.waiting: deque[tuple[Future, Callable[[], Any]]] = deque()

    def __enter__(self) -> "Workers":
        self.keys.__enter__()
        return self

    def __exit__(self, kind: type | None, why: Any, trace: Any) -> None:
        try:
            if kind is not None:
                self._end()
            if kind is None or not issubclass(kind, KeyboardInterrupt):
                for job in self.jobs:
                    _wait(job)
        except KeyboardInterrupt as key:
            self._end()
            kind = type(key)
            raise
        finally:
            self.keys.__exit__(kind, why, trace)

    def _end(self) -> None:
        """Ask all workers to stop, and return at once."""
        self.stop.here.set()
        with self.lock:
            while self.waiting:
                self.waiting.pop()[0].cancel()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        """Start `function` as soon as a thread is free, and return the job for `result_of`."""
        stop_here()
        job, context, settings = Future(), contextvars.copy_context(), _settings()
        context.run(_asked.set, self.stop)

        def call() -> Any:
            """Call the function with the JAX settings of the thread that submitted the function."""
            if settings is None or settings == _settings():
                return context.run(function, *args)
            import jax

            from frictax.jax_internals import enable_x64

            device, x64 = settings
            with jax.default_device(device), enable_x64(x64):
                return context.run(function, *args)

        with self.lock:
            self.jobs.append(job)
            self.waiting.append((job, call))
            more = self.running < self.most
            self.running += more
        if more:
            start_job(self._work)
        return job

    def map(self, function: Callable[..., Any], *each: Iterable[Any]) -> list[Any]:
        """Return the results of parallel calls of `function` as a list, like the built-in `map`."""
        return results_of([self.submit(function, *args) for args in zip(*each, strict=True)])

    def _work(self) -> None:
        while True:
            with self.lock:
                if not self.waiting:
                    self.running -= 1
                    return
                job, call = self.waiting.popleft()
            try:
                result = call()
            except BaseException as why:
                job.set_exception(why)
            else:
                job.set_result(result)


def _settings() -> tuple[Any, bool] | None:
    """Return two settings of JAX in this thread: the device, and whether numbers have 64 bits."""
    jax = sys.modules.get("jax")
    return None if jax is None else (jax.config.jax_default_device, jax.config.jax_enable_x64)


@functools.cache
def _at_exit_once() -> None:
    atexit.register(_at_exit)
    if hasattr(os, "register_at_fork"):  # A forked process has only one thread.
        os.register_at_fork(after_in_child=lambda: (_idle.clear(), _busy.clear()))


def _at_exit() -> None:
    """Wait for running calls when the process exits; after an uncaught Ctrl-C wait at most 0.3 s.
    Before Python 3.14, a thread that returns from compiled code after the exit aborts the process.
    """
    start = time.monotonic()
    try:
        while _busy:
            time.sleep(0.02)
            interrupted = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
            if time.monotonic() > start + 0.3 and interrupted:
                leave()
    except KeyboardInterrupt:
        leave()


def leave(code: int | None = None) -> NoReturn:
    """End the process without waiting for running calls. Call the exit functions and flush open
    files, then exit with `code`. If `code` is missing, end by the signal of Ctrl-C.
    """
    atexit.unregister(_at_exit)
    atexit._run_exitfuncs()
    gc.unfreeze()
    for thing in gc.get_objects():
        if isinstance(thing, io.IOBase):
            with contextlib.suppress(Exception):
                thing.flush()
    if code is None and os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(130 if code is None else code)
