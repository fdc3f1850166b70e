"""Programs kept for the next process."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
import frictax.programs.executables as kept_programs
import frictax.programs.key as key
from frictax.parameters import AtLeast, parameter
from frictax.programs import cached_jit
from frictax.programs.key import Unknown, key_text

T = np.linspace(0.0, 2.0, 101)
PUSH = 3.0 * np.sin(6.0 * T)


def _block(law: Any = None, **friction: Any) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=0.8, F_prop=0.3) if law is None else law
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, **friction),
        drive=fx.Force("mass", 0.0),
    )


def _fit(model: Any = None) -> Any:
    seen = _moved() + 1e-3 * np.sin(40.0 * T)
    return fx.fit(
        _block() if model is None else model,
        fx.Record(T, {"drive": PUSH}, {"mass.v": seen}),
        free=["friction.f_pos"],
    )


@functools.cache
def _moved() -> np.ndarray:
    truth = _block(fx.Coulomb(F_Coulomb=0.7, F_prop=0.25))
    truth = fx.Mechanism(
        **(dict(truth.named_parts()) | {"drive": fx.Force("mass", fx.Sampled(T, PUSH))})
    )
    return np.asarray(fx.simulate(truth, T, fx.OnSamples())["mass"].v)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """JAX's cache switched on, in a folder of this test's own; programs of other tests are not
    seen.
    """
    monkeypatch.delenv("FRICTAX_CACHE")
    before = {
        name: getattr(jax.config, name)
        for name in ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    }
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    yield tmp_path / "frictax"
    for name, value in before.items():
        jax.config.update(name, value)


def _programs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.program"))


@pytest.mark.slow
def test_nothing_is_kept_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_programs, "_write", lambda *_: pytest.fail("wrote"))
    assert getattr(jax.config, "jax_compilation_cache_dir") is None  # noqa: B009
    _fit()


@pytest.mark.slow
def test_a_fit_of_the_same_kind_finds_its_program_and_one_of_another_kind_does_not(
    folder: Path,
) -> None:
    first = _fit()
    count = len(_programs(folder))
    assert count > 0
    other = _fit(_block(fx.Coulomb(F_Coulomb=0.5, F_prop=0.2)))  # other start values only
    assert len(_programs(folder)) == count
    np.testing.assert_allclose(list(other.values.values()), list(first.values.values()), rtol=1e-3)
    _fit(_block(f_neg=fx.Coulomb(F_Coulomb=0.8, F_prop=0.3)))
    assert len(_programs(folder)) > count


SCRIPT = """
import jax, sys
jax.config.update("jax_enable_x64", True)
traced = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **told: traced.append(told.get("fun_name"))
    if name.endswith("jaxpr_trace_duration") else None
)
import frictax as fx, numpy as np
t = np.linspace(0.0, 2.0, 101)
friction = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.8, F_prop=0.3))
block = fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=fx.Force("mass", 0.0))
record = fx.Record(t, {"drive": 3.0 * np.sin(6.0 * t)}, {"mass.v": 0.2 * np.sin(6.0 * t)})
found = fx.fit(block, record, free=["friction.f_pos"])
print(*(x.hex() for x in found.values.values()))
print(any(str(name).startswith(("flat", "_by_newton")) for name in traced))
"""


@pytest.mark.slow
def test_the_next_process_traces_nothing_and_finds_the_same_to_the_last_bit(tmp_path: Path) -> None:
    """Nor does one after the programs were lost where JAX has its own of them: XLA's CPU programs
    that JAX's cache hands out cannot be written again, they would lack functions when called.
    """
    environment = {k: v for k, v in os.environ.items() if k != "FRICTAX_CACHE"} | {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    runs = []
    for lost in (False, False, True, False):
        if lost:
            assert len(_programs(tmp_path / "frictax")) > 0
            shutil.rmtree(tmp_path / "frictax")
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        runs.append(run.stdout.splitlines())
    assert [traces for _, traces in runs] == ["True", "False", "True", "False"]
    assert len({values for values, _ in runs}) == 1
    assert list(tmp_path.glob("jit_flat*")) == []  # no second copies that nobody reads


def test_a_damaged_program_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _doubled()
    assert made(np.arange(3.0))[0].tolist() == [0.0, 2.0, 4.0]
    (path,) = _programs(folder)
    whole = path.read_bytes()
    flipped = bytes([*whole[:-9], whole[-9] ^ 1, *whole[-8:]])
    for damaged in (b"", b"nonsense", whole[: len(whole) // 2], flipped):
        path.write_bytes(damaged)
        assert _doubled()(np.arange(3.0))[0].tolist() == [0.0, 2.0, 4.0]
        assert path.read_bytes() not in (damaged, b"")


def test_a_program_that_fails_when_it_runs_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _doubled()(np.arange(3.0))[0].tolist() == [0.0, 2.0, 4.0]

    def lacking(*_: Any) -> Any:
        raise jax.errors.JaxRuntimeError("NOT_FOUND: Function fusion.5 not found")

    written = []
    monkeypatch.setattr(kept_programs, "_read", lambda path, on: lacking)
    monkeypatch.setattr(kept_programs, "_write", lambda path, compiled: written.append(path))
    made = _doubled()
    for _ in range(2):
        assert made(np.arange(3.0))[0].tolist() == [0.0, 2.0, 4.0]
    assert written == _programs(folder)


def test_a_folder_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(kept_programs, "program_folder", lambda: tmp_path / "file" / "frictax")
    assert _doubled()(np.arange(3.0))[0].tolist() == [0.0, 2.0, 4.0]


def test_what_was_not_read_for_long_goes(folder: Path) -> None:
    _doubled()(np.arange(3.0))
    (old,) = _programs(folder)
    os.utime(old, (0.0, 0.0))
    _doubled()(np.arange(4.0))
    (new,) = _programs(folder)
    assert new != old


def test_other_sources_make_other_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _doubled()(np.arange(3.0))
    monkeypatch.setattr(kept_programs, "surroundings", lambda: "another version")
    _doubled()(np.arange(3.0))
    assert len(_programs(folder)) == 2


def test_sources_that_changed_since_they_were_imported_keep_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key.surroundings.cache_clear()
    monkeypatch.setattr(key, "IMPORT_TIME", 0.0)
    assert _doubled()(np.arange(3.0))[0].tolist() == [0.0, 2.0, 4.0]
    assert _programs(folder) == []


def test_a_setting_that_is_changed_makes_another_program(folder: Path) -> None:
    made = _doubled()
    made(np.arange(3.0))
    with jax.numpy_rank_promotion("raise"):
        made(np.arange(3.0))
    assert len(_programs(folder)) == 2


def _doubled() -> Any:
    """A kept function that passes for one of frictax's, known to no process before."""

    def doubled(x: Any) -> Any:
        return (2.0 * jnp.asarray(x),)

    doubled.__module__, doubled.__qualname__ = "frictax.fitting", "doubled"
    return cached_jit(doubled)


