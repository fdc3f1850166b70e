"""What a user may get wrong in building and simulating a machine; each is told in a sentence or
two.
"""

import re
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx

pytestmark = pytest.mark.usefixtures("as_a_user_runs_it")

NAN = float("nan")
STRIBECK: dict[str, Any] = {"F_prop": 0.1, "F_Coulomb": 1.0, "F_Stribeck": 0.5, "fexp": 1.0}


def any_value(value: Any) -> Any:
    """Hides from the type checker what is wrong on purpose."""
    return value


def stribeck(**changes: Any) -> fx.Stribeck:
    return fx.Stribeck(**{**STRIBECK, **changes})


def stopped(**changes: Any) -> fx.MassWithStopAndFriction:
    return fx.MassWithStopAndFriction(
        **{"m": 1.0, "smin": -1.0, "smax": 1.0, **STRIBECK, **changes}
    )


def with_mass(**parts: Any) -> fx.Mechanism:
    return fx.Mechanism(mass=fx.Mass(m=1.0), **parts)


def block() -> fx.Mechanism:
    return with_mass(
        friction=fx.SupportFriction("mass", f_pos=[[0, 2.0]]), drive=fx.Force("mass", 1.0)
    )


def simulate(ts: Any = (0.0, 1.0), engine: Any = None, machine: Any = None) -> fx.Trajectory:
    return fx.simulate(block() if machine is None else machine, ts, engine)


def changed(
    where: Callable[[Any], Any], value: Any, machine: fx.Mechanism | None = None
) -> fx.Trajectory:
    """A run after `eqx.tree_at`, which bypasses the checks made while building."""
    return simulate(machine=eqx.tree_at(where, block() if machine is None else machine, value))


