"""A kept function under JAX's transformations gives what it gives under `jit`, and its programs are
found by the next process.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import frictax.programs.calls as kept_calls
import frictax.programs.executables as kept_programs
import frictax.programs.store as store
from frictax.programs import cached_primitive

AT = jnp.array([0.3, 0.7, 1.9])
ROWS = jnp.array([[0.3, 0.7, 1.9], [0.1, -0.4, 2.2], [1.0, 1.0, 1.0], [0.0, 0.5, 0.25]])


def plain(x: jax.Array, y: jax.Array, name: str) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Two floats and a whole number between them."""
    sign = 1.0 if name == "up" else -1.0
    return sign * jnp.sin(x) * y, jnp.sum(x > 0.5), jnp.sum(x**2) * y + jnp.array([1.0, 2.0])


def made(function: Callable[..., Any] = plain) -> Callable[..., Any]:
    """Known to no process before."""
    function.__module__, function.__qualname__ = "frictax.simulation", "plain"
    return cached_primitive("only first derivatives", jax.tree.structure((0, 0, 0)))(function)


def cost(call: Callable[..., Any], x: jax.Array) -> jax.Array:
    a, count, b = call(x, jnp.cos(x[0]), "up")
    return jnp.sum(a * jnp.array([1.0, 2.0, 3.0])) + count * b[1]


def both(call: Callable[..., Any], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    a, _, b = call(x, x[1], "down")
    return a, b


TRANSFORMED: dict[str, tuple[Callable[..., Any], Callable[..., Any], jax.Array]] = {
    "values": (both, lambda f: f, AT),
    "jacfwd": (both, jax.jacfwd, AT),
    "jacrev": (both, jax.jacrev, AT),
    "grad": (cost, jax.grad, AT),
    "value_and_grad": (cost, jax.value_and_grad, AT),
    "jvp": (both, lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones(3),)), AT),
    "linearize": (both, lambda f: lambda x: jax.linearize(f, x)[1](jnp.ones(3)), AT),
    "linearize, of lanes": (
        both,
        lambda f: lambda x: jax.vmap(jax.linearize(f, x)[1])(jnp.eye(3)),
        AT,
    ),
    "linearize, compiled": (
        both,
        lambda f: lambda x: jax.jit(jax.linearize(f, x)[1])(jnp.ones(3)),
        AT,
    ),
    "vjp of some": (
        both,
        lambda f: lambda x: jax.vjp(lambda x: f(x)[1], x)[1](jnp.ones(2)),
        AT,
    ),
    "vmap": (both, jax.vmap, ROWS),
    "vmap, in another axis": (both, lambda f: jax.vmap(f, in_axes=1), ROWS.T),
    "vmap of jacfwd": (both, lambda f: jax.vmap(jax.jacfwd(f)), ROWS),
    "jacfwd of vmap": (both, lambda f: jax.jacfwd(jax.vmap(f)), ROWS),
    "vmap of grad": (cost, lambda f: jax.vmap(jax.grad(f)), ROWS),
    "grad of vmap": (cost, lambda f: jax.grad(lambda x: jnp.sum(jax.vmap(f)(x))), ROWS),
    "vmap of vmap": (both, lambda f: jax.vmap(lambda x: jax.vmap(f)(x * ROWS)), ROWS),
    "vmap of jacrev": (both, lambda f: jax.vmap(jax.jacrev(f)), ROWS),
    "checkpoint": (cost, lambda f: jax.grad(jax.checkpoint(f)), AT),
    "scan": (cost, lambda f: lambda x: jax.lax.scan(lambda c, _: (c + f(x), c), 0.0, None, 2), AT),
    "jit inside": (cost, lambda f: jax.grad(lambda x: jax.jit(f)(x)), AT),
}


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("name", TRANSFORMED)
def test_what_it_gives_is_what_the_function_gives(name: str) -> None:
    of, transformed, at = TRANSFORMED[name]
    call = made()
    found = transformed(lambda x: of(call, x))(at)
    expected = transformed(lambda x: of(plain, x))(at)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-14, 1e-15), found, expected)
    under_jit = jax.jit(transformed(lambda x: of(call, x)))(at)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-14, 1e-15), under_jit, expected)


def test_arguments_that_are_no_arrays_tell_programs_apart() -> None:
    call = made()
    up, down = (call(AT, jnp.array(2.0), name)[0] for name in ("up", "down"))
    assert np.array_equal(up, -down)
    assert np.max(np.abs(up)) > 0.5


