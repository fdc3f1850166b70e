"""What a fit of a record cannot be asked for."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import frictax as fx
from rigs import LAW, T, U, block

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
    ("free empty", ask(free=[]), ["no free parameters", "mass.m"]),
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
    (
        "start on the edge of a law",
        ask(model=block(F_prop=0.0), free=["friction.f_pos.F_prop"]),
        ["Stribeck.F_prop"],
    ),
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


def test_32_bits_are_refused_with_the_remedy() -> None:
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        ask()()
