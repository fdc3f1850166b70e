"""`fast_loops`, each time in a process of its own."""

import os
import platform
import subprocess
import sys

import jaxlib.version
import pytest

from frictax.xla import options_of_fits

# Known to this version of XLA.
KNOWN = jaxlib.version.__version_info__[:2] == (0, 10)
EMITTERS = " --xla_cpu_use_fusion_emitters=false" * KNOWN
QUICKER = EMITTERS + " --xla_disable_hlo_passes=while-loop-invariant-code-motion" * KNOWN
UNOPTIMISED = "--xla_backend_optimization_level"
OPTION = "xla_cpu_small_while_loop_byte_threshold"


def _python(code: str, flags: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | (
        {} if flags is None else {"XLA_FLAGS": flags}
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment
    )


SHOW = "import os, frictax as fx; fx.fast_loops(); fx.fast_loops(); print(os.environ['XLA_FLAGS'])"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f"--xla_backend_extra_options={OPTION}=1000000000{QUICKER}"),
        (
            "--xla_force_host_platform_device_count=2",
            (
                "--xla_force_host_platform_device_count=2"
                f" --xla_backend_extra_options={OPTION}=1000000000{QUICKER}"
            ),
        ),
        (
            "--xla_disable_hlo_passes=dce",
            "--xla_disable_hlo_passes=dce"
            f" --xla_backend_extra_options={OPTION}=1000000000{EMITTERS}",
        ),
        (f"--xla_backend_extra_options={OPTION}=5", f"--xla_backend_extra_options={OPTION}=5"),
    ],
)
def test_it_adds_the_setting_once_and_keeps_what_is_there(before: str | None, after: str) -> None:
    assert _python(SHOW, before).stdout.strip() == after


@pytest.mark.parametrize(
    ("before", "after"), [(None, f"{QUICKER} {UNOPTIMISED}=0"), (f"{UNOPTIMISED}=1", QUICKER)]
)
def test_once_leaves_llvm_s_optimisation_out_unless_a_level_is_asked_for(
    before: str | None, after: str
) -> None:
    done = _python(
        "import os, jax, frictax as fx; fx.fast_loops(once=True); jax.numpy.ones(2);"
        " print(os.environ['XLA_FLAGS'])",
        before,
    )
    first = "" if before is None else before + " "
    flags = f"{first}--xla_backend_extra_options={OPTION}=1000000000{after}"
    assert done.stdout.strip() == flags, done.stderr


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (
            f"{QUICKER}",
            {"xla_disable_hlo_passes": "while-loop-invariant-code-motion,simplify-while-loops"},
        ),
        ("--xla_disable_hlo_passes=dce", None),
        ("", None),
    ],
)
def test_fits_are_compiled_without_a_pass_more_where_the_others_are_off(
    flags: str, options: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert options_of_fits() == (options if KNOWN else None)


def test_jax_accepts_it_and_importing_frictax_alone_sets_nothing() -> None:
    code = (
        "import os, jax, frictax as fx; assert 'XLA_FLAGS' not in os.environ; fx.fast_loops();"
        " print(float(jax.numpy.ones(2).sum()))"
    )
    done = _python(code)
    assert (done.returncode, done.stdout.strip()) == (0, "2.0"), done.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "100000"), ("gc.set_threshold(0);", "0"), ("gc.set_threshold(10**6);", "1000000")],
)
def test_it_makes_the_garbage_collection_rarer_and_leaves_what_is_off_or_rarer(
    before: str, after: str
) -> None:
    done = _python(
        f"import gc, frictax as fx; {before} fx.fast_loops(); print(gc.get_threshold()[0])"
    )
    assert done.stdout.strip() == after, done.stderr


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="keep_memory acts on Linux with glibc alone"
)
def test_it_lets_a_large_result_take_the_memory_of_the_last_where_it_is_asked_to() -> None:
    code = (
        "import resource, numpy as np, frictax as fx; fx.fast_loops(keep_memory={});"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt; np.ones(2 * 10**7);"
        "before = faults(); np.ones(2 * 10**7); print(faults() - before)"
    )
    asked_anew, kept = (int(_python(code.format(k)).stdout) for k in (False, True))
    assert 10 * kept < asked_anew


def test_it_is_refused_when_jax_has_computed_already() -> None:
    done = _python("import jax, frictax as fx; jax.numpy.ones(2); fx.fast_loops()")
    assert "RuntimeError: `fast_loops` must be called before jax computes" in done.stderr


DERIVATIVES = """
import frictax as fx; fx.fast_loops(once=True)
import jax, jax.numpy as jnp; jax.config.update("jax_enable_x64", True)
def way(m, F_prop, F_Stribeck):
    law = fx.Stribeck(F_prop=F_prop, F_Coulomb=7.0, F_Stribeck=F_Stribeck, fexp=3.0)
    block = fx.Mechanism(
        mass=fx.Mass(m=m),
        friction=fx.SupportFriction("mass", f_pos=law, peak=1.1),
        drive=fx.Force("mass", fx.Sine(amplitude=18.0, f=0.25)),
    )
    engine = fx.Adaptive(rtol=1e-11, atol=1e-13)
    return fx.simulate(block, jnp.array([0.0, 8.0]), engine)["mass"].s[-1]
forward = jnp.stack(jax.jit(jax.jacfwd(way, (0, 1, 2)))(1.0, 2.0, 4.0))
reverse = jnp.stack(jax.jit(jax.grad(way, (0, 1, 2)))(1.0, 2.0, 4.0))
print(float(jnp.max(jnp.abs(reverse / forward - 1))))
"""


@pytest.mark.slow
def test_once_changes_no_derivative() -> None:
    done = _python(DERIVATIVES)
    assert float(done.stdout) <= 1e-10, done.stderr
