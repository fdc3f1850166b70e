"""Which machine records ask for: laws that transfer are chosen, tables that store the record's own
speeds are not.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.analysis.selection.cross_validation import Folds, unfinished_refits
from frictax.analysis.selection.selection_rule import choose_structure
from frictax.analysis.selection.structure import structures_rows
from frictax.measurements.noise import integrated_autocorrelation_time
from rigs import motion as simulated

OBJECTIVE, START = fx.Windows(0.5, cutoff=20.0), fx.InverseDynamics(20.0)
RIPPLE = 0.6  # N, of a force that the machines do not have


def axis(**laws: Any) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=90.0),
        friction=fx.SupportFriction("mass", peak=1.0, **laws),
        drive=fx.Force("mass", 0.0),
    )


def coulomb(F_Coulomb: float = 15.0, F_prop: float = 150.0) -> fx.Coulomb:
    return fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)


def table(nodes: int, top: float) -> np.ndarray:
    v = np.linspace(0.0, top, nodes)
    return np.column_stack([v, 15.0 + 150.0 * v])


def speed(highest: tuple[float, ...], step: float = 0.005) -> np.ndarray:
    """Trapezoids of speed [m/s], forward and back, 0.9 s each."""
    shape = np.interp(
        np.arange(0.0, 0.9 - step / 2, step), [0.0, 0.15, 0.75, 0.9], [0.0, 1.0, 1.0, 0.0]
    )
    return np.concatenate([way * top * shape for top in highest for way in (1.0, -1.0)])


def motion(
    truth: Any,
    v: np.ndarray,
    *,
    ripple: float = RIPPLE,
    noise: float = 1e-6,
    seed: int = 0,
    name: str = "run",
) -> fx.Record:
    """The record of `truth` under the force that moves it about at `v`, with a coloured force
    besides that no sensor sees.
    """
    t, rng = 0.005 * np.arange(v.size), np.random.default_rng(seed)
    law = lambda way: np.asarray(truth["friction"].law(way)(jnp.abs(jnp.asarray(v))))  # noqa: E731
    u = 90.0 * np.gradient(v, t) + np.where(v > 0, law(1), np.where(v < 0, -law(-1), 0.0))
    unseen = ripple * np.sin(
        2 * np.pi * 3.3 * t + 2 * np.pi * rng.uniform()
    ) + ripple * np.convolve(rng.standard_normal(t.size), np.ones(20) / 20, "same")
    run = simulated(truth, t, u + unseen)
    s = np.asarray(run["mass"].s) + noise * rng.standard_normal(t.size)
    return fx.Record(t, {"drive": u}, {"mass.s": s}, name=name)


def compared(
    record: Any, structures: Mapping[str, fx.Structure], **options: Any
) -> fx.StructureComparison:
    usual: dict[str, Any] = {"objective": OBJECTIVE, "start": START, "cutoff": 20.0, "repeats": 2}
    return fx.compare(record, structures, **usual | options)


PLATEAUS = speed((0.04, 0.08, 0.12) * 2)
FALLING = fx.Structure(axis(f_pos=[[0.0, 40.0], [0.02, 37.0], [0.04, 27.0]]), ["mass.m"])


@pytest.fixture(scope="module")
def structures() -> dict[str, fx.Structure]:
    rows = table(10, 0.125)
    return {
        "symmetric": fx.Structure(axis(f_pos=coulomb()), ["mass.m", "friction.f_pos"]),
        "by direction": fx.Structure(
            axis(f_pos=coulomb(), f_neg=coulomb()), ["mass.m", "friction.f_pos", "friction.f_neg"]
        ),
        "table": fx.Structure(
            axis(f_pos=rows, f_neg=rows), ["mass.m", "friction.f_pos", "friction.f_neg"]
        ),
    }


@pytest.fixture(scope="module")
def plateaus(structures: Mapping[str, fx.Structure]) -> fx.StructureComparison:
    truth = axis(f_pos=coulomb(20.0, 170.0), f_neg=coulomb(21.0, 240.0))
    return compared(motion(truth, PLATEAUS), structures)


@pytest.mark.slow
def test_a_table_that_stores_the_speeds_of_the_record_fits_closest_and_is_not_chosen(
    plateaus: fx.StructureComparison,
) -> None:
    right, free = plateaus["by direction"], plateaus["table"]
    assert free.mean_square < right.mean_square
    assert free.aic < right.aic
    assert plateaus.best is right
    assert "table fits closer, but is set aside: friction" in plateaus.reason


@pytest.mark.slow
def test_the_transfer_to_other_speeds_shows_why(plateaus: fx.StructureComparison) -> None:
    right, free = plateaus["by direction"].held_out["speeds"], plateaus["table"].held_out["speeds"]
    assert len(right.folds) == 3
    assert free.trajectory_rms > 5 * right.trajectory_rms
    assert free.force_rms > 2 * right.force_rms
    # What the right one says of a speed that it never saw is as good as what it says of those that
    # it did.
    assert right.force_rms < 1.05 * plateaus["by direction"].force


@pytest.mark.slow
def test_it_would_not_be_chosen_for_its_slopes_were_they_not_looked_at(
    plateaus: fx.StructureComparison,
) -> None:
    assert any(
        "times as steeply as the straight line" in sentence
        for sentence in plateaus["table"].implausible
    )
    rows = [dataclasses.replace(row, implausible=()) for row in plateaus.rows]
    assert choose_structure(rows)[0].name == "by direction"


@pytest.mark.slow
def test_the_right_one_recovers_the_friction(plateaus: fx.StructureComparison) -> None:
    values = plateaus.best.found.values
    truth = {
        "f_pos.F_Coulomb": 20.0,
        "f_pos.F_prop": 170.0,
        "f_neg.F_Coulomb": 21.0,
        "f_neg.F_prop": 240.0,
    }
    for name, true in truth.items():
        assert values[f"friction.{name}"] == pytest.approx(true, rel=0.03)


@pytest.fixture(scope="module")
def symmetric() -> fx.Record:
    return motion(axis(f_pos=coulomb(20.0, 170.0)), PLATEAUS)


@pytest.fixture(scope="module")
def alike(structures: Mapping[str, fx.Structure], symmetric: fx.Record) -> fx.StructureComparison:
    some = {name: structures[name] for name in ("by direction", "symmetric")}
    return compared(symmetric, some | {"falling": FALLING}, objective=START, start=None)


@pytest.mark.slow
def test_a_symmetric_machine_asks_for_one_law(alike: fx.StructureComparison) -> None:
    assert alike.best.name == "symmetric"
    assert "by direction" in alike.reason
    assert len(alike.best.held_out["speeds"].folds) == 3
    for name, true in {"F_Coulomb": 20.0, "F_prop": 170.0}.items():
        assert alike.best.found.values[f"friction.f_pos.{name}"] == pytest.approx(true, rel=0.03)


@pytest.mark.slow
def test_a_symmetric_machine_asks_for_one_law_on_windows_too(
    structures: Mapping[str, fx.Structure], symmetric: fx.Record
) -> None:
    made = compared(symmetric, {n: structures[n] for n in ("by direction", "symmetric")})
    assert made.best.name == "symmetric"
    assert "by direction" in made.reason


@pytest.mark.slow
def test_a_slow_machine_with_a_stribeck_dip_asks_for_one(
    structures: Mapping[str, fx.Structure],
) -> None:
    def dip(size):
        return fx.Stribeck(F_prop=170.0, F_Coulomb=20.0, F_Stribeck=size, fexp=60.0)

    record = motion(axis(f_pos=dip(10.0)), speed((0.008, 0.015, 0.03, 0.05, 0.08, 0.12)))
    made = compared(
        record,
        {
            "Coulomb": structures["symmetric"],
            "Stribeck": fx.Structure(axis(f_pos=dip(5.0)), ["mass.m", "friction.f_pos"]),
        },
    )
    assert made.best.name == "Stribeck", made
    assert not made.best.implausible
    # a fit without a part may be
    assert all("stopped after" in sentence for sentence in made.best.doubts), made.best.doubts


@pytest.fixture(scope="module")
def two() -> fx.StructureComparison:
    truth = axis(f_pos=coulomb(20.0, 170.0))
    records = [
        motion(truth, PLATEAUS[:1080], seed=i, name=name)
        for i, name in enumerate(("first", "second"))
    ]
    line = fx.Structure(axis(f_pos=coulomb()), ["mass.m", "friction.f_pos"])
    return compared(records, {"line": line}, objective=START, start=None)


@pytest.mark.slow
def test_a_record_left_out_is_predicted_by_a_fit_to_the_others(two: fx.StructureComparison) -> None:
    held = two["line"].held_out["records"]
    assert held.folds == ("first", "second")
    first, second = two.records.values()
    at_samples = fx.InverseDynamics(20.0, at_samples=True)  # `compare` does not use the weak form
    alone = fx.fit(
        two["line"].found.start, second, free=["mass.m", "friction.f_pos"], objective=at_samples
    )
    assert held.force[0] == pytest.approx(alone.score(first, at_samples)["force on mass"], rel=1e-3)
    assert held.force_rms == pytest.approx(np.sqrt(np.mean(held.force**2)), rel=1e-2)


@pytest.mark.slow
def test_friction_that_would_drive_is_set_aside(alike: fx.StructureComparison) -> None:
    assert any(
        s.startswith("friction forward: the law falls to 0 N")
        and s.endswith("friction cannot accelerate the motion")
        for s in alike["falling"].implausible
    )
    assert alike.best.name == "symmetric"


@pytest.mark.slow
def test_it_prints_a_table_and_draws_itself(alike: fx.StructureComparison) -> None:
    lines = str(alike).splitlines()
    assert lines[1].split("  ")[0] == "structure"
    assert [line for line in lines if line.startswith("symmetric")][0].endswith("<- chosen")
    assert alike.reason in lines
    assert len(alike.plot().axes) == 3


def test_n_eff_of_an_autoregression_is_its_closed_form() -> None:
    x, rng = np.zeros(100_000), np.random.default_rng(0)
    noise = rng.standard_normal(x.size)
    for i in range(1, x.size):
        x[i] = 0.9 * x[i - 1] + noise[i]
    assert integrated_autocorrelation_time(x) == pytest.approx((1 + 0.9) / (1 - 0.9), rel=0.1)


@pytest.mark.slow
def test_the_usual_structures_are_starts_of_one_machine(alike: fx.StructureComparison) -> None:
    (record,) = alike.records.values()
    made = fx.default_structures(
        axis(f_pos=coulomb(20.0, 170.0)), "friction", record, ["mass.m"], cutoff=20.0
    )
    assert list(made)[:2] == ["symmetric", "by direction"]
    chosen = made["table of 8"].model
    assert isinstance(chosen, fx.Mechanism)
    rows = chosen["friction"].f_neg
    assert float(rows.v[-1]) == pytest.approx(0.12, rel=0.03)
    assert np.allclose(rows.f, 20.0 + 170.0 * np.asarray(rows.v))
    guided = fx.Mechanism(
        **{
            **dict(axis(f_pos=coulomb()).named_parts()),
            "guide": fx.LinearPositionDependentForce("mass"),
        }
    )
    assert "guide.slope" in list(
        fx.default_structures(guided, "friction", record)["linear in position"].free or []
    )
    more = {
        "drag": fx.QuadraticSpeedDependentForce("mass"),
        "ripple": fx.PeriodicPositionDependentForce("mass", period=0.01),
    }
    dragged = fx.Mechanism(**{**dict(axis(f_pos=coulomb()).named_parts()), **more})
    made = fx.default_structures(dragged, "friction", record, ["mass.m"])
    assert {"drag.f_nominal"} < set(made["quadratic in speed"].free or [])
    assert {"ripple.f_cos", "ripple.f_sin"} < set(made["periodic in position"].free or [])
    # What is free anyway makes no structure.
    anyway = fx.default_structures(dragged, "friction", record, ["drag.f_nominal"])
    assert "quadratic in speed" not in anyway


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"structures": {}}, "needs structures by name"),
        ({"structures": {"a": axis(f_pos=coulomb())}}, "'a' must be a `Structure`"),
        ({"objective": fx.Windows(0.5, free_starts=True)}, "whose starts cannot be fitted"),
        ({"repeats": 1}, "`repeats` must be a whole number >= 2, got 1"),
        ({"record": {}}, "at least one record"),
        ({"record": {"s": fx.Sweep([1, 2, 3], [1.0, 2.0, 3.0])}}, "takes records"),
        ({"loss": fx.Huber()}, "`loss` belongs to comparisons of sweeps"),
    ],
)
def test_wrong_input_is_told(
    change: dict[str, Any], says: str, structures: Mapping[str, fx.Structure]
) -> None:
    t = np.linspace(0.0, 5.0, 501)
    record = fx.Record(t, {"drive": np.sin(t)}, {"mass.s": np.cos(t)})
    with pytest.raises(ValueError, match=says):
        compared(change.pop("record", record), change.pop("structures", structures), **change)


def test_a_short_record_has_as_many_parts_as_asked() -> None:
    t = np.linspace(0.0, 0.4, 101)
    record = fx.Record(t, {"drive": np.sin(30.0 * t)}, {"mass.v": np.sin(20.0 * t)})
    mass = fx.Mechanism(mass=fx.Mass(m=1.0), drive=fx.Force("mass", 0.0))
    found = fx.fit(mass, record, free=["mass.m"], rounds=0)
    folds = Folds(found.problem, {"run": record}, 20.0, 4)
    assert folds.repeats(4)[1] == tuple(f"part {i} of 4" for i in (1, 2, 3, 4))
    assert len(set(folds.piece_of_residuals(found.problem).tolist())) == 4
    structures = {"one": fx.Structure(mass, free=["mass.m"])}
    with pytest.raises(ValueError, match="without one part no residual remains. Give a longer rec"):
        compared(record, structures, objective=fx.Windows(0.4), start=None)


def test_options_of_records_are_refused_for_a_sweep() -> None:
    with pytest.raises(ValueError, match="`repeats` belongs to comparisons of records"):
        fx.compare(fx.Sweep([1, 2, 3], [1.0, 2.0, 3.0]), repeats=3)  # pyright: ignore


def test_a_structure_must_hold_a_machine() -> None:
    with pytest.raises(ValueError, match="must be a `Mechanism`"):
        fx.Structure(fx.Coulomb(1.0))  # pyright: ignore


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_emps_asks_for_a_physical_machine_and_not_for_the_table_that_fits_it_closest(
    data_folder: Path,
) -> None:
    file = data_folder / "emps" / "DATA_EMPS.mat"
    force = fx.Column("vir", unit="V", gain=35.15065, to="N")
    whole = fx.Record.from_mat(
        file,
        time="t",
        inputs={"drive": force},
        outputs={"mass.s": fx.Column("qm", unit="m")},
        name="EMPS",
    )
    rows = table(10, 0.13)
    free = ["mass.m", "friction.f_pos", "friction.f_neg"]
    structures = {
        "by direction": fx.Structure(axis(f_pos=coulomb(), f_neg=coulomb()), free),
        "table": fx.Structure(axis(f_pos=rows, f_neg=rows), free),
    }
    made = fx.compare(
        whole.decimate(4),
        structures,
        objective=fx.Windows(0.5, cutoff=50.0),
        start=fx.InverseDynamics(50.0),
    )
    right, cheat = made["by direction"], made["table"]
    assert made.best is right
    # The table fits closest ...
    assert cheat.mean_square < 0.3 * right.mean_square
    # ... but not the force, and no other speed.
    assert cheat.force > 2 * right.force
    assert cheat.held_out["speeds"].trajectory_rms > 2 * right.held_out["speeds"].trajectory_rms
    assert cheat.held_out["speeds"].force_rms > 2 * right.held_out["speeds"].force_rms
    assert "table fits closer, but is set aside" in made.reason
    assert right.held_out["speeds"].force_rms < 1.05 * right.force


@pytest.mark.slow
def test_fits_without_a_part_that_were_stopped_are_told(alike: fx.StructureComparison) -> None:
    held = alike.best.held_out
    stopped = dataclasses.replace(held["repeats"], unfinished=2)
    assert unfinished_refits(
        {"repeats": stopped, "speeds": dataclasses.replace(held["speeds"], unfinished=0)}
    ) == ("stopped after 30 steps: 2 of 2 fits without a repeat",)
    assert (
        unfinished_refits({by: dataclasses.replace(h, unfinished=0) for by, h in held.items()})
        == ()
    )


@pytest.mark.slow
def test_what_inverse_dynamics_leaves_of_what_was_left_out_is_a_force(alike) -> None:
    head, rows = structures_rows(alike)
    assert head[4:8] == ("repeats N", "repeats N", "speeds N", "speeds N")
    assert rows[0][4] == rows[0][5]
