"""A new law needs one file: fits, reports and units take from it what they need."""

import importlib
import inspect
import pkgutil
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax import laws
from frictax.analysis.derived.derived import common
from frictax.analysis.errors.resampling import refit_with_counts
from frictax.analysis.missing.candidates import catalogue
from frictax.analysis.missing.table import Missing, MissingTerm
from frictax.cli.options import Law
from frictax.laws import LAWS, LAWS_WITH_START
from frictax.parameters import (
    AtLeast,
    CheckedModule,
    Scalar,
    get,
    parameter,
    rotational_unit,
)
from frictax.report.sweep_text import formulas, meaning_of, python_text
from logarithmic import Logarithmic


class Drag(CheckedModule, fx.AbstractLaw):
    """Dry friction and a drag that grows with the cube of the speed."""

    F_Coulomb: Scalar = parameter(AtLeast(0.0), "N")
    F_cube: Scalar = parameter(AtLeast(0.0), "N.s3/m3")

    meanings: ClassVar = {"F_cube": "drag per cube of speed"}

    def __call__(self, v: Any) -> Any:
        return self.F_Coulomb + self.F_cube * v * v * v

    @property
    def formula(self) -> str:
        return "f(v) = F_Coulomb + F_cube·v³"

    @classmethod
    def start_near(cls, rows: Any, **form: Any) -> "Drag":
        (constant, cube), _ = rows.fit_terms(np.ones_like(rows.v), rows.v**3)
        return cls(F_Coulomb=constant + 1e-3, F_cube=cube + 1e-3)


def sweep(law: Any, unit: str = "m/s") -> fx.Sweep:
    v = np.linspace(0.2, 6.0, 24)
    noise = 0.01 * np.random.default_rng(3).standard_normal(v.size)
    force = "N" if unit == "m/s" else "N.m"
    return fx.Sweep(
        v, np.asarray(law(jnp.asarray(v))) + noise, velocity_unit=unit, force_unit=force
    )


def test_a_law_of_ones_own_is_fitted_from_its_class_in_units_of_translation_and_rotation() -> None:
    for unit, expected in (("m/s", "N.s3/m3"), ("rad/s", "N.m.s3/rad3")):
        found = fx.fit(Drag, sweep(Drag(F_Coulomb=5.0, F_cube=0.03), unit))
        assert abs(found["F_Coulomb"].value - 5.0) < 3 * found.standard_errors["F_Coulomb"]
        assert abs(found["F_cube"].value - 0.03) < 3 * found.standard_errors["F_cube"]
        assert [e.unit for e in found.estimates][1] == expected
        (text,) = formulas(found)
        assert text.startswith("f(v) = F_Coulomb + F_cube·v³")


def test_a_start_far_away_is_replaced_by_one_near_the_data() -> None:
    found = fx.fit(Drag(F_Coulomb=1e-3, F_cube=50.0), sweep(Drag(F_Coulomb=5.0, F_cube=0.03)))
    assert found["F_cube"].value == pytest.approx(0.03, rel=0.02)


def test_a_law_without_start_values_is_refused_as_a_class() -> None:
    class Plain(fx.AbstractLaw):
        F: float

        def __call__(self, v: Any) -> Any:
            return self.F + 0.0 * v

    *first, last = [law.__name__ for law in LAWS_WITH_START]
    known = f"known for {', '.join(first)} and {last}, not for Plain"
    with pytest.raises(ValueError, match=known):
        fx.fit(Plain, sweep(fx.Coulomb(5.0)))


def test_one_per_cent_more_friction_is_that_of_all_terms_of_a_law() -> None:
    from frictax.analysis.replay.free_run import _of_friction

    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=Drag(F_Coulomb=1.0, F_cube=0.1)),
        brake=fx.Brake("mass", mu_pos=fx.Coulomb(0.5), fn_max=20.0, f_normalized=1.0),
    )
    assert [p.path for p in _of_friction(block)] == [
        "friction.f_pos.F_Coulomb",
        "friction.f_pos.F_cube",
        "brake.mu_pos.F_Coulomb",
        "brake.mu_pos.F_prop",
    ]


def test_each_public_law_in_the_folder_is_registered() -> None:
    modules = [m.name for m in pkgutil.iter_modules(laws.__path__, "frictax.laws.")]
    classes = {
        one
        for name in modules
        for one in vars(importlib.import_module(name)).values()
        if isinstance(one, type) and issubclass(one, fx.AbstractLaw) and one.__module__ == name
    }
    public = {one for one in classes if not one.__name__.startswith("_")} - {fx.AbstractLaw}
    public = {one for one in public if not inspect.isabstract(one)}
    assert public == set(LAWS)
    assert {law.__name__ for law in LAWS} <= set(dir(fx))


