"""Operations of JAX one by one: C, JavaScript and structured text compute what JAX computes."""

import ctypes
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from frictax.export.code.languages import C, JavaScript, Language, StructuredText
from frictax.export.code.lowering import RULES, CannotBeWritten, Program

from .structured_text import translated
from .test_code import GCC, needs_gcc, needs_node

X = np.array([1.7, -0.4, 0.0, 2.5, -3.2, 0.9])
K = np.array([3, -2, 0, 5], np.int32)
U, V = slice(0, 3), slice(3, 6)


def rows(x: Any) -> Any:
    return jnp.reshape(x, (2, 3))


def gathered(mode: str) -> Callable[..., Any]:
    return lambda x, k: x.at[k].get(mode=mode, fill_value=7.0)


def scattered(mode: str) -> Callable[..., Any]:
    return lambda x, k: (x.at[k].set(k + 0.5, mode=mode), x.at[k].add(0.5 * k, mode=mode))


def count_down(x: Any, k: Any) -> Any:
    return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[2], c[1] + x[0]), (k[0], x, x))


def carried(x: Any, k: Any) -> Any:
    return lax.scan(lambda c, _: ((c[1], c[0] - x[0] * c[1]), None), (x[1], x[3]), length=5)[0]


def over_rows(reverse: bool) -> Callable[..., Any]:
    return lambda x, k: lax.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=reverse)


def elementwise(*names: str) -> dict[str, Callable[..., Any]]:
    return {name: lambda x, k, name=name: getattr(lax, name)(abs(x) / 4 + 0.1) for name in names}


