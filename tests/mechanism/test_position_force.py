"""A force linear in position: closed forms, breakaway, energy. Its derivatives are in
test_position_controller.py.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from machines import REFERENCE, times

TIMES = jnp.linspace(0.0, 2.0, 9)


def lone(
    force: fx.LinearPositionDependentForce, s: float = 0.5, v: float = 1.0, L: float = 0.0
) -> fx.Trajectory:
    """A mass of 2 kg under this force alone."""
    machine = fx.Mechanism(wall=fx.Fixed(s0=0.1), mass=fx.Mass(m=2.0, s=s, v=v, L=L), force=force)
    return fx.simulate(machine, TIMES, REFERENCE, energy=True)


def guided(f_nominal: Any = 0.8, slope: Any = -6.0, s0: Any = 0.02, s: Any = 0.0) -> fx.Mechanism:
    """A block with friction and such a force, pulled to and fro."""
    law = fx.Stribeck(F_Coulomb=1.0, F_prop=0.2, F_Stribeck=0.4, fexp=5.0)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, s=s),
        friction=fx.SupportFriction("mass", f_pos=law, peak=1.1),
        guide=fx.LinearPositionDependentForce("mass", f_nominal=f_nominal, slope=slope, s0=s0),
        drive=fx.Force("mass", fx.Sine(amplitude=3.0, f=0.8)),
    )


def test_an_offset_accelerates_a_mass_evenly() -> None:
    run = lone(fx.LinearPositionDependentForce("mass", f_nominal=-3.0))
    assert np.allclose(run["mass"].v, 1.0 - 1.5 * np.asarray(TIMES), atol=1e-11)
    assert np.all(run["force"].f == -3.0)


def test_a_falling_force_swings_a_mass_about_the_place_where_it_is_0() -> None:
    run = lone(fx.LinearPositionDependentForce("mass", f_nominal=2.0, slope=-8.0, s0=0.3))
    t, centre = np.asarray(TIMES), 0.3 + 2.0 / 8.0
    assert np.allclose(
        run["mass"].s, centre + (0.5 - centre) * np.cos(2 * t) + 0.5 * np.sin(2 * t), atol=1e-9
    )
    assert np.allclose(run["force"].f, 2.0 - 8.0 * (run["mass"].s - 0.3), atol=1e-12)
    assert np.array_equal(run["force"].s, run["mass"].s)
    # No drive does work.
    assert np.all(run.energy.drive == 0)
    assert np.allclose(
        run.energy.kinetic + run.energy.elastic, 1.0 - (2.0 * 0.2 - 4.0 * 0.2**2), atol=1e-9
    )


def test_a_rising_force_drives_a_mass_away_exponentially() -> None:
    run = lone(fx.LinearPositionDependentForce("mass", slope=8.0), v=0.0)
    assert np.allclose(run["mass"].s, 0.5 * np.cosh(2 * np.asarray(TIMES)), rtol=1e-8)


@pytest.mark.slow
def test_a_force_that_pulls_back_equals_a_spring_to_the_housing() -> None:
    spring = fx.Mechanism(
        wall=fx.Fixed(s0=0.1),
        mass=fx.Mass(m=2.0, s=0.5, v=1.0),
        spring=fx.Spring("wall", "mass", c=8.0, s_rel0=0.2),
    )
    sprung = fx.simulate(spring, TIMES, REFERENCE)
    forced = lone(fx.LinearPositionDependentForce("mass", slope=-8.0, s0=0.3))
    assert np.allclose(sprung.ys[:, :2], forced.ys[:, :2], atol=1e-9)


@pytest.mark.slow
def test_the_position_is_that_of_the_flange() -> None:
    force = lambda body: fx.LinearPositionDependentForce(body, slope=1.0)  # noqa: E731
    for body, side in (("mass", 0.2), ("mass.flange_a", -0.2)):
        run = lone(force(body), L=0.4)
        assert np.allclose(run["force"].s, run["mass"].s + side)
        assert np.allclose(run["mass"].a, (run["mass"].s + side) / 2.0)


@pytest.mark.slow
def test_a_position_dependent_force_on_the_housing_moves_nothing() -> None:
    run = lone(fx.LinearPositionDependentForce("wall", f_nominal=3.0, slope=10.0))
    assert np.allclose(run["mass"].v, 1.0)
    assert np.allclose(run["force"].f, 4.0)


@pytest.mark.parametrize(
    ("f_nominal", "slope", "s"),
    [(0.5, 0.0, 0.0), (-0.5, 0.0, 0.0), (0.0, 10.0, 0.05), (0.3, -10.0, 0.06)],
)
def test_a_ramp_breaks_a_block_away_at_what_the_force_at_its_place_leaves(
    f_nominal: float, slope: float, s: float
) -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0, s=s),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0), peak=1.2),
        guide=fx.LinearPositionDependentForce("mass", f_nominal=f_nominal, slope=slope),
        drive=fx.Force("mass", fx.Ramp(height=40.0, duration=10.0)),
    )
    first = times(machine, [0.0, 1.0])[0]
    assert first == pytest.approx((1.2 * 2.0 - f_nominal - slope * s) / 4.0, rel=1e-11)


@pytest.mark.slow
def test_friction_holds_against_a_force_below_f0_max_and_not_above() -> None:
    for f_nominal, events in ((1.53, 0), (1.55, 1)):
        still = fx.parameters.replace(
            guided(f_nominal=f_nominal, slope=0.0), {"drive.f.amplitude": 0.0}
        )
        run = fx.simulate(still, jnp.array([0.0, 0.5]), REFERENCE)
        moving = float(run["mass"].v[-1]) > 0
        assert moving == bool(events)
        assert float(run["friction"].f[0]) == pytest.approx(f_nominal if not events else 1.4)


def test_what_may_be_fitted_are_the_force_and_its_slope() -> None:
    chosen = [p.path for p in fx.parameters.select(guided(), "guide")]
    assert chosen == ["guide.f_nominal", "guide.slope"]
    assert [p.path for p in fx.parameters.select(guided(), "guide.s0")] == ["guide.s0"]


@pytest.mark.slow
@pytest.mark.parametrize("slope", [-6.0, 1.5])
def test_its_energy_is_stored_and_the_balance_closes(slope: float) -> None:
    balances, least, events = [], [], 0
    for f_nominal, s0 in ((0.8, 0.02), (-0.6, -0.3), (0.0, 0.5)):
        run = fx.simulate(
            guided(f_nominal, slope, s0, s=0.1), jnp.linspace(0.0, 2.5, 26), REFERENCE, energy=True
        )
        events += int(run.events.count)
        e, s = run.energy, run["mass"].s
        assert np.allclose(
            e.elastic, -(f_nominal * (s - s0) + slope / 2 * (s - s0) ** 2), atol=1e-14
        )
        balances.append(np.max(np.abs(e.balance)))
        least.append(np.min(e.elastic))
    assert max(balances) <= 1e-8
    assert min(least) < 0
    assert events >= 9


@pytest.mark.slow
def test_many_machines_at_once_equal_each_alone() -> None:
    def run(slope):
        return fx.simulate(
            fx.parameters.replace(guided(), {"guide.slope": slope}), TIMES, REFERENCE
        ).ys

    slopes = jnp.array([-6.0, 0.0, 3.0])
    together = jax.vmap(run)(slopes)
    assert np.allclose(together, jnp.stack([run(slope) for slope in slopes]), atol=1e-9)
