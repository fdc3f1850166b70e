"""Try an installed frictax: the two commands of README.md and every transformation by both engines.

`make newest` and `make oldest` run this file in environments of their own. It needs nothing but
frictax, prints one line for each claim, and ends with 1 when a claim fails.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import frictax as fx

fx.fast_loops()
# Without LLVM's optimisations the programs compile faster. The two commands use the usual flags.
USUAL = os.environ["XLA_FLAGS"]
os.environ["XLA_FLAGS"] += " --xla_backend_optimization_level=0"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.devices()  # XLA reads its flags here
os.environ["XLA_FLAGS"] = USUAL

PACKAGES = "jax jaxlib equinox diffrax optax optimistix jaxtyping numpy pandas scipy matplotlib"
ENGINES = {"Adaptive": fx.Adaptive(), "OnSamples": fx.OnSamples()}
TIMES = np.linspace(0.0, 2.0, 201)
FORCE = 18.0 * np.sin(4.0 * TIMES)
START = jnp.array([1.2, 7.0])  # peak [1] and F_Coulomb [N]
ALONG = jnp.array([0.3, -0.7])
STEP = 1e-5  # of central differences, relative to START


def block(p: Any) -> fx.Mechanism:
    law = fx.Stribeck(F_prop=2.0, F_Coulomb=p[1], F_Stribeck=4.0, fexp=3.0)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, peak=p[0]),
        drive=fx.Force("mass", fx.Sampled(TIMES, FORCE)),
    )


def close(found: Any, wanted: Any, relative: float = 1e-9) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, f"shape {found.shape} instead of {wanted.shape}"
    error = float(np.max(np.abs(found - wanted)) / np.max(np.abs(wanted)))
    assert error <= relative, f"{found} differs from {wanted} by {error:.1e}"


def transformations(engine: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield each transformation with a function that checks it."""

    def position(p) -> Any:
        return fx.simulate(block(p), TIMES, engine)["mass"].s[-1]

    def positions(p) -> Any:
        return fx.simulate(block(p), TIMES, engine)["mass"].s[50::50]

    value, jacobian = position(START), jax.jacfwd(positions)(START)
    gradient = jacobian[-1]
    lanes = START * jnp.array([[1.0], [1.02], [0.97]])
    in_lanes = jnp.stack([jax.jacfwd(position)(p) for p in lanes])
    total = lambda ps: jnp.sum(jax.vmap(position)(ps))  # noqa: E731

    def differences() -> None:
        steps = STEP * np.diag(START)
        found = [(position(START + h) - position(START - h)) / (2 * h.sum()) for h in steps]
        close(found, gradient, 1e-5)

    def hessian() -> None:
        with contextlib.suppress(RuntimeError):
            jax.hessian(position)(START)
            raise AssertionError("a second derivative was not refused")

    def linearize() -> None:
        found, push = jax.linearize(positions, START)
        close(found[-1], value)
        close(push(ALONG), jacobian @ ALONG)

    def vjp() -> None:
        found, pull = jax.vjp(positions, START)
        close(found[-1], value)
        close(pull(jacobian[:, 0])[0], jacobian[:, 0] @ jacobian)

    yield "jacfwd, against differences", differences
    yield "jit", lambda: close(jax.jit(position)(START), value)
    yield "jvp", lambda: close(jax.jvp(positions, (START,), (ALONG,))[1], jacobian @ ALONG)
    yield "linearize", linearize
    yield "vjp", vjp
    yield "grad", lambda: close(jax.grad(position)(START), gradient)
    yield "jacrev", lambda: close(jax.jacrev(positions)(START), jacobian)
    yield "jit of jacfwd", lambda: close(jax.jit(jax.jacfwd(positions))(START), jacobian)
    yield "vmap", lambda: close(jax.vmap(position)(lanes)[0], value)
    yield "vmap of grad", lambda: close(jax.vmap(jax.grad(position))(lanes), in_lanes)
    yield "grad of vmap", lambda: close(jax.grad(total)(lanes), in_lanes)
    yield "jit of grad of vmap", lambda: close(jax.jit(jax.grad(total))(lanes), in_lanes)
    yield "checkpoint", lambda: close(jax.grad(jax.checkpoint(position))(START), gradient)
    yield (
        "jit of checkpoint",
        lambda: close(jax.jit(jax.grad(jax.checkpoint(position)))(START), gradient),
    )
    yield "hessian, refused", hessian