def both_kinds(*names: str) -> dict[str, Callable[..., Any]]:
    """The operation for reals and for whole numbers."""

    def case(do: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, k: (do(x[U], x[V]), do(k, k[::-1]))

    return {name: case(getattr(lax, name)) for name in names}


def reductions(*names: str) -> dict[str, Callable[..., Any]]:
    def case(do: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, k: (do(rows(x), axis=0), do(rows(x), axis=1), do(k))

    return {f"reduce {name}": case(getattr(jnp, name)) for name in names}


CASES: dict[str, Callable[..., Any]] = {
    **both_kinds("add", "sub", "mul", "max", "min", "eq", "ne", "lt", "le", "gt", "ge"),
    **elementwise("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin"),
    **elementwise("acos", "atan", "log1p", "expm1", "cbrt", "erf", "logistic", "square"),
    "div": lambda x, k: x[U] / (x[V] + 7.0),
    "whole div": lambda x, k: lax.div(k, jnp.int32(2)),
    "rem": lambda x, k: (lax.rem(x, jnp.full(6, 0.7)), lax.rem(k, jnp.int32(3))),
    "pow": lambda x, k: lax.pow(jnp.abs(x) + 0.1, x),
    "exp of e log": lambda x, k: jnp.exp(x * jnp.log(jnp.abs(x) + 0.1)),
    "integer_pow": lambda x, k: (x**3, (x + 9.0) ** -2),
    "atan2": lambda x, k: lax.atan2(x[U], x[V]),
    "nextafter": lambda x, k: lax.nextafter(x, x + 1.0),
    "floor": lambda x, k: lax.floor(x),
    "ceil": lambda x, k: lax.ceil(x),
    "round": lambda x, k: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "neg": lambda x, k: (-x, -k),
    "abs": lambda x, k: (lax.abs(x), lax.abs(k)),
    "sign": lambda x, k: (lax.sign(x), lax.sign(k)),
    "finite": lambda x, k: lax.is_finite(jnp.where(x > 0, x, jnp.inf)),
    "truths": lambda x, k: ((x > 0) & (x < 2), (x > 0) | (x < -1), (x > 0) ^ (x < 2), ~(x > 0)),
    "order of truths": lambda x, k: (lax.lt(x[U] > 0, x[V] > 0), lax.le(x[U] > 0, x[V] > 0)),
    "select": lambda x, k: (jnp.where(x > 0, x, 0.5), lax.select_n(abs(k) % 3, k, k + 1, -k)),
    "clamp": lambda x, k: (lax.clamp(-1.0, x, 1.5), lax.clamp(jnp.int32(-1), k, jnp.int32(4))),
    "convert": lambda x, k: (x.astype(int), k.astype(float), (x > 0).astype(float), k.astype(bool)),
    "convert truths": lambda x, k: ((x > 0).astype(int), 1.0 * x.astype(bool)),
    **reductions("sum", "prod", "max", "min"),
    "reduce truths": lambda x, k: (jnp.any(rows(x) > 0, axis=0), jnp.all(rows(x) > 0, axis=1)),
    "reduce nothing": lambda x, k: (x[:0].sum(), x[:0].prod(), (x[:0] > 0).any(), k[:0].sum() + k),
    "position": lambda x, k: (jnp.argmax(rows(x), 1), jnp.argmin(rows(x), 0), jnp.argmax(k)),
    "dot": lambda x, k: (rows(x) @ rows(x).T, x @ x, jnp.einsum("bi,bi->b", rows(x), rows(x) + 1)),
    "shapes": lambda x, k: (
        rows(x).T,
        x[None, ::2],
        x[::-1],
        jnp.concatenate([x, k + 0.5]),
        jnp.pad(x, (1, 2)),
        jnp.broadcast_to(x[:, None], (6, 2)),
        jnp.squeeze(rows(x)[:1]),
        jnp.stack([x, -x]),
        jnp.split(x, 3)[1],
        jnp.unstack(rows(x))[1],
        *jnp.unstack(x[:2]),
    ),
    "unchanged": lambda x, k: lax.optimization_barrier(lax.stop_gradient(jnp.copy(x))),
    "also unchanged": lambda x, k: checkpoint_name(
        lax.reduce_precision(jax.device_put(x), 11, 52), "x"
    ),
    "of equinox": lambda x, k: (eqxi.unvmap_any(x > 0), eqxi.unvmap_all(x > 0)),
    "of a platform": lambda x, k: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos),
    "iota": lambda x, k: jnp.arange(6) * x,
    **{f"gather {mode}": gathered(mode) for mode in ("clip", "fill")},
    **{f"scatter {mode}": scattered(mode) for mode in ("clip", "drop")},
    "gather rows": lambda x, k: rows(x).at[jnp.clip(k, 0, 1)].get(mode="clip"),
    "scatter a row": lambda x, k: rows(x).at[k[0] - 2].add(x[:3]),
    "window": lambda x, k: [lax.dynamic_slice(x, (i,), (2,)) for i in k],
    "update of a window": lambda x, k: [lax.dynamic_update_slice(x, x[:2], (i,)) for i in k],
    "table": lambda x, k: jnp.asarray([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])[k],
    "cond": lambda x, k: lax.cond(x[0] > 1.0, jnp.sin, jnp.cos, x),
    "switch": lambda x, k: [lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x[0]) for i in k],
    "while": count_down,
    "repeat": carried,
    **{f"scan {reverse}": over_rows(reverse) for reverse in (False, True)},
    "gradient": lambda x, k: jax.grad(lambda y: jnp.sum(jnp.sin(y) * jnp.exp(y) / (2 + y**2)))(x),
}  # fmt: skip
# Names in other versions of JAX and equinox, and an operation for several devices
OF_OTHER_VERSIONS = set(
    "copy_p expand_dims lt_to le_to scatter_add nondifferentiable sharding_constraint".split()
)
# Operations that the language does not have
LACKS: dict[str, set[str]] = {
    "C": set(),
    "JavaScript": {"erf", "nextafter", "round"},
    "Structured text": {"sinh", "cosh", "cbrt", "erf", "atan2", "nextafter", "ceil", "round"},
}


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    """Each case as a function `f0`, `f1`..."""
    made = list[Program]()
    for i, case in enumerate(CASES.values()):
        made.append(Program())
        made[i].trace(f"f{i}", case, {"reals": X, "whole": K})
    return made


def written(language: Language, programs: list[Program]) -> dict[str, str]:
    """The text of each case that the language can say."""
    texts, lacks = dict[str, str](), set[str]()
    for i, (name, program) in enumerate(zip(CASES, programs, strict=True)):
        try:
            text = language.print(program)
        except CannotBeWritten:
            lacks.add(name)
        else:  # Each program counts its tables from 0.
            texts[name] = text.replace("table", f"table{i}_")
    assert lacks == LACKS[language.name]
    return texts


