"""A cache of compiled programs on disk: a later process finds a program without tracing it.

JAX's own compilation cache saves only the time for compiling. To find a program in JAX's cache, JAX
must trace the function and translate it for the compiler ("lower" it). Tracing and lowering take
longer than reading the program. In the cache of this module, the key of a program consists of its
dependencies: structure and shapes of the arguments, sources of frictax, and versions of the
packages. Simulations, their derivatives and fits use this cache. Programs that depend on a user's
class or function use the cache of JAX.

Reading a program takes a tenth of a second, mostly outside Python. Each process notes the order in
which it reads programs. A later process reads the next program of this order in advance, in a
thread. `store` chooses the folder of the cache and checks who may have written to this folder.
"""

import contextlib
import functools
import hashlib
import pickle
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from frictax.files.private import read_private
from frictax.files.replacing import write_whole
from frictax.interrupts import Keys, call_interruptibly, result_of, start_job
from frictax.jax_internals import Tracer, strip_locations, without_compilation_cache
from frictax.xla import options_of_fits

from .key import Unknown, key_text, surroundings
from .store import config_of, device, is_safe, program_folder, read_entry, write_entry
from .users_data import Data, UsersData

_reading: dict[Path, Future] = {}
_read_before: set[Path] = set()
_this_thread = threading.local()


def read_with_followers(read: Callable[[Path], Any], path: Path) -> Any:
    """Return the program in the file `path`, read by `read(path)`. Also start to read the programs
    that an earlier process read next. Also note which program this thread read before.
    """
    before, _this_thread.last = getattr(_this_thread, "last", None), path
    if before is not None and before.parent == path.parent and _follower(before) != path:
        with contextlib.suppress(OSError):
            write_whole(_follower_file(before), path.name, replace=True, sync=False, mode=0o600)
    job = _reading.pop(path, None)
    _read_before.add(path)
    following = _follower(path)
    # At most 8 programs are read before they are needed.
    while following is not None and following not in _reading and len(_reading) < 8:
        if following in _read_before or not following.exists():
            break
        _reading[following] = start_job(read, following)
        following = _follower(following)
    return call_interruptibly(read, path) if job is None else result_of(job)


def _follower(path: Path) -> Path | None:
    with contextlib.suppress(ValueError):  # A damaged file is ignored and written again later.
        return path.with_name((read_private(_follower_file(path)) or b"").decode("ascii"))
    return None


def _follower_file(path: Path) -> Path:
    return path.with_suffix(".program.then")


_LEAST_COMPILE_TIME = 0.05  # [s] a program with a shorter compile time is not cached
# Names of the settings of JAX that change a compiled program.
_SETTINGS = (
    "jax_default_device",
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_debug_nans",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
)


_ARRAYS = (jax.Array, np.ndarray, np.generic)


class Programs:
    """Compiled programs in the memory of this process and in a folder, found by a key."""

    def __init__(self, options: Callable[[], dict[str, Any] | None] = lambda: None) -> None:
        self.options = options  # function that returns compiler options in addition to XLA_FLAGS
        self.made: OrderedDict[Any, SimpleNamespace] = OrderedDict()
        self.lock = threading.Lock()

    def run(
        self, key: Any, function: Callable, flat: Callable, parts: Any, arrays: Sequence[Any]
    ) -> Any:
        """Return the result of the call `flat(*arrays)`. The function `flat` is compiled once for
        each `key`, each set of array shapes, and each state of the data that a user's code in
        `parts` reads. A keyboard interrupt stops the call at once. The name of `function` and
        `key_text(parts)` identify a program in the folder. Raise `TypeError` if `key` cannot be
        hashed.
        """
        folder, settings = program_folder(), _settings()
        shapes = [(np.shape(x), x.dtype, getattr(x, "weak_type", False)) for x in arrays]
        whole = (key, folder, settings, *shapes)
        first = program = self._find(whole)
        if first.data is None:
            first.data = UsersData(parts)
        data = first.data.read()
        if data is not None:  # A program with a user's code is not stored in the folder.
            folder, program = None, self._find((whole, data))
        with Keys():
            with program.lock:
                if program.run is None or (program.run.done() and program.run.exception()):
                    program.run = _load_or_compile(
                        function, flat, folder, parts, list(arrays), self.options()
                    )
                    first.data.note_trace(data)
            run = result_of(program.run)
            return _call_with_settings(settings, lambda: run(*arrays))

    def _find(self, key: Any) -> SimpleNamespace:
        """Return the entry of a program in memory, which is empty for a new key."""
        with self.lock:
            empty = SimpleNamespace(lock=threading.Lock(), run=None, data=None)
            program = self.made.setdefault(key, empty)
            self.made.move_to_end(key)
            if len(self.made) > 200:  # largest number of programs in memory
                self.made.popitem(last=False)
        return program

    @staticmethod
    def has(function: Callable, parts: Any) -> bool:
        """Return whether the folder contains the program of `function` for `parts`."""
        folder = program_folder()
        path = None if folder is None else _path(function, folder, parts)
        # An existing file may still be unusable.
        return path is not None and path.exists()


