"""A fit comes back from its file bit for bit, and own code only from whoever reads it."""

import dataclasses
import enum
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import frictax as fx
from frictax.parameters import AtLeast, CheckedModule, Scalar, parameter
from frictax.report.saving.things import Packed, Unpacked, name_of, own_code_of

from . import drawn_machines
from .saved_fits import (
    KINDS,
    SAVED,
    T,
    U,
    huber_sweep,
    inverse_dynamics,
    own_code_without_runs,
    pull,
    windows_read_from_a_filter,
)


@pytest.fixture(scope="module")
def sweep_fit() -> fx.FitResult:
    return huber_sweep()[0]


def assert_same(a: Any, b: Any, where: str = "found") -> None:
    """Of one type, and every number of the same bits."""
    assert type(a) is type(b), f"{where}: {type(a)} and {type(b)}"
    if isinstance(a, np.ndarray | np.generic | jax.Array):
        x, y = np.asarray(a), np.asarray(b)
        assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes()), where
        if isinstance(a, np.ndarray):
            assert a.flags.writeable == b.flags.writeable, where
            if a.flags.forc:  # sums run in the order of memory
                assert a.flags.c_contiguous == b.flags.c_contiguous, where
    elif isinstance(a, enum.Enum) or callable(a) and not dataclasses.is_dataclass(a):
        assert a is b, where
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, Mapping):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    else:
        assert a == b or a != a and b != b, where  # nan


PUBLIC = (
    "names values estimates tied standard_errors intervals degrees_of_freedom covariance"
    " correlation units fixed model residuals weighted_residuals jacobian costs rms"
    " noise_scale dof quantile notices warnings identifiability records"
).split()


def assert_answers_alike(found: Any, again: Any) -> None:
    assert_same(found, again)
    for name in PUBLIC:
        assert_same(getattr(found, name), getattr(again, name), name)
    assert jax.tree.structure(found.model) == jax.tree.structure(again.model)
    assert jax.tree.structure(found.problem) == jax.tree.structure(again.problem)
    for label in found.records:
        assert_same(found.predicted(label), again.predicted(label), f"predicted({label!r})")
        assert_same(found.model_for(label), again.model_for(label), f"model_for({label!r})")
    assert str(found) == str(again)
    assert found.to_json() == again.to_json()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_number_of_a_fit_comes_back_bit_for_bit(
    kind: Callable[[], Any], tmp_path: Path
) -> None:
    found, known = kind()
    assert found.save(tmp_path / "x.fit") == tmp_path / "x.fit"
    again = fx.load_fit(tmp_path / "x.fit", known=known)
    assert_answers_alike(found, again)
    assert [p.name for p in tmp_path.iterdir()] == ["x.fit"]
    assert again.save(tmp_path / "y.fit").read_bytes() == (tmp_path / "x.fit").read_bytes()


@pytest.mark.slow
def test_what_a_fit_is_asked_later_it_answers_from_its_file_too(
    sweep_fit: fx.FitResult, tmp_path: Path
) -> None:
    again = fx.load_fit(sweep_fit.save(tmp_path / "x.fit"))
    assert_same(again.predict([-1.0, 0.0, 2.0]), sweep_fit.predict([-1.0, 0.0, 2.0]))
    assert_same(again.band([1.0, 2.0]), sweep_fit.band([1.0, 2.0]))
    assert (again.bic, again.aicc) == (sweep_fit.bic, sweep_fit.aicc)
    assert str(again.uncertainty(fx.White())) == str(sweep_fit.uncertainty(fx.White()))
    name = sweep_fit.names[0]
    assert str(again.profile(name)) == str(sweep_fit.profile(name))
    assert str(again.residual_study()) == str(sweep_fit.residual_study())
    assert again.report(tmp_path / "x.html").is_file()


@pytest.mark.slow
def test_a_fit_to_a_record_goes_on_from_its_file(tmp_path: Path) -> None:
    found = windows_read_from_a_filter()[0]
    again = fx.load_fit(found.save(tmp_path / "x.fit"))
    assert str(again.residual_study()) == str(found.residual_study())
    assert str(again.free_run("record")) == str(found.free_run("record"))
    assert again.to_modelica() == found.to_modelica()
    assert again.report(tmp_path / "x.html").is_file()