@pytest.fixture(scope="module")
def expected() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The reals of each case, and its whole numbers and truths."""

    def separated(results: Any) -> tuple[np.ndarray, np.ndarray]:
        found = [np.asarray(x).ravel() for x in jax.tree.leaves(results)]
        kinds = [[x for x in found if (x.dtype.kind == "f") == is_real] for is_real in (1, 0)]
        reals, others = (np.concatenate([np.zeros(0), *x]) for x in kinds)
        return reals, others

    found = jax.jit(lambda *given: [case(*given) for case in CASES.values()])(X, K)
    return {name: separated(x) for name, x in zip(CASES, found, strict=True)}


def assert_equal(name: str, got: Any, expected: Any, rtol: float = 4e-15) -> None:
    for found, right in zip(got, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=rtol, atol=rtol, err_msg=name)


def primitives(jaxpr: Any) -> Iterator[str]:
    """The names of all operations of a program, those of inner programs too."""
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield eqn.primitive.name
        for inner in jax.tree.leaves(list(eqn.params.values())):
            if hasattr(inner, "eqns"):
                yield from primitives(inner)


def test_every_rule_has_a_case() -> None:
    used = {name for case in CASES.values() for name in primitives(jax.make_jaxpr(case)(X, K))}
    assert RULES.keys() - used == OF_OTHER_VERSIONS


@needs_gcc
@pytest.mark.parametrize(
    ("real", "number", "rtol"), [("double", float, 4e-15), ("float", np.float32, 3e-6)]
)
def test_c_computes_what_jax_computes(
    tmp_path: Path, programs: Any, expected: Any, real: str, number: Any, rtol: float
) -> None:
    printer = C([f"f{i}" for i in range(len(CASES))], real)
    texts = written(printer, programs)
    body = "\n".join(texts.values())
    source, library = tmp_path / "operations.c", tmp_path / "operations.so"
    source.write_text(printer.head(body) + "\n" + body)
    options = ["-Wfloat-conversion", "-fPIC", "-shared"]
    options += ["-Wdouble-promotion"] * (real == "float")
    subprocess.run([*GCC, *options, "-o", library, source, "-lm"], check=True)
    code = ctypes.CDLL(str(library))
    for i, (name, right) in enumerate(expected.items()):
        results = [np.zeros(n.size, t) for n, t in zip(right, (number, np.int32), strict=True)]
        arrays = [X.astype(number), K, *(r for r in results if r.size)]
        getattr(code, f"f{i}")(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
        assert_equal(name, results, right, rtol)


@needs_node
def test_javascript_computes_what_jax_computes(
    tmp_path: Path, programs: Any, expected: Any
) -> None:
    texts = written(JavaScript(), programs)
    lines = [
        "'use strict';",
        f"const reals=Float64Array.from({X.tolist()}),whole=Int32Array.from({K.tolist()});",
    ]
    for i, name in enumerate(CASES):
        if name in texts:
            taken = [f"typeof f{i}_{a}==='undefined'?[]:[...f{i}_{a}].map(String)" for a in "ok"]
            lines += [
                texts[name],
                f"f{i}(reals,whole);console.log(JSON.stringify([{','.join(taken)}]));",
            ]
    (tmp_path / "operations.js").write_text("\n".join(lines))
    done = subprocess.run(["node", "operations.js"], cwd=tmp_path, capture_output=True)
    assert not done.stderr, done.stderr.decode()
    for name, line in zip(texts, done.stdout.decode().splitlines(), strict=True):
        got = [np.array([float(v.replace("Infinity", "inf")) for v in r]) for r in json.loads(line)]
        assert_equal(name, got, expected[name])


def test_structured_text_computes_what_jax_computes(programs: Any, expected: Any) -> None:
    texts = written(StructuredText(), programs)
    for i, name in enumerate(CASES):
        if name in texts:
            got = translated(texts[name])[f"f{i}"](X.tolist(), K.tolist())
            reals = expected[name][0].size
            assert_equal(name, (got[:reals], got[reals:]), expected[name])


def test_text_in_single_precision_has_no_long_real(programs: Any) -> None:
    for name, text in written(StructuredText("REAL"), programs).items():
        assert "LREAL" not in text, name