# What is done, and the pieces of what must be said.
CASES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    # laws
    "negative friction": (
        lambda: fx.Coulomb(F_Coulomb=-1.0),
        ["`Coulomb.F_Coulomb`", ">= 0", "got -1.", "without a sign"],
    ),
    "friction NaN": (
        lambda: fx.Coulomb(F_Coulomb=NAN),
        ["`Coulomb.F_Coulomb`", ">= 0", "got nan.", "missing value"],
    ),
    "friction infinite": (
        lambda: fx.Coulomb(1.0, F_prop=np.inf),
        ["`Coulomb.F_prop`", ">= 0", "got inf.", "division by 0"],
    ),
    "friction as text": (
        lambda: fx.Coulomb(F_Coulomb="5"),
        ["`Coulomb.F_Coulomb`", "a number", "'5'", "Convert it"],
    ),
    "friction None": (
        lambda: fx.Coulomb(F_Coulomb=None),
        ["`Coulomb.F_Coulomb`", "a number", "None", "Give it a value"],
    ),
    "a list for a number": (
        lambda: fx.Coulomb(F_Coulomb=[1.0, 2.0]),
        ["`Coulomb.F_Coulomb`", "a number", "shape (2,)", "vmap"],
    ),
    "negative fexp": (
        lambda: stribeck(fexp=-1.0),
        ["`Stribeck.fexp`", ">= 0", "got -1.", "without a sign"],
    ),
    "exponent 0": (
        lambda: stribeck(exponent=0),
        ["`Stribeck.exponent`", "> 0", "0.0", "Use 1 (Modelica) or 2"],
    ),
    "exponent as text": (
        lambda: stribeck(exponent="two"),
        ["`Stribeck.exponent`", "one number", "two", "Use 1"],
    ),
    "exponents": (
        lambda: stribeck(exponent=jnp.array([1.0, 2.0])),
        ["`Stribeck.exponent`", "one number", "[1. 2.]", "Use 1"],
    ),
    # tables
    "a table of one row of numbers": (
        lambda: fx.Table([0, 1, 2]),
        ["`Table`", "[speed, force]", "shape (3,)", "[[0, 5]]"],
    ),
    "a table of three columns": (
        lambda: fx.Table([[0, 1, 2]]),
        ["`Table`", "two numbers", "shape (1, 3)", "[[0, 5]]"],
    ),
    "an empty table": (lambda: fx.Table([]), ["`Table`", "two numbers", "shape (0,)", "[[0, 5]]"]),
    "a ragged table": (
        lambda: fx.Table([[0, 1], [2]]),
        ["`Table`", "two numbers", "[[0, 1], [2]]", "[[0, 5]]"],
    ),
    "a file name for a table": (
        lambda: fx.Table("table.csv"),
        ["`Table`", "two numbers", "'table.csv'", "[[0, 5]]"],
    ),
    "a speed twice": (
        lambda: fx.Table([[0, 1], [0, 2]]),
        ["`Table.v`", "strictly increasing", "[0. 0.].", "drop repeated"],
    ),
    "speeds that fall": (
        lambda: fx.Table([[1, 1], [0, 2]]),
        ["`Table.v`", "strictly increasing", "[1. 0.].", "Sort"],
    ),
    "speeds that fall in a long table": (
        lambda: fx.Table([*[[v, 1] for v in range(20)], [18.5, 2]]),
        ["`Table.v`", "strictly increasing", "18.5 after 19 in row 20", "Sort"],
    ),
    "a negative force": (
        lambda: fx.Table([[0, 1], [1, -2]]),
        ["`Table.f`", ">= 0", "-2.].", "without a sign"],
    ),
    "a force NaN": (
        lambda: fx.Table([[0, 1], [1, NAN]]),
        ["`Table.f`", ">= 0", "nan].", "missing value"],
    ),
    "a negative speed": (
        lambda: fx.Table([[-1, 1], [1, 1]]),
        ["`Table.v`", ">= 0", "got -1.", "`f_neg`"],
    ),
    "a table that leads below 0": (
        lambda: fx.Table([[1, 1], [2, 9]]),
        ["`Table`", ">= 0 at rest", "-7 at v = 0.", "Add a row for speed 0"],
    ),
    # contacts
    "a function for a law": (
        lambda: fx.SupportFriction("mass", f_pos=jnp.sin),
        ["law or an M x 2 table", "function", "`frictax.AbstractLaw`"],
    ),
    "a number for a law": (
        lambda: fx.SupportFriction("mass", f_pos=5.0),
        ["law or an M x 2 table", "5.0", "`Coulomb(F_Coulomb=5.0)`"],
    ),
    "None for a law": (
        lambda: fx.SupportFriction("mass", f_pos=None),
        ["`SupportFriction.f_pos`", "a law", "None", "Leave it out"],
    ),
    "a class for a law": (
        lambda: fx.Brake("mass", mu_pos=fx.Coulomb),
        ["must be a law", "the class Coulomb", "Coulomb(...)"],
    ),
    "peak < 1": (
        lambda: fx.SupportFriction("mass", peak=0.8),
        ["`SupportFriction.peak`", ">= 1", "0.8", "Breakaway cannot lie below"],
    ),
    "negative fn_max": (
        lambda: fx.Brake("mass", fn_max=-1.0),
        ["`Brake.fn_max`", ">= 0", "-1 N", "swap the sign of `f_normalized`"],
    ),
    "negative cgeo": (
        lambda: fx.Brake("mass", cgeo=-1.0),
        ["`Brake.cgeo`", ">= 0", "-1", "without a sign"],
    ),
    "start beyond a stop": (
        lambda: stopped(s=2.0),
        ["`MassWithStopAndFriction.s`", "<= smax - L/2 = 1 m", "2 m", "between the stops"],
    ),
    "start below a stop": (
        lambda: stopped(s=-2.0),
        ["`MassWithStopAndFriction.s`", ">= smin + L/2 = -1 m", "-2 m", "between the stops"],
    ),
    "start moving into a stop": (
        lambda: stopped(s=1.0, v=3.0),
        ["`MassWithStopAndFriction.v`", "3 m/s", "into the stop", "Start at rest"],
    ),
    "stops closer than L": (
        lambda: stopped(L=3.0),
        ["`MassWithStopAndFriction.smin`", "L = 3 m apart", "1 m", "shorten the mass"],
    ),
    # bodies and what acts on them
    "no mass": (lambda: fx.Mass(m=0.0), ["`Mass.m`", "> 0", "0 kg", "`Fixed`"]),
    "negative length": (
        lambda: fx.Mass(m=1.0, L=-2.0),
        ["`Mass.L`", ">= 0", "-2 m", "without a sign"],
    ),
    "a start position as text": (
        lambda: fx.Mass(m=1.0, s="left"),
        ["`Mass.s`", "a number", "'left'", "Convert it"],
    ),
    "negative stiffness": (
        lambda: fx.Spring("a", "b", c=-1.0),
        ["`Spring.c`", ">= 0", "-1 N/m", "without a sign"],
    ),
    "negative damping": (
        lambda: fx.Damper("a", "b", d=-1.0),
        ["`Damper.d`", ">= 0", "-1 N.s/m", "without a sign"],
    ),
    # signals
    "a list for a force": (
        lambda: fx.Force("mass", [1.0, 2.0]),
        ["signal", "one number", "[1.0, 2.0]", "`Sampled(times, values)`"],
    ),
    "text for a force": (
        lambda: fx.Force("mass", "sin"),
        ["signal", "one number", "'sin'", "`Sampled(times, values)`"],
    ),
    "a class for a signal": (
        lambda: fx.Brake("mass", f_normalized=fx.Sine),
        ["signal", "the class Sine", "Sine(...)"],
    ),
    "negative frequency": (
        lambda: fx.Sine(f=-1.0),
        ["`Sine.f`", ">= 0", "-1 Hz", "without a sign"],
    ),
    "negative duration": (
        lambda: fx.Ramp(duration=-1.0),
        ["`Ramp.duration`", ">= 0", "-1 s", "without a sign"],
    ),
    "a pulse of 120 per cent": (
        lambda: fx.Pulse(width=120.0),
        ["`Pulse`", "not exceed 100 per cent", "120", "Shorten it"],
    ),
    "one and a half periods": (
        lambda: fx.Pulse(nperiod=1.5),
        ["`Pulse.nperiod`", "whole number", "1.5", "Round it"],
    ),
    "no period": (lambda: fx.Pulse(period=0.0), ["`Pulse.period`", "> 0", "0 s", "positive"]),
    "a trapezoid longer than its period": (
        lambda: fx.Trapezoid(rising=1.0, width=1.0, falling=1.0, period=2.0),
        ["`Trapezoid`", "must not exceed `period` = 2 s", "= 3", "lengthen the period"],
    ),
    "an unsorted record": (
        lambda: fx.Sampled([0.0, 2.0, 1.0], [0.0, 0.0, 0.0]),
        ["`Sampled.times`", "strictly increasing", "[0. 2. 1.] s", "Sort"],
    ),
    "a record with a hole": (
        lambda: fx.Sampled(np.arange(99.0), np.where(np.arange(99) == 17, NAN, 1.0)),
        ["`Sampled.values`", "finite", "nan in row 17", "missing value"],
    ),
    "times without values": (
        lambda: fx.Sampled([0.0, 2.0, 3.0], [0.0, 0.0]),
        ["`Sampled.times`", "one length", "(3,) and (2,)", "Drop the rows"],
    ),
    "masked samples": (
        lambda: fx.Sampled([0.0, 1.0], np.ma.array([0.0, 9999.0], mask=[False, True])),
        ["`Sampled.values`", "list of numbers", "[0.0, --]", "Delete the masked"],
    ),
    "dates for times": (
        lambda: fx.Sampled(np.array(["2020-01-01", "2020-01-02"], "M8[s]"), [0.0, 1.0]),
        ["`Sampled.times`", "list of numbers", "2020-01-02", "Convert it"],
    ),
    "complex samples": (
        lambda: fx.Sampled([0.0, 1.0], np.array([1.0, 2.0j])),
        ["`Sampled.values`", "list of numbers", "2.j", "Convert it"],
    ),
    "a duration for a mass": (
        lambda: fx.Mass(m=np.timedelta64(1500, "ms")),
        ["`Mass.m`", "a number", "1500", "Convert it"],
    ),
    "durations in a list": (
        lambda: fx.Sampled([np.timedelta64(0, "ms"), np.timedelta64(1, "s")], [0.0, 1.0]),
        ["`Sampled.times`", "list of numbers", "timedelta64(1,'s')", "Convert it"],
    ),
    "an empty record": (
        lambda: fx.Sampled([], []),
        ["`Sampled.times`", "length >= 1", "(0,)", "Drop"],
    ),
    "column names for a record": (
        lambda: fx.Sampled("t", "F"),
        ["`Sampled.times`", "list of numbers", "'t'", "Convert it"],
    ),
    "a number for a function": (
        lambda: fx.Function(any_value(3.0)),
        ["`Function.f`", "function of time", "3.0", "`Constant`"],
    ),
    "no dtmax": (
        lambda: fx.Function(jnp.sin, dtmax=0.0),
        ["`Function.dtmax`", "> 0", "0 s", "positive"],
    ),
    "a function of numpy": (
        lambda: fx.Function(lambda t: np.sin(t)),
        ["`Function.f`", "jax.numpy", "__array__"],
    ),
    "a function of two": (
        lambda: fx.Function(any_value(lambda t, v: t)),
        ["`Function.f`", "one time", "argument: 'v'"],
    ),
    "a function with two values": (
        lambda: fx.Function(lambda t: jnp.ones(2)),
        ["`Function.f`", "one number", "(2,)", "Return"],
    ),
    # machines
    "no body": (
        lambda: fx.Mechanism(wall=fx.Fixed()),
        ["`Mechanism`", "a body that moves", "`mass=Mass(m=...)`"],
    ),
    "a part without a name": (
        lambda: fx.Mechanism(fx.Mass(m=1.0)),
        ["`Mechanism`", "needs a name", "Mass(", "`mass=Mass(m=1.0)`"],
    ),
    "a name with a dot": (
        lambda: with_mass(**{"a.b": fx.Fixed()}),
        ["`Mechanism`", "a Python name", "'a.b'", "Paths join"],
    ),
    "a law as a part": (
        lambda: with_mass(law=fx.Coulomb(1.0)),
        ["`Mechanism`: 'law'", "must be a part", "Coulomb(", "inside a part"],
    ),
    "a class as a part": (
        lambda: with_mass(wall=fx.Fixed),
        ["`Mechanism`: 'wall'", "must be a part", "Fixed", "inside a part"],
    ),
    "an unknown body": (
        lambda: with_mass(pull=fx.Force("mas", 1.0)),
        ["`Mechanism`: 'pull'", "'mas'", "no body", "Did you mean 'mass'?"],
    ),
    "a force on a spring": (
        lambda: with_mass(
            wall=fx.Fixed(), spring=fx.Spring("wall", "mass", c=1.0), pull=fx.Force("spring", 1.0)
        ),
        ["'pull'", "'spring'", "no body", "Bodies are: mass, wall"],
    ),
    "an unknown flange": (
        lambda: with_mass(pull=fx.Force("mass.end", 1.0)),
        ["'pull'", "'mass.end'", "'mass.flange_b'"],
    ),
    "a body that is no name": (
        lambda: with_mass(pull=fx.Force(any_value(3), 1.0)),
        ["'pull'", "as text", "3", "Write 'mass'"],
    ),
    "a spring with both ends on one body": (
        lambda: with_mass(spring=fx.Spring("mass", "mass.flange_a", c=1.0)),
        ["'spring'", "two bodies", "'mass' and 'mass.flange_a'", "`wall=Fixed()`"],
    ),
    "friction on a Fixed": (
        lambda: with_mass(wall=fx.Fixed(), guide=fx.SupportFriction("wall")),
        ["'guide'", "a body that moves", "'wall'", "Name the mass"],
    ),
    "a support that is the body itself": (
        lambda: with_mass(guide=fx.SupportFriction("mass", support="mass.flange_a")),
        ["'guide'", "between two bodies", "'mass' and 'mass.flange_a'", "Leave out one"],
    ),
    "friction of turning on what slides": (
        lambda: with_mass(bearing=fx.BearingFriction("mass")),
        [
            "'bearing'",
            "a BearingFriction",
            "turns",
            "'mass'",
            "of kind Mass",
            "the translational part",
        ],
    ),
    "friction on a motion that is given": (
        lambda: with_mass(position=fx.Position("mass", 0.0), guide=fx.SupportFriction("mass")),
        ["'guide'", "a motion that is not given", "'mass'", "moves freely"],
    ),
    "a motion given twice": (
        lambda: with_mass(one=fx.Position("mass", 0.0), other=fx.Position("mass", 0.0)),
        ["'mass'", "given once", "'one' and 'other'", "Drop one"],
    ),
    "gears in the wrong order": (
        lambda: fx.Mechanism(
            **{name: fx.Inertia(J=1.0) for name in "abc"},
            second=fx.IdealGear("b", "c", ratio=2.0),
            first=fx.IdealGear("a", "b", ratio=2.0),
        ),
        ["gear 'second'", "known before it", "'b'", "Write that gear first"],
    ),
    "a gear without ratio": (
        lambda: fx.IdealGear("a", "b", ratio=0.0),
        ["`IdealGear.ratio`", "not be 0", "phi_a/phi_b"],
    ),
    "an unknown part": (
        lambda: block()["frction"],
        ["no part 'frction'", "Did you mean 'friction'?", "mass, friction, drive"],
    ),
    "an unknown path": (
        lambda: fx.parameters.get(block(), "friktion.peak"),
        ["'friktion.peak'", "Did you mean 'friction.peak'?", "mass.m"],
    ),
    "an unknown path to fit": (
        lambda: fx.to_unconstrained(block(), "friction.peek"),
        ["'friction.peek'", "'friction.peak'?", "It has:"],
    ),
    "a start of a fit on its edge": (
        lambda: fx.to_unconstrained(block(), "friction.peak"),
        ["`SupportFriction.peak`", "edge", "= 1", "Start at 1.05"],
    ),
    # after building: tree_at
    "peak < 1 put in by tree_at": (
        lambda: changed(lambda b: b["friction"].peak, 0.5),
        ["`SupportFriction.peak`", ">= 1", "0.5"],
    ),
    "several peaks put in by tree_at": (
        lambda: changed(lambda b: b["friction"].peak, jnp.array([1.1, 1.2])),
        ["`SupportFriction.peak`", "a number", "shape (2,)", "`jax.vmap`"],
    ),
    "a number put in for a signal": (
        lambda: changed(lambda b: b["drive"].f, 3.0),
        ["`Force.f`", "signals", "3.0", "`Constant.k`"],
    ),
    "a list put in for a law": (
        lambda: changed(lambda b: b["friction"].f_pos, [[0, 1]]),
        ["`SupportFriction.f_pos`", "a law", "[[0, 1]]"],
    ),
    "a start beyond a stop put in": (
        lambda: changed(lambda b: b["mass"].s, 3.0, fx.Mechanism(mass=stopped())),
        ["`MassWithStopAndFriction.s`", "<= smax - L/2 = 1 m", "3 m", "between the stops"],
    ),
    "an exponent put in": (
        lambda: changed(
            lambda b: b["guide"].f_pos.exponent,
            -1.0,
            with_mass(guide=fx.SupportFriction("mass", f_pos=stribeck())),
        ),
        ["`Stribeck.exponent`", "> 0", "-1.0", "Use 1"],
    ),
    "a period put in": (
        lambda: changed(
            lambda b: b["pull"].f.period, 0.1, with_mass(pull=fx.Force("mass", fx.Trapezoid()))
        ),
        ["`Trapezoid`", "`period` = 0.1 s", "0.5", "lengthen the period"],
    ),
    # times and engine
    "no times": (lambda: simulate([]), ["`ts`", "at least one time", "(0,)", "`jnp.linspace"]),
    "a duration for times": (
        lambda: simulate(5.0),
        ["`ts`", "at least one time", "5.0", "`jnp.linspace"],
    ),
    "times that fall": (
        lambda: simulate([0.0, 1.0, 0.5]),
        ["`ts`", "must increase", "0.5 s after 1 s at index 2", "Sort"],
    ),
    "a time twice": (
        lambda: simulate([0.0, 1.0, 1.0]),
        ["`ts`", "must increase", "1 s after 1 s", "drop repeats"],
    ),
    "a time NaN": (lambda: simulate([0.0, NAN]), ["`ts`", "finite", "nan at index 1", "Drop it"]),
    "a table of times": (
        lambda: simulate(np.zeros((2, 2))),
        ["`ts`", "list", "shape (2, 2)", "`jnp.linspace"],
    ),
    "masked times": (
        lambda: simulate(np.ma.array([0.0, 1.0, 2.0], mask=[False, True, False])),
        ["`ts`", "list of times", "[0.0, --, 2.0]", "`jnp.linspace"],
    ),
    "dates as times": (
        lambda: simulate(np.array(["2020-01-01", "2020-01-02"], "M8[s]")),
        ["`ts`", "list of times", "2020-01-02", "`jnp.linspace"],
    ),
    "times as text": (lambda: simulate("now"), ["`ts`", "list of times", "'now'", "`jnp.linspace"]),
    "a part for a machine": (
        lambda: fx.simulate(any_value(fx.Mass(m=1.0)), [0.0, 1.0]),
        ["`simulate`", "a `Mechanism`", "Mass", "`walk`"],
    ),
    "a tolerance for an engine": (
        lambda: simulate(engine=1e-6),
        ["`engine`", "an `Adaptive`", "1e-06", "`Adaptive(rtol=1e-8)`"],
    ),
    "the name of a solver": (
        lambda: fx.Adaptive(solver=any_value("tsit5")),
        ["`Adaptive.solver`", "diffrax solver", "'tsit5'", "`diffrax.Tsit5()`"],
    ),
    "a solver of other equations": (
        lambda: fx.Adaptive(solver=diffrax.EulerHeun()),
        [
            "`Adaptive.solver`",
            "one ordinary differential equation",
            "EulerHeun",
            "`diffrax.Kvaerno5()`",
        ],
    ),
    "a solver that does not know its error": (
        lambda: fx.Adaptive(solver=diffrax.Euler()),
        ["`Adaptive.solver`", "estimate its error", "Euler", "dt0=1e-3"],
    ),
    "a step for a controller": (
        lambda: fx.Adaptive(stepsize_controller=1e-3),  # pyright: ignore
        [
            "`Adaptive.stepsize_controller`",
            "diffrax controller",
            "0.001",
            "`diffrax.PIDController(...)`",
        ],
    ),
    "constant steps of no size": (
        lambda: fx.Adaptive(stepsize_controller=diffrax.ConstantStepSize()),
        ["`Adaptive.dt0`", "`ConstantStepSize`", "dt0=1e-3"],
    ),
    "a tolerance of 0": (
        lambda: fx.Adaptive(rtol=0.0),
        ["`Adaptive.rtol`", "> 0", "0.0", "Leave it out"],
    ),
    "a tolerance as text": (
        lambda: fx.Adaptive(rtol=any_value("1e-6")),
        ["`Adaptive.rtol`", "a number", "'1e-6'", "Leave it out"],
    ),
    "no events": (
        lambda: fx.Adaptive(max_events=0),
        ["`Adaptive.max_events`", "> 0", "0", "Leave it out"],
    ),
    "half an event": (
        lambda: fx.Adaptive(max_events=any_value(1.5)),
        ["`Adaptive.max_events`", "whole number", "1.5", "Leave it out"],
    ),
    "negative steps": (
        lambda: fx.Adaptive(max_steps=-1),
        ["`Adaptive.max_steps`", "> 0", "-1", "Leave it out"],
    ),
    "a longest step of 0": (
        lambda: fx.Adaptive(dtmax=0.0),
        ["`Adaptive.dtmax`", "> 0", "0.0", "Leave it out"],
    ),
    "energy that was not asked for": (
        lambda: simulate().energy,
        ["energy accounts", "`simulate(..., energy=True)`"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_told_with_object_rule_value_and_remedy(name: str) -> None:
    act, pieces = CASES[name]
    with pytest.raises((ValueError, KeyError)) as error:
        act()
    message = str(error.value)
    assert [piece for piece in pieces if piece not in message] == [], message
    assert "\n" not in message
    assert message.rstrip().endswith((".", "?", "'")) or "failed with" in message
    assert len(message) <= 330


def test_values_under_a_transformation_pass_the_checks() -> None:
    def build(x):
        return fx.Mechanism(
            mass=stopped(m=x, s=0.5 * x), drive=fx.Force("mass", fx.Pulse(width=50 * x))
        )

    slope = jax.jit(jax.grad(lambda x: build(x)["mass"].m ** 2))
    assert float(slope(1.0)) == 2.0


def test_laws_and_signals_are_checked_where_they_are_built_inside_a_compiled_function() -> None:
    @jax.jit
    def built(x: Any) -> Any:
        table = fx.Table([[0.0, 1.0], [1.0, 2.0]])
        return (
            stribeck(exponent=jnp.array(2.0))(x) + table(x) + fx.Sampled([0.0, 1.0], [0.0, 1.0])(x)
        )

    assert float(built(0.5)) > 0


@pytest.mark.parametrize(
    ("call", "function", "meant"),
    [
        (lambda **wrong: fx.information(block(), [0.0, 1.0], {}, **wrong), "information", "free"),
        (lambda **wrong: fx.limit_cycle(block(), 1.0, **wrong), "limit_cycle", "returns"),
        (
            lambda **wrong: fx.kalman_filter(
                any_value(None), any_value(None), start_sd={}, **wrong
            ),
            "kalman_filter",
            "members",
        ),
    ],
)
def test_a_misspelt_option_is_answered_with_the_one_that_was_meant(
    call: Callable[..., Any], function: str, meant: str
) -> None:
    with pytest.raises(
        TypeError, match=rf"`{function}` has no option '{meant}x'\. Did you mean '{meant}'\? It has"
    ):
        call(**{f"{meant}x": 1})


UNITS_OF_ERRORS = {
    "a law": (lambda: fx.Coulomb(-1.0), "got -1."),
    "a law of a bearing": (lambda: fx.BearingFriction("r", tau_pos=fx.Coulomb(-1.0)), "got -1."),
    "a table": (lambda: fx.Table([[-1.0, 2.0], [1.0, 2.0]]), "got -1."),
    "a bristle": (lambda: fx.LuGre(sigma_0=-5.0), "got -5."),
    "a force on what slides or turns": (
        lambda: fx.PeriodicPositionDependentForce("r", period=-2.0),
        "got -2.",
    ),
    "a speed in 1/s": (lambda: fx.PositionController("r", 0.0, kp=-2.0, kv=1.0), "got -2 1/s."),
    "a mass": (lambda: fx.Mass(m=-1.0), "got -1 kg."),
    "a spring": (lambda: fx.Spring("a", "b", c=-1.0), "got -1 N/m."),
}


@pytest.mark.parametrize("what", UNITS_OF_ERRORS)
def test_an_error_has_a_unit_only_if_the_object_cannot_both_slide_and_turn(what: str) -> None:
    build, value = UNITS_OF_ERRORS[what]
    with pytest.raises(ValueError, match=re.escape(value)):
        build()


def test_a_start_beyond_the_bound_of_a_bearing_has_the_unit_of_the_bearing() -> None:
    machine = fx.Mechanism(
        rotor=fx.Inertia(J=1.0, w=5.0), bearing=fx.BearingFriction("rotor", tau_pos=fx.Coulomb(1.0))
    )
    t = np.linspace(0.0, 1.0, 21)
    record = fx.Record(t, outputs={"rotor.w": 5.0 - t}, units={"rotor.w": "rad/s"})
    law = "bearing.tau_pos.F_Coulomb"
    with pytest.raises(ValueError, match=r"`Coulomb.F_Coulomb` must be .*, got 1 N\.m\."):
        fx.fit(machine, record, free=[law], bounds={law: (2.0, 3.0)})