@pytest.mark.slow
def test_draws_of_a_posterior_come_back_bit_for_bit(tmp_path: Path) -> None:
    drawn = inverse_dynamics()[0].posterior(draws=100, warmup=100, chains=2)
    again = fx.load_posterior(drawn.save(tmp_path / "x.fit"))
    assert_same(drawn, again)
    assert str(drawn) == str(again)
    assert_same(drawn.friction("friction", [1.0]), again.friction("friction", [1.0]))
    with pytest.raises(
        ValueError, match=r"x.fit holds a Posterior: read it by `fx.load_posterior`"
    ):
        fx.load_fit(tmp_path / "x.fit")


def unpacked(thing: Any, known: Any = ()) -> Any:
    packed = Packed()
    inside = json.loads(json.dumps(packed.pack(thing, "")))
    own = own_code_of(known)
    assert [name_of(x) for x in packed.own] == [name_of(x) for x in own]
    return Unpacked(packed.arrays, own).unpack(inside)


def test_every_part_signal_and_law_of_frictax_is_known_by_its_name() -> None:
    signals = fx.Mechanism(
        **{name: fx.Mass(m=1.0) for name in "abcdef"},
        sine=fx.Force("a", fx.Sine(2.0, f=0.5, phase=1.0)),
        step=fx.Force("b", fx.Step(startTime=0.5)),
        ramp=fx.Force("c", fx.Ramp(height=2.0)),
        pulse=fx.Force("d", fx.Pulse(amplitude=2.0, period=0.5)),
        trapezoid=fx.Force("e", fx.Trapezoid(amplitude=2.0)),
        held=fx.Force("f", fx.Sampled(T, U, hold=True)),
        table=fx.SupportFriction(
            "a", f_pos=[[0, 1], [1, 2]], f_neg=fx.Stribeck(1.0, 2.0, 3.0, 4.0)
        ),
    )
    machines = [make() for make in drawn_machines.KINDS.values()]
    for machine in (*machines, drawn_machines.warm(), drawn_machines.gearbox(), signals):
        assert_same(machine, unpacked(machine))
    own = drawn_machines.of_ones_own()
    assert_same(own, unpacked(own, own))


def test_a_file_of_the_first_version_is_read() -> None:
    found = fx.load_fit(SAVED)
    assert found.values == {"friction.f_pos.F_Coulomb": 0.9992751459215137}
    ends = 0.9945236001074654, 1.004026691735562
    assert found.intervals == {"friction.f_pos.F_Coulomb": ends}
    assert found.units == ("N",)
    assert found.records["axis"].n == 41


# --- own code ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_code_without_runs().save(tmp_path_factory.mktemp("own") / "own.fit")


def test_own_code_is_never_looked_up_by_a_name_in_the_file(own_file: Path) -> None:
    with pytest.raises(ValueError) as said:
        fx.load_fit(own_file)
    assert re.fullmatch(
        r"\S+own.fit needs code that is not part of frictax: Drag of \S*saved_fits, pull of"
        r" \S*saved_fits, <lambda> of \S*saved_fits. Pass it: load_fit\('\S+own.fit',"
        r" known=<the machine fitted>\).",
        str(said.value),
    )


def test_own_code_that_predicts_something_else_is_refused(own_file: Path) -> None:
    class Drag(CheckedModule, fx.AbstractLaw):
        F: Scalar = parameter(AtLeast(0.0), "N")
        c: Scalar = parameter(AtLeast(0.0), "N.s2/m2")

        def __call__(self, v: Any) -> Any:
            return self.F + 0.5 * self.c * v**2

    with pytest.raises(ValueError, match=r"differ by .* times the noise. Pass the code that"):
        fx.load_fit(own_file, known=[Drag, pull, lambda t: -0.2 * t])


def test_an_own_class_that_has_changed_its_fields_is_refused(own_file: Path) -> None:
    class Drag(fx.AbstractLaw):
        F: Any
        d: Any

        def __call__(self, v: Any) -> Any:
            return self.F + self.d * v

    with pytest.raises(ValueError, match=r"Its Drag has a c, which the class here has not."):
        fx.load_fit(own_file, known=[Drag, pull, lambda t: -0.2 * t])
