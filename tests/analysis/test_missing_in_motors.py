"""Terms of motors, whose noise has a memory, are named on windows, and terms of a machine of one's
own.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.missing.candidates import Shapes, WithTerms, push
from frictax.parameters import Positive, Scalar, parameter
from lacking import FREQUENCY, SIZE

T = np.arange(2000) / 200.0


def motor(torque: Any, far: str = "rotor", near: float = 2e-3, **more: Any) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=0.05, F_prop=0.01)
    return fx.Mechanism(
        rotor=fx.Inertia(J=near),
        bearing=fx.BearingFriction(far, tau_pos=law),
        drive=fx.Torque("rotor", torque),
        **more,
    )


def fitted(
    seed: int,
    J: float,
    sd: float = 1.5e-3,
    memory: float = 0.9,
    tick: float = 0.0,
    **truth: Any,
) -> fx.FitResult:
    """A motor of inertia `J` fitted on windows to a record of the motor `truth`, with noise."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    u = 0.06 * SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    engine = fx.OnSamples(substeps=4)
    phi = np.asarray(fx.simulate(motor(fx.Sampled(T, u), **truth), T, engine)["rotor"].phi)
    draws = np.sqrt(1 - memory**2) * rng.standard_normal(T.size + 400)
    phi = phi + sd * np.asarray(lfilter([1.0], [1.0, -memory], draws))[400:]
    phi = tick * np.round(phi / tick) if tick else phi
    free = ["rotor.J", "bearing.tau_pos.F_Coulomb", "bearing.tau_pos.F_prop"]
    record = fx.Record(T, {"drive": u}, {"rotor.phi": phi}, name="run")
    return fx.fit(motor(0.0, near=J), record, free=free, objective=fx.Windows(0.5, cutoff=20.0))


def ripple(size: float) -> Any:
    zero, one = jnp.zeros(()), jnp.ones(())
    wave = Shapes(jnp.zeros(0), jnp.array([size, 0.0]), 2.6 * one, zero, zero, one, ())
    return push("rotor", True, wave)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_ripple_whose_period_is_no_part_of_a_turn_is_named() -> None:
    table = fitted(3, 2e-3, ripple=ripple(9e-4)).missing()
    assert "ripple on rotor" in table.found[0].name, str(table)
    assert table.found[0].period == pytest.approx(2.6, rel=0.02)
    machine = table.structures()["ripple on rotor"].model
    assert isinstance(machine, fx.Mechanism)
    made = machine["ripple"]
    assert made.body == "rotor"
    assert float(jnp.hypot(made.f_cos, made.f_sin)) == pytest.approx(9e-4, rel=0.2)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_right_motor_lacks_no_term() -> None:
    for noise in ((5e-4, 0.0), (5e-4, 0.95), (5e-5, 0.0, 1e-3)):
        for seed in (300, 301):
            found = fitted(seed, 2.2e-3, *noise, ripple=ripple(0.0))
            assert "term-missing" not in {n.code for n in found.notices}, (noise, seed)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_stiffness_behind_a_motor_is_named() -> None:
    """The windows alone would name a ripple, because they start each half second with the filtered
    motion of the near body only.
    """
    shaft = fx.RotationalSpringDamper("rotor", "load", c=60.0, d=0.006)
    load = fx.Inertia(J=1.2e-3)
    table = fitted(10, 2.3e-3, far="load", near=0.8e-3, load=load, shaft=shaft).missing()
    assert table.found[0].name == "stiffness in series with rotor", str(table)
    assert table.found[0].value == pytest.approx(60.0, rel=0.1)
    assert len(table.found) == 1
    assert "stiffness in series with rotor" in table.structures()


class Pendulum(fx.AbstractAxis):
    """A pendulum of one's own with a drag that is left out or not."""

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    mgl: float = eqx.field(static=True, default=0.48)

    def inertia(self, t, y, args):
        return self.J

    def load(self, t, y, args):
        return -self.mgl * jnp.sin(y[0])

    def states(self):
        return ("phi", "w")

    def start(self, t):
        return self.begin(t, jnp.array([2.5, 0.0]))


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_of_a_machine_of_ones_own_too() -> None:
    law = fx.Coulomb(F_Coulomb=0.004, F_prop=0.0004)
    with_drag = WithTerms(law, jnp.array([1.5e-4]), jnp.array(1.0), ("drag",), 1)
    t = np.arange(1500) / 100.0
    build = lambda law: Pendulum(fx.SupportFriction("joint", f_pos=law), J=jnp.asarray(0.0067))  # noqa: E731
    truth = build(with_drag)
    path = fx.walk(truth, *truth.start(jnp.zeros(())), jnp.asarray(t), options=fx.OnSamples())
    phi = np.asarray(path.ys[:, 0]) + 1e-3 * np.random.default_rng(5).standard_normal(t.size)
    record = fx.Record(t, {}, {"phi": phi}, name="decay")
    free = ["J", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
    table = fx.fit(build(law), record, free=free).missing()
    assert "drag" in table.found[0].name, str(table)
    assert table.found[0].value == pytest.approx(1.5e-4, rel=0.1)
