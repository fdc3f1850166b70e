"""A fit that explains nothing of its record says so, and one that explains it does not."""

import time
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

import frictax as fx
from frictax.fitting.result.worth import Channel, worth
from frictax.measurements.noise import noise_of
from rigs import NOISE, T, block, motion, record

LAW = ["friction.f_pos.F_Coulomb", "friction.f_pos.F_prop"]
ALARMS = {"explains-nothing", "no-better-than-line", "misfit-above-noise"}
RNG = np.random.default_rng
PLAIN = fx.OnSamples(tolerance=None)


@pytest.fixture(scope="module")
def speed() -> np.ndarray:
    return np.asarray(motion(block())["mass"].v)


def codes(y: np.ndarray, start: fx.Mechanism | None = None) -> set[str]:
    inputs = {"drive": record(block()).inputs["drive"]}
    run = fx.Record(T, inputs, {"mass.v": y}, name="run")
    found = fx.fit(block(F_Coulomb=1.1) if start is None else start, run, free=LAW, rounds=0)
    said = {n.code for n in found.notices_at_hand}
    return said & (ALARMS | {"tells-next-to-nothing", "nothing-moves"})


def coloured(n: int, memory: float, seed: int) -> np.ndarray:
    e = np.sqrt(1 - memory**2) * RNG(seed).standard_normal(n + 300)
    return np.asarray(lfilter([1.0], [1.0, -memory], e))[300:]


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("n", [60, 300, 3000])
def test_noise_is_read_from_a_motion_within_what_its_memory_hides(memory: float, n: int) -> None:
    clean = np.sin(np.linspace(0.0, 6.0, n))
    read = [noise_of(clean + 0.02 * coloured(n, memory, k)) / 0.02 for k in range(20)]
    assert (0.8 if memory == 0 else 0.2) < np.median(read) < 1.2


def test_noise_of_an_encoder_is_that_of_its_steps_and_of_few_samples_none() -> None:
    x = np.round(100.0 * np.sin(T)) / 100.0
    assert 0.01 / np.sqrt(12) <= noise_of(x) < 0.01
    assert np.isnan(noise_of(x[:19]))
    assert noise_of(np.ones(100)) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("k", "rel"), [(0, 0.002), (1, 0.1), (2, 1.0)])
def test_a_right_fit_raises_no_alarm(speed: np.ndarray, k: int, rel: float) -> None:
    noise = rel * np.std(speed)
    assert not codes(speed + noise * RNG(k).standard_normal(T.size)) & ALARMS
    assert not codes(np.round(speed / noise + 0.3) * noise) & ALARMS


@pytest.mark.slow
@pytest.mark.parametrize(("k", "rel"), [(0, 0.002), (1, 0.1), (2, 1.0)])
def test_nor_does_one_of_a_record_with_autocorrelated_noise(
    speed: np.ndarray, k: int, rel: float
) -> None:
    noise = rel * np.std(speed)
    assert not codes(speed + noise * coloured(T.size, 0.8, k)) & ALARMS


@pytest.mark.slow
def test_a_wrong_sign_a_wrong_column_and_a_body_that_stays_stuck_are_told(
    speed: np.ndarray,
) -> None:
    noise = NOISE * RNG(0).standard_normal(T.size)
    assert "explains-nothing" in codes(-speed + noise)
    assert "explains-nothing" in codes(np.sin(7.0 * T) + noise)
    assert {"explains-nothing", "nothing-moves"} <= codes(speed + noise, block(F_Coulomb=50.0))


