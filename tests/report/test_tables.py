"""Runs, records, sweeps and draws as tables of other packages: every column says its unit."""

import dataclasses
import inspect
import sys
from typing import Any

import numpy as np
import pytest

import frictax as fx
from frictax.mechanism import variables
from frictax.mechanism.variable_table import VARIABLES

T = np.linspace(0.0, 1.0, 21)


@pytest.fixture(scope="module")
def record() -> fx.Record:
    sd = {"mass.s": 0.1, "mass.v": np.linspace(1.0, 2.0, 21)}
    return fx.Record(
        T,
        {"drive": np.sin(T)},
        {"mass.s": 20 * T**2, "mass.v": 40 * T},
        sd,
        units={"mass.s": "mm", "mass.v": "mm/s", "drive": "kN"},
        hold=True,
        name="pull",
        citation="nobody, 2026",
    )


@pytest.fixture(scope="module")
def sweep() -> fx.Sweep:
    v, f = [-20.0, 0.0, 30.0, 60.0], [-2.0, 3.0, 2.0, 3.0]
    return fx.Sweep(
        v, f, breakaway=np.equal(v, 0.0), velocity_unit="rpm", force_unit="mN.m", name="bench"
    )


def test_every_variable_that_a_part_can_have_has_a_unit_and_a_name() -> None:
    kinds: list[Any] = [
        c for n, c in inspect.getmembers(variables, inspect.isclass) if "Variables" in n
    ]
    assert len(kinds) > 15
    assert {f.name for kind in kinds for f in dataclasses.fields(kind)} <= set(VARIABLES)


@pytest.fixture(scope="module")
def clutched() -> fx.Trajectory:
    """A clutch, and bodies that a force over position acts on: one turns and the others slide."""
    force = {"f_nominal": 1.0, "slope": 0.0}
    machine = fx.Mechanism(
        J1=fx.Inertia(J=1.0),
        J2=fx.Inertia(J=1.0),
        mass=fx.Mass(m=1.0),
        belt=fx.Mass(m=1.0),
        clutch1=fx.Clutch("J1", "J2", fn_max=20.0, f_normalized=fx.Constant(1.0)),
        seat=fx.LinearPositionDependentForce("J1", **force),
        weight=fx.LinearPositionDependentForce("mass", **force),
        moved=fx.Position("belt", fx.Ramp(height=1.0)),
    )
    return fx.simulate(machine, T)


@pytest.mark.slow
def test_columns_of_a_run_have_the_units_of_what_slides_or_turns(clutched: fx.Trajectory) -> None:
    units, names = (clutched.to_pandas().attrs[key] for key in ("units", "long_names"))
    assert [units[n] for n in ("time", "J1.w", "J1.a", "clutch1.tau", "clutch1.fn")] == [
        "s",
        "rad/s",
        "rad/s2",
        "N.m",
        "N",
    ]
    assert names["clutch1.lossPower"] == "power lost, clutch1"
    assert units.keys() == names.keys() == {"time", *clutched.to_pandas().columns}
    assert [units[n] for n in ("seat.s", "seat.f", "weight.s", "weight.f", "moved.s")] == [
        "rad",
        "N.m",
        "m",
        "N",
        "m",
    ]
    assert names["seat.f"] == "torque, seat"


def test_a_record_comes_back_from_its_table(record: fx.Record) -> None:
    frame = record.to_pandas()
    assert frame.attrs["units"] == {
        "time": "s",
        "drive": "N",
        "mass.s": "m",
        "mass.v": "m/s",
        "mass.v sd": "m/s",
    }
    assert frame.attrs["between_samples"] == "held"
    assert frame.attrs["citation"] == "nobody, 2026"
    again = fx.Record.from_pandas(
        frame,
        time="time",
        inputs={"drive": "drive"},
        outputs={
            "mass.s": fx.Column("mass.s", sd=1e-4),
            "mass.v": fx.Column("mass.v", sd="mass.v sd"),
        },
        hold=True,
    )
    for kind in ("inputs", "outputs"):
        for name, values in getattr(record, kind).items():
            assert np.array_equal(getattr(again, kind)[name], values)
    assert np.array_equal(again.sd["mass.v"], record.sd["mass.v"])


