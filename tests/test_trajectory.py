"""What a run returns: Modelica's names, padded events, a table, a figure."""

import dataclasses

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE

TIMES = jnp.linspace(0.0, 3.0, 31)
FRICTION = [
    "s",
    "v",
    "a",
    "f",
    "mode",
    "sa",
    "locked",
    "free",
    "f0",
    "f0_max",
    "v_relfric",
    "a_relfric",
    "lossPower",
]


@pytest.fixture(scope="module")
def machine() -> fx.Mechanism:
    """Of every kind of part one."""
    return fx.Mechanism(
        wall=fx.Fixed(s0=-1.0),
        mass=fx.Mass(m=1.0),
        guide=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0), peak=1.2),
        slider=fx.MassWithStopAndFriction(
            m=1.0, smin=-0.5, smax=0.5, F_prop=0.1, F_Coulomb=1.0, F_Stribeck=0.5, fexp=2.0
        ),
        drive=fx.Force("mass", fx.Sine(amplitude=5.0, f=0.8)),
        carriage=fx.Mass(m=1.0, v=2.03),
        brake=fx.Brake("carriage", fn_max=1.0, f_normalized=fx.Step(height=2.0, startTime=0.5)),
        spring=fx.Spring("wall", "slider", c=2.0),
        damper=fx.Damper("mass", "slider", d=2.0),
    )


@pytest.fixture(scope="module")
def run(machine: fx.Mechanism) -> fx.Trajectory:
    return fx.simulate(machine, TIMES, REFERENCE)


@pytest.mark.slow
def test_every_variable_of_the_modelica_element_stands_under_its_name(run: fx.Trajectory) -> None:
    for name in ("guide", "slider", "brake"):
        fields = {f.name for f in dataclasses.fields(run[name])}
        assert fields >= set(FRICTION)
        for variable in FRICTION:
            assert getattr(run[name], variable).shape == TIMES.shape
    assert run["brake"].fn.shape == TIMES.shape
    assert run["slider"].stopped.shape == TIMES.shape
    assert run["guide"].fn is None
    assert run["guide"].stopped is None


def test_what_is_integrated_and_what_is_returned_agree(run: fx.Trajectory) -> None:
    n = len(run.system.layout.bodies)
    assert jnp.array_equal(run["mass"].s, run.ys[:, 0])
    assert jnp.array_equal(run["carriage"].v, run.ys[:, n + 2])
    assert jnp.allclose(
        run["guide"].f, run["drive"].f - run["mass"].a + run["damper"].f, atol=1e-12
    )
    assert bool(run.result == fx.Result.successful)
    assert int(run.steps) > 0


def test_events_are_in_the_order_of_time_and_padded(run: fx.Trajectory) -> None:
    events, n = run.events, int(run.events.count)
    assert n >= 6
    assert np.all(np.diff(events.time[:n]) >= 0)
    assert jnp.all(jnp.isinf(events.time[n:]))
    assert jnp.all(events.part[n:] == -1)
    assert jnp.all(events.mode_before[n:] == int(fx.Mode.UNKNOWN))
    assert jnp.all(events.mode_after[n:] == int(fx.Mode.UNKNOWN))
    assert jnp.all(events.mode_before[:n] != events.mode_after[:n])
    assert events.names == ("guide", "slider", "brake")
    # The brake goes on at 0.5 s and stops its mass of 1 kg, at 2.03 m/s, with 1 N.
    own = np.flatnonzero(np.asarray(events.part[:n]) == 2)
    assert np.allclose(events.time[own], [0.5, 2.53], atol=1e-10)


def starting() -> fx.Mechanism:
    """Three bodies: one that breaks away at the start, one that is held and one that slides."""

    def friction(body):
        return fx.SupportFriction(body, f_pos=fx.Coulomb(F_Coulomb=1.0), peak=1.1)

    return fx.Mechanism(
        pulled=fx.Mass(m=1.0),
        held=fx.Mass(m=1.0),
        thrown=fx.Mass(m=1.0, v=1.0),
        on_pulled=friction("pulled"),
        on_held=friction("held"),
        on_thrown=friction("thrown"),
        pull=fx.Force("pulled", -2.0),
        push=fx.Force("held", 1.05),
    )


ENGINES = pytest.mark.parametrize(
    "engine", [fx.OnSamples(), fx.Adaptive()], ids=["on samples", "adaptive"]
)


@pytest.mark.slow
@ENGINES
def test_what_cannot_be_held_at_the_start_breaks_away_there_and_its_events_move_with_the_start(
    engine: fx.Adaptive | fx.OnSamples,
) -> None:
    def times(t0):
        events = fx.simulate(starting(), jnp.stack([t0, 3.5]), engine).events
        return events.time[:3], events

    by_start, events = jax.jacfwd(times, has_aux=True)(0.5)
    assert [
        int(n)
        for n in (events.count, *events.part[:2], *events.mode_before[:2], *events.mode_after[:2])
    ] == [2, 0, 2, 0, 1, -1, 0]
    assert np.asarray(events.time[:3]) == pytest.approx([0.5, 1.5, np.inf], abs=1e-9)
    assert np.asarray(by_start)[:2] == pytest.approx([1.0, 1.0], abs=1e-9)


def test_the_modes_at_the_samples_follow_from_the_events(run: fx.Trajectory) -> None:
    events, n = run.events, int(run.events.count)
    for c, name in enumerate(events.names):
        mode = np.full(TIMES.shape, int(run[name].mode[0]))
        for k in np.flatnonzero(np.asarray(events.part[:n]) == c):
            mode[np.asarray(TIMES) >= float(events.time[k]) - 1e-12] = int(events.mode_after[k])
        assert np.array_equal(run[name].mode, mode)


def test_a_table_has_every_variable_of_every_part(run: fx.Trajectory) -> None:
    table = run.to_pandas()
    assert table.index.name == "time"
    assert np.array_equal(table.index, TIMES)
    assert [c for c in table.columns if c.startswith("guide.")] == [f"guide.{v}" for v in FRICTION]
    assert {
        "mass.s",
        "drive.f",
        "spring.s_rel",
        "damper.lossPower",
        "brake.fn",
        "slider.stopped",
    } <= set(table.columns)
    assert np.array_equal(table["mass.v"], run["mass"].v)
    assert table["brake.locked"].dtype == bool
    assert np.all(table["wall.s"] == -1.0)


def test_a_run_draws_itself(run: fx.Trajectory) -> None:
    figure = run.plot()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert len(figure.axes) == 4
    assert len(run.plot(parts=["mass"]).axes) == 2


def test_a_part_that_does_not_exist_is_named_with_those_that_do(run: fx.Trajectory) -> None:
    with pytest.raises(KeyError, match="no part 'mas'.*mass"):
        run["mas"]


@pytest.mark.slow
def test_a_run_is_a_pytree_that_vmap_returns() -> None:
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    )
    masses = jnp.array([0.5, 1.0])
    several = jax.vmap(lambda m: fx.simulate(fx.parameters.replace(block, {"mass.m": m}), TIMES))(
        masses
    )
    for i, mass in enumerate(masses):
        one = jax.tree_util.tree_map(lambda x, i=i: x[i], several)
        assert float(one["mass"].s[-1]) == pytest.approx(0.5 * float(mass), abs=1e-9)
        assert float(one.events.time[0]) == pytest.approx(float(mass), abs=1e-9)
