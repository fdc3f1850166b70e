"""Tests that list and try everything that frictax uses of the internals of JAX and equinox."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from frictax.jax_internals import (
    JaxLiteral,
    JaxprEqn,
    Operation,
    ShapedArray,
    Tracer,
    Zero,
    computes_at_once,
    depends_on_inputs,
    enable_x64,
    expand_operation,
    has_backend,
    instantiate_zeros,
    nondifferentiable,
    strip_locations,
    unvmap_any,
    without_compilation_cache,
    without_dead_code,
)

LAYER = Path(__file__).resolve().parents[1] / "src" / "frictax" / "jax_internals.py"

RELIED_ON = {
    "equinox.internal": {"nondifferentiable", "unvmap_any"},
    "jax._src.compilation_cache": {"get_file_cache"},
    "jax._src.compiler": {"__name__"},
    "jax._src.config": {"persistent_cache_min_compile_time_secs"},
    "jax._src.core": {"EvalTrace", "trace_ctx"},
    "jax._src.interpreters.ad": {"primitive_linearizations"},
    "jax._src.xla_bridge": {"backends_are_initialized"},
    "jax.core": {"ShapedArray", "Tracer"},
    "jax.extend.core": {"JaxprEqn", "Literal", "Primitive"},
    "jax.interpreters.ad": {"Zero", "instantiate_zeros", "primitive_jvps", "primitive_transposes"},
    "jax.interpreters.batching": {"primitive_batchers"},
    "jax.interpreters.mlir": {"lower_fun", "register_lowering"},
    "jax.interpreters.partial_eval": {"dce_jaxpr", "dce_rules"},
    "jaxlib.mlir.passmanager": {"PassManager"},
}
INTERNAL = re.compile(
    r"\bjax\.(_src|core|extend|interpreters)\b"
    r"|\bfrom jax import .*\b(_src|core|extend|interpreters)\b"
    r"|\b(equinox|eqx)\.internal\b|\bfrom equinox import .*\binternal\b"
    r"|\bjaxlib\.(?!version\b)\w"
)


def _used() -> Iterator[tuple[str, str]]:
    """Yield each module that the layer imports, with each name that it takes from there."""
    tree = ast.parse(LAYER.read_text(encoding="utf-8"))
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in (
            "jax",
            "jaxlib",
            "equinox",
        ):
            for alias in node.names:
                thing = getattr(importlib.import_module(str(node.module)), alias.name)
                if isinstance(thing, ModuleType):
                    modules[alias.asname or alias.name] = thing.__name__
                else:
                    yield str(node.module), alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in modules:
                yield modules[node.value.id], node.attr


def test_the_list_names_all_that_the_layer_uses() -> None:
    used: dict[str, set[str]] = {}
    for module, name in _used():
        used.setdefault(module, set()).add(name)
    assert used == RELIED_ON


@pytest.mark.parametrize("module", RELIED_ON)
def test_jax_and_equinox_still_have_what_is_listed(module: str) -> None:
    there = importlib.import_module(module)
    assert not [name for name in RELIED_ON[module] if not hasattr(there, name)]


def test_no_other_file_uses_internals() -> None:
    found = {
        f"{path.name}: {line.strip()}"
        for path in LAYER.parent.rglob("*.py")
        if path != LAYER
        for line in path.read_text(encoding="utf-8").splitlines()
        if INTERNAL.search(line)
    }
    assert not found


def test_the_pattern_sees_each_way_to_import_internals() -> None:
    for line in (
        "from jax._src import core",
        "import jax.core",
        "from jax import numpy, core",
        "from jax.extend.core import Primitive",
        "x = jax.interpreters.ad",
        "import equinox.internal as eqxi",
        "eqx.internal.while_loop",
        "from jaxlib.mlir import ir",
    ):
        assert INTERNAL.search(line), line
    assert not INTERNAL.search("import jax.numpy as jnp; import jaxlib.version; jax.errors")


# -- an operation with every rule: of x and y the product and the sum

product_p = Operation("product_and_sum")
along_p = Operation("along_product_and_sum")  # of x, y and their tangents: tangents of both
asked: list[str] = []  # which rules JAX asked for


def _values(x, y, *, wanted=(True, True)) -> list[Any]:
    product, total = wanted
    return [*([x * y] if product else []), *([x + y] if total else [])]


product_p.def_impl(_values)
product_p.def_lowering(_values)
along_p.def_lowering(lambda x, y, dx, dy: [x * dy + y * dx, dx + dy])


@product_p.def_abstract_eval
def _shapes(x, y, *, wanted=(True, True)) -> list[ShapedArray]:
    return [ShapedArray(x.shape, x.dtype)] * sum(wanted)


@along_p.def_abstract_eval
def _shapes_along(x, y, dx, dy) -> list[ShapedArray]:
    return [ShapedArray(x.shape, x.dtype)] * 2


@product_p.def_jvp
def _jvp(arrays, tangents, **how) -> Any:
    asked.append("jvp")
    x, y = arrays
    dx, dy = (instantiate_zeros(d) for d in tangents)
    return product_p.bind(x, y, **how), [x * dy + y * dx, dx + dy]


@product_p.def_batching
def _batch(arrays, axes, **how) -> Any:
    asked.append("batching")
    assert list(axes) == [0, None]
    x, y = arrays
    return product_p.bind(x, jnp.broadcast_to(y, x.shape), **how), [0, 0]


@product_p.def_linearization
def _linearize(has_tangent, x, y, **how) -> Any:
    asked.append(f"linearization {[bool(flag) for flag in has_tangent]}")

    def along(kept, dx, dy) -> Any:
        return along_p.bind(*kept, instantiate_zeros(dx), instantiate_zeros(dy))

    return product_p.bind(x, y, **how), [True, True], [x, y], along


@along_p.def_transpose
def _transpose(cotangents, x, y, dx, dy) -> Any:
    asked.append(f"transpose {[type(c) is Zero for c in cotangents]}")
    of_product, of_sum = (instantiate_zeros(c) for c in cotangents)
    return [None, None, of_product * y + of_sum, of_product * x + of_sum]


@product_p.def_dead_code
def _without_dead_code(used: list[bool], equation: JaxprEqn) -> Any:
    asked.append(f"dead code {used}")
    if not any(used):
        return [False, False], None
    kept = [v for v, is_used in zip(equation.outvars, used, strict=True) if is_used]
    how = equation.params | {"wanted": tuple(used)}
    return [True, True], equation.replace(outvars=kept, params=how)


def _both(x, y) -> Any:
    return product_p.bind(x, y)


@pytest.fixture(autouse=True)
def _nothing_asked() -> None:
    asked.clear()


def test_an_operation_computes_at_once_and_compiled() -> None:
    for function in (_both, jax.jit(_both)):
        assert [float(x) for x in function(2.0, 3.0)] == [6.0, 5.0]


def test_forward_mode_uses_the_rule() -> None:
    values, tangents = jax.jvp(_both, (2.0, 3.0), (1.0, 10.0))
    assert [float(x) for x in (*values, *tangents)] == [6.0, 5.0, 23.0, 11.0]
    assert asked == ["jvp"]


def test_lanes_use_the_rule() -> None:
    product, total = jax.vmap(_both, in_axes=(0, None))(jnp.arange(3.0), 2.0)
    assert product.tolist() == [0.0, 2.0, 4.0]
    assert total.tolist() == [2.0, 3.0, 4.0]
    assert asked == ["batching"]


@pytest.mark.parametrize("compiled", [False, True])
def test_reverse_mode_uses_the_rules_for_linearization_and_transposition(compiled: bool) -> None:
    gradient = jax.grad(lambda x: _both(x, 3.0)[0] ** 2)
    assert float((jax.jit(gradient) if compiled else gradient)(2.0)) == 36.0
    assert asked[:2] == ["linearization [True, False]", "transpose [False, True]"]


def test_a_value_that_nothing_uses_is_not_computed() -> None:
    program = jax.jit(lambda x: _both(x, 3.0)[1]).lower(2.0)
    assert asked == ["dead code [False, True]"]
    assert "multiply" not in program.as_text()
    assert float(program.compile()(2.0)) == 5.0


# -- the rest of the layer


def test_a_jaxpr_loses_the_equations_that_no_result_needs() -> None:
    def function(x):
        jnp.sin(x)
        return 2.0 * x

    jaxpr = without_dead_code(jax.make_jaxpr(function)(1.0).jaxpr)
    (eqn,) = jaxpr.eqns
    assert [isinstance(x, JaxLiteral) for x in eqn.invars].count(True) == 1


def test_the_program_of_a_function_with_its_own_derivative_is_found() -> None:
    @jax.custom_jvp
    def double(x):
        return x + x

    double.defjvps(lambda d, y, x: 2.0 * d)
    (eqn,) = jax.make_jaxpr(double)(1.0).jaxpr.eqns
    program = expand_operation(eqn) or eqn.params["call_jaxpr"]
    assert [str(one.primitive) for one in program.jaxpr.eqns] == ["add"]
    (plain,) = jax.make_jaxpr(jnp.sin)(1.0).jaxpr.eqns
    assert expand_operation(plain) is None


def test_an_operation_is_computed_at_once_under_transformations_and_traced_in_programs() -> None:
    seen = []

    def look(x) -> Any:
        seen.append(computes_at_once())
        return 2.0 * x

    look(1.0)
    jax.jvp(look, (1.0,), (1.0,))
    jax.vmap(jax.grad(look))(jnp.ones(2))
    jax.linearize(look, 1.0)
    assert seen == [True] * 4
    seen.clear()
    jax.jit(look)(1.0)
    jax.vmap(jax.jit(look))(jnp.ones(2))
    jax.lax.map(look, jnp.ones(2))
    assert seen == [False] * 3


def test_a_traced_number_is_a_tracer() -> None:
    seen = []
    jax.jit(lambda x: seen.append(isinstance(x, Tracer)))(1.0)
    assert seen == [True]
    assert not isinstance(jnp.ones(2), Tracer)


def test_a_backend_that_has_computed_has_started() -> None:
    jnp.ones(1).block_until_ready()
    assert has_backend()


def test_the_cache_is_left_out_inside_alone() -> None:
    least: Any = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, least)
    with without_compilation_cache():
        assert getattr(jax.config, least) == np.inf
    assert getattr(jax.config, least) == before


@pytest.mark.parametrize(("on", "kind"), [(True, "float64"), (False, "float32")])
def test_the_number_of_bits_is_set_inside(on: bool, kind: str) -> None:
    with enable_x64(on):
        assert jnp.asarray(np.ones(2)).dtype == kind


def test_a_program_without_locations_computes_the_same() -> None:
    lowered = jax.jit(lambda x: jnp.sin(x) + 1.0).lower(0.0)
    name = Path(__file__).name
    module: Any = lowered.compiler_ir()
    text = lambda: module.operation.get_asm(enable_debug_info=True)  # noqa: E731
    assert name in text()
    strip_locations(lowered)
    assert name not in text()
    assert float(lowered.compile()(0.0)) == 1.0


def test_a_derivative_is_refused_with_a_sentence() -> None:
    with pytest.raises(RuntimeError, match="no second derivative"):
        jax.jvp(lambda x: nondifferentiable(x, msg="no second derivative"), (1.0,), (1.0,))


def test_a_condition_on_any_lane_is_one_number_under_vmap() -> None:
    jaxpr = jax.make_jaxpr(jax.vmap(lambda x: jax.lax.cond(unvmap_any(x > 0), jnp.sin, jnp.cos, x)))
    assert "cond[" in str(jaxpr(jnp.ones(3)))


def test_a_result_depends_on_the_inputs_that_it_uses() -> None:
    inside = jax.jit(lambda x, y: (x * y, y))
    assert depends_on_inputs(lambda x: inside(x["a"], 2.0)[0], {"a": jnp.ones(2), "b": None})
    assert not depends_on_inputs(lambda x: inside(x["a"], 2.0)[1], {"a": jnp.ones(2), "b": None})
