"""Where fits to records begin: runs at the measurement, fitted starts, and what a first fit hands
on.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting import FitOptions
from frictax.fitting.build_problem import build_problem
from frictax.measurements.record import replace_fields
from frictax.parameters import Positive, Real, Scalar, parameter
from rigs import FINE, T, U, assert_recovered, block, record


def warnings_at_hand(found: fx.FitResult) -> list[str]:
    """Those of its sentences for which nothing more is simulated."""
    return [str(notice) for notice in found.notices_at_hand]


@pytest.mark.slow
def test_a_run_that_begins_elsewhere_than_its_record_is_told_to_start_from_the_measurement():
    seen = record(block(s=0.1, v=0.5), {"mass.s": 1e-4})
    free = ["friction.f_pos.F_Coulomb"]
    far = warnings_at_hand(fx.fit(block(), seen, free=free, rounds=0))
    assert any(
        "starts with mass.s = 0, but record 'run' starts at 0.1" in w and "measured_start=True" in w
        for w in far
    ), far
    near = fx.fit(
        block(F_Coulomb=1.1),
        seen,
        free=free,
        objective=fx.FreeRun(measured_start=True, cutoff=20.0),
    )
    assert not any("measured_start" in w for w in warnings_at_hand(near))
    assert near.values["friction.f_pos.F_Coulomb"] == pytest.approx(1.0, rel=0.01)


@pytest.mark.slow
def test_a_run_that_begins_at_another_speed_than_its_position_shows_is_told() -> None:
    seen = record(block(v=0.8), {"mass.s": 1e-4})
    free = ["friction.f_pos.F_Coulomb"]
    far = warnings_at_hand(fx.fit(block(), seen, free=free, rounds=0))
    assert any(
        "starts with mass.v = 0, but mass.s of record 'run' gives about 0." in w for w in far
    ), far
    for start, run in ((block(v=0.8), seen), (block(), record(block(), {"mass.s": 1e-4}))):
        near = fx.fit(start, run, free=free)
        assert not any(n.code == "starts-at-another-speed" for n in near.notices_at_hand)


@pytest.mark.slow
def test_a_block_that_its_belt_takes_along_within_a_few_samples_begins_at_rest() -> None:
    t = np.arange(2001) / 200.0

    def on_belt(dry: float, x: object = 0.0) -> fx.Mechanism:
        return fx.Mechanism(
            belt=fx.Mass(m=1.0),
            mass=fx.Mass(m=1.0),
            wall=fx.Fixed(),
            spring=fx.SpringDamper("wall", "mass", c=50.0, d=0.3),
            go=fx.Position("belt", x),
            friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=dry), support="belt"),
        )

    x = 0.1 * t
    s = np.asarray(fx.simulate(on_belt(4.0, fx.Sampled(t, x)), t, FINE)["mass"].s)
    s = s + 3e-4 * np.random.default_rng(0).standard_normal(t.size)
    found = fx.fit(
        on_belt(4.4),
        fx.Record(t, {"go": x}, {"mass.s": s}, name="run"),
        free=["friction.f_pos.F_Coulomb"],
    )
    assert any(n.code == "starts-at-another-speed" for n in found.notes)  # before the fit
    assert not any(n.code == "starts-at-another-speed" for n in found.notices)


@pytest.mark.slow
def test_a_start_that_is_fitted_begins_where_the_record_does_unless_the_machine_says_otherwise():
    """From rest the run would begin stuck, where a little speed does nothing."""
    seen = record(block(s=0.3, v=0.8), {"mass.s": 1e-4})
    free = ["mass.m", "friction.f_pos.F_Coulomb", "mass.s", "mass.v"]
    found = fx.fit(block(m=1.2, F_Coulomb=1.2), seen, free=free)
    assert_recovered(
        found, {"mass.m": 1.0, "friction.f_pos.F_Coulomb": 1.0, "mass.s": 0.3, "mass.v": 0.8}
    )
    assert float(found.problem.x0[list(found.names).index("mass.v")]) == pytest.approx(
        0.8, abs=0.02
    )
    said, _ = posed(block(v=0.6), seen, free)
    assert float(said.x0[list(found.names).index("mass.v")]) == 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    [fx.Windows(0.5, cutoff=15.0), fx.FreeRun(measured_start=True, cutoff=15.0)],
    ids=lambda o: type(o).__name__,
)
def test_runs_that_start_from_the_measurement_are_not_biased_where_the_motion_begins_bent(
    objective,
) -> None:
    """A spring lets go at the record's begin: rest, and an acceleration that a filter's reflection
    about the end would take for speed.
    """
    spring = {
        "spring": fx.Spring("mass", "wall", c=40.0, s_rel0=0.0),
        "wall": fx.Fixed(),
        "damper": fx.Damper("mass", "wall", d=0.4),
    }
    truth = fx.Mechanism(mass=fx.Mass(m=1.0, s=0.1), drive=fx.Force("mass", 0.0), **spring)
    s = np.asarray(fx.simulate(truth, T, FINE)["mass"].s) + 2e-5 * np.random.default_rng(
        0
    ).standard_normal(T.size)
    run = fx.Record(T, outputs={"mass.s": s}, sd={"mass.s": 2e-5}, name="run")
    found = fx.fit(truth, run, free=["damper.d", "mass.m"], objective=objective)
    for name, value in (("damper.d", 0.4), ("mass.m", 1.0)):
        assert found.values[name] == pytest.approx(value, rel=3e-3), found
    prepared: Any = found.problem.prepared[0]
    assert abs(float(np.ravel(prepared.start["mass.v"])[0])) < 0.01


@pytest.mark.slow
def test_a_first_fit_moves_what_each_record_has_of_its_own_and_sensors_too() -> None:
    masses = {"mass.m@load 0": 1.0, "mass.m@load 1": 2.2}
    two = [
        record(block(m=m), {"mass.s": 1e-5}, u=U + 0.1, seed=i, name=label.partition("@")[2])
        for i, (label, m) in enumerate(masses.items())
    ]
    found = fx.fit(
        block(m=1.4, F_Coulomb=1.1),
        [replace_fields(one, inputs={"drive": U}) for one in two],
        free=["friction.f_pos.F_Coulomb", "inputs.drive.offset"],
        own=["mass.m"],
        start=fx.InverseDynamics(15.0),
    )
    names = [name for u in found.problem.unknowns for name in u.names]
    begun = dict(zip(names, found.problem.x0.tolist(), strict=True))
    assert [begun[name] for name in masses] == pytest.approx(list(masses.values()), rel=0.1)
    assert begun["inputs.drive.offset"] == pytest.approx(0.1, rel=0.1)
    truth = {**masses, "friction.f_pos.F_Coulomb": 1.0, "inputs.drive.offset": 0.1}
    for name, true in truth.items():
        assert found.values[name] == pytest.approx(true, rel=0.01), found


class Pendulum(fx.AbstractAxis):
    """From upright."""

    friction: fx.SupportFriction
    mgl: Scalar = parameter(Positive(), "N.m")
    phi: Scalar = parameter(Real(), "rad", default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return 0.01

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return self.mgl * jnp.sin(y[0])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.stack([self.phi, 0.0]))


def posed(model: Any, seen: fx.Record, free: list[str]) -> tuple[Any, str]:
    problem, notes = build_problem(model, {"run": seen}, FitOptions(free=free))
    return problem, " ".join(map(str, notes))


def test_a_start_that_is_small_beside_the_motion_counts_where_noise_does_not_explain_it() -> None:
    """Exactly upright a pendulum stays where it is, and its weight would be without effect."""
    seen = 3.0 + 2.94 * np.tanh(2.0 * (T - 2.0)) - (3.0 + 2.94 * np.tanh(-4.0)) + 0.06
    noise = 1e-3 * np.random.default_rng(0).standard_normal(T.size)
    upright = Pendulum(
        fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=0.01)), mgl=jnp.asarray(0.4)
    )
    assert 0.06 < 0.05 * np.std(seen)
    problem, _ = posed(upright, fx.Record(T, outputs={"phi": seen + noise}), ["mgl", "phi"])
    assert float(problem.x0[1]) == pytest.approx(0.06, abs=3e-3)
    problem, _ = posed(upright, fx.Record(T, outputs={"phi": seen - 0.06 + noise}), ["mgl", "phi"])
    assert float(problem.x0[1]) == 0.0


@pytest.mark.parametrize("counts", [100, 400, 1000, 4096])
def test_a_free_decay_let_go_at_rest_is_not_said_to_move_though_its_encoder_has_steps(
    counts: int,
) -> None:
    rotor = fx.Mechanism(
        rotor=fx.Inertia(J=1.0),
        bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(F_Coulomb=1.0)),
    )
    step = 2 * np.pi / counts
    for seed in range(30):
        random = np.random.default_rng(seed)
        size, w, decay, shift = (
            random.uniform(0.5, 2.0),
            random.uniform(2.0, 8.0),
            random.uniform(0.2, 0.8),
            random.random(),
        )
        for speed in (0.0, size * w):  # at the start
            phi = np.exp(-decay * T) * (
                size * np.cos(w * T) + (speed + decay * size) / w * np.sin(w * T)
            )
            seen = fx.Record(
                T,
                outputs={"rotor.phi": step * np.floor(phi / step + shift)},
                units={"rotor.phi": "rad"},
            )
            told = "starts with rotor.w = 0" in posed(rotor, seen, ["rotor.J"])[1]
            assert not told or speed, (seed, w)
            assert told or not speed or counts < 1000, (seed, w)
