"""A stiffness in series is named, by the machine with a body in two."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.analysis.missing.structures import split_body
from lacking import FREE, FREQUENCY, RIGHT, SIZE, T


def carriage(soft: bool, u: np.ndarray | None = None) -> fx.Mechanism:
    """On a spring, driven and seen at one end of a belt."""
    far = "far" if soft else "mass"
    belt = {"far": fx.Mass(m=0.6), "belt": fx.SpringDamper("mass", "far", c=3000.0, d=0.7)}
    return fx.Mechanism(
        mass=fx.Mass(m=0.4 if soft else 1.1),
        wall=fx.Fixed(),
        spring=fx.Spring("wall", far, c=20.0),
        friction=fx.SupportFriction(far, f_pos=RIGHT),
        drive=fx.Force("mass", 0.0 if u is None else fx.Sampled(T, u)),
        **(belt if soft else {}),
    )


@pytest.mark.slow
def test_a_body_in_two_keeps_its_drive_and_its_sensor() -> None:
    machine = split_body(carriage(False), "mass", 3000.0)
    assert machine["friction"].body == machine["spring"].b == "beyond_mass"
    assert machine["drive"].body == "mass"
    assert float(machine["mass"].m) + float(machine["beyond_mass"].m) == pytest.approx(1.1)
    swing = 2 * np.pi * 0.5
    still = carriage(False, 2.0 * np.sin(swing * T))
    rigid, soft = (
        np.asarray(fx.simulate(m, jnp.asarray(T), fx.OnSamples())["mass"].s)
        for m in (still, split_body(still, "mass", 3000.0))
    )
    assert 1e-4 < np.max(np.abs(rigid - soft)) < 3e-3  # 2 N over the stiffness


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_stiffness_in_series_is_found_by_the_machine_with_a_body_in_two() -> None:
    rng = np.random.default_rng(5)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    given = SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * T + turn[:, None])
    s = np.asarray(
        fx.simulate(carriage(True, given), jnp.asarray(T), fx.OnSamples(substeps=4))["mass"].s
    )
    s = s + 5e-4 * rng.standard_normal(T.size)
    record = fx.Record(T, {"drive": given}, {"mass.s": s}, name="run")
    table = fx.fit(carriage(False), record, free=FREE, objective=fx.FreeRun()).missing()
    assert table.found[0].name == "stiffness in series with mass", str(table)
    assert table.found[0].value == pytest.approx(3000.0, rel=0.4)
    assert table.left < 0.75 * table.misfit
    assert "stiffness in series with mass" in table.structures()


@pytest.mark.slow
@pytest.mark.usefixtures("optimised_fits")
def test_a_stiffness_behind_a_motor_with_noise_of_a_memory_is_named_on_windows() -> None:
    """The windows alone would name a ripple, because they start each half second with the filtered
    motion of the near body only.
    """
    t = np.arange(2000) / 200.0
    rng = np.random.default_rng(10)
    turn = rng.uniform(0.0, 2 * np.pi, FREQUENCY.size)
    u = 0.06 * SIZE @ np.sin(2 * np.pi * FREQUENCY[:, None] * t + turn[:, None])

    def motor(torque: Any, far: str = "rotor", J: float = 2e-3, **more: Any) -> fx.Mechanism:
        law = fx.Coulomb(F_Coulomb=0.05, F_prop=0.01)
        return fx.Mechanism(
            rotor=fx.Inertia(J=J),
            bearing=fx.BearingFriction(far, tau_pos=law),
            drive=fx.Torque("rotor", torque),
            **more,
        )

    shaft = fx.RotationalSpringDamper("rotor", "load", c=60.0, d=0.006)
    more = {"load": fx.Inertia(J=1.2e-3), "shaft": shaft}
    truth = motor(fx.Sampled(t, u), far="load", J=0.8e-3, **more)
    run = fx.simulate(truth, jnp.asarray(t), fx.OnSamples(substeps=4))
    draws = np.sqrt(1 - 0.9**2) * rng.standard_normal(t.size + 400)
    noise = 1.5e-3 * np.asarray(lfilter([1.0], [1.0, -0.9], draws))[400:]
    record = fx.Record(
        t, {"drive": u}, {"rotor.phi": np.asarray(run["rotor"].phi) + noise}, name="run"
    )
    free = ["rotor.J", "bearing.tau_pos.F_Coulomb", "bearing.tau_pos.F_prop"]
    found = fx.fit(motor(0.0, J=2.3e-3), record, free=free, objective=fx.Windows(0.5, cutoff=20.0))
    table = found.missing()
    assert table.found[0].name == "stiffness in series with rotor", str(table)
    assert table.found[0].value == pytest.approx(60.0, rel=0.1)
    assert len(table.found) == 1
    assert "stiffness in series with rotor" in table.structures()
