"""The setting of XLA with which simulations on a CPU run several times faster."""

import os
import sys

_OPTION = "xla_cpu_small_while_loop_byte_threshold"
# Compiles a simulation in two thirds of the time, and runs it as fast. XLA ends a process that asks for a flag that it does not know,
# so it is asked for only where it is known to be.
_QUICKER, _KNOWN_TO = "--xla_cpu_use_fusion_emitters=false", (0, 10)


def fast_loops() -> None:
    """Let XLA compile each simulation loop as one function, in this process: small simulations then run several times faster on a CPU.

    With jaxlib 0.10 they are also compiled in two thirds of the time, by XLA's older code for fused operations.

    Call it before jax computes anything. It adds ``--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000`` to the
    environment variable `XLA_FLAGS` and keeps what stands there, also another threshold. Processes started from this one inherit it.
    Importing frictax changes nothing; results stay the same but for rounding.

    **Raises:** `RuntimeError` when jax has computed something already, for then XLA does not read the variable any more.

    >>> import os
    >>> import frictax as fx
    >>> fx.fast_loops()
    >>> "xla_cpu_small_while_loop_byte_threshold" in os.environ["XLA_FLAGS"]
    True
    """
    flags = os.environ.get("XLA_FLAGS", "").split()
    if any(_OPTION in flag for flag in flags):
        return
    if has_started():
        raise RuntimeError(
            "`fast_loops` must be called before jax computes anything in this process, which it has done already. "
            "Call it right after `import frictax`, before the first array is made."
        )
    import jaxlib.version

    known = jaxlib.version.__version_info__[:2] == _KNOWN_TO and not any("xla_cpu_use_fusion_emitters" in flag for flag in flags)
    os.environ["XLA_FLAGS"] = " ".join([*flags, f"--xla_backend_extra_options={_OPTION}=1000000", *[_QUICKER] * known])


def has_started() -> bool:
    """Whether jax has begun to compute, so that XLA reads its flags no more."""
    if "jax" not in sys.modules:
        return False
    from jax._src import xla_bridge  # jax has no public way to ask without starting

    return xla_bridge.backends_are_initialized()