def cached_jit(function: Callable) -> Callable:
    """Return a function like `equinox.filter_jit(function)` whose programs are cached for the next
    process. `function` must return arrays in tuples. A keyboard interrupt stops the call at once,
    also during compilation.

    A call flattens the arguments once. All arguments except arrays are part of the key. The search
    for a program takes a fifth of the time that `filter_jit` needs. If the program fails,
    `filter_jit` repeats the call and reports the error.
    """
    plain, programs = interruptible_jit(function), Programs(lambda: options_of_fits())

    @functools.wraps(function)
    def call(*args) -> Any:
        leaves, structure = jax.tree.flatten(args)
        arrays = [x for x in leaves if isinstance(x, _ARRAYS)]
        if any(isinstance(x, Tracer) for x in arrays):
            return plain(*args)
        fixed = tuple([None if isinstance(x, _ARRAYS) else x for x in leaves])
        # The key contains the types, because 1 == True in Python.
        key = (structure, fixed, tuple(map(type, fixed)))
        try:
            hash(key)
        except TypeError:
            return plain(*args)

        def flat(*arrays) -> Any:
            rest = iter(arrays)
            leaves = [next(rest) if x is None else x for x in fixed]
            return function(*jax.tree.unflatten(structure, leaves))

        flat.__name__ = function.__name__
        try:
            return programs.run(key, function, flat, args, arrays)
        except jax.errors.JaxRuntimeError:
            # `filter_jit` repeats the call and raises errors of `equinox.error_if` with their text.
            return plain(*args)

    return call


def interruptible_jit(function: Callable) -> Callable:
    """Return a function like `equinox.filter_jit(function)` that Ctrl-C stops at once. JAX traces
    `function` again if data that a user's code reads have changed.
    """

    def with_data(_: Data | None, *args) -> Any:
        return function(*args)

    with_data.__name__ = with_data.__qualname__ = getattr(function, "__name__", "function")
    plain = eqx.filter_jit(with_data)

    def find_data(structure: Any, fixed: tuple[Any, ...]) -> UsersData:
        return UsersData((function, jax.tree.unflatten(structure, fixed)))

    cached_data = functools.lru_cache(maxsize=64)(find_data)

    @functools.wraps(function)
    def call(*args) -> Any:
        leaves, structure = jax.tree.flatten(args)
        fixed = tuple([None if isinstance(x, _ARRAYS) else x for x in leaves])
        try:
            data = cached_data(structure, fixed)
        except TypeError:  # An argument cannot be hashed.
            data = find_data(structure, fixed)
        before = data.read()
        if any(isinstance(x, Tracer) for x in leaves):
            result = plain(before, *args)
        else:
            result = _call_with_settings(_settings(), lambda: plain(before, *args))
        data.note_trace(before)
        return result

    return call


