"""Heat of friction: closed forms of temperatures, friction that depends on them, balances,
derivatives, wrong input.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import frictax as fx
from checks import assert_derivatives_agree, flat, rebuilt
from machines import TIGHT, coupled_clutches

T0, TA = 300.0, 280.0


def fading_brake(beta: float = 0.01, C: float = 4.0, G: float = 0.0) -> fx.Mechanism:
    """2 kg with 10 m/s, braked by 5 N that fade as the disc gets hot."""
    return fx.Mechanism(
        mass=fx.Mass(m=2.0, v=10.0),
        brake=fx.SupportFriction(
            "mass", f_pos=fx.TemperatureDependent(fx.Coulomb(F_Coulomb=5.0), beta=beta, T_ref=T0)
        ),
        disc=fx.HeatCapacitor("brake", C=C, T=T0),
        air=fx.ThermalConductor("disc", G=G, T_ambient=TA),
    )


def hot_clutches() -> fx.Mechanism:
    """Three clutches, each with a disc that heats the next and the air; the first two fade."""
    cold = coupled_clutches()
    parts = dict(cold.named_parts())
    for name in ("clutch1", "clutch2"):
        law = fx.TemperatureDependent(parts[name].mu_pos, beta=0.003, T_ref=T0)
        parts[name] = fx.Clutch(
            parts[name].a,
            parts[name].b,
            mu_pos=law,
            peak=1.1,
            fn_max=20.0,
            f_normalized=parts[name].f_normalized,
        )
    discs = {f"disc{i}": fx.HeatCapacitor(f"clutch{i}", C=2.0 * i, T=T0) for i in (1, 2, 3)}
    walls = {f"wall{i}": fx.ThermalConductor(f"disc{i}", f"disc{i + 1}", G=3.0) for i in (1, 2)}
    return fx.Mechanism(
        **parts, **discs, **walls, air=fx.ThermalConductor("disc3", G=1.5, T_ambient=TA)
    )


def test_under_a_torque_that_friction_balances_the_disc_heats_up_as_a_first_order_lag() -> None:
    machine = fx.Mechanism(
        shaft=fx.Inertia(J=1.0, w=8.0),
        bearing=fx.BearingFriction("shaft", tau_pos=fx.Coulomb(F_Coulomb=3.0)),
        motor=fx.Torque("shaft", 3.0),
        housing=fx.HeatCapacitor("bearing", C=10.0, T=T0),
        air=fx.ThermalConductor("housing", G=2.0, T_ambient=TA),
    )
    run = fx.simulate(machine, jnp.linspace(0.0, 20.0, 21), TIGHT)
    end = TA + 24.0 / 2.0
    expected = end + (T0 - end) * jnp.exp(-run.ts * 2.0 / 10.0)
    assert jnp.max(jnp.abs(run["housing"].T - expected)) < 1e-8
    assert jnp.max(jnp.abs(run["air"].Q_flow - 2.0 * (expected - TA))) < 1e-7


def test_a_brake_that_fades_stops_when_the_quadrature_says() -> None:
    # Without cooling the disc's temperature follows from the speed, and the time from an integral
    # over the speed.
    beta, C = 0.01, 4.0
    force = lambda v: 5.0 * np.exp(-beta * 2.0 * (10.0**2 - v**2) / (2 * C))  # noqa: E731
    stop = quad(lambda v: 2.0 / force(v), 0.0, 10.0, epsabs=1e-13, epsrel=1e-13)[0]
    run = fx.simulate(fading_brake(beta, C), jnp.array([0.0, 8.0]), TIGHT)
    assert float(run.events.time[0]) == pytest.approx(stop, abs=1e-9)
    assert stop > 4.3  # and 4 s where nothing fades
    assert float(run["disc"].T[-1]) == pytest.approx(T0 + 100.0 / C, abs=1e-9)


@pytest.mark.slow
def test_a_load_that_friction_holds_breaks_away_when_the_heat_of_another_element_arrives() -> None:
    # A hot, large node heats that of a stuck bearing: 1.2*4 exp(-0.02 (T - T0)) falls to the 3 N of
    # the load.
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        other=fx.Mass(m=1.0),
        guide=fx.SupportFriction(
            "mass",
            f_pos=fx.TemperatureDependent(fx.Coulomb(F_Coulomb=4.0), beta=0.02, T_ref=T0),
            peak=1.2,
        ),
        rubbing=fx.SupportFriction("other", f_pos=fx.Coulomb(F_Coulomb=1.0)),
        load=fx.Force("mass", 3.0),
        slide=fx.HeatCapacitor("guide", C=2.0, T=T0),
        oven=fx.HeatCapacitor("rubbing", C=1e12, T=400.0),
        wall=fx.ThermalConductor("oven", "slide", G=0.5),
    )
    warm = lambda t: 400.0 - 100.0 * np.exp(-t * 0.5 / 2.0)  # noqa: E731
    free = brentq(lambda t: 4.8 * np.exp(-0.02 * (warm(t) - T0)) - 3.0, 0.0, 5.0, xtol=1e-14)
    run = fx.simulate(machine, jnp.array([0.0, 2.0]), TIGHT)
    assert float(run.events.time[0]) == pytest.approx(free, abs=1e-9)
    assert bool(run["guide"].locked[0])
    assert float(run["mass"].v[-1]) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "end", "events"), [(lambda: fading_brake(G=0.8), 8.0, 1), (hot_clutches, 1.5, 6)]
)
def test_balances_of_energy_and_heat_close_also_where_friction_fades(
    build: Callable[[], fx.Mechanism], end: float, events: int
) -> None:
    run = fx.simulate(
        build(), jnp.linspace(0.0, end, 16), fx.Adaptive(rtol=1e-10, atol=1e-12), energy=True
    )
    assert int(run.events.count) >= events
    assert jnp.max(jnp.abs(run.energy.balance)) < 1e-7
    assert jnp.max(jnp.abs(run.energy.heat_balance)) < 1e-7
    # every clutch heats a disc
    assert jnp.max(jnp.abs(run.energy.heated - run.energy.friction)) < 1e-9
    assert float(run.energy.heated[-1]) > 20.0
    assert float(run.energy.cooled[-1]) > 20.0


@pytest.mark.slow
def test_derivatives_by_heat_and_friction_equal_central_differences() -> None:
    machine = fading_brake(G=0.8)
    paths = [
        "mass.m",
        "mass.v",
        "brake.f_pos.law.F_Coulomb",
        "brake.f_pos.beta",
        "disc.C",
        "disc.T",
        "air.G",
        "air.T_ambient",
    ]

    def outcome(x: Any) -> Any:
        run = fx.simulate(rebuilt(machine, paths, x), jnp.array([0.0, 2.0, 8.0]), TIGHT)
        return jnp.concatenate([jnp.ravel(run.ys[1:]), run.events.time[:1]])

    assert_derivatives_agree(outcome, flat(machine, paths), step=1e-4, reverse=False)


@pytest.mark.slow
def test_a_walk_on_samples_is_the_adaptive_one() -> None:
    machine, ts = fading_brake(G=0.8), jnp.linspace(0.0, 8.0, 3001)
    fine = fx.simulate(machine, ts[jnp.array([0, -1])], TIGHT)
    coarse = fx.simulate(machine, ts, fx.OnSamples())
    assert int(coarse.events.count) == int(fine.events.count)
    assert jnp.max(jnp.abs(coarse.ys[-1] - fine.ys[-1])) < 1e-6


@pytest.mark.slow
def test_without_a_node_a_law_is_that_of_its_reference_temperature() -> None:
    law = fx.TemperatureDependent(fx.Coulomb(F_Coulomb=5.0), beta=0.5)
    machine = fx.Mechanism(mass=fx.Mass(m=2.0, v=10.0), brake=fx.SupportFriction("mass", f_pos=law))
    assert float(
        fx.simulate(machine, jnp.array([0.0, 5.0]), TIGHT).events.time[0]
    ) == pytest.approx(4.0, abs=1e-10)


@pytest.mark.slow
def test_a_law_of_the_users_own_choice_may_depend_on_temperature() -> None:
    class Grease(fx.AbstractLaw):
        T: Any = 300.0

        def __call__(self, v: Any) -> Any:
            return 1.0 + 0.1 * v * (350.0 - self.T) / 50.0

        def at_temperature(self, T: Any) -> fx.AbstractLaw:
            return Grease(T)

    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=10.0),
        guide=fx.SupportFriction("mass", f_pos=Grease()),
        oil=fx.HeatCapacitor("guide", C=2.0, T=T0),
    )
    run = fx.simulate(machine, jnp.array([0.0, 1.0]), TIGHT)
    warm = float(run["oil"].T[-1])
    assert warm > T0 + 5
    assert float(run["guide"].f[-1]) == pytest.approx(
        1.0 + 0.1 * float(run["mass"].v[-1]) * (350.0 - warm) / 50.0, rel=1e-12
    )


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (
            fx.HeatCapacitor("mass", C=1.0),
            "'more' must be heated by friction elements or dampers, got 'mass'. Here are: brake",
        ),
        (fx.HeatCapacitor("brake", C=1.0), "'brake' must heat one node, got 'disc' and 'more'"),
        (
            fx.ThermalConductor("brake", G=1.0),
            "'more' must conduct between heat capacitors, got 'brake'. Here are: disc",
        ),
        (fx.ThermalConductor("disc", "mass", G=1.0), "got 'mass'"),
    ],
)
def test_what_heats_nothing_and_conducts_nowhere_is_named(part: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fx.Mechanism(**dict(fading_brake().named_parts()), more=part)


@pytest.mark.parametrize("wrong", [{"C": 0.0}, {"C": 1.0, "T": -3.0}, {"C": float("nan")}])
def test_values_outside_their_domain_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"HeatCapacitor\.(C|T)"):
        fx.HeatCapacitor("brake", **wrong)


@pytest.mark.slow
def test_many_machines_at_once_have_their_own_temperatures() -> None:
    @jax.jit
    @jax.vmap
    def run(C: jax.Array) -> jax.Array:
        machine = fx.parameters.replace(fading_brake(beta=0.0), {"disc.C": C})
        return fx.simulate(machine, jnp.array([0.0, 5.0])).ys[-1]

    C = jnp.array([2.0, 4.0])
    assert jnp.allclose(run(C)[:, 2], T0 + 100.0 / C, atol=1e-4)
