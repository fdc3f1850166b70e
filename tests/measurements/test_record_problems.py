"""What a record cannot tell, and what a user is told on the way."""

from typing import Any

import numpy as np
import pytest

import frictax as fx
from rigs import AWAY_LAW, LAW, NOISE, T, U, block, motion, record


@pytest.fixture(scope="module")
def run() -> fx.Record:
    return record(block())


def told(found: fx.FitResult) -> list[str]:
    return [str(notice) for notice in found.notices_at_hand]


@pytest.mark.slow
def test_the_poor_motion_of_p4_has_errors_of_5_57_13_and_8_times_the_truth_and_is_warned_of():
    """P4's machine under 2 sin(2 pi t) alone.

    The record is the machine's own, so the fit stays at the truth.
    """
    order = {"F_Coulomb": 1.0, "F_prop": 0.2, "F_Stribeck": 0.4, "fexp": 5.0}
    t, start = np.linspace(0.0, 10.0, 2001), block(peak=1.0)
    u = 2 * np.sin(2 * np.pi * t)
    clean = np.asarray(motion(start, t, u)["mass"].v)
    found = fx.fit(
        start,
        fx.Record(t, {"drive": u}, {"mass.v": clean}, {"mass.v": NOISE}, name="run"),
        free=LAW,
    )
    error = np.sqrt(np.diag(np.linalg.inv(found.jacobian.T @ found.jacobian)))
    relative = [
        error[found.names.index(f"friction.f_pos.{name}")] / true for name, true in order.items()
    ]
    np.testing.assert_allclose(relative, [5.0, 57.0, 13.0, 8.0], rtol=0.06)
    assert found.identifiability.condition > 100
    assert any("condition" in w and "richer motion" in w for w in told(found))


@pytest.mark.slow
def test_an_offset_and_an_asymmetry_of_coulomb_friction_are_named_as_redundant() -> None:
    seen = record(block(f_neg=fx.Coulomb(F_Coulomb=1.2)), {"mass.s": 1e-4})
    start = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=1.0), f_neg=fx.Coulomb(F_Coulomb=1.2)
        ),
        drive=fx.Force("mass", 0.0),
        offset=fx.LinearPositionDependentForce("mass"),
    )
    free = ["friction.f_pos.F_Coulomb", "friction.f_neg.F_Coulomb", "offset.f_nominal"]
    found = fx.fit(start, seen, free=free, objective=fx.InverseDynamics(15.0))
    (direction,) = found.identifiability.null_directions
    assert set(direction) == set(free)
    assert set(found.identifiability.unknown) == set(free)
    assert any("can be determined" in w for w in told(found))


@pytest.mark.slow
def test_a_parameter_without_influence_is_named(run) -> None:
    found = fx.fit(block(), record(block(s=0.0)), free=["friction.f_pos.F_Coulomb", "mass.s"])
    assert found.identifiability.unknown == ("mass.s",)
    assert "mass.s has no effect on what was measured and is not identifiable." in told(found)
    assert np.isnan(found.standard_errors["mass.s"])


@pytest.mark.slow
def test_progress_tells_step_cost_distance_and_the_time_left(run) -> None:
    lines: list[str] = []
    found = fx.fit(block(**AWAY_LAW), run, free=LAW, progress=lines.append)
    assert lines[0].startswith("step 3: cost ")
    assert all("standard errors from the end" in line for line in lines)
    assert any("s left" in line for line in lines)
    assert (
        f"step {found.iterations}: cost {0.5 * found.full_residuals @ found.full_residuals:.6g}"
        in lines[-1]
    )


@pytest.mark.slow
def test_a_fit_is_the_same_to_the_last_bit_told_or_not_and_ends_at_100_percent(run) -> None:
    lines: list[Any] = []
    for starts in (1, 4):
        told = fx.fit(block(**AWAY_LAW), run, free=LAW, starts=starts, progress=lines.append)
        plain = fx.fit(block(**AWAY_LAW), run, free=LAW, starts=starts)
        np.testing.assert_array_equal(told.x, plain.x)
        assert told.iterations == plain.iterations
        shares = [line.share for line in lines if line.share is not None]
        assert shares == sorted(shares)
        assert shares[-1] == lines[-1].share == 1.0
        lines.clear()