@pytest.mark.slow
def test_a_machine_that_lacks_a_spring_is_told_by_the_noise_of_its_record() -> None:
    parts = {"wall": fx.Fixed(), "spring": fx.Spring("wall", "mass", c=2.0)}
    v = np.asarray(motion(block(parts=parts))["mass"].v)
    noisy = v + NOISE * RNG(0).standard_normal(T.size)
    assert codes(noisy) & ALARMS
    inputs = {"drive": record(block()).inputs["drive"]}
    given = fx.Record(T, inputs, {"mass.v": noisy}, {"mass.v": NOISE}, name="run")
    said = {n.code for n in fx.fit(block(), given, free=LAW, rounds=0).notices_at_hand}
    assert "residuals-too-large" in said  # the sd given is the first authority
    assert "misfit-above-noise" not in said


def test_a_misfit_counts_from_three_times_the_noise_and_what_it_makes_of_starts() -> None:
    def above(misfit: float, by_starts: float = 1.0) -> bool:
        sizes = misfit, 1.0, np.inf, 1.0, 1e-3
        told = True, 0.9, True, "the deviation from its mean"
        return Channel("mass.s", "run", "m", *sizes, *told, by_starts=by_starts).is_above_noise

    assert [above(2.9e-3), above(3.1e-3)] == [False, True]
    assert [above(5.9e-3, 2.0), above(6.1e-3, 2.0)] == [False, True]


@pytest.mark.slow
def test_windows_of_a_machine_that_lacks_a_spring_are_told_by_the_noise_of_its_record() -> None:
    parts = {"wall": fx.Fixed(), "spring": fx.Spring("wall", "mass", c=4.0)}
    inputs = {"drive": record(block()).inputs["drive"]}
    for more, told in (({}, False), (parts, True)):
        s = np.asarray(motion(block(parts=more))["mass"].s)
        y = s + 1e-4 * RNG(0).standard_normal(T.size)
        run = fx.Record(T, inputs, {"mass.s": y}, name="run")
        found = fx.fit(block(), run, free=LAW, objective=fx.Windows(1.0))
        assert any(n.code == "misfit-above-noise" for n in found.notices_at_hand) is told


@pytest.mark.slow
def test_a_record_of_noise_tells_next_to_nothing() -> None:
    start = block(F_Coulomb=1.1)
    assert codes(0.5 * RNG(3).standard_normal(T.size) + 0.0 * T, start) == {"tells-next-to-nothing"}


@pytest.mark.slow
def test_a_larger_motion_is_not_asked_for_where_windows_are_too_short() -> None:
    s = np.asarray(motion(block())["mass"].s)
    y = s + 0.01 * np.ptp(s) * RNG(0).standard_normal(T.size)
    inputs = {"drive": record(block()).inputs["drive"]}
    run = fx.Record(T, inputs, {"mass.s": y}, name="run")
    start = block(F_Coulomb=1.1)
    found = fx.fit(start, run, free=LAW, objective=fx.Windows(4.0 * float(T[1] - T[0])))
    said = {n.code for n in found.notices_at_hand}
    assert "tells-next-to-nothing" not in said
    assert "windows-too-short" in said


@pytest.mark.slow
@pytest.mark.parametrize(("length", "engine"), [(0.5, PLAIN), (1.0, None)])
def test_windows_are_set_against_a_line_in_each(length: float, engine: Any) -> None:
    s = np.asarray(motion(block())["mass"].s)
    inputs = {"drive": record(block()).inputs["drive"]}
    for sign, told in ((1.0, False), (-1.0, True)):
        y = sign * s + 1e-4 * RNG(0).standard_normal(T.size)
        run = fx.Record(T, inputs, {"mass.s": y}, name="run")
        found = fx.fit(block(), run, free=LAW, objective=fx.Windows(length), engine=engine)
        assert any(n.code in ALARMS for n in found.notices_at_hand) is told


@pytest.mark.slow
def test_windows_that_leave_more_than_their_means_do_explain_nothing() -> None:
    motions = motion(block())["mass"]
    inputs = {"drive": record(block()).inputs["drive"]}
    for y, free in ((motions.v, LAW), (np.roll(motions.s, 150), [*LAW, "mass.m"])):
        y = np.asarray(y) + 1e-4 * RNG(0).standard_normal(T.size)
        run = fx.Record(T, inputs, {"mass.s": y}, name="run")
        # The second search ends at a mass of a few grams, whose motion needs thousands of steps.
        found = fx.fit(block(), run, free=free, objective=fx.Windows(0.5), engine=PLAIN)
        assert any(n.code == "explains-nothing" for n in found.notices_at_hand)