def _call_with_settings(settings: tuple[str, ...], function: Callable[[], Any]) -> Any:
    """Call compiled code so that Ctrl-C stops this thread at once. `settings`: the result of
    `_settings()` in this thread. Some settings of JAX belong to a thread. If they differ in the
    helper thread of `call_interruptibly`, this thread calls the code.
    """

    def elsewhere() -> tuple[bool, Any]:
        same = _settings() == settings
        return same, jax.block_until_ready(function()) if same else None

    same, result = call_interruptibly(elsewhere)
    return result if same else jax.block_until_ready(function())


def _load_or_compile(
    function: Callable,
    flat: Callable,
    folder: Path | None,
    args: Any,
    arrays: list,
    options: dict[str, Any] | None,
) -> Future:
    """Return a `Future` of the program for `args`. The program is read from the cache, or compiled
    and written to the cache. Tracing happens in this thread, and compiling in another thread, which
    continues after an interrupt.
    """
    path = None if folder is None else _path(function, folder, args)
    here = device()  # A helper thread can have another default device.
    read = lambda path: _read(path, here)  # noqa: E731
    program: Any = None if path is None else read_with_followers(read, path)
    if program is None:
        return start_job(_lower(flat, path, arrays, options))

    def run(*arrays) -> Any:
        nonlocal program
        try:
            return jax.block_until_ready(program(*arrays))
        except jax.errors.JaxRuntimeError:
            # XLA loads some functions only in a run. If a function is missing, compile again.
            program = _lower(flat, path, list(arrays), options)()
            return program(*arrays)

    return start_job(lambda: run)


def _lower(
    flat: Callable, path: Path | None, arrays: list, options: dict[str, Any] | None
) -> Callable[[], Callable]:
    """Trace and lower `flat`, and return a function that compiles the program, writes it to `path`
    and returns it.
    """
    if path is not None:
        # With a unique name, JAX does not take the program from its own cache. On a CPU, a program
        # from JAX's cache is written without its compiled functions.
        flat.__name__ = f"flat_{uuid.uuid4().hex}"
    begin, least = time.perf_counter(), _LEAST_COMPILE_TIME
    if config_of("jax_compilation_cache_dir"):
        least = config_of("jax_persistent_cache_min_compile_time_secs")
    lowered = jax.jit(flat, compiler_options=options).lower(*arrays)
    if path is not None:
        # Without source locations, a program's file is two fifths smaller and is read faster.
        strip_locations(lowered)

    def compile_program() -> Callable:
        if path is None:
            return lowered.compile()
        with without_compilation_cache():
            program = lowered.compile()
        if time.perf_counter() - begin >= least:
            _write(path, program)
        return program

    return compile_program


def _path(function: Callable, folder: Path, args: Any) -> Path | None:
    """Return the path of the file for the program of `function` with `args`. Return None if the
    program depends on unknown classes, or if another user could have written the file.
    """
    if not is_safe(folder):
        return None
    try:
        made_from = "\n".join(
            (
                surroundings(),
                *_settings(),
                f"{function.__module__}.{function.__qualname__}",
                key_text(args),
            )
        )
    except Unknown:
        return None
    return folder / f"{hashlib.sha256(made_from.encode()).hexdigest()}.program"


def _read(path: Path, on: Any) -> Any:
    """Return the program in a file, loaded on the device `on`. Return None if the file is missing
    or the program is unusable.
    """
    content = read_entry(path)
    if content is None:
        return None
    from jax.experimental.serialize_executable import deserialize_and_load

    try:
        return deserialize_and_load(*pickle.loads(content), execution_devices=[on])
    except Exception:
        # The file may be from another computer. The caller then compiles the program again.
        return None


def _write(path: Path, compiled) -> None:
    """Write a program to the cache, completely or not at all."""
    from jax.experimental.serialize_executable import serialize

    try:
        content = pickle.dumps(serialize(compiled))
    except Exception:  # A program with a callback, for example, cannot be written.
        return
    write_entry(path, content)


def _settings() -> tuple[str, ...]:
    """Return the current values of the settings that a program depends on."""
    return tuple(f"{name} {config_of(name)}" for name in _SETTINGS)
