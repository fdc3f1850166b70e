"""Contacts that hold the same motion: a freewheel, a brake and a load on one shaft."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import OPTIMISED
from frictax.contacts.mode import BACKWARD, STUCK
from frictax.mechanism.contact_margins import margins
from frictax.mechanism.hybrid import MechanicalSystem

ENGINES = {"on samples": fx.OnSamples(substeps=20), "adaptive": fx.Adaptive()}


class Press(eqx.Module):
    """A normal force over its maximum: p[0] + p[1]*t + p[2]*s + p[3]*v."""

    p: Any

    def __call__(self, t: Any, s: Any, v: Any) -> Any:
        return self.p[0] + self.p[1] * t + self.p[2] * s + self.p[3] * v


class Shaft(NamedTuple):
    """Two wheels with a freewheel between them, a brake on one and a load on the other."""

    J: Any = (0.3926, 1.7333)
    w: Any = (0.0, 0.0)
    freewheel: Any = 0.0  # the greatest normal force on it, over a sine of `f`
    brake: Any = 2.6
    press: Any = (0.6, 0.15, 0.0, 0.0)  # of the load of at most 2.65 N.m
    spring: Any = 0.0
    torque: Any = (4.838, -4.841)  # on both wheels
    swing: Any = 0.0  # amplitude of a torque beside, on the first wheel
    f: Any = 1.0

    def machine(self) -> fx.Mechanism:
        return fx.Mechanism(
            wall=fx.Fixed(),
            a=fx.Inertia(J=self.J[0], w=self.w[0]),
            b=fx.Inertia(J=self.J[1], w=self.w[1]),
            freewheel=fx.OneWayClutch(
                "a",
                "b",
                mu_pos=[[0, 0.5]],
                fn_max=2.0,
                f_normalized=fx.Sine(amplitude=self.freewheel, f=self.f),
            ),
            brake=fx.Brake("a", mu_pos=[[0, 1.0]], fn_max=self.brake, f_normalized=1.0),
            load=fx.Brake(
                "b",
                mu_pos=[[0, 1.0]],
                fn_max=2.65,
                f_normalized=fx.MotionDependent(Press(jnp.asarray(self.press))),
            ),
            spring=fx.RotationalSpring("wall", "b", c=self.spring),
            on_a=fx.Torque("a", fx.Sine(amplitude=self.swing, f=self.f, offset=self.torque[0])),
            on_b=fx.Torque("b", self.torque[1]),
        )


def _random_shaft(seed: int) -> Shaft:
    draw = np.random.default_rng(seed)
    return Shaft(
        J=10 ** draw.uniform(-1, 0.5, 2),
        w=draw.normal(size=2) * (draw.random() < 0.5),
        freewheel=draw.uniform(0.0, 1.5),
        brake=draw.uniform(0.5, 4.0),
        press=np.array([draw.uniform(0.2, 1.0), 0.0, draw.normal(), 0.05 * draw.normal()]),
        spring=10 ** draw.uniform(0.5, 2.0),
        torque=2.0 * draw.normal(size=2),
        swing=draw.uniform(1.0, 8.0),
        f=draw.uniform(0.5, 3.0),
    )


def _time_steps(shafts: list[Shaft], end: float, samples: int, steps: int) -> np.ndarray:
    """Return the angles and speeds (n, samples, 4) of a time-stepping scheme for all shafts.

    Each step solves the complementarity problem of the impulses by Gauss-Seidel sweeps. It needs no
    modes and no events.

    **Source:** J. J. Moreau, in J. J. Moreau, P. D. Panagiotopoulos (eds.), Nonsmooth Mechanics and
    Applications, 1988.
    """
    J, w, torque, press, freewheel, brake, spring, swing, f = (
        jnp.array([np.asarray(getattr(shaft, name)) for shaft in shafts])
        for name in ("J", "w", "torque", "press", "freewheel", "brake", "spring", "swing", "f")
    )
    h = end / ((samples - 1) * steps)
    rows = jnp.array([[-1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    G = jnp.einsum("ci,ni,di->ncd", rows, 1 / J, rows)

    def step(state: Any, i: Any) -> Any:
        q, v, force = state
        t, q_mid = (i + 0.5) * h, q + 0.5 * h * v
        sine = jnp.sin(2 * jnp.pi * f * t)
        load = torque + jnp.stack([swing * sine, -spring * q_mid[:, 1]], axis=1)
        pressed = press[:, 0] + press[:, 1] * t + press[:, 2] * q_mid[:, 1] + press[:, 3] * v[:, 1]
        most = jnp.maximum(jnp.stack([freewheel * sine, brake, 2.65 * pressed], axis=1), 0.0)
        least = (-most).at[:, 0].set(-jnp.inf)
        b = (v + h * load / J) @ rows.T / h

        def sweep(rounds: Any) -> Any:
            k, before, _ = rounds
            after = before
            for c in range(3):
                rest = b[:, c] - jnp.sum(G[:, c] * after, axis=1)
                solved = jnp.clip(after[:, c] + rest / G[:, c, c], least[:, c], most[:, c])
                after = after.at[:, c].set(solved)
            return k + 1, after, jnp.max(jnp.abs(after - before))

        moves = lambda rounds: (rounds[0] < 100) & (rounds[2] >= 1e-10)  # noqa: E731
        _, force, _ = jax.lax.while_loop(moves, sweep, (0, force, jnp.inf))
        after = v + h * (load - force @ rows) / J
        q = q + 0.5 * h * (v + after)
        return (q, after, force), jnp.hstack([q, after])

    start = jnp.zeros_like(w), w, jnp.zeros((len(shafts), 3))
    path = jax.jit(
        lambda: jax.lax.scan(step, start, jnp.arange((samples - 1) * steps))[1],
        compiler_options=OPTIMISED,
    )()
    path = jnp.concatenate([jnp.hstack(start[:2])[None], path[steps - 1 :: steps]])
    return np.asarray(jnp.swapaxes(path, 0, 1))


def test_a_contact_that_others_hold_has_no_margin_of_its_velocity() -> None:
    """Such a velocity is 0 but for rounding, which made one event after the other of it."""
    system = MechanicalSystem(Shaft().machine())
    y, mode = jax.eval_shape(system.start, jnp.zeros(()))

    @jax.jit
    def velocity_margin(of_brake: Any) -> Any:
        modes = jnp.zeros(mode.shape, jnp.int32).at[1].set(of_brake).at[2].set(BACKWARD)
        now = system.snapshot(jnp.zeros(()), jnp.zeros(y.shape).at[-1].set(-0.5), modes)
        return margins(now, 2)["forward"]

    assert float(velocity_margin(STUCK)) == np.inf
    assert float(velocity_margin(BACKWARD)) == pytest.approx(0.5)


@pytest.mark.slow
def test_shafts_at_rest_stay_so_and_random_ones_move_as_a_time_stepping_scheme_says() -> None:
    """A shaft that its brakes hold stays at rest while a limit changes."""
    shafts = [_random_shaft(seed) for seed in range(12)]
    expected = _time_steps(shafts, end=1.0, samples=101, steps=200)
    for name, engine in ENGINES.items():
        # One program serves all shafts.
        still = fx.simulate(Shaft().machine(), np.linspace(0.0, 4.0, 101), engine)
        assert np.max(np.abs(still.ys)) <= 1e-9, name
        assert int(still.events.count) <= 6, name
        for seed, (shaft, path) in enumerate(zip(shafts, expected, strict=True)):
            run = fx.simulate(shaft.machine(), np.linspace(0.0, 1.0, 101), engine)
            # The first sample is that after the freewheel locked.
            error = np.max(np.abs(run.ys[1:] - path[1:]), axis=0)
            assert np.all(error <= 1e-3 * np.max(np.abs(path), axis=0) + 1e-5), (name, seed)


def geared(seed: int) -> fx.Mechanism:
    """A lossy gear, beside a freewheel and a clutch from both of its sides to a third shaft, which
    has a brake.
    """
    rng = np.random.default_rng(seed)

    def sine(most: float, offset: tuple[float, float] = (-1.0, 1.0)) -> fx.Sine:
        size, f = rng.uniform(0.0, most), rng.uniform(0.2, 2.0)
        return fx.Sine(amplitude=size, f=f, offset=rng.uniform(*offset))

    def pressed(most: float) -> dict[str, Any]:
        press = {"fn_max": rng.uniform(1.0, most), "f_normalized": sine(1.2, (0.0, 1.0))}
        return {"mu_pos": [[0.0, 0.3]], **press}

    def law() -> fx.Stribeck:
        return fx.Stribeck(*rng.uniform(0.1, 2.0, 3), fexp=rng.uniform(0.5, 5.0))

    eta, tau = rng.uniform(0.3, 0.99, 2), rng.uniform(0.0, 1.0, 2)
    loss = [[0.0, *eta, *tau], [3.0, *eta[::-1], *rng.uniform(0.0, 1.0, 2)]]
    return fx.Mechanism(
        **{name: fx.Inertia(J=rng.uniform(0.2, 2.0)) for name in "abc"},
        gear=fx.LossyGear("a", "b", ratio=2.0, lossTable=loss),
        freewheel=fx.OneWayClutch("a", "c", **pressed(20.0)),
        clutch=fx.Clutch("b", "c", **pressed(20.0)),
        bearing=fx.BearingFriction("a", tau_pos=law()),
        brake=fx.Brake("c", **pressed(10.0)),
        torque_a=fx.Torque("a", sine(20.0)),
        torque_b=fx.Torque("b", sine(8.0)),
    )


@pytest.mark.slow
def test_runs_with_a_freewheel_around_a_lossy_gear_end_and_both_engines_agree() -> None:
    """Of these runs, 11 ended with an error, because the search for the modes went in circles."""
    t = jnp.linspace(0.0, 3.0, 601)
    for seed in range(40):
        machine = geared(seed)
        exact = fx.simulate(machine, t, fx.Adaptive(rtol=1e-9, atol=1e-11))
        run = fx.simulate(machine, t, fx.OnSamples())
        for name in "abc":
            w = np.asarray(exact[name].w)
            np.testing.assert_allclose(run[name].w, w, rtol=0, atol=1e-4 * max(np.ptp(w), 1e-3))
        for name in ("gear", "freewheel", "clutch", "bearing", "brake"):
            assert np.min(exact[name].lossPower) >= -1e-7, (seed, name)
