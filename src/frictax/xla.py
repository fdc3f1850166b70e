"""Settings of XLA and of memory that make simulations on a CPU several times faster."""

import contextlib
import ctypes
import gc
import os
import sys

_OPTION = "xla_cpu_small_while_loop_byte_threshold"
# [bytes] XLA compiles a loop that reads less data than this limit as one function. The data include
# the input signals of all runs of a batch, so the limit is high. Loops over large arrays do not
# become slower.
_LARGE = 10**9
_DISABLED = "--xla_disable_hlo_passes"
# Each flag reduces the compile time of a simulation by a third, and changes its speed by a few per
# cent. An unknown flag makes XLA end the process, so the flags are set only for known versions.
_QUICKER = ("--xla_cpu_use_fusion_emitters=false", f"{_DISABLED}=while-loop-invariant-code-motion")
_KNOWN_TO = (0, 10)
_UNOPTIMISED = "--xla_backend_optimization_level=0"
# This compiler pass takes a sixth of the compile time of a fit and does not make the fit faster.
# Simulations and their derivatives need the pass, because their programs compute unused results.
_IDLE_IN_FITS = "simplify-while-loops"
# Option numbers of glibc's function mallopt (malloc.h), for three limits: free bytes at the end of
# the heap, number of large blocks outside the heap, number of heaps for threads.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
# [bytes] freed memory that the process keeps: by default, and with the option `keep_memory`
_FREE, _FREE_OF_ARRAYS = 32 * 2**20, 256 * 2**20


def fast_loops(once: bool = False, *, keep_memory: bool = False) -> None:
    """Let XLA compile each simulation loop as one function in this process. With this setting,
    small simulations run several times faster on a CPU.

    With jaxlib 0.10, small simulations also compile in half the time. XLA uses its older code for
    fused operations, and does not search for constant values inside loops.

    Python's garbage collection starts after 100 000 new objects instead of 700
    (`gc.set_threshold`). With the limit 700, garbage collection takes a fifth of the time of
    tracing, because JAX makes many objects. If garbage collection is off, it stays off. Garbage
    collection also skips all existing objects (`gc.freeze`), mainly modules, which saves up to a
    quarter of the time of a small fit.

    **Arguments:**

    - `once`: for a script that runs each program once, such as a fit of one small record. LLVM's
      optimisations are off (``--xla_backend_optimization_level=0``): a fit compiles in two thirds
      of the time and runs three times as long.
    - `keep_memory`: for repeated results of a hundred megabytes and more, such as those of
      `jax.vmap` over a thousand machines. The memory of one result is reused for the next. Without
      this option, requesting memory takes as long as computing derivatives. With it, the process
      may keep all memory that it ever used. The option has an effect on Linux with glibc only.

    Call `fast_loops` before jax computes anything. `fast_loops` adds to the environment variable
    `XLA_FLAGS` ``--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000``,
    ``--xla_cpu_use_fusion_emitters=false`` and
    ``--xla_disable_hlo_passes=while-loop-invariant-code-motion``, and keeps existing values of
    these flags. Child processes inherit `XLA_FLAGS`. Importing frictax does not set flags. Results
    with and without the flags differ by rounding only.

    **Raises:** `RuntimeError` if jax has already computed something, because XLA then ignores the
    variable.

    >>> import os
    >>> import frictax as fx
    >>> fx.fast_loops()
    >>> "xla_cpu_small_while_loop_byte_threshold" in os.environ["XLA_FLAGS"]
    True
    """
    first, *older = gc.get_threshold()
    objects = 100_000  # number of new objects after which Python starts garbage collection
    if 0 < first < objects:
        gc.set_threshold(objects, *older)
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
    """Let glibc keep up to `size` bytes of freed memory, and with `of_arrays` also the memory of
    large arrays. By default glibc keeps less. Then a fit requests memory from the system for each
    array, which takes a fifth of its time. With other C libraries, do nothing.
    """
    # Other C libraries do not have mallopt.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, size)
        if of_arrays:
            mallopt(_MMAP_MAX, 0)
            mallopt(_ARENA_MAX, 1)


def options_of_fits() -> dict[str, str] | None:
    """Return the options for XLA to compile a fit, in addition to the flags in the environment.
    Return None unless `fast_loops` has set its flags.
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    disabled = [flag.partition("=")[2] for flag in flags if flag.startswith(f"{_DISABLED}=")]
    if not disabled or not all(flag in flags for flag in _QUICKER):
        return None
    return {_DISABLED.lstrip("-"): f"{disabled[-1]},{_IDLE_IN_FITS}"}


def has_started() -> bool:
    """Return whether jax has begun to compute, so that XLA no longer reads its flags."""
    if "jax" not in sys.modules:
        return False
    from frictax.jax_internals import has_backend

    return has_backend()
