"""Steps that are too long for a machine's motion move what a fit finds: by how much, and that it is
told.
"""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from frictax.fitting.result import step_error as module

T = np.linspace(0.0, 2.0, 201)  # 0.01 s a step


def swing(omega: float) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, s=0.1),
        wall=fx.Fixed(),
        spring=fx.Spring("mass", "wall", c=omega**2),
        damper=fx.Damper("mass", "wall", d=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.02 * omega)),
    )


def record_of(machine: Any, substeps: int = 64, sd: float = 1e-4) -> fx.Record:
    run = fx.simulate(machine, jnp.asarray(T), engine=fx.OnSamples(substeps=substeps))
    s = np.asarray(run["mass"].s) + np.random.default_rng(0).normal(0.0, sd, T.size)
    return fx.Record(T, outputs={"mass.s": s}, sd={"mass.s": sd}, name="swing")


FREE = ["damper.d", "spring.c", "friction.f_pos.F_Coulomb"]


@pytest.mark.slow
def test_what_half_the_steps_would_move_is_what_the_steps_have_moved() -> None:
    machine = swing(18.0)  # 0.18 rad a step
    record = record_of(machine)
    found = fx.fit(machine, record, free=FREE, engine=fx.OnSamples(tolerance=None))
    (told,) = [n for n in found.notices_at_hand if n.code == "steps-too-long"]
    substeps = int(re.search(r"substeps=(\d+)", str(told))[1])  # type: ignore[index]
    finer = fx.OnSamples(tolerance=None, substeps=substeps)
    better = fx.fit(machine, record, free=FREE, engine=finer)
    assert not any(n.code == "steps-too-long" for n in better.notices_at_hand)
    moved = found.step_error()
    for name, e in {e.name: e for e in found.estimates}.items():
        after = next(b.value for b in better.estimates if b.name == name)
        assert moved[name] == pytest.approx(
            7 / 8 * (after - e.value), abs=max(0.1 * abs(after - e.value), 0.5 * e.standard_error)
        )
    white = found.uncertainty(fx.White()).standard_errors
    assert max(abs(moved[e.name]) / white[e.name] for e in found.estimates) > 3
    left = better.step_error()
    assert max(abs(left[e.name]) / e.standard_error for e in better.estimates) < 0.3


@pytest.mark.slow
def test_steps_with_error_control_leave_nothing_of_what_long_steps_do() -> None:
    machine = swing(18.0)
    found = fx.fit(machine, record_of(machine), free=FREE)
    assert not any(n.code == "steps-too-long" for n in found.notices_at_hand)
    moved = found.step_error()
    assert max(abs(moved[e.name]) / e.standard_error for e in found.estimates) < 0.1


@pytest.mark.slow
def test_steps_that_are_short_enough_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(found: Any) -> dict[str, float]:
        raise AssertionError("simulated once more without need")

    monkeypatch.setattr(module, "step_error", never)
    machine = swing(3.0)
    found = fx.fit(machine, record_of(machine), free=FREE)
    assert not any(n.code == "steps-too-long" for n in found.notices_at_hand)


@pytest.mark.slow
def test_a_held_noisy_input_raises_no_alarm() -> None:
    """The outputs' fourth differences are large, their cause is not the steps' length."""
    rng = np.random.default_rng(1)
    drive = 20.0 * rng.normal(size=T.size)
    law = fx.SupportFriction("mass", f_pos=fx.Coulomb(F_prop=2.0, F_Coulomb=1.0))
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.0), friction=law, drive=fx.Force("mass", fx.Sampled(T, drive, hold=True))
    )
    v = np.asarray(
        fx.simulate(machine, jnp.asarray(T), engine=fx.OnSamples())["mass"].v
    ) + rng.normal(0.0, 1e-4, T.size)
    found = fx.fit(
        machine,
        fx.Record(T, {"drive": drive}, {"mass.v": v}, {"mass.v": 1e-4}, hold=True),
        free=["friction.f_pos"],
    )
    assert not any(n.code == "steps-too-long" for n in found.notices_at_hand)


@pytest.mark.slow
def test_what_simulates_nothing_has_no_step_error() -> None:
    machine = swing(30.0)
    v, force, sigma = np.linspace(0.1, 1.0, 10), np.full(10, 0.6), np.full(10, 0.01)
    sweep = fx.Sweep(v, force, sigma=sigma, velocity_unit="m/s", force_unit="N")
    found = fx.fit(
        machine,
        {"swing": record_of(machine), "friction": sweep},
        free=FREE,
        objective=fx.InverseDynamics(),
    )
    moved = found.step_error()
    assert set(moved) == set(FREE)
    # the fit's last step was not looked at
    assert all(abs(moved[name]) < 1e-3 * found.standard_errors[name] for name in FREE)