def test_a_second_derivative_is_refused() -> None:
    call = made()
    of = lambda x: cost(call, x)  # noqa: E731
    for twice in (
        jax.jacfwd(jax.jacfwd(of)),
        jax.jacfwd(jax.grad(of)),
        jax.grad(lambda x: jnp.sum(jax.jacfwd(of)(x))),
    ):
        with pytest.raises(RuntimeError, match="only first derivatives"):
            twice(AT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Programs are kept there, those made at once, too; what this process knows is forgotten."""
    monkeypatch.setenv("FRICTAX_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(kept_programs, "_LEAST_COMPILE_TIME", 0.0)
    forget()
    yield tmp_path / "kept"
    forget()


def forget() -> None:
    kept_calls._programs.made.clear()
    kept_calls._backward_structures.clear()


def test_programs_are_found_again_and_the_way_back_fits_the_way_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gradient() -> np.ndarray:
        forget()
        call = made()
        return np.asarray(jax.grad(lambda x: cost(call, x))(AT))

    expected = np.asarray(jax.grad(lambda x: cost(plain, x))(AT))
    assert np.allclose(gradient(), expected, rtol=1e-14, atol=0)
    names = {path.name for path in folder.glob("*.program")}
    assert len(names) == 2  # there and back
    with monkeypatch.context() as patch:
        patch.setattr(kept_calls._Call, "evaluate", lambda *_: pytest.fail("traced"))
        assert np.allclose(gradient(), expected, rtol=1e-14, atol=0)
    for lost in names:
        for content in (None, b"damaged"):
            (folder / lost).unlink(missing_ok=True)
            if content is not None:
                (folder / lost).write_bytes(content)
            assert np.allclose(gradient(), expected, rtol=1e-14, atol=0)
            assert np.allclose(gradient(), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("word", ["off", "0", ""])
def test_a_word_switches_it_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRICTAX_CACHE", word)
    assert store.program_folder() is None


def test_the_folder_stays_within_its_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = made()
    call(AT, jnp.array(1.0), "up")
    (first,) = folder.glob("*.program")
    os.utime(first, (1e9, 1e9))
    monkeypatch.setattr(store, "_LONGEST_UNREAD", np.inf)
    monkeypatch.setattr(store, "_ROOM", int(2.5 * first.stat().st_size))
    call(AT, jnp.array(1.0), "down")
    assert first.exists()
    call(AT[:2], jnp.array(1.0), "up")
    assert not first.exists()
    assert len(list(folder.glob("*.program"))) == 2


BLOCK = """
import sys
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
traced = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **told: traced.append(str(told.get("fun_name")))
    if name.endswith("jaxpr_trace_duration") else None
)
import frictax as fx, numpy as np
t = jnp.linspace(0.0, 2.0, 41)
def end(peak):
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.5, fexp=3.0)
    friction = fx.SupportFriction("mass", f_pos=law, peak=peak)
    drive = fx.Force("mass", fx.Sampled(np.asarray(t), 2.0 * np.sin(6.0 * np.asarray(t))))
    run = fx.simulate(fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=drive), t)
    return run["mass"].s[-1] + run.events.time[2]
for of, at in (
    (end, 1.1), (jax.jacfwd(end), 1.1), (jax.grad(end), 1.1),
    (jax.vmap(jax.grad(end)), jnp.array([1.1, 1.2])),
):
    print(np.asarray(of(at)).tolist())
print(sum("flat" in name or "_path" in name for name in traced), "diffrax" in sys.modules)
"""


@pytest.mark.slow
def test_the_next_process_and_three_at_once_trace_nothing_and_find_the_same(tmp_path: Path) -> None:
    flags = f"{os.environ['XLA_FLAGS']} --xla_backend_optimization_level=0"  # compile sooner
    environment = os.environ | {"FRICTAX_CACHE": str(tmp_path), "XLA_FLAGS": flags}

    def begun() -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", BLOCK],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def said(process: subprocess.Popen) -> list[str]:
        out, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
        return out.splitlines()

    together = [said(process) for process in [begun() for _ in range(3)]]
    again = said(begun())
    assert again[-1].split() == ["0", "False"]
    assert all(int(one[-1].split()[0]) > 0 for one in together[:1])
    assert all(one[:-1] == again[:-1] for one in together)
    numbers = [float(x) for x in again[:3]]
    assert numbers[1] == pytest.approx(numbers[2], rel=1e-12)
    assert abs(numbers[1]) > 1e-3


@pytest.mark.slow
def test_a_run_under_eager_transformations_is_the_run_under_jit() -> None:
    t = np.linspace(0.0, 2.0, 41)
    drive = fx.Force("mass", fx.Sampled(t, 2.0 * np.sin(6.0 * t)))

    def end(peak: jax.Array) -> Any:
        friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0), peak=peak)
        run = fx.simulate(
            fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=drive), jnp.asarray(t)
        )
        return run["mass"].s[-1] + jnp.sum(run["friction"].f * run.ts) + run.events.time[1]

    peaks = jnp.array([1.05, 1.1])
    for of in (jax.vmap(jax.value_and_grad(end)), jax.vmap(jax.jacfwd(end))):
        found, expected = of(peaks), jax.jit(of)(peaks)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-12), found, expected)
