"""What is said of bristles that a record hardly tells, and only then."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from rubbing import STANDARD, lugre, rubbing

RATE = 2e3
T = np.arange(1001) / RATE
SIGMA_0 = "friction.bristle.sigma_0"
SIGMA_1 = "friction.bristle.sigma_1"
F_S = "friction.f_pos.F_Stribeck"


def pushed(most: float, f: float = 7.0) -> np.ndarray:
    return most * np.sin(2 * np.pi * f * T) * np.minimum(1.0, 4 * T)


def fitted(u: np.ndarray, step: float = 0.0, every: int = 1) -> fx.FoundMachine:
    """A fit to a block that is pushed by `u`, seen in steps of `step` [m] or with noise of 10 nm,
    at each sample or fewer.
    """
    truth = rubbing(lugre(1e5, 316.0), drive=fx.Sampled(T, u))
    s = np.asarray(fx.simulate(truth, T)["mass"].s)
    s = s + 1e-8 * np.random.default_rng(0).standard_normal(T.size)
    s = step * np.round(s / step) if step else s
    t, u, s = T[::every], u[::every], s[::every]
    record = fx.Record(t, {"push": u}, {"mass.s": s}, name="shaken")
    start = rubbing(lugre(1.1e5, 280.0), STANDARD, 0.0)
    return fx.fit(start, record, free=[F_S, SIGMA_0, SIGMA_1])


def codes(found: fx.FoundMachine) -> dict[str, fx.Notice]:
    return {n.code: n for n in found.notices_at_hand}


ALL = {"presliding-coarse", "bristle-swings-unseen", "bristle-undamped", "breakaway-unseen"}


@pytest.mark.slow
def test_a_record_that_tells_a_bristle_has_none_of_these() -> None:
    found = fitted(pushed(1.4, 1.0), step=2e-7)
    assert not ALL & set(codes(found))
    for name, true in ((SIGMA_0, 1e5), (SIGMA_1, 316.0)):
        estimate = found[name]
        assert abs(estimate.value - true) < 4 * estimate.standard_error
        assert estimate.standard_error < 0.05 * true


@pytest.mark.slow
def test_fewer_than_twenty_steps_of_the_sensor_make_the_stiffness_a_guess() -> None:
    told = codes(fitted(pushed(1.4, 1.0), step=2e-6))["presliding-coarse"]
    assert told.subject == SIGMA_0
    # 1.5 N either way on 1e5 N/m
    assert told.numbers["way"] == pytest.approx(3e-5, rel=0.2)
    assert told.numbers["counts"] == pytest.approx(15, rel=0.2)
    assert told.numbers["channel"] == "mass.s"


@pytest.mark.slow
def test_samples_that_do_not_resolve_a_swing_do_not_tell_the_damping() -> None:
    told = codes(fitted(pushed(1.1), every=16))["bristle-swings-unseen"]
    assert told.subject == SIGMA_1
    assert told.numbers["frequency"] == pytest.approx(50.3, rel=0.1)
    assert told.numbers["rate"] == pytest.approx(125.0)


@pytest.mark.slow
def test_a_breakaway_that_no_load_reaches_is_told() -> None:
    told = codes(fitted(pushed(1.1)))["breakaway-unseen"]
    assert told.subject == F_S
    assert float(told.numbers["most"]) < 1.25
    assert float(told.numbers["f0"]) > 1.3


# -- something in series


def along(bristle: Any, s: np.ndarray, h: float) -> np.ndarray:
    """The friction over a way under a limit of 2 N."""
    limit = jnp.asarray(2.0)

    def step(force: Any, x: Any) -> Any:
        force, _ = bristle.moved(x, force, limit, limit)
        rate = bristle.rate(x / h, force, limit, limit)
        damping = bristle.damping(jnp.abs(x / h), fx.Coulomb(F_Coulomb=2.0))
        return force, force + damping * rate / bristle.sigma_0

    ways = jnp.diff(jnp.asarray(s), prepend=0.0)
    return np.asarray(jax.lax.scan(step, jnp.asarray(0.0), ways)[1])


def stroked(bristle: Any, start: Any = None) -> dict[str, fx.Notice]:
    """The notices of a fit of `start` to strokes in full sliding, friction measured."""
    t = np.linspace(0.0, 10.0, 2001)
    s = 1e-4 * np.abs((t + 0.5) % 2 - 1) * 2
    f = along(bristle, s, t[1] - t[0]) + 1e-3 * np.random.default_rng(0).standard_normal(t.size)
    record = fx.Record(t, {"stage": s}, {"friction.f": f}, name="strokes")
    start = fx.Dahl(5e4) if start is None else start
    machine = rubbing(start, fx.Coulomb(F_Coulomb=2.0), stage=fx.Position("mass", 0.0))
    return codes(fx.fit(machine, record, free=["friction.bristle"]))


@pytest.mark.slow
def test_friction_that_rises_straight_to_its_limit_is_that_of_something_in_series() -> None:
    spring = stroked(fx.ElastoPlastic(1e5, z_ba=0.95))["stiffness-in-series"]
    assert spring.subject == SIGMA_0
    assert spring.numbers["half"] == pytest.approx(2e-5, rel=0.05)
    assert spring.numbers["far"] == pytest.approx(3.6e-5, rel=0.05)
    assert "stiffness-in-series" not in stroked(fx.Dahl(1e5))


@pytest.mark.slow
def test_a_bristle_that_nothing_damps_is_told() -> None:
    start = fx.LuGre(5e4, 50.0)
    assert stroked(fx.Dahl(1e5), start)["bristle-undamped"].subject == SIGMA_1
    assert "bristle-undamped" not in stroked(fx.LuGre(1e5, 1000.0), start)
