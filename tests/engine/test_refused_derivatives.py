"""Derivatives that a run cannot have raise an error; they are never 0 or wrong without a word."""

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.programs.users_data import refuse_traced_data

TS = jnp.linspace(0.0, 1.0, 6)
ENGINES = [fx.Adaptive(), fx.OnSamples()]
NAMES = ["Adaptive", "OnSamples"]


class Smooth(fx.AbstractHybridSystem):
    """A system without events."""

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones(1)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, mode, jnp.array(0)


class Decay(Smooth):
    """dy/dt = f(y)."""

    f: Any = None

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return (args if self.f is None else self.f)(y)


class Pulled(Smooth):
    """A mass of 1 kg that a force pulls."""

    force: Any

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([y[1], self.force])


class Rate(Smooth):
    """dy/dt is the drive `args[name]`."""

    name: str = "motor"

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return args[self.name][None]


def walked(system: Any, engine: Any, args: Any = None) -> Any:
    return fx.walk(system, jnp.ones(1), [0], TS, args=args, options=engine).ys[-1, 0]


def of_a_method(k: Any, engine: Any) -> Any:
    class Own(Smooth):
        def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
            return -k * y

    return walked(Own(), engine)


def of_a_function_in_a_field(k: Any, engine: Any) -> Any:
    return walked(Decay(lambda y: -k * y), engine)


def of_a_partial_in_a_field(k: Any, engine: Any) -> Any:
    return walked(Decay(functools.partial(lambda k, y: -k * y, k)), engine)


def of_args(k: Any, engine: Any) -> Any:
    return walked(Decay(), engine, lambda y: -k * y)


def of_an_object(k: Any, engine: Any) -> Any:
    numbers = SimpleNamespace(by_name={"k": k})
    return walked(Decay(), engine, lambda y: -numbers.by_name["k"] * y)


def of_a_driven_machine(k: Any, engine: Any) -> Any:
    driven = fx.Driven(Decay(lambda y: -k * y), motor=2.0)
    return fx.walk(driven, jnp.ones(1), jnp.zeros(2, int), TS, options=engine).ys[-1, 0]


def of_a_law(k: Any, engine: Any) -> Any:
    class Own(fx.AbstractLaw):
        def __call__(self, v: Any) -> Any:
            return k + 0.0 * v

    block = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=9.0), friction=fx.SupportFriction("mass", f_pos=Own())
    )
    return fx.simulate(block, TS, engine)["mass"].s[-1]


WAYS: list[Callable[[Any], Any]] = [
    lambda f: jax.jit(jax.grad(f))(1.0),
    lambda f: jax.jit(jax.value_and_grad(f))(1.0),
    lambda f: jax.grad(jax.jit(f))(1.0),
    lambda f: jax.grad(f)(1.0),
    lambda f: jax.jacfwd(f)(1.0),
    lambda f: jax.vmap(f)(jnp.ones(2)),
    lambda f: jax.jit(f)(1.0),
]


@pytest.mark.parametrize("engine", ENGINES, ids=NAMES)
@pytest.mark.parametrize(
    ("case", "reader"),
    [
        (of_a_method, r"of_a_method.<locals>.Own.flow` .*, got the variable `k`"),
        (of_a_function_in_a_field, r"<lambda>` .*, got the variable `k`"),
        (of_a_partial_in_a_field, r"partial` .*, got data"),
        (of_args, r"of_args.<locals>.<lambda>` .*, got the variable `k`"),
        (of_an_object, r"<lambda>` .*, got the variable `numbers`"),
        (of_a_driven_machine, r"<lambda>` .*, got the variable `k`"),
        (of_a_law, r"of_a_law.<locals>.Own.__call__` .*, got the variable `k`"),
    ],
)
def test_a_traced_number_from_outside_is_refused(case: Any, reader: str, engine: Any) -> None:
    for way in WAYS:
        with pytest.raises(ValueError, match=f"Each number in `.*{reader} from outside"):
            way(lambda k: case(k, engine))


def test_traced_numbers_of_fields_args_and_drives_are_not_refused() -> None:
    def built(k: Any) -> Any:
        driven = fx.Driven(Decay(), motor=fx.Function(lambda t: k * t))
        refuse_traced_data((driven, Decay(jax.tree_util.Partial(jnp.multiply, k)), {"k": k}))
        return k

    assert jax.jit(jax.grad(built))(1.0) == 1.0
    assert np.all(jax.vmap(built)(jnp.ones(2)) == 1.0)


def pulled(force: Any, engine: Any) -> Any:
    return fx.walk(Pulled(force), jnp.zeros(2), [0], TS, options=engine).ys[-1, 0]


@pytest.mark.parametrize("engine", ENGINES, ids=NAMES)
def test_a_second_derivative_is_refused_in_one_sentence(engine: Any) -> None:
    f = lambda force: pulled(force, engine) ** 2  # noqa: E731
    for second in (jax.hessian(f), jax.grad(jax.grad(f)), jax.jit(jax.jacfwd(jax.jacfwd(f)))):
        with pytest.raises(RuntimeError, match="first derivatives of a run"):
            second(1.0)


def test_a_derivative_by_the_tolerance_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be differentiated by its tolerances"):
        jax.grad(lambda x: pulled(1.0, fx.OnSamples(tolerance=x)))(1e-7)


@pytest.mark.parametrize("engine", ENGINES, ids=NAMES)
def test_a_start_state_of_32_bits_begins_a_run_of_64_bits(engine: Any) -> None:
    start = np.zeros(2, np.float32)
    run = lambda y: fx.walk(Pulled(1.0), y, [0], TS, options=engine)  # noqa: E731
    path = jax.eval_shape(run, start)
    assert path.ys.dtype == path.times.dtype == path.error.dtype == np.float64


VALUES = jnp.array([0.0, 1.0, 0.5, 2.0, -1.0, 0.3])


def driven_end(times: Any, name: str, substeps: int = 1) -> Any:
    driven = fx.Driven(Rate(name), motor=fx.Sampled(times, VALUES))
    mode = jnp.array([0, 1])  # the drive is in its first segment
    engine = fx.OnSamples(tolerance=None, substeps=substeps)
    return fx.walk(driven, jnp.zeros(1), mode, TS, options=engine).ys[-1, 0]


def test_a_moving_jump_of_dydt_at_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no derivative by the `times`.*der\(motor\)"):
        jax.jacfwd(driven_end)(TS, "der(motor)")


@pytest.mark.slow
def test_a_moving_jump_of_dydt_has_no_derivative_under_jit_and_a_corner_has_one() -> None:
    @jax.jit
    def columns(times: Any) -> Any:
        return [jax.jacfwd(driven_end)(times, name) for name in ("motor", "der(motor)")]

    corner, jump = columns(TS)
    # The integral of a polygon over the inner times of its corners.
    assert np.allclose(corner[1:-1], 0.5 * (VALUES[:-2] - VALUES[2:]), atol=1e-12)
    assert np.all(np.isnan(jump[1:-1]))


@pytest.mark.slow
def test_a_moving_jump_is_refused_in_reverse_mode_and_with_substeps() -> None:
    right = 0.5 * (VALUES[:-2] - VALUES[2:])
    for substeps in (1, 3):
        f = functools.partial(driven_end, substeps=substeps)
        assert np.allclose(jax.jit(jax.grad(f), static_argnums=1)(TS, "motor")[1:-1], right)
        assert np.all(np.isnan(jax.jit(jax.grad(f), static_argnums=1)(TS, "der(motor)")[1:-1]))
        with pytest.raises(ValueError, match="no derivative by the `times`"):
            jax.grad(f)(TS, "der(motor)")