def test_a_sweep_is_a_table_in_si_units(sweep: fx.Sweep) -> None:
    frame = sweep.to_pandas()
    assert frame.attrs["units"] == {"velocity": "rad/s", "force": "N.m", "breakaway": "1"}
    assert frame["force"].tolist() == [-0.002, 0.003, 0.002, 0.003]
    assert frame.index.name == "row"


@pytest.mark.slow
def test_datasets_of_xarray_say_unit_and_name_of_each_variable(
    record: fx.Record, sweep: fx.Sweep, clutched: fx.Trajectory
) -> None:
    pytest.importorskip("xarray", reason="xarray, an optional package, is not installed")
    data = record.to_xarray()
    assert data["mass.s"].attrs == {
        "units": "m",
        "long_name": "position, mass.s",
        "kind": "output",
        "sd": pytest.approx(1e-4),
    }
    assert data["time"].attrs["units"] == "s"
    assert np.array_equal(data["drive"], record.inputs["drive"])
    assert sweep.to_xarray()["force"].attrs == {"units": "N.m", "long_name": "friction torque"}
    run = clutched.to_xarray()
    assert run["clutch1.tau"].attrs == {"units": "N.m", "long_name": "torque, clutch1"}
    assert np.array_equal(run["time"], T)


@pytest.fixture(scope="module")
def drawn() -> fx.Posterior:
    t = np.linspace(0.0, 6.0, 301)
    v, a = np.sin(1.3 * t) + np.sin(3.1 * t), 1.3 * np.cos(1.3 * t) + 3.1 * np.cos(3.1 * t)
    noise = 0.1 * np.random.default_rng(0).standard_normal(t.size)
    seen = fx.Record(t, {"drive": a + np.sign(v) * (1.0 + 0.2 * v**2) + noise}, {"mass.v": v})
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=[[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]),
        drive=fx.Force("mass", 0.0),
    )
    objective = fx.InverseDynamics(40.0, v_min=0.05, at_samples=True)
    found = fx.fit(block, {"a/b": seen}, free=["mass.m", "friction.f_pos"], objective=objective)
    return found.posterior(draws=100, warmup=100, chains=2)


@pytest.mark.slow
def test_each_draw_has_what_the_sampler_says_of_it(drawn: fx.Posterior) -> None:
    assert {name: a.shape for name, a in drawn.stats.items()} == dict.fromkeys(
        ("lp", "diverging", "acceptance_rate", "tree_depth", "n_steps"), (2, 100)
    )
    assert np.sum(drawn.stats["diverging"]) == drawn.divergences
    assert np.all(2 ** drawn.stats["tree_depth"] > drawn.stats["n_steps"])
    assert np.all((drawn.stats["acceptance_rate"] >= 0) & (drawn.stats["acceptance_rate"] <= 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ 0.23 tells of 1.0 when imported
def test_arviz_takes_the_draws_as_they_are(drawn: fx.Posterior) -> None:
    arviz = pytest.importorskip("arviz", reason="ArviZ, an optional package, is not installed")
    tree = drawn.to_arviz()
    mass = tree["posterior"]["mass.m"]
    assert mass.dims == ("chain", "draw")
    assert mass.attrs == {"units": "kg", "long_name": "mass.m"}
    assert np.array_equal(mass, drawn.draws[..., drawn.names.index("mass.m")])
    assert tree["posterior"]["friction.f_pos.f"].shape == (2, 100, 3)
    assert np.array_equal(tree["sample_stats"]["diverging"], drawn.stats["diverging"])
    seen = tree["observed_data"]["a_b: mass.v"]
    assert np.array_equal(seen, drawn.found.records["a/b"].outputs["mass.v"])
    assert seen.attrs["units"] == "m/s"
    assert tree["constant_data"]["a_b: drive"].attrs["units"] == "N"
    summary: Any = arviz.summary(tree)
    assert list(summary.index) == list(drawn.names)
    told = np.asarray(summary["mean"], dtype=float)
    assert told == pytest.approx(drawn.draws.mean(axis=(0, 1)), rel=0.01)


def test_a_package_that_is_missing_is_named_in_one_sentence(
    record: fx.Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"needs the package xarray: `pip install xarray`, or us"):
        record.to_xarray()
    bare: Any = object.__new__(fx.Posterior)
    with pytest.raises(ImportError, match=r"ArviZ, .* Run: pip install 'frictax\[bayes\]'"):
        bare.to_arviz()
