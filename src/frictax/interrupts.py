"""Long computations that Ctrl-C stops at once.

Python raises `KeyboardInterrupt` in the main thread between two of its own operations, but not
while XLA compiles or runs, which can last a minute. With this module, a helper thread makes a long
call while the main thread waits. Ctrl-C ends the waiting, and the result of the call is lost. Jobs
of `Workers` stop before their next compiled call.
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

_POLL = 0.2  # [s] interval between checks for Ctrl-C; on Windows Ctrl-C does not wake a thread

_idle: deque["_Helper"] = deque()
_busy: set["_Helper"] = set()
_depth: contextvars.ContextVar[int] = contextvars.ContextVar("depth", default=0)
_asked: contextvars.ContextVar["_Stop | None"] = contextvars.ContextVar("asked", default=None)


class _Stop:
    """A request to stop a group of workers; also set if the group around it must stop."""

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
    """A context manager, or decorator of a function, in which no Ctrl-C is lost. Otherwise Python
    drops an exception raised in garbage collection, which is frequent with jax. Compiled code of
    jax that calls Python converts the exception to another error. This context stores the Ctrl-C.
    The next check for Ctrl-C, or the end of the context, raises it again.
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
            signal.signal(signal.SIGINT, _press)
        return self

    def __exit__(self, kind: type | None, why: Any, trace: Any) -> None:
        if self.mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            pressed, Keys.pressed = Keys.pressed, False
            if pressed and (kind is None or issubclass(kind, Exception)):
                raise KeyboardInterrupt from why


@contextlib.contextmanager
def defer_interrupt() -> Iterator[None]:
    """Delay a Ctrl-C until this context ends. Use it for imports: a module that was imported in
    part cannot be imported again.
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
    # XLA compiles in another thread. An exception here would free data that the compiler still
    # reads, and the process would crash (seen with jax 0.10.2). Therefore the next call that checks
    # for an interrupt raises the exception. Without `jax_internals` nothing was compiled.
    internals = sys.modules.get("frictax.jax_internals")
    if internals is None or not internals.waits_for_compiler(frame):
        raise KeyboardInterrupt


def handle_sigterm(number: int, frame: Any) -> None:
    """Handle SIGTERM like Ctrl-C, also if Ctrl-C is ignored."""
    by_key = signal.getsignal(signal.SIGINT)
    (by_key if callable(by_key) else _press)(number, frame)


def stop_here() -> None:
    """Raise `KeyboardInterrupt` if this worker must stop, or if a Ctrl-C was stored."""
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
    """Wait for a job and return its result or raise its error. Ctrl-C ends the waiting at once."""
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
    long calls outside Python. After Ctrl-C the call continues to its end, and its result is lost.
    """
    stop_here()
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    with Keys():
        return result_of(start_job(function, *args))


@contextlib.contextmanager
def nested_work() -> Iterator[None]:
    """Mark the work in this context as part of the enclosing work, if any; see `may_keep`."""
    before = _depth.set(_depth.get() + 1)
    try:
        yield
    finally:
        _depth.reset(before)


def may_keep() -> bool:
    """Return True if the user gets the result of interrupted work, False if enclosing work gets it.
    If the user gets it, note that Ctrl-C is answered, so that no check raises Ctrl-C again.
    """
    is_users = _depth.get() <= 1
    if is_users:
        note_key_answered()
    return is_users


def note_key_answered() -> None:
    """Note that the work has stopped after Ctrl-C, so that no check raises Ctrl-C again."""
    Keys.pressed = False


def processors() -> int:
    """Return the number of processors that this process may use."""
    with contextlib.suppress(AttributeError):  # macOS and Windows do not have this function.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Worker threads, by default one for each processor. Most of the time is spent compiling and
    running compiled code, during which other threads can run Python. Use it as a context. Ctrl-C
    ends the context at once: waiting jobs are cancelled, and running jobs stop before their next
    compiled call. After any other error the context waits for running jobs.
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
        """Start `function` as soon as a thread is free, and return its job, see `result_of`."""
        stop_here()
        job, context, settings = Future(), contextvars.copy_context(), _settings()
        context.run(_asked.set, self.stop)

        def call() -> Any:
            """Call the function with JAX's settings of the thread that submitted it."""
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
        """Return the results of `function` for the entries of `each`, like the built-in `map`."""
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
    if hasattr(os, "register_at_fork"):  # A forked child does not have the threads of its parent.
        os.register_at_fork(after_in_child=lambda: (_idle.clear(), _busy.clear()))


def _at_exit() -> None:
    """At exit, wait for running calls; after an uncaught interrupt wait at most 0.3 s. Before
    Python 3.14 a thread that returns to an interpreter that has ended aborts the process.
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
    """End the process as Python does, without waiting for running calls. Call exit functions and
    flush files, then exit with `code`, or by the signal of Ctrl-C.
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
