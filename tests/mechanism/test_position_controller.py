"""A drive under position control: closed forms, a contact held by it, energy, derivatives, and the
controller of a measured machine.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np
import pytest

import frictax as fx
from checks import assert_derivatives_agree, flat, outcome, rebuilt
from machines import REFERENCE, TIGHT

KP, KV, K = 4.0, 3.0, 2.0  # k*kv = 6 N.s/m, k*kv*kp = 24 N/m


def axis(
    s_ref: Any, F: float | None = 1.0, peak: float = 1.1, s: Any = 0.0, **more: Any
) -> fx.Mechanism:
    parts: dict[str, Any] = {
        "mass": fx.Mass(m=1.5, s=s),
        "drive": fx.PositionController("mass", s_ref=s_ref, kp=KP, kv=KV, k=K),
    }
    if F is not None:
        parts["friction"] = fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=F, F_prop=0.2), peak=peak
        )
    return fx.Mechanism(**parts, **more)


def changes(run: fx.Trajectory) -> np.ndarray:
    """Rows of time and new mode."""
    n = int(run.events.count)
    return np.stack(
        [np.asarray(run.events.time[:n]), np.asarray(run.events.mode_after[:n])], axis=1
    )


# -- closed forms
# --------------------------------------------------------------------------------------------------


def test_a_step_of_the_reference_is_answered_by_a_damped_swing() -> None:
    ts = jnp.linspace(0.0, 3.0, 13)
    run = fx.simulate(axis(fx.Step(height=0.2, startTime=0.5), F=None), ts, REFERENCE)
    delta, omega0 = K * KV / 1.5 / 2, np.sqrt(K * KV * KP / 1.5)
    omega, t = np.sqrt(omega0**2 - delta**2), np.maximum(np.asarray(ts) - 0.5, 0.0)
    expected = 0.2 * (
        1 - np.exp(-delta * t) * (np.cos(omega * t) + delta / omega * np.sin(omega * t))
    )
    assert np.allclose(run["mass"].s, expected, atol=1e-10)
    drive = run["drive"]
    assert np.allclose(drive.s_ref, np.where(np.asarray(ts) < 0.5, 0.0, 0.2))
    assert np.allclose(drive.f, K * KV * (KP * (drive.s_ref - drive.s) - run["mass"].v), atol=1e-13)
    assert np.allclose(run["mass"].a, drive.f / 1.5, atol=1e-13)


@pytest.mark.slow
def test_a_reference_of_constant_speed_is_followed_with_the_lag_that_friction_and_speed_ask_for():
    run = fx.simulate(axis(fx.Ramp(height=6.0, duration=20.0)), jnp.array([0.0, 9.0]), REFERENCE)
    assert float(run["mass"].v[-1]) == pytest.approx(0.3, abs=1e-6)
    lag = 0.3 / KP + (1.0 + 0.2 * 0.3) / (K * KV * KP)
    assert float(run["drive"].s_ref[-1] - run["mass"].s[-1]) == pytest.approx(lag, abs=1e-6)


@pytest.mark.parametrize(("rate", "s"), [(0.2, 0.0), (-0.2, 0.0), (0.1, 0.01)])
def test_a_moving_reference_breaks_a_stuck_axis_away_when_the_error_of_position_asks_for_f0_max(
    rate: float, s: float
) -> None:
    run = fx.simulate(
        axis(fx.Ramp(height=10 * rate, duration=10.0), s=s), jnp.linspace(0.0, 1.0, 11), REFERENCE
    )
    way = np.sign(rate)
    assert np.allclose(changes(run)[0], [(way * 1.1 / (K * KV * KP) + s) / rate, way], rtol=1e-11)
    held = run["friction"].locked
    assert np.any(held)
    assert np.allclose(
        run["friction"].f[held], K * KV * KP * (run["drive"].s_ref[held] - s), atol=1e-12
    )


@pytest.mark.slow
def test_s_is_the_position_of_the_flange() -> None:
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.5, L=0.4),
        drive=fx.PositionController("mass.flange_a", s_ref=0.0, kp=KP, kv=KV, k=K),
    )
    run = fx.simulate(machine, jnp.array([0.0, 12.0]), REFERENCE)
    assert np.allclose(run["drive"].s, run["mass"].s - 0.2)
    assert float(run["mass"].s[-1]) == pytest.approx(0.2, abs=1e-8)


@pytest.mark.slow
def test_a_controller_of_the_housing_moves_nothing() -> None:
    machine = fx.Mechanism(
        wall=fx.Fixed(s0=0.1),
        mass=fx.Mass(m=1.0, v=1.0),
        drive=fx.PositionController("wall", 0.3, kp=KP, kv=KV),
    )
    run = fx.simulate(machine, jnp.array([0.0, 1.0]), REFERENCE, energy=True)
    assert float(run["mass"].v[-1]) == 1.0
    assert np.all(run.energy.drive == 0)


# -- a contact that is stuck
# ------------------------------------------------------------------------------------------

# The reference that asks for 0.1 % more than the 1.1 N at which the axis breaks away, if it stands
# at 0.
BARELY = 1.1 * 1.001 / (K * KV * KP)
FIRST = 50 / np.pi * np.arcsin(1 / 1.001)
RECORD = np.linspace(0.0, 50.0, 1001)
REFERENCES = {
    "sine": (fx.Sine(amplitude=BARELY, f=0.01), 1e-7),
    "function": (fx.Function(lambda t: BARELY * jnp.sin(jnp.pi * t / 50), dtmax=0.5), 1e-7),
    "record joined by lines": (fx.Sampled(RECORD, BARELY * np.sin(np.pi * RECORD / 50)), 0.06),
    "record held": (fx.Sampled(RECORD, BARELY * np.sin(np.pi * RECORD / 50), hold=True), 0.06),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_a_breakaway_by_0_1_percent_is_found_whatever_gives_the_reference(name: str) -> None:
    s_ref, within = REFERENCES[name]
    found = changes(
        fx.simulate(axis(s_ref), jnp.array([0.0, 45.0]), fx.Adaptive(rtol=1e-9, atol=1e-11))
    )
    assert found[0] == pytest.approx([FIRST, 1.0], abs=within)
    assert found[1, 1] == 0
    short = fx.parameters.replace(
        axis(fx.Sine(amplitude=BARELY, f=0.01)), {"drive.s_ref.amplitude": 0.998 * BARELY}
    )
    assert int(fx.simulate(short, jnp.array([0.0, 200.0])).events.count) == 0


@pytest.mark.slow
def test_a_breakaway_by_the_sum_of_reference_and_force_is_found_between_the_extrema_of_each():
    t = np.linspace(0.0, 4.0, 400001)
    gain = K * KV * KP
    load = 1.6 * np.sin(0.2 * np.pi * t) - 0.32 * t
    for above in (0.99, 0.9999):
        machine = axis(
            fx.Sine(amplitude=1.6 / gain, f=0.1),
            F=float(above * np.max(load)),
            peak=1.0,
            ramp=fx.Force("mass", fx.Ramp(height=-1.6, duration=5.0)),
        )
        found = changes(fx.simulate(machine, jnp.array([0.0, 4.0])))
        assert np.allclose(found[0], [t[np.argmax(load > above * np.max(load))], 1], atol=3e-5)


@pytest.mark.slow
def test_a_position_dependent_force_shifts_when_the_reference_breaks_the_axis_away() -> None:
    machine = axis(
        fx.Sine(amplitude=0.06, f=0.05),
        s=0.01,
        guide=fx.LinearPositionDependentForce("mass", f_nominal=0.2, slope=-9.0),
    )
    run = fx.simulate(machine, jnp.array([0.0, 4.0]), REFERENCE)
    # 24*(0.06*sin(0.1*pi*t) - 0.01) + 0.2 - 0.09 = 1.1
    expected = np.arcsin(((1.1 - 0.11) / 24 + 0.01) / 0.06) / (0.1 * np.pi)
    assert np.allclose(changes(run)[0], [expected, 1], rtol=1e-11)


@pytest.mark.slow
def test_an_axis_between_stops_is_held_at_one_while_the_reference_lies_beyond_it() -> None:
    machine = fx.Mechanism(
        mass=fx.MassWithStopAndFriction(
            m=1.0, smin=-1, smax=0.1, F_prop=0.5, F_Coulomb=0.4, F_Stribeck=0.0, fexp=1.0
        ),
        drive=fx.PositionController(
            "mass", s_ref=fx.Sine(amplitude=0.2, f=0.25), kp=KP, kv=KV, k=K
        ),
    )
    run = fx.simulate(machine, jnp.array([0.0, 1.5, 3.0]), REFERENCE, energy=True)
    assert int(run["mass"].stopped[1]) == 1
    assert float(run["mass"].s[1]) == 0.1
    assert float(run["mass"].s[2]) < 0
    # It leaves the stop when the controller pulls back with f0_max = 1.001*0.4 N.
    leaves = float(run.events.time[np.flatnonzero(np.asarray(run.events.mode_after) == -1)[0]])
    assert 0.2 * np.sin(0.5 * np.pi * leaves) == pytest.approx(
        0.1 - 0.4004 / (K * KV * KP), rel=1e-9
    )
    assert np.max(np.abs(run.energy.balance)) <= 1e-8


# -- energy, derivatives, names
# ---------------------------------------------------------------------------------------


def oscillating() -> fx.Mechanism:
    guide = fx.LinearPositionDependentForce("mass", f_nominal=0.3, slope=-2.0)
    return axis(fx.Sine(amplitude=0.12, f=0.4, offset=0.02), guide=guide)


@pytest.mark.slow
def test_its_work_is_the_drives_and_the_balance_closes() -> None:
    ts = jnp.linspace(0.0, 4.0, 4001)
    run = fx.simulate(oscillating(), ts, REFERENCE, energy=True)
    assert int(run.events.count) >= 4
    assert np.max(np.abs(run.energy.balance)) <= 1e-8
    power = np.asarray(run["drive"].f * run["mass"].v)
    assert float(run.energy.drive[-1]) == pytest.approx(np.trapezoid(power, ts), rel=1e-4)


@pytest.mark.slow
def test_the_derivatives_by_gains_reference_and_guide_equal_central_differences() -> None:
    machine = oscillating()
    own = [f"drive.{p}" for p in ("kp", "kv", "k", "s_ref.amplitude", "s_ref.f", "s_ref.offset")]
    paths = [
        *own,
        "guide.f_nominal",
        "guide.slope",
        "guide.s0",
        "mass.m",
        "mass.s",
        "friction.f_pos.F_Coulomb",
        "friction.peak",
    ]
    ts = jnp.array([0.0, 1.0, 3.0])
    events = fx.simulate(machine, ts, TIGHT).events
    count = int(events.count)
    assert {-1, 0, 1} == set(np.asarray(events.mode_after[:count]).tolist())
    f = lambda x: outcome(rebuilt(machine, paths, x), ts, TIGHT, count)  # noqa: E731
    assert_derivatives_agree(f, flat(machine, paths), step=1e-4, reverse=False)


@pytest.mark.slow
def test_the_derivative_by_the_time_of_a_step_of_the_reference_is_that_of_the_motion_after_it():
    machine = axis(fx.Step(height=0.3, startTime=0.4), F=0.5)
    paths = ["drive.s_ref.startTime", "drive.s_ref.height"]
    f = lambda x: outcome(rebuilt(machine, paths, x), jnp.array([0.0, 0.6]), TIGHT, 1)  # noqa: E731
    assert_derivatives_agree(f, flat(machine, paths), step=1e-4, reverse=False)


def test_a_known_controller_is_not_fitted_unless_named() -> None:
    machine = oscillating()
    free = {p.path for p in fx.parameters.select(machine)}
    assert {"mass.m", "friction.f_pos.F_Coulomb", "guide.slope"} <= free
    assert free.isdisjoint({"drive.kp", "drive.kv", "drive.k"})
    assert [p.path for p in fx.parameters.select(machine, "drive.k")] == ["drive.k"]


@pytest.mark.slow
def test_its_variables_stand_in_the_table_and_its_reference_beside_the_position() -> None:
    run = fx.simulate(oscillating(), jnp.array([0.0, 1.0, 3.0]), TIGHT)
    table = run.to_pandas()
    assert [c for c in table.columns if c.startswith(("drive", "guide"))] == [
        "drive.s",
        "drive.f",
        "drive.s_ref",
        "guide.s",
        "guide.f",
    ]
    figure = run.plot()
    assert isinstance(figure, matplotlib.figure.Figure)
    position, velocity, force = figure.axes[:3]
    assert "drive.s_ref" in [line.get_label() for line in position.lines]
    assert "drive.s_ref" not in [line.get_label() for line in velocity.lines]
    assert {"drive", "guide", "friction"} <= {line.get_label() for line in force.lines}


@pytest.mark.parametrize(
    ("build", "pieces"),
    [
        (
            lambda: fx.PositionController("mass", 0.0, kp=-1.0, kv=1.0),
            ["`PositionController.kp`", ">= 0", "-1 1/s", "without a sign"],
        ),
        (
            lambda: fx.PositionController("mass", 0.0, kp=1.0, kv=np.nan),
            ["`PositionController.kv`", ">= 0", "nan"],
        ),
        (
            lambda: fx.PositionController("mass", 0.0, kp=1.0, kv=1.0, k=-35.0),
            ["`PositionController.k`", ">= 0", "-35"],
        ),
        (
            lambda: fx.PositionController("mass", [0.0, 1.0], kp=1.0, kv=1.0),
            ["A signal must be", "`Sampled(times, values)`"],
        ),
        (
            lambda: fx.simulate(
                fx.parameters.replace(oscillating(), {"drive.s_ref": 1.0}), [0.0, 1.0]
            ),
            ["`PositionController.s_ref`", "one of frictax's signals", "`Constant.k`"],
        ),
        (
            lambda: fx.Mechanism(
                mass=fx.Mass(m=1.0), drive=fx.PositionController("axis", 0.0, kp=1.0, kv=1.0)
            ),
            ["'drive' is attached to 'axis'", "no body", "mass"],
        ),
    ],
)
def test_a_mistake_is_told_by_its_name(build: Any, pieces: list[str]) -> None:
    with pytest.raises(ValueError, match=".") as error:
        build()
    assert [piece for piece in pieces if piece not in str(error.value)] == [], str(error.value)


# -- a measured machine
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "pulse"), [("DATA_EMPS.mat", 0.0), ("DATA_EMPS_PULSES.mat", 5.0695)]
)
def test_the_controller_of_the_emps_record_is_this_one_with_a_speed_one_sample_old(
    data_folder: Path, record: str, pulse: float
) -> None:
    from scipy.io import loadmat

    data = loadmat(data_folder / "emps" / record)
    s, s_ref, recorded = (np.ravel(data[name]) for name in ("qm", "qg", "vir"))
    if "pulses_N" in data:
        recorded = recorded - pulse / 5 * np.ravel(data["pulses_N"]).astype(float)
    part = fx.PositionController("mass", s_ref=0.0, kp=data["kp"].item(), kv=data["kv"].item())
    residual = {}
    for name, late in (
        ("one sample old", s[2:] - s[:-2]),
        ("half a sample old", 2 * (s[2:] - s[1:-1])),
    ):
        output = jax.vmap(part.driven)(
            jnp.asarray(s_ref[2:]), jnp.asarray(s[2:]), jnp.asarray(late / 2e-3)
        )
        residual[name] = float(np.sqrt(np.mean((recorded[2:] - output)[60:-60] ** 2)))
    # of 1.54 V rms; the encoder's steps of 5e-8 m alone make 2.5 mV
    assert residual["one sample old"] < 5e-3
    assert residual["half a sample old"] > 40e-3