def test_all_laws_of_the_package_are_in_the_list_and_have_what_it_promises() -> None:
    assert set(LAWS) == {
        x
        for x in (getattr(fx, name) for name in dir(fx))
        if isinstance(x, type) and issubclass(x, fx.AbstractLaw) and x is not fx.AbstractLaw
    }
    assert [law.__name__.lower() for law in LAWS_WITH_START] == list(Law)
    data = sweep(fx.Coulomb(5.0, 0.2))
    for kind in LAWS_WITH_START:
        found = fx.fit(kind, data)
        assert all(meaning_of(e.path.partition("[")[0]) for e in found.estimates)
        assert "of the law" not in found.law.formula
        names: dict[str, Any] = {}
        exec(python_text(found), names)
        np.testing.assert_allclose(names["found"].x, found.x, rtol=1e-5)
        for e in found.estimates:
            assert rotational_unit(e.unit) != e.unit


def test_a_unit_of_a_new_term_is_turned_and_divided_by_the_normal_force() -> None:
    block = fx.Mechanism(
        wheel=fx.Inertia(J=1.0, w=5.0),
        brake=fx.Brake("wheel", mu_pos=Drag(0.5, 0.01), fn_max=20.0, f_normalized=1.0),
    )
    t = np.linspace(0.0, 0.3, 61)
    w = np.asarray(fx.simulate(block, t)["wheel"].w)
    noisy = w + 1e-3 * np.random.default_rng(0).standard_normal(t.size)
    found = fx.fit(block, fx.Record(t, outputs={"wheel.w": noisy}), free=["brake.mu_pos"])
    assert [e.unit for e in found.estimates] == ["1", "s3/rad3"]


def test_the_time_constant_is_inertia_over_the_viscous_slope_of_any_law() -> None:
    block = fx.Mechanism(
        mass=fx.Mass(m=3.0),
        friction=fx.SupportFriction("mass", f_pos=Logarithmic(1.0, 0.5, 0.2, 0.1)),
    )
    told = {title: float(of(block)) for title, of, _ in common(block)}
    assert told == {"friction: breakaway": 1.0, "mass: time constant": 6.0}


def test_a_speed_is_shown_in_the_unit_of_the_speeds_of_the_sweep() -> None:
    v = np.linspace(5.0, 100.0, 20)  # [rpm]
    f = 2.0 + 0.5 * np.log1p(v / 10.0) + 0.01 * np.random.default_rng(0).standard_normal(v.size)
    data = fx.Sweep(v, f, velocity_unit="rpm", force_unit="N.cm")
    found = fx.fit(Logarithmic(0.02, 1e-4, 0.005, 1.0), data)
    shown = {e.name: e.shown for e in found.estimates}
    assert (shown["v0"].unit, shown["F_log"].unit) == ("rpm", "N.cm")
    assert float(shown["v0"].value) == pytest.approx(found["v0"].value * 30 / np.pi, rel=0.02)


class Rising(CheckedModule, fx.AbstractLaw):
    """Dry friction that rises over the speed `v_d`."""

    F: Scalar = parameter(AtLeast(0.0), "N")
    v_d: Scalar = parameter(AtLeast(0.0), "m/s")

    def __call__(self, v: Any) -> Any:
        return self.F * (v + 1e-12) / (v + 1e-12 + self.v_d)


@pytest.mark.parametrize(("unit", "force"), [("um/s", "N"), ("rad/s", "N.m")])
def test_refits_start_a_speed_at_its_bound_from_1_percent_of_the_greatest_speed(
    unit: str, force: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def refit(found: Any, kept: Any, start: Any) -> Any:
        starts.append(np.asarray(found.problem.physical(jnp.asarray(start))))
        return refit_with_counts(found, kept, start)

    monkeypatch.setattr("frictax.analysis.selection.compare.refit_with_counts", refit)
    v = np.linspace(0.2, 6.0, 12)  # friction falls, so the best `v_d` is below its bound 0
    data = fx.Sweep(v, 5.0 * v / (v - 0.02), velocity_unit=unit, force_unit=force)
    top = float(np.max(data.velocity))
    row = fx.compare(data, {"law": Rising(5.0, 0.1 * top)})["law"]
    assert row.found["v_d"].value == 0.0
    assert starts[0][1] == pytest.approx(0.01 * top)


def test_a_law_of_ones_own_gets_other_values_backward() -> None:
    t = np.linspace(0.0, 4.0, 201)
    force = 4.0 * np.sin(3.0 * t)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=Logarithmic(1.0, 0.1, 0.2, 0.1)),
        drive=fx.Force("mass", fx.Sampled(t, force)),
    )
    s = np.asarray(fx.simulate(block, t)["mass"].s)
    noisy = s + 1e-4 * np.random.default_rng(0).standard_normal(t.size)
    record = fx.Record(t, {"drive": force}, {"mass.s": noisy})
    found = fx.fit(block, record, free=["friction.f_pos.F_Coulomb"], objective=fx.InverseDynamics())
    (one,) = (c for c in catalogue(found) if c.term == "other way")
    term = MissingTerm(one.name, 0.1, 0.01, "N", None, 1.0, 1.0, 0.0, True, True, ())
    made = Missing((term,), (), 1.0, 1.0, "", (), found).structures()[one.name]
    assert float(get(made.model, "friction.f_pos.F_Coulomb")) > float(
        get(made.model, "friction.f_neg.F_Coulomb")
    )
    assert float(get(made.model, "friction.f_neg.F_log")) == pytest.approx(0.2)
    assert "friction.f_neg.F_Coulomb" in list(made.free or ())
