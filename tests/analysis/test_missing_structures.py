"""What is missing becomes structures that are compared."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.analysis.missing.candidates import catalogue
from frictax.analysis.missing.table import Missing, MissingTerm
from frictax.parameters import get
from lacking import FREE, NAMES, fitted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "freed_too", "part"),
    [
        ("Stribeck", "friction.f_pos.fexp", fx.Stribeck),
        ("other way", "friction.f_neg.F_Coulomb", fx.Coulomb),
    ],
)
def test_a_law_that_is_missing_becomes_a_structure(
    lacking: str, freed_too: str, part: type
) -> None:
    structures = fitted(lacking, "white", 41).missing().structures()
    assert list(structures["as fitted"].free or ()) == FREE
    (made,) = [made for name, made in structures.items() if NAMES[lacking] in name]
    assert freed_too in (made.free or ())
    assert isinstance(get(made.model, freed_too.rpartition(".")[0]), part)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "freed_too", "part"),
    [
        ("drag", "drag.f_nominal", fx.QuadraticSpeedDependentForce),
        ("ripple", "ripple.period", fx.PeriodicPositionDependentForce),
    ],
)
def test_compare_takes_what_is_missing_as_structures(
    lacking: str, freed_too: str, part: type
) -> None:
    found = fitted(lacking, "white", 41)
    structures = found.missing().structures()
    assert list(structures["as fitted"].free or ()) == FREE
    (name,) = [n for n in structures if NAMES[lacking] in n]
    made = structures[name]
    assert freed_too in (made.free or ())
    assert isinstance(get(made.model, freed_too.rpartition(".")[0]), part)
    few = {n: structures[n] for n in ("as fitted", name)}
    compared = fx.compare(found.records, few, objective=fx.FreeRun())
    assert compared.best.name == name
    assert compared[name].mean_square < 0.9 * compared["as fitted"].mean_square
    intervals = compared.best.found.intervals
    if lacking == "drag":
        low, high = intervals["drag.f_nominal"]
        assert low < -0.1 < high < -0.08
    if lacking == "ripple":
        low, high = intervals["ripple.period"]
        assert low < 0.05 < high < 0.051
        turn = 2 * np.pi * float(get(made.model, "ripple.s0")) / 0.05
        for path, true in (("f_cos", 0.1 * np.cos(turn)), ("f_sin", -0.1 * np.sin(turn))):
            low, high = intervals[f"ripple.{path}"]
            assert abs(true - (low + high) / 2) < 0.75 * (high - low) < 0.015, path  # 3 errors


@pytest.mark.slow
def test_drag_ripple_and_spring_become_parts_of_the_size_that_was_found() -> None:
    found = fitted("nothing", "white", 7)
    names = "drag over v^2 of friction", "ripple on mass", "spring on mass"
    sized = (names[0], 0.3, None, None), (names[1], 0.2, 0.05, 1.9), (names[2], 4.0, None, None)
    terms = [
        MissingTerm(name, value, 0.1, "N", period, 1.0, 1.0, 0.0, True, True, (), phase)
        for name, value, period, phase in sized
    ]
    made = Missing(tuple(terms), (), 1.0, 1.0, "", (), found).structures()
    assert list(made) == ["as fitted", *names]
    models: dict[str, Any] = {name: made[name].model for name in names}
    parts = {name: dict(model.named_parts()) for name, model in models.items()}
    drag, ripple = parts[names[0]]["drag"], parts[names[1]]["ripple"]
    assert float(drag.driven(None, jnp.zeros(()), jnp.array(-2.0))) == pytest.approx(0.3 * 4.0)
    s = jnp.linspace(-0.1, 0.1, 50)
    assert np.allclose(
        jax.vmap(ripple.elastic)(s), 0.2 * np.cos(2 * np.pi * s / 0.05 - 1.9), atol=1e-12
    )
    assert float(parts[names[2]]["guide"].slope) == -4.0
    fields = ["drag.f_nominal"], ["ripple.f_cos", "ripple.f_sin", "ripple.period"], ["guide.slope"]
    for name, more in zip(names, fields, strict=True):
        assert list(made[name].free or ()) == [*FREE, *more]
        # the law keeps its numbers
        assert isinstance(parts[name]["friction"].f_pos, fx.Coulomb)


@pytest.mark.slow
def test_a_number_that_was_held_and_a_stiffness_become_structures() -> None:
    found = fitted("nothing", "white", 7)
    held = [one for one in catalogue(found) if one.name == "offset of sensor mass.s"]
    mass = [one for one in catalogue(found) if one.of == "mass.m"]
    assert not mass  # it is fitted
    terms = [
        MissingTerm(name, value, 0.1, "", None, 1.0, 1.0, 0.0, True, True, ())
        for name, value in ((held[0].name, 0.01), ("stiffness in series with mass", 4000.0))
    ]
    table = Missing(tuple(terms), (), 1.0, 1.0, "", (), found)
    made = table.structures()
    assert list(made) == ["as fitted", *(term.name for term in terms)]
    assert list(made[terms[0].name].free or ()) == [*FREE, "outputs.mass.s.offset"]
    beyond: Any = made[terms[1].name].model
    assert beyond.names[:2] == ("mass", "beyond_mass")
    assert {"series_mass.c", "beyond_mass.m"} < set(made[terms[1].name].free or ())
