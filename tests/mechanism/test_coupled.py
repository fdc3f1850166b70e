"""What several contacts do together, where the answer is known."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.mechanism.forces import AbstractCompliant
from frictax.mechanism.layout import layout
from machines import (
    REFERENCE,
    lossy_gear,
    mass_on_a_belt,
    planetary_gearbox,
    two_brakes_on_one_mass,
)


# Without peak the load at which all let go is also that under which they go on: a tie, but for
# rounding.
@pytest.mark.slow
@pytest.mark.parametrize(("strong", "weak"), [(1.2, 1.2), (1.0, 1.0), (1.0, 1.3), (1.5, 1.0)])
def test_two_brakes_on_one_mass_share_its_load_in_proportion_to_what_they_hold_and_let_go_together(
    strong: float, weak: float
) -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=2.0),
        strong=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=3.0), peak=strong),
        weak=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0), peak=weak),
        pull=fx.Force("mass", fx.Ramp(height=10.0, duration=1.0)),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.3, 1.0]), REFERENCE)
    holds = 3 * strong + weak
    assert float(run["strong"].f[1]) == pytest.approx(3.0 * 3 * strong / holds, abs=1e-12)
    assert float(run["weak"].f[1]) == pytest.approx(3.0 * weak / holds, abs=1e-12)
    # 10 t reaches what they hold; from there on (10 t - 4)/2 m/s2.
    free = holds / 10
    assert np.asarray(run.events.time[:2]) == pytest.approx([free, free], abs=1e-12)
    assert float(run["mass"].v[-1]) == pytest.approx(
        (5 * (1 - free**2) - 4 * (1 - free)) / 2, abs=1e-9
    )


@pytest.mark.slow
def test_one_release_changes_what_another_bears() -> None:
    """Two masses in line, each on its own guide, with a clutch of springless friction between them:
    all at rest until a guide lets go.
    """
    machine = fx.Mechanism(
        front=fx.Mass(m=1.0),
        back=fx.Mass(m=1.0),
        guide_front=fx.SupportFriction("front", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        guide_back=fx.SupportFriction("back", f_pos=fx.Coulomb(F_Coulomb=1.0), peak=1.5),
        between=fx.SupportFriction("front", f_pos=fx.Coulomb(F_Coulomb=5.0), support="back"),
        pull=fx.Force("front", fx.Ramp(height=10.0, duration=1.0)),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.2, 1.0]), REFERENCE)
    # The three are one loop and bear the pull together. When both guides have let go, at 1 + 1.5 N,
    # both masses move as one.
    first = float(run.events.time[0])
    assert first <= 0.25 + 1e-9
    assert bool(run["between"].locked[-1])
    assert float(run["front"].v[-1]) == pytest.approx(float(run["back"].v[-1]), abs=1e-9)
    moved = float(
        jnp.max(
            jnp.where(
                run.events.part < 2,
                jnp.where(jnp.isfinite(run.events.time), run.events.time, 0.0),
                0.0,
            )
        )
    )
    assert moved == pytest.approx(0.25, abs=1e-9)
    assert float(run["front"].v[-1]) == pytest.approx((5 * (1 - 0.0625) - 2 * 0.75) / 2, abs=1e-8)


@pytest.mark.slow
def test_a_mass_on_a_belt_sticks_to_it_and_breaks_away_where_spring_and_belt_say() -> None:
    machine = fx.Mechanism(
        wall=fx.Fixed(),
        belt=fx.Mass(m=1.0),
        mass=fx.Mass(m=1.0),
        drive=fx.Position("belt", fx.Function(lambda t: 0.5 * t)),
        spring=fx.Spring("wall", "mass", c=10.0),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=2.0), peak=1.5, support="belt"
        ),
    )
    machine = fx.parameters.replace(machine, {"mass.v": jnp.asarray(0.5)})
    run = fx.simulate(machine, jnp.array([0.0, 0.4, 0.7]), REFERENCE, energy=True)
    assert int(run["friction"].mode[1]) == 0
    assert float(run["mass"].s[1]) == pytest.approx(0.2, abs=1e-12)
    # Carried along at 0.5 m/s until c*s = 3 N, that is 0.6 s.
    assert float(run.events.time[0]) == pytest.approx(0.6, abs=1e-9)
    assert float(jnp.max(jnp.abs(run.energy.balance))) <= 1e-8


@pytest.mark.slow
def test_a_mass_on_a_belt_that_stops_at_once_slides_on() -> None:
    machine = fx.Mechanism(
        belt=fx.Mass(m=3.0),
        mass=fx.Mass(m=1.0, v=2.0),
        drive=fx.Position("belt", fx.Ramp(height=2.0, duration=1.0)),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=4.0), peak=1.5, support="belt"
        ),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.9, 1.25, 2.0]), REFERENCE, energy=True)
    assert [int(m) for m in run["friction"].mode] == [0, 0, 1, 0]
    # From 1 s the mass slows with 4 m/s2 and stands after 0.5 s.
    assert np.asarray(run["mass"].v) == pytest.approx([2.0, 2.0, 1.0, 0.0], abs=1e-9)
    assert float(run["mass"].s[-1]) == pytest.approx(2.5, abs=1e-9)
    assert float(run.energy.friction[-1]) == pytest.approx(2.0, abs=1e-9)
    assert float(jnp.max(jnp.abs(run.energy.balance))) <= 1e-8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "end"),
    [
        (two_brakes_on_one_mass, 2.5),
        (mass_on_a_belt, 6.0),
        (planetary_gearbox, 3.0),
        (lossy_gear, 0.5),
    ],
)
def test_the_energy_balance_closes(build: Callable[[], fx.Mechanism], end: float) -> None:
    run = fx.simulate(build(), jnp.linspace(0.0, end, 50), REFERENCE, energy=True)
    assert float(jnp.max(jnp.abs(run.energy.balance))) <= 1e-7
    assert np.all(np.isfinite(np.asarray(run.ys)))
    assert float(jnp.max(jnp.abs(jnp.diff(run.energy.friction)))) > 0


@pytest.mark.slow
def test_a_planetary_gear_turns_its_bodies_by_its_ratio_while_a_brake_holds_the_ring() -> None:
    run = fx.simulate(planetary_gearbox(), jnp.linspace(0.0, 3.0, 31), REFERENCE)
    sun, ring, carrier = run["sun"].w, run["ring"].w, run["carrier"].w
    assert np.asarray(3 * carrier) == pytest.approx(np.asarray(sun + 2 * ring), abs=1e-12)
    assert bool(run["brake"].locked[-1])
    assert abs(float(ring[-1])) <= 1e-12


@pytest.mark.slow
def test_a_stop_hit_by_a_mass_that_a_contact_couples_to_another_leaves_the_other_moving() -> None:
    """The impulse of the stop is more than friction bears: the two slide on each other from then
    on.
    """
    machine = fx.Mechanism(
        sledge=fx.MassWithStopAndFriction(
            m=1.0, smin=-5, smax=0.5, F_prop=0.0, F_Coulomb=0.0, F_Stribeck=0.0, fexp=0.0, v=1.0
        ),
        load=fx.Mass(m=2.0, v=1.0),
        friction=fx.SupportFriction("load", f_pos=fx.Coulomb(F_Coulomb=2.0), support="sledge"),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.49, 0.75, 2.0]), REFERENCE, energy=True)
    assert int(run["friction"].mode[1]) == 0
    assert float(run["sledge"].s[2]) == pytest.approx(0.5, abs=1e-12)
    # From 0.5 s the load slows with 1 m/s2 on the sledge that stands.
    assert float(run["load"].v[2]) == pytest.approx(0.75, abs=1e-9)
    assert float(run["load"].v[3]) == pytest.approx(0.0, abs=1e-12)
    assert float(run.energy.impact[-1]) == pytest.approx(0.5, abs=1e-9)
    assert float(jnp.max(jnp.abs(run.energy.balance))) <= 1e-8


def _inertias(*names: str) -> dict[str, fx.Inertia]:
    return {name: fx.Inertia(J=1.0) for name in names}


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            _inertias("a") | {"b": fx.Mass(m=1.0), "c": fx.Clutch("a", "b")},
            "acts on what turns, got 'b'",
        ),
        (_inertias("a") | {"s": fx.SupportFriction("a")}, "acts on what slides, got 'a'"),
        (_inertias("a") | {"c": fx.Clutch("a", "a")}, "must act between two bodies"),
        (
            _inertias("a") | {"f": fx.Fixed(), "g": fx.IdealGear("a", "f", ratio=2.0)},
            "must name bodies that move",
        ),
        (_inertias("a") | {"g": fx.IdealGear("a", "a", ratio=2.0)}, "must join different bodies"),
        (
            _inertias("a", "b")
            | {"g": fx.IdealGear("a", "b", ratio=2.0), "h": fx.IdealGear("a", "b", ratio=3.0)},
            "the motion of 'b' must be given once",
        ),
        (
            _inertias("a", "b", "c")
            | {"h": fx.IdealGear("b", "c", ratio=3.0), "g": fx.IdealGear("a", "b", ratio=2.0)},
            "Write that gear first",
        ),
        (
            {"m": fx.Mass(m=1.0), "p": fx.Position("m", 0.0), "s": fx.SupportFriction("m")},
            "must act on a motion that is not given",
        ),
        (
            _inertias("a", "b", "c")
            | {"g": fx.LossyGear("a", "b", ratio=2.0), "h": fx.IdealGear("a", "c", ratio=2.0)},
            "must hand its torque on to 'g' alone",
        ),
    ],
)
def test_parts_that_do_not_fit_together_are_named_with_the_remedy(
    parts: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        fx.Mechanism(**parts)


def test_a_ratio_of_0_and_a_loss_table_of_another_shape_are_named() -> None:
    with pytest.raises(ValueError, match="must not be 0"):
        fx.IdealGear("a", "b", ratio=0.0)
    with pytest.raises(ValueError, match="must have rows of five numbers"):
        fx.LossyGear("a", "b", ratio=1.0, lossTable=[[0, 1, 1]])
    with pytest.raises(ValueError, match="eta_mf1"):
        fx.LossyGear("a", "b", ratio=1.0, lossTable=[[0, 0, 1, 0, 0]])
    with pytest.raises(ValueError, match="must be between 1e-06 and 1"):
        fx.LossyGear("a", "b", ratio=1.0, lossTable=[[0, 1.2, 1.3, 0, 0]])  # both would drive
    with pytest.raises(ValueError, match="must be equal where both efficiencies are 1"):
        fx.LossyGear("a", "b", ratio=1.0, lossTable=[[0, 1, 1, 1, 3]])


@pytest.mark.slow
def test_many_machines_at_once_are_those_one_by_one() -> None:
    peaks = jnp.array([1.05, 1.3, 2.0])
    ts = jnp.linspace(0.0, 2.5, 11)

    def motion(peak: jax.Array) -> jax.Array:
        return fx.simulate(
            fx.parameters.replace(two_brakes_on_one_mass(), {"guide.peak": peak}), ts
        ).ys

    together = jax.jit(jax.vmap(motion))(peaks)
    single = jax.jit(motion)
    for row, peak in zip(together, peaks, strict=True):
        assert np.max(np.abs(np.asarray(row - single(peak)))) <= 1e-9


@pytest.mark.slow
def test_a_walk_on_samples_is_the_adaptive_one() -> None:
    machine, ts = two_brakes_on_one_mass(), jnp.linspace(0.0, 2.5, 3001)
    adaptive, sampled = (fx.simulate(machine, ts, engine) for engine in (REFERENCE, fx.OnSamples()))
    count = int(adaptive.events.count)
    assert int(sampled.events.count) == count
    assert np.array_equal(sampled.events.mode_after[:count], adaptive.events.mode_after[:count])
    assert (
        np.max(np.abs(np.asarray(sampled.events.time[:count] - adaptive.events.time[:count])))
        <= 1e-8
    )
    assert np.max(np.abs(np.asarray(sampled.ys - adaptive.ys))) <= 1e-7


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "gear",
    [fx.LossyGear("motor", "load", ratio=2.0), fx.IdealGear("motor", "load", ratio=2.0)],
    ids=["lossy", "ideal"],
)
def test_a_machine_with_a_gear_is_changed_and_run_inside_jit(gear: Any) -> None:
    machine = fx.Mechanism(
        motor=fx.Inertia(J=1.0), load=fx.Inertia(J=4.0), gear=gear, torque=fx.Torque("motor", 6.0)
    )
    ts = jnp.array([0.0, 1.0])
    end = jax.jit(
        lambda J: fx.simulate(fx.parameters.replace(machine, {"motor.J": J}), ts)["motor"].w[-1]
    )
    assert float(end(2.0)) == pytest.approx(6.0 / (2.0 + 4.0 / 2.0**2), abs=1e-6)


@pytest.mark.slow
def test_a_freewheel_that_nothing_presses_on_runs_freely_whatever_corners_its_law_has() -> None:
    machine = fx.Mechanism(
        crank=fx.Inertia(J=1.0),
        wheel=fx.Inertia(J=1.0, w=1.0),
        hub=fx.OneWayClutch(
            "crank",
            "wheel",
            mu_pos=[[0, 0.3], [0.5, 0.2], [2, 0.25]],
            f_normalized=fx.Step(startTime=1.0),
            fn_max=2.0,
        ),
    )
    run = fx.simulate(machine, jnp.array([0.0, 1.0, 1.5]), REFERENCE)
    assert float(run["wheel"].w[1]) == pytest.approx(1.0, abs=1e-12)
    # Pressed on, the relative speed falls with 2*2*(0.2 + (w_rel - 0.5)/30).
    assert float(run["hub"].w_rel[2]) == pytest.approx(6.5 * np.exp(-0.5 * 4 / 30) - 5.5, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [REFERENCE, fx.OnSamples()], ids=["Adaptive", "OnSamples"])
def test_a_freewheel_that_would_start_turning_backward_takes_both_sides_along_at_once(
    engine: Any,
) -> None:
    machine = fx.Mechanism(
        crank=fx.Inertia(J=1.0, w=4.0),
        wheel=fx.Inertia(J=3.0),
        hub=fx.OneWayClutch("crank", "wheel"),
        floor=fx.Fixed(),
        damper=fx.RotationalDamper("floor", "wheel", d=2.0),
    )
    run = fx.simulate(machine, jnp.linspace(0.0, 1.0, 101), engine)
    # 4 kg.m2/s of 4 kg.m2, slowed by 2 N.m.s. The damper holds the wheel back, so that the hub
    # takes the crank along.
    assert np.asarray(run["wheel"].w) == pytest.approx(
        np.exp(-0.5 * np.linspace(0.0, 1.0, 101)), abs=1e-7
    )
    assert np.asarray(run["crank"].w) == pytest.approx(np.asarray(run["wheel"].w), abs=1e-12)
    assert int(run.events.count) == 0


@pytest.mark.slow
def test_a_crank_that_is_given_a_speed_at_once_takes_its_freewheel_along_with_an_impact() -> None:
    machine = fx.Mechanism(
        crank=fx.Inertia(J=1.0),
        wheel=fx.Inertia(J=3.0),
        hub=fx.OneWayClutch("crank", "wheel", f_normalized=fx.Step(startTime=9.0)),
        motion=fx.Position("crank", fx.Ramp(height=2.0, duration=1.0, startTime=0.5)),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.4, 1.0, 2.0]), REFERENCE, energy=True)
    # and runs on, where the crank stands still
    assert np.asarray(run["wheel"].w) == pytest.approx([0.0, 0.0, 2.0, 2.0], abs=1e-12)
    # 3*2**2/2 J are lost and as much is in the wheel; the crank's own 2 J are given and taken back.
    assert np.asarray(run.energy.impact) == pytest.approx([0.0, 0.0, 6.0, 6.0], abs=1e-12)
    assert np.asarray(run.energy.drive) == pytest.approx([0.0, 0.0, 14.0, 12.0], abs=1e-12)
    assert np.max(np.abs(run.energy.balance)) <= 1e-12


@pytest.mark.slow
def test_one_freewheel_behind_the_other_takes_its_part_of_the_impact() -> None:
    machine = fx.Mechanism(
        crank=fx.Inertia(J=1.0),
        wheel=fx.Inertia(J=3.0, w=1.0),
        load=fx.Inertia(J=1.0, w=1.5),
        first=fx.OneWayClutch("crank", "wheel", f_normalized=fx.Step(startTime=9.0)),
        second=fx.OneWayClutch("wheel", "load", f_normalized=fx.Step(startTime=9.0)),
        motion=fx.Position("crank", fx.Ramp(height=2.0, duration=1.0, startTime=0.5)),
    )
    run = fx.simulate(machine, jnp.array([0.0, 0.4, 1.0]), REFERENCE, energy=True)
    assert [float(run[name].w[-1]) for name in ("wheel", "load")] == pytest.approx(
        [2.0, 2.0], abs=1e-12
    )
    assert np.max(np.abs(run.energy.balance)) <= 1e-12


class Hook(AbstractCompliant):
    """A spring by a user who did not make its names static."""

    a: str
    b: str
    c: float

    def forces(self, s_rel: Any, v_rel: Any, piece: Any) -> tuple[Any, Any]:
        return self.c * s_rel, jnp.zeros_like(s_rel)

    def energy(self, s_rel: Any) -> Any:
        return 0.5 * self.c * s_rel**2


def test_a_part_that_holds_its_names_as_values_is_laid_out_anew_each_time() -> None:
    def built(b: str) -> fx.Mechanism:
        return fx.Mechanism(
            wall=fx.Fixed(), x=fx.Mass(m=1.0), y=fx.Mass(m=1.0), hook=Hook("wall", b, 4.0)
        )

    ends = [layout(built(b)).compliants[0][2].body for b in ("y", "x", "y")]
    assert ends == [1, 0, 1]


@pytest.mark.slow
def test_a_clutch_pressed_on_at_rest_never_breaks_what_it_then_holds_away() -> None:
    """Two bearings hold two wheels, one under 0.3 N.m, when the clutch between them is pressed on
    slowly, in the end for 2 N.m.
    """
    machine = fx.Mechanism(
        a=fx.Inertia(J=1.0),
        b=fx.Inertia(J=0.5),
        on_a=fx.BearingFriction("a", tau_pos=fx.Coulomb(F_Coulomb=0.4)),
        on_b=fx.BearingFriction("b", tau_pos=fx.Coulomb(F_Coulomb=1.0)),
        clutch=fx.Clutch(
            "a",
            "b",
            mu_pos=[[0, 0.5]],
            fn_max=4.0,
            f_normalized=fx.Ramp(height=1.0, duration=1.0, startTime=0.1),
        ),
        torque=fx.Torque("b", 0.3),
    )
    run = fx.simulate(machine, jnp.linspace(0.0, 2.0, 41))
    assert np.max(np.abs(run.ys)) <= 1e-14  # nothing moves
    assert np.all(np.asarray(run["on_a"].mode) == fx.Mode.STUCK)
    assert int(run["clutch"].mode[-1]) == fx.Mode.STUCK
    # f through the clutch and bearing a, 0.3 - f on bearing b: f*f/0.4 + f*f/2 + (0.3 - f)**2/1 is
    # least.
    assert float(run["clutch"].tau[-1]) == pytest.approx(0.3 / 4, abs=1e-12)
