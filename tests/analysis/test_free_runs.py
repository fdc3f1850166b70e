"""A free run beside its record: what a small change does to it, and how far chance alone lets it
stray.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.analysis.replay.free_run import FreeRunScore, motion
from pushed_block import fitted_apart, pushed

T = np.linspace(0.0, 2.0, 201)
F = "friction.f_pos.F_Coulomb"
BLOCK = fx.Mechanism(
    mass=fx.Mass(m=2.0),
    friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.0)),
    drive=fx.Force("mass", 0.0),
)


def pull(seed: int = 0, name: str = "pull") -> fx.Record:
    """3 N against 1.2 N of friction, as a mass of 2 kg would move, with noise."""
    v = 0.9 * T + 0.01 * np.random.default_rng(seed).standard_normal(T.size)
    return fx.Record(T, {"drive": 3.0 + 0.0 * T}, {"mass.v": v}, name=name)


@pytest.fixture(scope="module")
def found() -> fx.FoundMachine:
    return fx.fit(BLOCK, pull(), free=[F])


@pytest.fixture(scope="module")
def score(found: fx.FoundMachine) -> FreeRunScore:
    return found.free_run("pull", objective=fx.FreeRun(), draws=400)


@pytest.mark.slow
def test_sensitivities_are_those_of_a_mass_under_a_constant_force(
    found: fx.FoundMachine, score: FreeRunScore
) -> None:
    moved = np.sqrt(np.mean((T / 2.0) ** 2))  # of the velocity by 1 N
    assert score.sensitivities["0.001 N more from drive"]["mass.v"] == pytest.approx(
        1e-3 * moved, rel=1e-4
    )
    assert score.sensitivities["1 % more friction"]["mass.v"] == pytest.approx(
        0.01 * found.values[F] * moved, rel=1e-4
    )


def test_the_rms_is_the_fits_own(found: fx.FoundMachine, score: FreeRunScore) -> None:
    assert score.rms["mass.v"] == pytest.approx(found.rms["pull"]["mass.v"], rel=1e-9)
    assert score.units == {"mass.v": "m/s"}
    assert score.failed == 0


@pytest.mark.slow
def test_the_range_is_that_of_a_normal_error_of_friction(found: fx.FoundMachine) -> None:
    """The run strays by delta*t/m, on top of what is left: quantiles of that in closed form."""
    errors = found.uncertainty(fx.White())
    score = found.free_run("pull", errors=errors, objective=fx.FreeRun(), draws=4000)
    strays = np.sqrt(np.mean((T / 2.0) ** 2)) * found.standard_errors[F]
    half_normal = np.array([0.1257, 0.6745, 1.6449])  # quantiles of |N(0, 1)| at 10, 50, 90 %
    # What is left is orthogonal to the direction in which the run strays, for the fit is a
    # least-squares one.
    expected = np.sqrt(score.rms["mass.v"] ** 2 + (half_normal * strays) ** 2)
    np.testing.assert_allclose(score.ranges["mass.v"], expected, rtol=2e-3)
    assert "White" in score.says


def test_by_repeats_machines_differ_as_one_repeat_from_the_next(found: fx.FoundMachine) -> None:
    errors = found.uncertainty(fx.Jackknife(4))
    score = found.free_run("pull", errors=errors, objective=fx.FreeRun(), draws=4000)
    spread = np.sqrt(4.0 * errors.covariance[0, 0]) * np.sqrt(np.mean((T / 2.0) ** 2))
    low, middle, high = score.ranges["mass.v"]
    assert middle == pytest.approx(np.hypot(score.rms["mass.v"], 0.6745 * spread), rel=0.03)
    assert low < middle < high
    assert "differ as much as the repeats" in str(score)


def test_a_record_that_was_not_fitted_is_scored_from_its_measured_start(
    found: fx.FoundMachine,
) -> None:
    score = found.free_run(pull(1, "other"), objective=fx.FreeRun())
    assert score.label == "other"
    assert score.rms["mass.v"] == pytest.approx(0.01, rel=0.15)


@pytest.mark.parametrize(
    ("record", "more", "says"),
    [
        ("push", {}, "no record 'push'"),
        (3, {}, "takes a `Record` or the label"),
        ("pull", {"draws": 2}, "needs `draws`"),
    ],
)
def test_what_cannot_be_is_refused(
    found: fx.FoundMachine, record: Any, more: dict[str, Any], says: str
) -> None:
    with pytest.raises((ValueError, KeyError), match=says):
        found.free_run(record, **more)


@pytest.mark.slow
def test_a_motion_has_the_states_modes_and_friction_of_the_simulation() -> None:
    u = 3.0 * np.sin(4.0 * T)
    parts = {**dict(BLOCK.named_parts()), "drive": fx.Force("mass", fx.Sampled(T, u))}
    run = fx.simulate(fx.Mechanism(**parts), jnp.asarray(T))
    record = fx.Record(T, {"drive": u}, {"mass.v": np.asarray(run["mass"].v)}, name="run")
    found = fx.fit(BLOCK, record, free=[F])
    moved = motion(found, "run", fx.FreeRun())
    assert moved.complete
    np.testing.assert_allclose(moved.states["mass.v"], run["mass"].v, atol=1e-6)
    assert np.mean(moved.modes["friction"] == np.asarray(run["friction"].mode)) > 0.99
    same = moved.modes["friction"] == np.asarray(run["friction"].mode)
    np.testing.assert_allclose(
        moved.friction["friction"][same], np.asarray(run["friction"].f)[same], atol=1e-5
    )


@pytest.mark.slow
def test_of_several_records_one_repeat_differs_more_than_the_mean_of_all_does() -> None:
    """A number that two records share is a mean over the repeats of both."""
    found = fx.fit(BLOCK, [pull(0, "a"), pull(1, "b")], free=[F])
    errors = found.uncertainty(fx.Jackknife(4))
    score = found.free_run("a", errors=errors, objective=fx.FreeRun(), draws=4000)
    spread = np.sqrt(8.0 * errors.covariance[0, 0]) * np.sqrt(np.mean((T / 2.0) ** 2))
    assert score.ranges["mass.v"][1] == pytest.approx(
        np.hypot(score.rms["mass.v"], 0.6745 * spread), rel=0.05
    )


class Sledge(fx.AbstractAxis):
    """1 kg under a recorded force."""

    friction: fx.SupportFriction

    def inertia(self, t: object, y: object, args: object) -> object:
        return jnp.asarray(1.0)

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["drive"]

    def states(self) -> tuple[str, ...]:
        return ("s", "v")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.zeros(2))


@pytest.mark.slow
def test_a_driven_machine_of_the_users_own_moves_with_its_friction() -> None:
    t = np.linspace(0.0, 2.0, 201)
    u = 2.0 + 0.0 * t
    sledge = Sledge(fx.SupportFriction("sledge", f_pos=[[0.0, 1.0], [0.5, 0.8], [5.0, 1.0]]))
    record = fx.Record(t, {"drive": u}, {"s": 0.55 * t**2 + 1e-3 * np.sin(30 * t)}, name="run")
    found = fx.fit(sledge, record, free=["friction.f_pos.f"], objective=fx.FreeRun(), rounds=0)
    moved = motion(found, "run", fx.FreeRun())
    law = found.model.friction.f_pos
    sliding = moved.states["v"] > 1e-6
    assert sliding.sum() > 100
    expected = np.array([float(law(jnp.asarray(v))) for v in moved.states["v"][sliding]])
    np.testing.assert_allclose(moved.friction["friction"][sliding], expected, atol=1e-9)


def test_parameters_that_differ_by_record_are_those_of_a_fitted_record_and_of_no_new_one() -> None:
    found = fitted_apart()
    objective = found.problem.objective
    fitted = [found.score(label, objective) for label in found.records]
    assert fitted[0] != fitted[1]
    for label, errors in zip(found.records, fitted, strict=True):
        assert found.score(found.records[label], objective) == errors
    new, asked = pushed(2), r"has a friction\.f_pos\.F_Coulomb of its own.*such as 'one'"
    for predict in (motion, type(found).validate, type(found).free_run):
        with pytest.raises(ValueError, match=asked):
            predict(found, new)
    with pytest.raises(ValueError, match=asked):
        found.score(new, objective)
