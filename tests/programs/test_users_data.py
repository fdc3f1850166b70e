"""A change of the data that a user's function reads changes the result of the next call."""

import functools
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.jax_internals import enable_x64
from frictax.programs import cached_jit, cached_primitive, interruptible_jit, key
from frictax.programs.key import Unknown
from frictax.programs.users_data import UsersData

Change = tuple[Callable[[Any], Any], Callable[[], Any]]  # the function of 2*x, then of 3*x

K = 2.0
X = jnp.arange(3.0)
settings: Any = types.ModuleType("settings_of_a_user")
sys.modules["settings_of_a_user"] = settings


def set_global(k: float) -> None:
    global K
    K = k


def helper(x: Any) -> Any:
    return sum(K * one for one in (x,))


class Gain:
    """A user's class whose objects are not pytrees."""

    def __init__(self, k: float) -> None:
        self.k = k

    def __call__(self, x: Any) -> Any:
        return self.k * x


class OfClass(eqx.Module):
    k = 2.0

    def __call__(self, x: Any) -> Any:
        return self.k * x


class OfGlobal(eqx.Module):
    @property
    def gain(self) -> float:
        return K

    def __call__(self, x: Any) -> Any:
        return self.gain * x


def a_global_number() -> Change:
    return lambda x: K * x, lambda: set_global(3.0)


def a_global_of_a_helper() -> Change:
    return lambda x: helper(x), lambda: set_global(3.0)


def a_global_of_a_jitted_functions_helper() -> Change:
    return functools.wraps(helper)(lambda x: helper(x)), lambda: set_global(3.0)


def a_global_of_a_module() -> Change:
    return OfGlobal(), lambda: set_global(3.0)


def a_class_attribute() -> Change:
    OfClass.k = 2.0
    return OfClass(), lambda: setattr(OfClass, "k", 3.0)


def a_closure() -> Change:
    k = 2.0

    def change() -> None:
        nonlocal k
        k = 3.0

    return lambda x: k * x, change


def a_default() -> Change:
    def f(x: Any, k: float = 2.0) -> Any:
        return k * x

    return f, lambda: setattr(f, "__defaults__", (3.0,))


def the_code() -> Change:
    f = lambda x: 2.0 * x  # noqa: E731
    return f, lambda: setattr(f, "__code__", (lambda x: 3.0 * x).__code__)


def an_array() -> Change:
    k = np.full(3, 2.0)
    return lambda x: k * x, lambda: k.fill(3.0)


def one_entry_of_a_large_array() -> Change:
    k = np.full(200_000, 2.0)
    return lambda x: k[-1] * x, lambda: k.put(-1, 3.0)


def an_array_of_a_partial() -> Change:
    k = np.full(3, 2.0)
    return functools.partial(lambda k, x: k * x, k), lambda: k.fill(3.0)


def an_attribute_of_a_module() -> Change:
    settings.k = 2.0
    return lambda x: settings.k * x, lambda: setattr(settings, "k", 3.0)


def an_attribute_of_an_imported_module() -> Change:
    def f(x: Any) -> Any:
        from settings_of_a_user import k  # pyright: ignore

        return k * x

    settings.k = 2.0
    return f, lambda: setattr(settings, "k", 3.0)


def an_entry_of_a_dict() -> Change:
    k: dict[str, Any] = {"a": [1.0, 2.0]}
    return lambda x: k["a"][1] * x, lambda: k["a"].__setitem__(1, 3.0)


def an_attribute() -> Change:
    gain = Gain(2.0)
    return lambda x: gain.k * x, lambda: setattr(gain, "k", 3.0)


def an_attribute_of_the_function_itself() -> Change:
    gain = Gain(2.0)
    return gain, lambda: setattr(gain, "k", 3.0)


def an_attribute_of_a_methods_object() -> Change:
    gain = Gain(2.0)
    return gain.__call__, lambda: setattr(gain, "k", 3.0)


def an_attribute_of_a_namespace() -> Change:
    space = SimpleNamespace(gain=Gain(2.0))
    return lambda x: space.gain(x), lambda: setattr(space.gain, "k", 3.0)


def a_law() -> Change:
    law = fx.Coulomb(F_Coulomb=2.0)

    def change() -> None:
        nonlocal law
        law = fx.Coulomb(F_Coulomb=3.0)

    return lambda x: law.F_Coulomb * x, change


CHANGES = [
    a_global_number,
    a_global_of_a_helper,
    a_global_of_a_jitted_functions_helper,
    a_global_of_a_module,
    a_class_attribute,
    a_closure,
    a_default,
    the_code,
    an_array,
    one_entry_of_a_large_array,
    an_array_of_a_partial,
    an_attribute_of_a_module,
    an_attribute_of_an_imported_module,
    an_entry_of_a_dict,
    an_attribute,
    an_attribute_of_the_function_itself,
    an_attribute_of_a_methods_object,
    an_attribute_of_a_namespace,
    a_law,
]


def apply(f: Any, x: Any) -> tuple[Any]:
    return (f(x),)