class _Mine(fx.AbstractLaw):
    a: Any = parameter(AtLeast(0.0), "N")

    def __call__(self, v: Any) -> Any:
        return self.a + 0.0 * v


@pytest.mark.slow
def test_a_users_own_parts_and_functions_are_left_to_jax(folder: Path) -> None:
    with pytest.raises(Unknown):
        key_text(_Mine(1.0))
    with pytest.raises(Unknown):
        key_text(lambda t: t)
    with pytest.raises(Unknown):
        key_text(np.linspace)  # of numpy's, wrapped

    def other() -> None: ...

    other.__module__, other.__qualname__ = "frictax.fitting.search.levenberg_marquardt", "begin"
    with pytest.raises(Unknown):
        key_text(other)
    _fit(_block(_Mine(0.8)))
    assert _programs(folder) == []


def test_all_that_a_program_depends_on_is_said() -> None:
    rows = np.array([1.0, 2.0])
    told = [
        key_text(fx.Windows(0.5)),
        key_text(fx.Windows(0.6)),
        key_text(fx.FreeRun()),
        key_text(rows),
        key_text(rows[:1]),
        key_text(rows.astype(np.float32)),
        key_text(1.0),
        key_text(1),
        key_text(True),
        key_text("1"),
        key_text(None),
        key_text((1,)),
        key_text([1]),
        key_text({"a": 1, "b": 2}),
        key_text({"b": 2, "a": 1}),
        key_text(fx.OnSamples()),
        key_text(fx.OnSamples(substeps=2)),
        key_text(jnp.asarray(1.0)),
        key_text(jnp.ones(())),
    ]
    assert len(set(told)) == len(told)
    assert key_text(rows) == key_text(2.0 * rows)  # the values go in when it runs
    assert key_text(rows, fixed=True) != key_text(
        2.0 * rows, fixed=True
    )  # unless they are fixed in it
    assert key_text(frozenset("abc")) == key_text(frozenset("cba"))
