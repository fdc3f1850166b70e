"""The information as a state: derivatives beside the motion, and the information's own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.excitation.information import (
    InformationSystem,
    MachineUnderTest,
    build_information_system,
)
from frictax.fitting.build_problem import sensors
from frictax.fitting.problem.setup import Setup
from frictax.parameters import select

T = np.linspace(0.0, 12.0, 1201)
LAW = fx.Stribeck(F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
SINES = 3.0 * np.sin(2 * np.pi * 1.3 * T) + 2.0 * np.sin(2 * np.pi * 3.1 * T)


class Rocker(fx.AbstractAxis):
    """A pendulum with a motor."""

    friction: fx.SupportFriction
    J: Any = fx.parameters.parameter(fx.parameters.Positive(), "kg.m2")
    mgl: Any = fx.parameters.parameter(fx.parameters.Positive(), "N.m")

    def inertia(self, t, y, args):
        return self.J

    def load(self, t, y, args):
        return args["motor"] - self.mgl * jnp.sin(y[0])

    def states(self):
        return ("phi", "w")

    def start(self, t):
        return self.begin(t, jnp.zeros(2))


def _block() -> tuple[Any, ...]:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=LAW, peak=1.1),
        drive=fx.Force("mass", 0.0),
    )
    return machine, "drive", SINES, {"mass.v": 2e-3}, ["mass.m", "friction.f_pos", "friction.peak"]


def _belt() -> tuple[Any, ...]:
    """Two masses at a spring, one of them carried along by a belt."""
    machine = fx.Mechanism(
        belt=fx.Mass(m=50.0, v=0.25),
        motion=fx.Position("belt", fx.Ramp(height=3.6, duration=12.0)),
        wall=fx.Fixed(),
        carried=fx.Mass(m=1.0),
        other=fx.Mass(m=0.5),
        grip=fx.SupportFriction("carried", support="belt", f_pos=LAW, peak=1.1),
        slide=fx.SupportFriction("other", f_pos=fx.Coulomb(F_Coulomb=0.4, F_prop=0.1)),
        anchor=fx.Spring("wall", "carried", c=40.0),
        link=fx.SpringDamper("carried", "other", c=80.0, d=0.3),
        drive=fx.Force("other", 0.0),
    )
    free = ["carried.m", "grip.f_pos", "grip.peak", "slide.f_pos", "link.c"]
    return machine, "drive", 0.8 * SINES, {"carried.v": 2e-3, "other.s": 1e-3}, free


def _clutch() -> tuple[Any, ...]:
    machine = fx.Mechanism(
        motor=fx.Inertia(J=0.5),
        load=fx.Inertia(J=0.3),
        clutch=fx.Clutch("motor", "load", mu_pos=fx.Coulomb(0.3, 0.02), fn_max=4.0, peak=1.1),
        bearing=fx.BearingFriction("load", tau_pos=fx.Coulomb(F_Coulomb=0.3, F_prop=0.05)),
        drive=fx.Torque("motor", 0.0),
    )
    free = ["motor.J", "load.J", "clutch.mu_pos", "clutch.peak", "bearing.tau_pos"]
    return machine, "drive", 0.8 * SINES, {"motor.w": 1e-2, "load.w": 1e-2}, free


def _stops() -> tuple[Any, ...]:
    machine = fx.Mechanism(
        slider=fx.MassWithStopAndFriction(
            m=1.0, F_prop=0.2, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0, smin=-0.12, smax=0.1
        ),
        drive=fx.Force("slider", 0.0),
    )
    free = ["slider.m", "slider.F_prop", "slider.F_Coulomb", "slider.F_Stribeck"]
    return machine, "drive", SINES, {"slider.s": 1e-3}, free


def _gear() -> tuple[Any, ...]:
    machine = fx.Mechanism(
        rotor=fx.Inertia(J=0.01),
        wheel=fx.Inertia(J=0.8),
        gear=fx.IdealGear("rotor", "wheel", ratio=8.0),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(0.06, 0.004), peak=1.2),
        brake=fx.BearingFriction("wheel", tau_pos=LAW),
        drive=fx.Torque("rotor", 0.0),
    )
    free = ["rotor.J", "bearing.tau_pos", "brake.tau_pos.F_Coulomb", "brake.tau_pos.F_prop"]
    return machine, "drive", 0.18 * SINES, {"wheel.phi": 1e-3}, free


def _own() -> tuple[Any, ...]:
    machine = Rocker(fx.SupportFriction("joint", f_pos=LAW, peak=1.15), J=0.6, mgl=2.0)
    return (
        machine,
        "motor",
        0.8 * SINES,
        {"phi": 1e-3},
        ["J", "mgl", "friction.f_pos", "friction.peak"],
    )


MACHINES = {"block": _block, "belt": _belt, "clutch": _clutch} | {
    "stops": _stops,
    "gear": _gear,
    "own": _own,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MACHINES))
def test_derivatives_beside_the_motion_are_those_of_the_run_and_the_slope_that_of_differences(
    name: str,
) -> None:
    machine, drive, u, outputs, free = MACHINES[name]()
    setup = Setup(machine, sensors("inputs", (drive,), {}), sensors("outputs", tuple(outputs), {}))
    paths = tuple(p.path for p in select(setup, free))
    weight, engine = [100.0 / sd**2 for sd in outputs.values()], fx.OnSamples(substeps=4)
    u, random, zero = jnp.asarray(u), np.random.default_rng(1), jnp.zeros(())

    def informed(u: Any) -> InformationSystem:
        under_test = MachineUnderTest(setup, T, {drive: u}, paths, tuple(outputs), False)
        return build_information_system(under_test, under_test.values(), weight, np.zeros(0))

    def matrix(u: Any) -> Any:
        """The information, the derivatives beside the motion, and the count of events."""
        system = informed(u)
        path = fx.walk(system, *system.start(zero), T, options=engine)
        beside = jax.vmap(lambda y: system.sensitive.parts(y)[1])(path.ys)
        return system.matrix(path.ys[-1]), (beside, path.count)

    def states(x: Any) -> Any:
        system = informed(u).sensitive.family.system(x)
        return fx.walk(system, *system.start(zero), T, options=engine).ys

    x, way = informed(u).sensitive.x, np.zeros(T.size)
    weights = random.standard_normal((x.size, x.size))
    for k in range(1, 24):
        way += random.standard_normal() / k * np.sin(2 * np.pi * k * T / 12 + random.uniform(0, 6))
    way, h = jnp.asarray(way), 1e-5
    along = jax.jit(lambda u: jax.jvp(matrix, (u,), (way,), has_aux=True))
    value, slope, (beside, count) = along(u)
    run = np.asarray(jax.jit(jax.jacfwd(states))(x))
    size = np.max(np.abs(run), axis=(0, 1), keepdims=True)
    # Both are led by steps of third order, and these by their own.
    np.testing.assert_allclose(beside / size, run / size, atol=1e-3)
    assert int(count) >= 40
    weights /= np.sqrt(np.outer(np.diag(value), np.diag(value)))
    forward = float(np.vdot(weights, slope))
    near, far = (
        np.vdot(weights, along(u + k * h * way)[0] - along(u - k * h * way)[0]) for k in (1, 2)
    )
    assert forward == pytest.approx((8 * near - far) / (12 * h), rel=1e-4)
    if name == "block":
        gradient = jax.jit(jax.grad(lambda u: jnp.vdot(weights, matrix(u)[0])))(u)
        assert forward == pytest.approx(float(jnp.vdot(gradient, way)), rel=1e-9)


@pytest.mark.slow
def test_information_of_a_slide_to_rest_is_its_closed_form():
    def told(v):
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0, v=v),
            friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
        )
        ts = np.linspace(0.0, 1.0, 101)
        return fx.information(block, ts, {"mass.v": 0.1}, free="friction.f_pos.F_Coulomb")[0, 0]

    # dv/dF = -t until it stops at v/2: 1e4 times the integral of t**2
    value, slope = jax.value_and_grad(told)(1.0)
    assert float(value) == pytest.approx(1e4 / 3 * 0.5**3, rel=1e-8)
    assert float(slope) == pytest.approx(1e4 / 2 * 0.5**2, rel=1e-8)


def test_what_cannot_be_informed_is_refused_in_a_sentence():
    machine, drive, u, outputs, free = _block()
    for options, says in (
        ({"outputs": {}}, "`outputs` must name what is measured"),
        ({"inputs": {drive: u[:-1]}}, "the input 'drive' must have a value at each of the 1201"),
        ({"ts": T[::-1]}, "at least two times"),
        ({"ts": T**2 / 12}, "`ts` must be evenly spaced, to within one step of 0.01 s"),
        ({"windows": 0.0}, r"`windows` must be a length \[s\] > 0, got 0.0"),
        ({"outputs": {"mass.v": -1.0}}, r"`outputs\['mass.v'\]` must be the standard deviation"),
        (
            {"instruments": {"mass.v": fx.Instrument()}},
            "names 'mass.v', which is not a channel. Did you mean",
        ),
    ):
        given: dict[str, Any] = {
            "ts": T,
            "outputs": outputs,
            "free": free,
            "inputs": {drive: u},
        } | options
        with pytest.raises(ValueError, match=says):
            fx.information(machine, **given)


@pytest.mark.parametrize("channel", ["inputs.drive", "outputs.mass.v"])
def test_a_known_delay_leaves_the_end_of_the_motion_out(channel):
    t, known = np.linspace(0.0, 1.0, 101), {channel: fx.Instrument(delay=0.25)}
    machine = fx.Mechanism(mass=fx.Mass(m=1.0), drive=fx.Force("mass", 0.0))
    told = fx.information(
        machine, t, {"mass.v": 0.1}, free="mass.m", inputs={"drive": t}, instruments=known
    )
    # v = (t - delay)**2/2 and dv/dm = -v: 1e4 times the integral of t**4/4 until 0.75
    assert float(told[0, 0]) == pytest.approx(1e4 / 20 * 0.75**5, rel=2e-3)