def fit(engine: Any) -> None:
    """Fit a record with noise: the truth lies within four standard errors."""
    truth, noise = np.array([1.0, 7.0]), np.random.default_rng(0).standard_normal(TIMES.size)
    v = fx.simulate(block(truth), TIMES, engine)["mass"].v + 1e-3 * noise
    record = fx.Record(TIMES, {"drive": FORCE}, {"mass.v": v})
    free = ["mass.m", "friction.f_pos.F_Coulomb"]
    found = fx.fit(block([1.0, 7.5]), record, free=free, engine=engine)
    for estimate, right in zip(found.estimates, (1.0, 7.0), strict=True):
        assert abs(estimate.value - right) < 4 * estimate.standard_error, estimate


def command(*arguments: str, folder: Path) -> None:
    """Run the command line of this environment's frictax in `folder`."""
    program = [str(Path(sys.executable).with_name("frictax")), *arguments]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}"


def two_commands() -> None:
    """Run README's commands: each true value lies within the printed interval."""
    with tempfile.TemporaryDirectory() as folder:
        command("--help", folder=Path(folder))
        command("init", "--example", "motor", folder=Path(folder))
        command("identify", "motor", folder=Path(folder))
        motor = Path(folder) / "motor"
        truth = tomllib.loads((motor / "truth.toml").read_text(encoding="utf-8"))
        result = json.loads((motor / "result.json").read_text(encoding="utf-8"))
        assert (motor / "report.html").stat().st_size > 10_000
        for estimate in result["fit"]["estimates"]:
            assert estimate["lower"] <= truth[estimate["path"]]["value"] <= estimate["upper"]


def kept_programs() -> None:
    """Compile a run in one process: the next process reads its program and compiles nothing."""
    code = (
        "import frictax as fx, numpy as np, jax; jax.config.update('jax_enable_x64', True);"
        "mass = fx.Mass(m=1.0, v=1.0); law = fx.Coulomb(F_Coulomb=1.0);"
        "m = fx.Mechanism(mass=mass, friction=fx.SupportFriction('mass', f_pos=law));"
        "print(float(fx.simulate(m, np.linspace(0.0, 2.0, 5))['mass'].s[-1]))"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"FRICTAX_CACHE": folder}
        seen = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, env=environment
            )
            assert done.returncode == 0, done.stderr
            close(float(done.stdout), 0.5)
            files = list(Path(folder).glob("*.program"))
            assert files, "no program was kept"
            seen.append({file.name: file.stat().st_mtime_ns for file in files})
        first, second = seen
        assert first.keys() == second.keys(), "the second process compiled again"
        assert all(second[name] > first[name] for name in first), "a program was not read"


def exported_code() -> None:
    """Write the machine as C. This needs a rule for each operation that JAX uses."""
    text = fx.to_c(block(START))
    assert "fx_step(" in text, text[:500]


def claims() -> Iterator[tuple[str, Callable[[], None]]]:
    yield "frictax init --example motor, frictax identify motor", two_commands
    yield "programs are kept for the next process", kept_programs
    yield "a machine is written as C", exported_code
    for name, engine in ENGINES.items():
        for what, check in transformations(engine):
            yield f"{name}: {what}", check
        yield f"{name}: fit", lambda engine=engine: fit(engine)


def main() -> int:
    versions = [f"{name} {version(name)}" for name in PACKAGES.split()]
    print(f"frictax {fx.__version__} on Python {sys.version.split()[0]}, {', '.join(versions)}")
    failed = 0
    for claim, check in claims():
        try:
            check()
        except Exception:
            failed += 1
            print(f"FAILED  {claim}\n{traceback.format_exc()}", flush=True)
        else:
            print(f"ok      {claim}", flush=True)
    print(f"{failed} claims failed." if failed else "Every claim holds.")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
