"""Long work that a key stops at once.

Python hands a key (`KeyboardInterrupt`) to the main thread between two of its own steps: not while
XLA compiles or runs, which can last a minute. Here the main thread leaves such a call to a helper
and waits; a key ends the waiting, and the call ends by itself with nobody to look at it. What runs
in `Workers` is asked to stop before its next call.
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

_OFTEN = 0.2  # seconds after which a waiting thread looks up: on Windows no key wakes it
_PATIENCE = 0.3  # seconds that the end of the process waits for a call that was left to itself

_idle: deque["_Helper"] = deque()
_busy: set["_Helper"] = set()
_depth: contextvars.ContextVar[int] = contextvars.ContextVar("depth", default=0)
_asked: contextvars.ContextVar["_Stop | None"] = contextvars.ContextVar("asked", default=None)


class _Stop:
    """Whether some workers are to stop, or those whose work they are part of."""

    def __init__(self) -> None:
        self.above, self.here = _asked.get(), threading.Event()

    def is_set(self) -> bool:
        return self.here.is_set() or (self.above is not None and self.above.is_set())


class _Helper(threading.Thread):
    """A thread that does one thing after the other; the end of the process does not wait for it."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="frictax helper")
        self.given: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            self.given.get()()


class Keys(contextlib.ContextDecorator):
    """While this context, or a function with this decorator, lasts no key is lost.

    Python drops what is raised while it collects garbage, and jax has much of that. Compiled code
    of jax that calls Python turns it into another error. Here a key is remembered, and raised again
    by the next call that looks, at the latest when the context ends.
    """

    pressed = False

    if TYPE_CHECKING:

        def __call__(self, func: _Function) -> _Function: ...  # pyright: ignore

    def _recreate_cm(self) -> "Keys":
        return Keys()  # for each call of a function its own

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
    """A key that comes while this context lasts is heard when it ends.

    For imports: what they leave half done cannot be imported again.
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
    # XLA compiles in a thread of its own. An exception frees what that thread still reads, and the
    # process crashes (seen with jax 0.10.2), so the next call that looks raises the key.
    internals = sys.modules.get("frictax.jax_internals")  # nothing was compiled without it
    if internals is None or not internals.waits_for_compiler(frame):
        raise KeyboardInterrupt


def handle_sigterm(number: int, frame: Any) -> None:
    """A handler of SIGTERM that does what a key does now, also where keys are ignored."""
    by_key = signal.getsignal(signal.SIGINT)
    (by_key if callable(by_key) else _press)(number, frame)


def stop_here() -> None:
    """Raise `KeyboardInterrupt` in workers that were asked to stop, and where a key was lost."""
    stop = _asked.get()
    is_main = threading.current_thread() is threading.main_thread()
    if (stop is not None and stop.is_set()) or (is_main and Keys.pressed):
        raise KeyboardInterrupt


def begun(function: Callable[..., Any], *args: Any) -> Future:
    """What `function` returns, at work in a thread of its own."""
    job: Future = Future()
    try:
        helper = _idle.pop()
    except IndexError:
        helper = _new_helper()

    def work() -> None:
        try:
            result = function(*args)
        except BaseException as why:
            _rest(helper)
            job.set_exception(why)
        else:
            _rest(helper)
            job.set_result(result)

    _busy.add(helper)
    helper.given.put(work)
    return job


def _new_helper() -> _Helper:
    _at_exit_once()
    helper = _Helper()
    helper.start()
    return helper


def _rest(helper: _Helper) -> None:
    _busy.discard(helper)
    _idle.append(helper)


def result_of(job: Future) -> Any:
    """What the job returns or raises, once it ends; a key ends the waiting at once."""
    _wait(job)
    return job.result()


def results_of(jobs: Iterable[Future]) -> list[Any]:
    """What all of them return, or what the first that fails raises, as soon as it does."""
    jobs = list(jobs)
    while True:
        stop_here()
        done, others = wait(jobs, _OFTEN, FIRST_EXCEPTION)
        for job in done:
            job.result()
        if not others:
            return [job.result() for job in jobs]


def _wait(job: Future) -> None:
    while not job.done():
        stop_here()
        with contextlib.suppress(TimeoutError, CancelledError):
            job.exception(_OFTEN)


def waited(function: Callable[..., Any], *args: Any) -> Any:
    """What `function` returns, called so that a key stops the main thread at once.

    For what lasts long outside Python. The call itself goes on to its end where a key was pressed,
    and what it returns is lost.
    """
    stop_here()
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    with Keys():
        return result_of(begun(function, *args))


@contextlib.contextmanager
def as_part() -> Iterator[None]:
    """Work that is part of more, or all of it: see `may_keep`."""
    before = _depth.set(_depth.get() + 1)
    try:
        yield
    finally:
        _depth.reset(before)


def may_keep() -> bool:
    """Whether what a key leaves of this work is for the user, and not for more work that would go
    on with it. If so, this result answers the key.
    """
    is_users = _depth.get() <= 1
    if is_users:
        note_key_answered()
    return is_users


def note_key_answered() -> None:
    """Note that what a key asked for is done: it is not raised again."""
    Keys.pressed = False


def processors() -> int:
    """How many this process may use."""
    with contextlib.suppress(AttributeError):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Threads, one a processor unless said: most of the time goes into compiling and running, which
    leaves Python to others.

    Used as a context. When a key ends it, it is left at once: what has not begun never does, and
    what has stops before its next compiled call. For any other error it waits for that.
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
        """Ask all to stop, and wait for none."""
        self.stop.here.set()
        with self.lock:
            while self.waiting:
                self.waiting.pop()[0].cancel()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        """What `function` returns, as soon as a thread is free to call it; see `result_of`."""
        stop_here()
        job, context, settings = Future(), contextvars.copy_context(), _settings()
        context.run(_asked.set, self.stop)
        with self.lock:
            self.jobs.append(job)
            self.waiting.append((job, lambda: _under(settings, context.run, function, *args)))
            more = self.running < self.most
            self.running += more
        if more:
            begun(self._work)
        return job

    def map(self, function: Callable[..., Any], *each: Iterable[Any]) -> list[Any]:
        """`function` of the first of `each`, of the second, and so on."""
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
    """Those of JAX that are a thread's own: the device, and whether numbers have 64 bits."""
    jax = sys.modules.get("jax")
    return None if jax is None else (jax.config.jax_default_device, jax.config.jax_enable_x64)


