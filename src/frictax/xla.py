"""Settings of XLA and of memory that make simulations on a CPU several times faster."""

import contextlib
import ctypes
import gc
import os
import sys

_OPTION = "xla_cpu_small_while_loop_byte_threshold"
# Bytes that a loop may read: drives of many lanes count as a whole in each round. Loops over large
# matrices and large vectors are as fast as before.
_LARGE = 10**9
_DISABLED = "--xla_disable_hlo_passes"
# Each compiles a simulation in about two thirds of the time, and leaves it as fast but for a few
# per cent. XLA ends a process that asks for a flag that it does not know, so they are asked for
# only where they are known to be.
_QUICKER = ("--xla_cpu_use_fusion_emitters=false", f"{_DISABLED}=while-loop-invariant-code-motion")
_KNOWN_TO = (0, 10)
_UNOPTIMISED = "--xla_backend_optimization_level=0"
# Takes a sixth of the time in which a fit is compiled, and nothing off its run. (Simulations alone,
# and their derivatives, need it: they compute more than is asked for.)
_IDLE_IN_FITS = "simplify-while-loops"
_OBJECTS = 100_000
# Of glibc's mallopt (malloc.h): free bytes that may stay at the end of its memory, how many large
# pieces may lie apart from that, and how many threads may have memory of their own.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_FREE, _FREE_OF_ARRAYS = 32 * 2**20, 256 * 2**20  # bytes


def fast_loops(once: bool = False, *, keep_memory: bool = False) -> None:
    """Let XLA compile each simulation loop as one function, in this process: small simulations then
    run several times faster on a CPU.

    With jaxlib 0.10 they are also compiled in half the time, by XLA's older code for fused
    operations and without its search for what a loop computes anew in each round.

    Python's garbage collection looks after 100 000 new objects instead of 700 (`gc.set_threshold`):
    jax makes so many while it traces a simulation that a fifth of that time went into collecting.
    One that is off stays off. And it passes over all that is there already (`gc.freeze`), the
    modules above all, which are looked through for nothing, last of all when the process ends: that
    took as long as a quarter of a small fit.

    **Arguments:**

    - `once`: for a script that computes little and each thing once, such as a fit of one small
      record. LLVM then leaves its optimisations out (``--xla_backend_optimization_level=0``): a fit
      is compiled in two thirds of the time, and runs three times as long.
    - `keep_memory`: for results of a hundred megabytes and more, again and again, as of
      `jax.vmap` over a thousand machines. Memory that such a result took serves the next one,
      instead of going back to the system, which takes as long to give it anew as derivatives take
      to be computed. In return what a process once took it may keep. On Linux with glibc; elsewhere
      it changes nothing.

    Call it before jax computes anything. It adds to the environment variable `XLA_FLAGS`
    ``--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000``,
    ``--xla_cpu_use_fusion_emitters=false`` and
    ``--xla_disable_hlo_passes=while-loop-invariant-code-motion``, and keeps what stands there, also
    other values of these. Processes started from this one inherit it. Importing frictax changes
    nothing; results stay the same but for rounding.

    **Raises:** `RuntimeError` when jax has computed something already, for then XLA does not read
    the variable any more.

    >>> import os
    >>> import frictax as fx
    >>> fx.fast_loops()
    >>> "xla_cpu_small_while_loop_byte_threshold" in os.environ["XLA_FLAGS"]
    True
    """
    first, *older = gc.get_threshold()
    if 0 < first < _OBJECTS:
        gc.set_threshold(_OBJECTS, *older)
    gc.freeze()
    if keep_memory:
        keep_freed_memory(_FREE_OF_ARRAYS, of_arrays=True)
    flags = os.environ.get("XLA_FLAGS", "").split()
    if any(_OPTION in flag for flag in flags):
        return
    if has_started():
        raise RuntimeError(
            "`fast_loops` must be called before jax computes anything in this process, which it has"
            " done already. Call it right after `import frictax`, before the first array is made."
        )
    import jaxlib.version

    known = jaxlib.version.__version_info__[:2] == _KNOWN_TO
    set_already = {flag.partition("=")[0] for flag in flags}
    wanted = (*(_QUICKER if known else ()), *((_UNOPTIMISED,) if once else ()))
    quicker = [flag for flag in wanted if flag.partition("=")[0] not in set_already]
    os.environ["XLA_FLAGS"] = " ".join(
        [*flags, f"--xla_backend_extra_options={_OPTION}={_LARGE}", *quicker]
    )


def keep_freed_memory(size: int = _FREE, *, of_arrays: bool = False) -> None:
    """Let glibc keep up to `size` bytes of what is freed at the end of its memory; `of_arrays`: of
    large arrays, too, which lie apart otherwise and go back to the system one by one.

    With less, as its default or Dask's are, each array of a fit is asked of the system anew: a
    fifth of the time of a fit. Another C library stays as it is.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, size)
        if of_arrays:
            mallopt(_MMAP_MAX, 0)
            mallopt(_ARENA_MAX, 1)


def options_of_fits() -> dict[str, str] | None:
    """With which options XLA compiles a fit, beside its flags; None where `fast_loops` was not
    called.
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    disabled = [flag.partition("=")[2] for flag in flags if flag.startswith(f"{_DISABLED}=")]
    if not disabled or not all(flag in flags for flag in _QUICKER):
        return None
    return {_DISABLED.lstrip("-"): f"{disabled[-1]},{_IDLE_IN_FITS}"}


def has_started() -> bool:
    """Whether jax has begun to compute, so that XLA reads its flags no more."""
    if "jax" not in sys.modules:
        return False
    from frictax.jax_internals import has_backend

    return has_backend()