def test_an_interruption_keeps_the_best_point_so_far(run) -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt

    found = fx.fit(block(**AWAY_LAW), run, free=LAW, progress=stop)
    assert not found.converged
    assert found.iterations == 3
    assert any("interrupted after 3 steps" in w for w in found.warnings)
    start = np.sqrt(
        np.mean(
            (
                np.asarray(fx.simulate(_driven(block(**AWAY_LAW)), T)["mass"].v)
                - run.outputs["mass.v"]
            )
            ** 2
        )
    )
    assert found.rms["run"]["mass.v"] < 0.5 * start


def _driven(machine: fx.Mechanism) -> fx.Mechanism:
    return fx.Mechanism(
        **{**dict(machine.named_parts()), "drive": fx.Force("mass", fx.Sampled(T, U))}
    )


def test_a_printed_fit_names_record_objective_value_unit_error_and_rms(run) -> None:
    text = str(fx.fit(block(**AWAY_LAW), run, free=LAW)).splitlines()
    assert text[0] == "Mechanism fitted to run by FreeRun"
    assert text[1].split() == ["parameter", "value", "unit", "std.", "error", "95", "%", "interval"]
    row = next(line for line in text if line.startswith("friction.f_pos.F_Coulomb")).split()
    assert row == ["friction.f_pos.F_Coulomb", "0.9940", "N", "0.0023", "0.9894", "to", "0.9986"]
    assert "run: rms mass.v 1.98 mm/s" in text


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_user_runs_it")
def test_what_was_not_fitted_is_named_without_quotation_marks_around_the_sentence(run) -> None:
    found = fx.fit(block(), run, free=["friction.f_pos.F_Coulomb"])
    for call, words in (
        (lambda: found.model_for("walk"), "There is no record 'walk' in this fit. It has: run."),
        (
            lambda: found.profile("mass.k"),
            "`profile`: 'mass.k' was not fitted. Fitted are: friction.f_pos.F_Coulomb.",
        ),
        (
            lambda: found.profile(3),  # pyright: ignore
            "`profile` takes the name of a fitted number or a pair of them, got 3. ",
        ),
        (
            lambda: found.score("run", fx.FreeRun),  # pyright: ignore
            "`score` needs an objective such as FreeRun(measured_start=True)",
        ),  # pyright: ignore
    ):
        with pytest.raises((KeyError, ValueError)) as caught:
            call()
        assert str(caught.value).startswith(words)


@pytest.mark.slow
def test_a_mass_against_the_sign_of_its_force_grows_and_is_not_said_to_lie_on_its_bound_of_0(
    run,
) -> None:
    turned = fx.Record(T, {"drive": -U}, run.outputs, run.sd, name="run")
    found = fx.fit(block(), turned, free=["mass.m"], rounds=0)
    (sentence,) = (w for w in told(found) if w.startswith("mass.m"))
    assert sentence.startswith("mass.m went from 1 to ")
    assert "signs and units" in sentence
    assert "mass.m" in found.identifiability.unknown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "bound", "asks"),
    [((0.1, 0.8), 0.8, "larger"), ((1.2, 5.0), 1.2, "smaller")],
)
def test_a_value_that_went_all_the_way_to_a_bound_that_was_given_is_said_to_lie_there(
    bounds, bound, asks
) -> None:
    seen, start = record(block(), {"mass.s": 1e-4}), block(m=float(np.mean(bounds)))
    found = fx.fit(
        start, seen, free=["mass.m"], objective=fx.InverseDynamics(15.0), bounds={"mass.m": bounds}
    )
    assert (
        f"mass.m is at its bound {bound:g}, and a {asks} value fits the data better. Therefore"
        " it has no symmetric interval." in told(found)
    )


@pytest.mark.slow
def test_a_record_too_slow_for_the_filter_of_inverse_dynamics_is_told() -> None:
    seen = record(block(), {"mass.s": 1e-4})
    found = fx.fit(block(), seen, free=["mass.m"], objective=fx.InverseDynamics(60.0))
    assert any("100 Hz cannot be filtered at 60 Hz. At 45 Hz" in w for w in found.warnings)
    assert not any(
        "filtered" in w
        for w in fx.fit(block(), seen, free=["mass.m"], objective=fx.InverseDynamics(15.0)).warnings
    )