@pytest.mark.slow
def test_inverse_dynamics_are_set_against_the_forces_that_are_known() -> None:
    s = np.asarray(motion(block())["mass"].s)
    inputs = {"drive": record(block()).inputs["drive"]}
    for sign, told in ((1.0, False), (-1.0, True)):
        run = fx.Record(T, inputs, {"mass.s": sign * s}, name="run")
        found = fx.fit(block(), run, free=LAW, objective=fx.InverseDynamics(cutoff=10.0))
        assert any(n.code == "explains-nothing" for n in found.notices_at_hand) is told


@pytest.mark.slow
def test_inverse_dynamics_that_explain_a_part_of_the_forces_are_told_by_the_noise() -> None:
    """A mass that is free makes something of a speed that is called a position."""
    motions = motion(block())["mass"]
    inputs = {"drive": record(block()).inputs["drive"]}
    for y, told in ((motions.s, False), (motions.v, True)):
        y = np.asarray(y) + 1e-4 * RNG(0).standard_normal(T.size)
        run = fx.Record(T, inputs, {"mass.s": y}, name="run")
        free = [*LAW, "mass.m"]
        found = fx.fit(block(), run, free=free, objective=fx.InverseDynamics(cutoff=10.0))
        said = [n for n in found.notices_at_hand if n.code == "force-unexplained"]
        assert bool(said) is told
    assert said[0].subject == "force on mass"
    with pytest.raises(ValueError, match="at their bounds fixed"):  # it has no mass now
        found.missing()


@pytest.mark.slow
def test_that_all_forces_vanish_is_not_missing_where_they_are_balanced() -> None:
    inputs = {"drive": record(block()).inputs["drive"]}
    s = np.asarray(motion(block())["mass"].s) + 1e-5 * RNG(0).standard_normal(T.size)
    run = fx.Record(T, inputs, {"mass.s": s}, name="run")
    found = fx.fit(block(), run, free=[*LAW, "mass.m"], objective=fx.InverseDynamics(cutoff=10.0))
    assert "gain of input" not in str(found.missing())


@pytest.mark.slow
def test_the_judgement_costs_little() -> None:
    found = fx.fit(block(), record(block()), free=LAW)
    least = np.inf
    for _ in range(5):
        began = time.perf_counter()
        worth(found.problem, found.records, found.full_residuals, found.x)
        least = min(least, time.perf_counter() - began)
    assert least < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_of_random_motions_right_fits_raise_no_alarm_and_worthless_ones_are_told(
    seed: int,
) -> None:
    rng = RNG(100 + seed)
    f, b = rng.uniform(0.3, 1.0), rng.uniform(1.0, 3.0)
    u = 3.0 * np.sin(2 * np.pi * f * T + rng.uniform(0, 6)) + 1.5 * np.sin(b * T)
    machine = block(F_Coulomb=rng.uniform(0.6, 1.4), F_prop=rng.uniform(0.1, 0.4))
    v = np.asarray(motion(machine, u=u)["mass"].v)
    size = np.std(v) * 10 ** rng.uniform(-3, 0)
    noise = size * coloured(T.size, rng.uniform(0.0, 0.8), seed)
    free = [*LAW, "friction.f_pos.F_Stribeck"]
    for y, told in ((v + noise, False), (-v + 0.02 * noise, True)):
        run = fx.Record(T, {"drive": u}, {"mass.v": y}, name="run")
        found = fx.fit(block(), run, free=free, rounds=0)
        assert any(n.code in ALARMS for n in found.notices_at_hand) is told