@pytest.mark.slow
@pytest.mark.parametrize(("hold", "jitter"), [(False, 0.0), (False, 0.2), (True, 0.0)])
def test_what_a_smooth_input_moves_is_told_where_it_is_taken_as_straight_and_only_there(
    hold: bool, jitter: float
) -> None:
    t = T + jitter * (T[1] - T[0]) * np.random.default_rng(1).uniform(-1.0, 1.0, T.size)
    drive = 8.0 * np.sin(4 * np.pi * t)
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.5)),
        drive=fx.Force("mass", fx.Sine(amplitude=8.0, f=2.0)),
    )
    v = np.asarray(fx.simulate(block, t, engine=fx.OnSamples(substeps=8))["mass"].v)
    v = v + np.random.default_rng(0).normal(0.0, 1e-4, T.size)
    record = fx.Record(t, {"drive": drive}, {"mass.v": v}, hold=hold, name="run")
    found = fx.fit(block, record, free=["mass.m", "friction.f_pos.F_Coulomb"])
    told = [n for n in found.notices_at_hand if n.code == "bent-between-samples"]
    assert len(told) == (not hold)
    for notice in told:
        assert notice.subject == "mass.m"
        assert found.uncertainty().says.endswith("and interpolation of the inputs")
        # what the straight lines have done is what the curves would undo
        off = found.values["mass.m"] - 1.0
        assert notice.numbers["moved"] == pytest.approx(-off, rel=0.15)
    # intervals reach as far as that, and those of residuals alone do not
    held = [low < 1.0 < high for low, high in _of_mass(found, fx.Guarded(), fx.Autoregression())]
    assert held == ([True, True] if hold else [True, False])


@pytest.mark.slow
@pytest.mark.parametrize("is_smooth", [False, True])
def test_residuals_tell_whether_an_input_went_straight_or_smoothly(is_smooth: bool) -> None:
    t, fine = np.arange(1001) / 50.0, np.arange(8001) / 400.0

    def force(at: np.ndarray) -> np.ndarray:
        f = np.array([0.7, 2.1, 3.7, 6.1])
        return 2.0 * np.sin(2 * np.pi * f * at[:, None] + f).sum(axis=1)

    course = fine if is_smooth else t
    coil = fx.Mechanism(
        coil=fx.Mass(m=0.3),
        frame=fx.Fixed(),
        spring=fx.Spring("frame", "coil", c=60.0),
        friction=fx.SupportFriction("coil", f_pos=fx.Coulomb(F_Coulomb=0.4, F_prop=0.8)),
        drive=fx.Force("coil", fx.Sampled(course, force(course))),
    )
    s = np.asarray(fx.simulate(coil, t, engine=fx.OnSamples(substeps=16))["coil"].s)
    s = s + np.random.default_rng(2).normal(0.0, 1e-4, t.size)
    record = fx.Record(t, {"drive": force(t)}, {"coil.s": s}, hold=False, name="run")
    free = ["coil.m", "spring.c", "friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
    found = fx.fit(coil, record, free=free, engine=fx.OnSamples(substeps=4))
    low, high = found.intervals["coil.m"]
    assert low < 0.3 < high
    terms = found.missing().found
    codes = [n.code for n in found.notices]
    if is_smooth:
        assert terms[0].name == "smooth course of the inputs between their samples"
        assert terms[0].value == pytest.approx(1.0, abs=0.1)
        assert {"bent-between-samples", "term-missing"} <= set(codes)
    else:
        assert terms == ()
        assert "term-missing" not in codes
        assert "bent-between-samples" not in codes
        assert high - low < 3e-4  # allowing for any course it was 4e-3


def _of_mass(
    found: fx.FitResult, *accounts: fx.Guarded | fx.Autoregression
) -> list[tuple[float, float]]:
    return [found.uncertainty(a).intervals["mass.m"] for a in accounts]


@pytest.mark.slow
def test_fits_of_many_records_take_the_shorter_steps_that_a_single_fit_takes() -> None:
    machine, loose = swing(18.0), fx.OnSamples(tolerance=1e-3)
    record = record_of(machine)
    found = fx.fit(machine, record, free=FREE, engine=loose)
    assert found.problem.engine.tolerance < 1e-3
    assert not any(n.code == "steps-too-long" for n in found.notices_at_hand)
    shifted = np.asarray(record.outputs["mass.s"]) + 1e-5
    measured = np.stack([record.outputs["mass.s"], shifted])
    many = fx.fit_many(machine, record, measured, free=FREE, engine=loose)
    errors = np.array([found.standard_errors[name] for name in FREE])
    x = [many.values[0, many.names.index(name)] for name in FREE]
    assert np.max(np.abs(x - np.array([found.values[name] for name in FREE])) / errors) < 1e-3