apply.__module__, apply.__qualname__ = "frictax.fitting", "apply"
JIT, INTERRUPTIBLE = cached_jit(apply), interruptible_jit(apply)
PRIMITIVE = cached_primitive("only first", jax.tree.structure((0,)))(apply)
CALLS: dict[str, Callable[[Any], Any]] = {
    "cached_jit": lambda f: JIT(f, X)[0],
    "interruptible_jit": lambda f: INTERRUPTIBLE(f, X)[0],
    "interruptible_jit of a closure": lambda f: _of_closure(f)(X),
    "interruptible_jit under jit": lambda f: jax.jit(lambda x: INTERRUPTIBLE(f, x)[0])(X),
    "cached_primitive": lambda f: PRIMITIVE(f, X)[0],
    "its derivative": lambda f: X * jax.grad(lambda x: jnp.sum(PRIMITIVE(f, x)[0]))(X),
}


@functools.cache
def _of_closure(f: Any) -> Any:
    of = lambda x: f(x)  # noqa: E731
    of.__module__ = "frictax.fitting"
    return interruptible_jit(of)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", CALLS)
def test_a_change_has_an_effect(way: str, change: Callable[[], Change]) -> None:
    set_global(2.0)
    f, apply_change = change()
    for k in (2.0, 3.0):
        np.testing.assert_array_equal(CALLS[way](f), k * X)
        apply_change()


@pytest.mark.parametrize("way", ["cached_jit", "interruptible_jit", "cached_primitive"])
def test_a_function_is_traced_once_for_each_state_of_its_data(way: str) -> None:
    traced, count = list[float](), 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1  # These two changes occur while JAX traces the function.
        traced.append(K)
        return K * x

    for k in (2.0, 2.0, 3.0, 3.0):
        set_global(k)
        np.testing.assert_array_equal(CALLS[way](f), k * X)
    assert traced == [2.0, 3.0]
    assert count == 2


def test_equal_data_need_no_new_trace() -> None:
    traced, k, objects = 0, np.array(2.0), [Gain(2.0), {"a": (1, None)}]

    def f(x: Any) -> Any:
        nonlocal traced
        traced += 1
        return objects[0](x) * k / 2.0

    JIT(f, X)
    k, objects = np.array(2.0), [Gain(2.0), {"a": (1, None)}]
    JIT(f, X)
    assert traced == 1


def test_a_machine_of_frictax_has_no_data_of_a_user() -> None:
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Stribeck(1.0, 5.0, 10.0, 2.0)),
        drive=fx.Force("mass", fx.Sine(amplitude=25.0, f=0.25)),
    )
    assert UsersData((block, jnp.tanh, fx.OnSamples())).read() is None


def test_many_objects_and_circles_end() -> None:
    circle: list[Any] = [[float(i)] for i in range(20_000)]
    circle.append(circle)
    data = UsersData(lambda x: (circle, x))
    before = data.read()
    assert data.read() == before
    circle[-2][0] = -1.0  # the reading begins at the end of a list
    assert data.read() != before


class Own(fx.AbstractLaw):
    F: Any = fx.parameters.parameter(fx.parameters.Positive(), "N")

    def __call__(self, v: Any) -> Any:
        return K * self.F + 0.0 * v


def test_a_simulation_uses_the_new_value_in_a_drive_and_in_a_law() -> None:
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=4.0),
        friction=fx.SupportFriction("mass", f_pos=Own(F=1.0)),
        drive=fx.Force("mass", lambda t: 2.0 * K + 0.0 * t),
    )
    for k in (0.5, 1.0):
        set_global(k)
        run = fx.simulate(block, jnp.array([0.0, 1.0]))
        assert float(run["mass"].v[-1]) == pytest.approx(4.0 + k)


@pytest.mark.slow
def test_fits_use_the_new_value() -> None:
    t = np.linspace(0.0, 1.0, 101)
    v = 4.0 - 2.0 * t + 1e-3 * np.sin(50.0 * t)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=4.0), friction=fx.SupportFriction("mass", f_pos=Own(F=1.0))
    )
    record = fx.Record(t, {}, {"mass.v": v})
    for k in (1.0, 2.0):
        set_global(k)
        found = fx.fit(block, record, free=["friction.f_pos.F"])
        assert found.values["friction.f_pos.F"] == pytest.approx(2.0 / k, rel=1e-2)
        many = fx.fit_many(block, [record, record], free=["friction.f_pos.F"])
        assert many.values[0, 0] == pytest.approx(2.0 / k, rel=1e-2)


def test_numbers_of_another_size_in_this_thread_alone() -> None:
    f = lambda x: x + 1.0  # noqa: E731
    for bits in (32, 64, 32):
        with enable_x64(bits == 64):
            x = np.arange(3.0)
            for call in (JIT, PRIMITIVE):
                assert call(f, jnp.asarray(x))[0].dtype == f"float{bits}"
                assert call(jnp.tanh, jnp.asarray(x))[0].dtype == f"float{bits}"


@pytest.mark.skipif(os.name != "posix", reason="Windows does not store the time of a change")
def test_a_replaced_source_with_an_old_time_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "programs" / "key.py"
    source.parent.mkdir()
    source.write_text("")
    os.utime(source, (0.0, 0.0))
    monkeypatch.setattr(key, "__file__", str(source))
    with pytest.raises(Unknown):
        key.surroundings.__wrapped__()


def test_the_key_contains_all_packages_whose_code_is_compiled() -> None:
    names = [line.split(" ")[0] for line in key.surroundings().splitlines()]
    assert {"jax", "jaxlib", "equinox", "diffrax", "optimistix", "lineax", "numpy"} <= set(names)
