"""Programs are read ahead: with one those that the process before read after it, each by a thread
of its own.

To read a program takes a tenth of a second, most of it outside Python; what a derivative needs on
its way back is read while the way there is.
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
from frictax.interrupts import Keys, begun, result_of, waited
from frictax.jax_internals import Tracer, strip_locations, without_compilation_cache
from frictax.xla import options_of_fits

from .key import Unknown, key_text, surroundings
from .store import config_of, device, is_safe, program_folder, read_entry, write_entry

_MOST = 8  # programs that are read ahead and not yet asked for
_begun: dict[Path, Future] = {}
_seen: set[Path] = set()
_this_thread = threading.local()


def in_succession(read: Callable[[Path], Any], path: Path) -> Any:
    """What `read` returns of the program at `path`; noted as what follows the program that this
    thread read before.
    """
    before, _this_thread.last = getattr(_this_thread, "last", None), path
    if before is not None and before.parent == path.parent and _follower(before) != path:
        _note(before, path)
    job = _begun.pop(path, None)
    _seen.add(path)
    following = _follower(path)
    while following is not None and following not in _begun and len(_begun) < _MOST:
        if following in _seen or not following.exists():
            break
        _begun[following] = begun(read, following)
        following = _follower(following)
    return waited(read, path) if job is None else result_of(job)


def _follower(path: Path) -> Path | None:
    with contextlib.suppress(ValueError):  # of a damaged note: it is written again
        return path.with_name((read_private(_notes(path)) or b"").decode("ascii"))
    return None


def _note(path: Path, following: Path) -> None:
    with contextlib.suppress(OSError):
        write_whole(_notes(path), following.name, replace=True, sync=False, mode=0o600)


def _notes(path: Path) -> Path:
    return path.with_suffix(".program.then")


_WORTH = 0.05  # seconds
_MANY = 200  # programs of one kind that a process holds
_SETTINGS = (
    "jax_default_device",
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_debug_nans",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
)


class Programs:
    """Compiled programs by what they are made from, in this process and in a folder."""

    def __init__(self, options: Callable[[], dict[str, Any] | None] = lambda: None) -> None:
        self.options = options  # XLA's, beside its flags
        self.made: OrderedDict[Any, SimpleNamespace] = OrderedDict()
        self.lock = threading.Lock()

    def called(
        self, key: Any, function: Callable, flat: Callable, told: Any, arrays: Sequence[Any]
    ) -> Any:
        """`flat` of the arrays, by a program that is made once for each `key` and their shapes; a
        key stops it at once.

        What is kept in a folder is found by the name of `function` and by what `told` says, see
        `key_text`. Raises `TypeError` where `key` cannot be hashed.
        """
        folder = program_folder()
        shapes = [(np.shape(x), x.dtype, getattr(x, "weak_type", False)) for x in arrays]
        whole = (key, folder, _settings(), *shapes)
        with self.lock:
            program = self.made.setdefault(whole, SimpleNamespace(lock=threading.Lock(), run=None))
            self.made.move_to_end(whole)
            if len(self.made) > _MANY:
                self.made.popitem(last=False)
        with Keys():
            with program.lock:
                if program.run is None or (program.run.done() and program.run.exception()):
                    program.run = _made(function, flat, folder, told, list(arrays), self.options())
            run = result_of(program.run)
            return waited(lambda: jax.block_until_ready(run(*arrays)))

    @staticmethod
    def has(function: Callable, told: Any) -> bool:
        """Whether the folder has it."""
        folder = program_folder()
        path = None if folder is None else _path(function, folder, told)
        return path is not None and path.exists()  # whether it can be used is seen later


def kept(function: Callable) -> Callable:
    """`equinox.filter_jit` of a `function` that returns arrays in tuples, whose programs are kept
    for the next process; a key stops it at once, while it is compiled too.

    The arguments are taken apart once in a call, and what is no array is part of the key: its
    program is found in a fifth of the time that `filter_jit` takes, which runs where this one fails
    and says why.
    """
    plain, programs = jitted(function), Programs(lambda: options_of_fits())

    @functools.wraps(function)
    def call(*args) -> Any:
        leaves, structure = jax.tree.flatten(args)
        arrays = [x for x in leaves if isinstance(x, _ARRAYS)]
        if any(isinstance(x, Tracer) for x in arrays):
            return plain(*args)
        fixed = tuple([None if isinstance(x, _ARRAYS) else x for x in leaves])
        # 1 and True are equal
        key = (structure, fixed, tuple(map(type, fixed)))
        try:
            hash(key)
        except TypeError:
            return plain(*args)
        try:
            return programs.called(key, function, _flat(function, structure, fixed), args, arrays)
        except jax.errors.JaxRuntimeError:
            # as of `equinox.error_if`, whose sentence `filter_jit` knows how to raise
            return plain(*args)

    return call


def jitted(function: Callable) -> Callable:
    """`equinox.filter_jit`, which a key stops at once."""
    plain = eqx.filter_jit(function)

    @functools.wraps(function)
    def call(*args) -> Any:
        if any(isinstance(x, Tracer) for x in jax.tree.leaves(args)):
            return plain(*args)
        settings = _settings()

        def elsewhere() -> tuple[bool, Any]:
            # a setting may be this thread's own
            same = _settings() == settings
            return same, jax.block_until_ready(plain(*args)) if same else None

        same, result = waited(elsewhere)
        return result if same else plain(*args)

    return call


_ARRAYS = (jax.Array, np.ndarray, np.generic)


def _flat(function: Callable, structure, fixed: tuple[Any, ...]) -> Callable:
    def flat(*arrays) -> Any:
        rest = iter(arrays)
        return function(
            *jax.tree.unflatten(structure, [next(rest) if x is None else x for x in fixed])
        )

    flat.__name__ = function.__name__
    return flat


def _made(
    function: Callable,
    flat: Callable,
    folder: Path | None,
    args: Any,
    arrays: list,
    options: dict[str, Any] | None,
) -> Future:
    """The program for `args`, read, or else compiled and kept: traced here, compiled by a helper,
    which goes on where a key stops this thread.
    """
    path = None if folder is None else _path(function, folder, args)
    program: Any = None if path is None else in_succession(_read, path)
    if program is None:
        return begun(_lowered(flat, path, arrays, options))

    def run(*arrays) -> Any:
        nonlocal program
        try:
            return jax.block_until_ready(program(*arrays))
        except jax.errors.JaxRuntimeError:  # XLA looks for some functions only when they are called
            program = _lowered(flat, path, list(arrays), options)()
            return program(*arrays)

    return begun(lambda: run)


def _lowered(
    flat: Callable, path: Path | None, arrays: list, options: dict[str, Any] | None
) -> Callable[[], Callable]:
    """What compiles the program, and keeps it at `path`."""
    if path is not None:
        # A name of its own, so that JAX's cache does not know it: what that hands out was read from
        # a file and cannot be written to another, on CPU it would lack its functions. Nor is it to
        # keep a copy that nobody would read.
        flat.__name__ = f"flat_{uuid.uuid4().hex}"
    begin, least = time.perf_counter(), _least()
    lowered = jax.jit(flat, compiler_options=options).lower(*arrays)
    if path is not None:
        # Locations are two fifths of a program's file and a fifth of the time in which it is read.
        strip_locations(lowered)

    def compiled() -> Callable:
        if path is None:
            return lowered.compile()
        with without_compilation_cache():
            program = lowered.compile()
        if time.perf_counter() - begin >= least:
            _write(path, program)
        return program

    return compiled


def _path(function: Callable, folder: Path, args: Any) -> Path | None:
    """The file of the program for `args`; None where it cannot be told by name, or where another
    user could have written it.
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


def _least() -> float:
    """Seconds: what is made in less is not kept."""
    if config_of("jax_compilation_cache_dir"):
        return config_of("jax_persistent_cache_min_compile_time_secs")
    return _WORTH


def _read(path: Path) -> Any:
    """The program in that file; None where there is none, or none that can be used."""
    content = read_entry(path)
    if content is None:
        return None
    from jax.experimental.serialize_executable import deserialize_and_load

    try:
        return deserialize_and_load(*pickle.loads(content), execution_devices=[device()])
    except Exception:  # of another machine, say: it is compiled again
        return None


def _write(path: Path, compiled) -> None:
    """Keep a program, whole or not at all."""
    from jax.experimental.serialize_executable import serialize

    try:
        content = pickle.dumps(serialize(compiled))
    except Exception:  # one with a callback, say, cannot be kept
        return
    write_entry(path, content)


def _settings() -> tuple[str, ...]:
    """Those of JAX that a program depends on, as they are now."""
    return tuple(f"{name} {config_of(name)}" for name in _SETTINGS)