def _under(settings: tuple[Any, bool] | None, function: Callable[..., Any], *args: Any) -> Any:
    """What `function` returns under the settings of another thread."""
    if settings is None or settings == _settings():
        return function(*args)
    import jax

    from frictax.jax_internals import enable_x64

    device, x64 = settings
    with jax.default_device(device), enable_x64(x64):
        return function(*args)


@functools.cache
def _at_exit_once() -> None:
    atexit.register(_at_exit)
    if hasattr(os, "register_at_fork"):  # threads stay behind in the parent
        os.register_at_fork(after_in_child=lambda: (_idle.clear(), _busy.clear()))


def _at_exit() -> None:
    """Before Python 3.14 a thread that comes back to an interpreter which is no more aborts the
    process. So its end waits for calls that were left to themselves; after an interrupt that nobody
    caught for a moment only.
    """
    begun = time.monotonic()
    try:
        while _busy:
            time.sleep(0.02)
            if time.monotonic() > begun + _PATIENCE and _interrupted():
                leave()
    except KeyboardInterrupt:
        leave()


def _interrupted() -> bool:
    return isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)


def leave(code: int | None = None) -> NoReturn:
    """End the process as Python does, but for calls at work that nobody waits for: what was
    registered is called, what was written is kept. With that exit code, or by the signal of a key.
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
