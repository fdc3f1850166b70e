"""What a record cannot tell, what a user is told on the way, and what one may get wrong."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import frictax as fx
from rigs import AWAY_LAW, LAW, NOISE, T, U, block, motion, record


@pytest.fixture(scope="module")
def run() -> fx.Record:
    return record(block())


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
    assert any("condition" in w and "richer motion" in w for w in found.warnings)


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
    assert "cannot be told apart" in str(found)


def test_a_parameter_without_influence_is_named(run) -> None:
    found = fx.fit(block(), record(block(s=0.0)), free=["friction.f_pos.F_Coulomb", "mass.s"])
    assert found.identifiability.unknown == ("mass.s",)
    assert "mass.s has no effect on what was measured and is not identifiable." in found.warnings
    assert np.isnan(found.standard_errors["mass.s"])


def test_progress_tells_step_cost_distance_and_the_time_left(run) -> None:
    lines: list[str] = []
    found = fx.fit(block(**AWAY_LAW), run, free=LAW, progress=lines.append)
    assert lines[0].startswith("step 3: cost ")
    assert all("standard errors to go" in line for line in lines)
    assert any("s left" in line for line in lines)
    assert (
        f"step {found.iterations}: cost {0.5 * found.full_residuals @ found.full_residuals:.6g}"
        in lines[-1]
    )


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
    assert any("Interrupted after 3 steps" in w for w in found.warnings)
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


V = np.sin(3 * T)
SWEEP = fx.Sweep([1, 2, 3, 4], [7.1, 7.9, 9.1, 9.9], velocity_unit="m/s", force_unit="N")
TWO = {"mass.s": V, "mass.v": np.cos(3 * T)}


def made(
    name: str = "run", inputs: dict | None = None, outputs: dict | None = None, **more
) -> fx.Record:
    return fx.Record(
        T,
        {"drive": U} if inputs is None else inputs,
        {"mass.v": V} if outputs is None else outputs,
        name=name,
        **more,
    )


CONTROLLER: Any = fx.PositionController("mass", 0.0, 1.0, 1.0)


def ask(data=None, model=None, **options) -> Callable[[], object]:
    options = {"free": LAW, **options}
    return lambda: fx.fit(
        block() if model is None else model, made() if data is None else data, **options
    )


unchecked: Any = fx.fit  # by type checkers, which see that these cannot be

BAD = [
    ("unknown option", ask(objectve=fx.FreeRun()), ["objectve"]),
    ("f_neg with a record", ask(f_neg=fx.Coulomb), ["`f_neg`", "law's sweep", "Leave it out"]),
    ("peak with a record", ask(peak=1.2), ["`peak`", "Leave it out"]),
    (
        "own with a sweep",
        lambda: unchecked(fx.Coulomb, SWEEP, own=["F_prop"]),
        ["`own`", "records of a machine", "Leave it out"],
    ),
    ("law with a record", ask(model=fx.Coulomb(F_Coulomb=1.0)), ["`Mechanism`", "`Sweep`"]),
    ("nothing", ask([]), ["at least one `Record`", "from_csv"]),
    ("a number", ask(3), ["a record, a list or a dict", "got 3"]),
    ("a text", ask("run.csv"), ["a record, a list or a dict", "run.csv"]),
    ("a list of texts", ask([made(), "run.csv"]), ["records and sweeps", "run.csv"]),
    ("a sweep alone", lambda: fx.fit(block(), SWEEP), ["at least one `Record`"]),
    ("input of no part", ask(made(inputs={"motor": U})), ["motor", "mass, friction, drive"]),
    ("input without signal", ask(made(inputs={"mass": U})), ["'mass'", "no signal", "drive"]),
    ("output unknown", ask(made(outputs={"mas.v": V})), ["'mas.v'", "Did you mean 'mass.v'?"]),
    (
        "free unknown",
        ask(free=["friction.f_pos.F_coulomb"]),
        ["F_coulomb", "Did you mean 'friction.f_pos.F_Coulomb'?"],
    ),
    ("free empty", ask(free=[]), ["nothing to move", "mass.m"]),
    ("own unknown", ask(own=["mass.w"]), ["mass.w"]),
    ("own and free", ask(free=["mass.v"], own=["mass.v"]), ["'mass.v'", "`free` and in `own`"]),
    ("a number for free", ask(free=3), ["`free` must name parameters", "got 3", "'mass.m'"]),
    ("None among free", ask(free=[None]), ["`free` must name parameters", "got None"]),
    ("own too many", ask(own={"mass.v": [0.1, 0.2]}), ["`own`", "1 records", "got 2", "'mass.v'"]),
    (
        "force in mm",
        ask(made(units={"drive": "mm"})),
        ["'drive'", "a force [N]", "in mm", "Correct its unit"],
    ),
    (
        "delay longer than the record",
        ask(instruments={"outputs.mass.v": fx.Instrument(delay=10.0)}),
        ["delay", "6 s", "10 s", "seconds"],
    ),
    (
        "text for a switch",
        lambda: fx.FreeRun(measured_start="yes"),  # pyright: ignore
        ["FreeRun.measured_start", "True or False", "'yes'"],
    ),
    (
        "text for free starts",
        lambda: fx.Windows(free_starts="yes"),  # pyright: ignore
        ["Windows.free_starts", "True or False", "'yes'"],
    ),
    (
        "no controllers",
        lambda: fx.ClosedLoop({}),
        ["ClosedLoop.controllers", "got none", "FreeRun()"],
    ),
    ("Huber of text", lambda: fx.Huber("1.3"), ["Huber.delta", "> 0", "'1.3'"]),  # pyright: ignore
    (
        "a mean of text",
        lambda: fx.Normal("mass.m", "2", 0.1),  # pyright: ignore
        ["Normal.mean", "finite number", "'2'"],
    ),
    (
        "a number for a prior's path",
        lambda: fx.Normal(3, 2.0, 0.1),  # pyright: ignore
        ["Normal.path", "got 3"],
    ),
    (
        "many of none",
        lambda: fx.fit_many(block(), made(), np.ones((0, 601)), free=LAW),
        ["(k, 601)", "(0, 601)"],
    ),
    (
        "many of words",
        lambda: fx.fit_many(block(), made(), "abc", free=LAW),
        ["`measured` must be numbers", "(k, 601)"],
    ),
    ("a number for own", ask(own={"mass.v": 0.5}), ["`own`", "each record", "got 0.5", "'mass.v'"]),
    ("a negative seed", ask(starts=2, seed=-1), ["`seed`", ">= 0", "got -1"]),
    ("an array for a record", ask(np.ones(5)), ["records and sweeps", "from_csv"]),
    ("a number for a label", ask({1: made()}), ["labelled by texts", "got 1"]),
    (
        "own too few",
        ask([made("a"), made("b")], own={"mass.v": [0.1]}),
        ["`own`", "'mass.v'", "each of the 2 records", "got 1"],
    ),
    ("same names", ask([made(), made()]), ["two records", "'run'", "name='...'"]),
    (
        "several outputs without sd",
        ask(made(outputs=TWO, sd={"mass.v": 0.1})),
        ["'mass.s'", "sd={'mass.s': ...}"],
    ),
    (
        "different outputs without sd",
        ask([made("a"), made("b", outputs={"mass.s": V})]),
        ["'mass.v'", "standard deviation"],
    ),
    (
        "sweep without sigma",
        ask({"friction": SWEEP, "run": made(sd={"mass.v": 0.1})}),
        ["Sweep 'friction'", "sigma"],
    ),
    (
        "start on an edge",
        ask(model=block(peak=1.0), free=["friction.peak"]),
        ["SupportFriction.peak", "1"],
    ),
    ("start on the edge of a law", ask(model=block(F_prop=0.0)), ["Stribeck.F_prop"]),
    (
        "window too long",
        ask(made(outputs={"mass.s": V}), objective=fx.Windows(7.0)),
        ["Windows.length", "6 s", "7 s"],
    ),
    (
        "window too short",
        ask(made(outputs={"mass.s": V}), objective=fx.Windows(0.01)),
        ["Windows.length", "0.01 s"],
    ),
    ("window of nothing", lambda: fx.Windows(-1.0), ["Windows.length", "> 0", "-1.0"]),
    (
        "windows without motion",
        ask(made(outputs={"mass.a": V}), free=["mass.m"], objective=fx.Windows()),
        ["'mass.s'", "FreeRun"],
    ),
    (
        "inverse dynamics without motion",
        ask(made(outputs={"mass.a": V}), objective=fx.InverseDynamics()),
        ["mass.s is missing", "FreeRun"],
    ),
    ("objective of another kind", ask(objective="free"), ["`objective`", "FreeRun()", "'free'"]),
    ("start of another kind", ask(start=1.0), ["`start`", "InverseDynamics()"]),
    (
        "prior of what stays",
        ask(priors=[fx.Normal("mass.m", 1.0, 0.1)]),
        ["`priors`", "'mass.m'", "not fitted"],
    ),
    (
        "prior not in a list",
        ask(priors=fx.Normal("friction.f_pos.F_prop", 1.0, 0.1)),
        ["`priors` must be a list"],
    ),
    ("prior of nothing", lambda: fx.Normal("mass.m", 1.0, 0.0), ["Normal.sd", "> 0"]),
    (
        "instrument unknown",
        ask(instruments={"outputs.mass.s": fx.Instrument()}),
        ["outputs.mass.s", "outputs.mass.v"],
    ),
    (
        "instrument of another kind",
        ask(instruments={"outputs.mass.v": 2.0}),
        ["`instruments`", "Instrument(...)"],
    ),
    ("loss of another kind", ask(loss="huber"), ["`loss`", "Huber()"]),
    ("method of another kind", ask(method="lm"), ["`method`", "LevenbergMarquardt()"]),
    ("engine of another kind", ask(engine=0.01), ["`engine`", "OnSamples", "Adaptive"]),
    ("starts not whole", ask(starts=2.5), ["`starts`", "2.5"]),
    ("spread of text", ask(spread="wide"), ["`spread`", "'wide'"]),
    ("level of 95", ask(level=95), ["`level`", "between 0 and 1"]),
    ("progress of text", ask(progress="yes"), ["`progress`", "'yes'"]),
    (
        "controllers for no part",
        ask(objective=fx.ClosedLoop({"motor": fx.PositionController("mass", 0.0, 1.0, 1.0)})),
        ["motor"],
    ),
    (
        "controllers in no dict",
        lambda: fx.ClosedLoop(CONTROLLER),
        ["must be a dict", "ClosedLoop({"],
    ),
    (
        "many of another shape",
        lambda: fx.fit_many(block(), made(), np.ones(5), free=LAW),
        ["(k, 601)", "(5,)"],
    ),
    (
        "many without an output",
        lambda: fx.fit_many(block(), made(), {"mass.s": np.ones((2, 601))}, free=LAW),
        ["'mass.v': ..."],
    ),
]


@pytest.mark.parametrize(
    ("call", "words"), [pytest.param(call, words, id=name) for name, call, words in BAD]
)
@pytest.mark.usefixtures("as_a_user_runs_it")
def test_a_bad_request_gives_one_clear_sentence(call, words: list[str]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


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
    found = fx.fit(block(), turned, free=["mass.m"])
    (sentence,) = (w for w in found.warnings if w.startswith("mass.m"))
    assert sentence.startswith("mass.m went from 1 to ")
    assert "signs and units" in sentence
    assert "mass.m" in found.identifiability.unknown


@pytest.mark.parametrize(
    ("bounds", "bound", "asks"),
    [((0.1, 0.8), 0.8, "more than that"), ((1.2, 5.0), 1.2, "no more of it")],
)
def test_a_value_that_went_all_the_way_to_a_bound_that_was_given_is_said_to_lie_there(
    bounds, bound, asks
) -> None:
    seen, start = record(block(), {"mass.s": 1e-4}), block(m=float(np.mean(bounds)))
    found = fx.fit(
        start, seen, free=["mass.m"], objective=fx.InverseDynamics(15.0), bounds={"mass.m": bounds}
    )
    assert (
        f"mass.m lies on its bound {bound:g}: the data ask for {asks}. No symmetric interval"
        " applies." in found.warnings
    )


def test_a_record_too_slow_for_the_filter_of_inverse_dynamics_is_told() -> None:
    seen = record(block(), {"mass.s": 1e-4})
    found = fx.fit(block(), seen, free=["mass.m"], objective=fx.InverseDynamics(60.0))
    assert any("100 Hz cannot be filtered at 60 Hz, and at 45 Hz" in w for w in found.warnings)
    assert not any(
        "filtered" in w
        for w in fx.fit(block(), seen, free=["mass.m"], objective=fx.InverseDynamics(15.0)).warnings
    )


def test_32_bits_are_refused_with_the_remedy() -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        ask()()
