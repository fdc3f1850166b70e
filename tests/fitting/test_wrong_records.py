"""What a user may get wrong in a motion record; each is told in a sentence or two with object,
rule, value and remedy.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import frictax as fx
from wrong_records import FRAME, NAN, Case, F, Q, T, assert_told

pytestmark = pytest.mark.usefixtures("as_a_user_runs_it")


def put(values: np.ndarray, row: int, value: Any) -> np.ndarray:
    changed = np.array(values, dtype=complex if isinstance(value, complex) else float)
    changed[row] = value
    return changed


def arrays(**changes: Any) -> Case:
    return lambda _: fx.Record(
        **{"t": T, "inputs": {"drive": F}, "outputs": {"mass.s": Q}, **changes}
    )


def frame(table: Any = FRAME, **changes: Any) -> Case:
    given: dict[str, Any] = {"time": "t", "inputs": {"drive": "F"}, "outputs": {"mass.s": "q"}}
    return lambda _: fx.Record.from_pandas(table, **given | changes)


COLUMN = fx.Column("q")

# What is done, and the pieces of what must be said.
CASES: dict[str, tuple[Case, list[str]]] = {
    # times
    "no samples": (arrays(t=[]), ["at least 4 samples", "0", "Check the file"]),
    "three samples": (
        arrays(t=T[:3], inputs={}, outputs={"mass.s": Q[:3]}),
        ["at least 4 samples", "3", "longer part"],
    ),
    "a time twice": (
        arrays(t=put(T, 4, T[3])),
        ["time must increase", "0.3 s twice", "row 4", "more digits"],
    ),
    "times that fall": (
        arrays(t=put(T, 4, 0.1)),
        ["time must increase", "0.1 s after 0.3 s", "row 4", "Sort the rows"],
    ),
    "a clock that starts again": (
        arrays(t=np.r_[T[:6], T[:5]]),
        ["must increase", "0 s after 0.5 s", "row 6", "cut where"],
    ),
    "times backward": (
        arrays(t=T[::-1]),
        ["time must increase", "0.9 s after 1 s", "Reverse the rows"],
    ),
    "a time NaN": (
        arrays(t=put(T, 2, NAN)),
        ["time must be finite", "nan", "row 2", "Delete that row"],
    ),
    "a time infinite": (arrays(t=put(T, 10, np.inf)), ["time must be finite", "inf", "row 10"]),
    "times as text": (arrays(t="0 to 1"), ["`Record` time", "numbers", "'0 to 1'", "Convert"]),
    "a rate for times": (arrays(t=1000.0), ["`Record` time", "1000.0", "one value for each time"]),
    "a table for times": (
        arrays(t=np.stack([T, F])),
        ["`Record` time", "shape (2, 11)", ".ravel()"],
    ),
    "a missing date": (
        arrays(t=np.array(["2026-01-01", "NaT", "2026-01-03", "2026-01-04"], "M8[s]")),
        ["finite", "nan", "row 1"],
    ),
    "times in litres": (arrays(units={"time": "l"}), ["`Record` time", "'l'", "s, ms, us"]),
    "times in metres": (
        arrays(units={"time": "m"}),
        ["`Record` time", "time (s", "'m'", "position"],
    ),
    "dates with a unit": (
        arrays(t=np.arange(11).astype("M8[ms]"), units={"time": "ms"}),
        ["time holds dates", "no unit", "'ms'", "Leave it out"],
    ),
    "a table's dates with a unit": (
        frame(FRAME.assign(t=pd.to_datetime(T, unit="s")), time=fx.Column("t", unit="ms")),
        ["Column 't' of the DataFrame", "dates", "no unit", "'ms'", "Leave it out"],
    ),
    "dates for an output": (
        frame(FRAME.assign(q=pd.to_datetime(Q, unit="s"))),
        ["Column 'q'", "'mass.s'", "got dates", "Name the column"],
    ),
    "durations for an output": (
        arrays(outputs={"mass.s": T.astype("m8[s]")}),
        ["'mass.s'", "got dates or durations", "Name the column"],
    ),
    # arrays
    "masked samples": (
        arrays(outputs={"mass.s": np.ma.masked_array(Q, mask=Q > 0.5)}),
        ["'mass.s'", "masked samples", "were not measured", "Delete such rows"],
    ),
    "a masked sd": (
        arrays(sd={"mass.s": np.ma.masked_array(T + 1, mask=T > 0.5)}),
        ["sd of 'mass.s'", "masked", "Give one number"],
    ),
    "a force of no machine": (
        arrays(inputs={"drive": put(F, 3, 1e200)}),
        ["input 'drive'", "1e+200 in row 3", "0.3 s", "Check the unit"],
    ),
    "a list for inputs": (
        arrays(inputs=[F]),
        ["inputs must be a dict", "array", 'inputs={"drive": F}'],
    ),
    "an array for outputs": (
        arrays(outputs=Q),
        ["outputs must be a dict", "array", 'outputs={"mass.s": q}'],
    ),
    "no outputs": (
        arrays(outputs={}),
        ["at least one measured variable", "none", 'outputs={"mass.s": ...}'],
    ),
    "a number for a name": (
        arrays(inputs={1: F}),
        ["inputs must be named by texts", "got 1", '{"drive": F}'],
    ),
    "an empty name": (
        arrays(inputs={"": F}),
        ["inputs must be named by texts", "''", '{"drive": F}'],
    ),
    "an output without a part": (
        arrays(outputs={".s": Q}),
        ["output '.s'", "a part and its variable", "mass.s"],
    ),
    "an output in other words": (
        arrays(outputs={"mass.position": Q}),
        ["'mass.position'", "'position'", "Did you mean 'mass.s'?"],
    ),
    "an output that nobody knows": (
        arrays(outputs={"mass.temperature": Q}),
        ["'mass.temperature'", "end in a variable", "A position is s"],
    ),
    "an output nearly right": (
        arrays(outputs={"arm.fi": Q}),
        ["'arm.fi'", "must end in a variable", "Did you mean 'arm.phi'?"],
    ),
    "one name for both": (
        arrays(inputs={"mass.s": F}),
        ["'mass.s'", "an input or an output", "by the part that it drives"],
    ),
    "lengths": (
        arrays(outputs={"mass.s": Q[:-1]}),
        ["output 'mass.s'", "time (11)", "got 10", "Drop the rows"],
    ),
    "a constant for a channel": (
        arrays(inputs={"drive": [5.0]}),
        ["input 'drive'", "time (11)", "got 1", "`gain`"],
    ),
    "a number for a channel": (
        arrays(inputs={"drive": 5.0}),
        ["input 'drive'", "got 5.0", "one value for each time"],
    ),
    "a ragged list": (
        arrays(inputs={"drive": [[1.0], [1.0, 2.0]]}),
        ["input 'drive'", "[[1.0], [1.0, 2.0]]", "Convert"],
    ),
    "words in a channel": (
        arrays(inputs={"drive": ["up"] * 11}),
        ["input 'drive'", "numbers", "'up'", "Convert"],
    ),
    "None for a channel": (
        arrays(inputs={"drive": None}),
        ["input 'drive'", "got None", "one value for each time"],
    ),
    "complex numbers": (
        arrays(inputs={"drive": put(F, 0, 1j)}),
        ["input 'drive'", "complex", "1j", "real part"],
    ),
    "a hole": (
        arrays(outputs={"mass.s": put(Q, 5, NAN)}),
        ["output 'mass.s'", "nan", "row 5", "0.5 s", "Delete"],
    ),
    "two holes": (
        arrays(inputs={"drive": put(put(F, 1, NAN), 7, NAN)}),
        ["input 'drive'", "row 1", "2 samples are missing"],
    ),
    "an infinite force": (
        arrays(inputs={"drive": put(F, 3, -np.inf)}),
        ["input 'drive'", "-inf", "row 3", "0.3 s", "Delete"],
    ),
    "an output that stands still": (
        arrays(outputs={"mass.s": 0 * T + 3}, units={"mass.s": "mm"}),
        ["output 'mass.s'", "must change", "3 mm in all 11 samples", "leave it out"],
    ),
    "input and output alike": (
        arrays(outputs={"mass.s": F}),
        ["'drive'", "'mass.s'", "the same numbers", "which column is which"],
    ),
    "hold as text": (
        arrays(hold="linear"),
        ["hold must be True or False", "'linear'", "hold=True"],
    ),
    "a number for the record's name": (arrays(name=7), ["name must be a text", "7", "name='emps'"]),
    # units
    "a unit nobody knows": (
        arrays(units={"mass.s": "furlong"}),
        ["'mass.s'", "'furlong'", "m, mm", "gain=<m per furlong>"],
    ),
    "a unit nearly right": (
        arrays(units={"mass.s": "milim"}),
        ["'mass.s'", "'milim'", "Did you mean"],
    ),
    "a unit of another kind": (
        arrays(units={"mass.s": "N"}),
        ["'mass.s'", "position or angle", "'N'", "a unit of force", "Correct the unit"],
    ),
    "an angle in metres": (
        arrays(outputs={"arm.phi": Q}, units={"arm.phi": "mm"}),
        ["'arm.phi'", "angle (rad", "'mm'", "a unit of position", "Correct"],
    ),
    "a drive in watts": (
        arrays(units={"drive": "W"}),
        ["input 'drive'", "'W'", "a unit of power", "Correct the unit"],
    ),
    "a drive in milliamperes": (
        frame(inputs={"drive": fx.Column("F", unit="mA")}),
        ["input 'drive'", "'mA'", "gain=<N per mA>"],
    ),
    "a drive in volts": (
        frame(inputs={"drive": fx.Column("F", unit="V")}),
        ["input 'drive'", "'V'", "gain=<N per V>", 'to="N"'],
    ),
    "volts in the column's name": (
        frame(FRAME.rename(columns={"F": "u [V]"}), inputs={"drive": "u [V]"}),
        ["input 'drive'", "'V'", "gain=<N per V>"],
    ),
    "a part that turns and moves": (
        arrays(outputs={"arm.s": Q, "arm.w": F}, units={"arm.s": "mm"}, inputs={}),
        ["'arm'", "'arm.s' in 'mm'", "'arm.w' in 'rad/s'", "Correct one"],
    ),
    "a unit for no channel": (
        arrays(units={"mass.v": "m/s"}),
        ["units must belong", "'mass.v'", "Did you mean 'mass.s'?"],
    ),
    "units as text": (
        arrays(units="SI"),
        ["units must be a dict", "'SI'", 'units={"mass.s": "mm"}'],
    ),
    # standard deviations
    "one sd for all": (arrays(sd=1e-5), ["sd must be a dict", "1e-05", 'sd={"mass.s": 1e-5}']),
    "an sd of an input": (arrays(sd={"drive": 0.1}), ["sd must belong", "'drive'", "mass.s"]),
    "an sd of 0": (arrays(sd={"mass.s": 0.0}), ["sd of 'mass.s'", "> 0", "got 0", "Leave it out"]),
    "a negative sd": (
        arrays(sd={"mass.s": put(0 * T + 1, 2, -1.0)}),
        ["sd of 'mass.s'", "> 0", "-1 in row 2", "Leave it out"],
    ),
    "an sd NaN": (arrays(sd={"mass.s": NAN}), ["sd of 'mass.s'", "finite", "nan", "Leave it out"]),
    "an sd as text": (
        arrays(sd={"mass.s": "small"}),
        ["sd of 'mass.s'", "'small'", "Leave it out"],
    ),
    "too few sds": (
        arrays(sd={"mass.s": [1.0, 2.0]}),
        ["sd of 'mass.s'", "11 samples", "shape (2,)", "Give one number"],
    ),
    # columns
    "a column without a name": (
        lambda _: fx.Column(""),
        ["`Column.name`", "''", "as the file does"],
    ),
    "a gain of 0": (
        lambda _: fx.Column("q", gain=0.0),
        ["`Column` 'q'", "`gain`", "0.0", "Leave it out"],
    ),
    "a gain NaN": (
        lambda _: fx.Column("q", gain=NAN),
        ["`Column` 'q'", "finite", "nan", "Leave it out"],
    ),
    "a negative gain": (
        lambda _: fx.Column("q", gain=-2.0),
        ["`Column` 'q'", "> 0", "-2.0", "sign=-1"],
    ),
    "a gain as text": (
        lambda _: fx.Column("q", gain="35 N/V"),  # pyright: ignore
        ["`Column` 'q'", "`gain`", "'35 N/V'", "Leave it out"],
    ),
    "a sign as a factor": (
        lambda _: fx.Column("q", sign=-2),
        ["`Column` 'q'", "1 or -1", "-2", "`gain`"],
    ),
    "a factor for a unit": (
        lambda _: fx.Column("q", unit=0.001),  # pyright: ignore
        ["`Column` 'q'", "`unit`", "0.001", "`gain`"],
    ),
    "a target without a gain": (
        lambda _: fx.Column("q", unit="V", to="N"),
        ["`Column` 'q'", "'N'", "`gain`", "None", "leave `to` out"],
    ),
    "a column's sd of 0": (
        lambda _: fx.Column("q", sd=0.0),
        ["`Column` 'q'", "`sd`", "0.0", "Leave it out"],
    ),
    "an sd of an input's column": (
        frame(inputs={"drive": fx.Column("F", sd=0.1)}),
        ["'F'", "'drive'", "0.1", "exact", "Leave it out"],
    ),
    "a sign of the time": (frame(time=fx.Column("t", sign=-1)), ["'t'", "time", "`sign`", "Leave"]),
    "a number for a column": (
        frame(outputs={"mass.s": 2.5}),
        ["`outputs['mass.s']`", "a `Column`", "got 2.5", "`Record(t, ...)`"],
    ),
    "an array for a column": (
        frame(outputs={"mass.s": Q}),
        ["`outputs['mass.s']`", "a `Column`", "`Record(t, ...)`"],
    ),
    "a list of columns": (frame(outputs=["q"]), ["`outputs`", "['q']", 'outputs={"mass.s": "q"}']),
    "a column for input and output": (
        frame(inputs={"drive": "q"}),
        ["'q'", "output 'mass.s'", "input 'drive'", "Name the column of each"],
    ),
    "a column for two outputs": (
        frame(outputs={"mass.s": "q", "mass.v": "q"}),
        ["'q'", "'mass.s'", "'mass.v'", "of each"],
    ),
    "the time for an output": (
        frame(outputs={"mass.s": "t"}),
        ["'t'", "the time", "'mass.s'", "of each"],
    ),
    # tables
    "a column that is not there": (
        frame(outputs={"mass.s": "Q1"}),
        ["DataFrame has no column 'Q1'", "'mass.s'", "Did you mean 'q'", "t, F, q"],
    ),
    "a column and a part exchanged": (
        frame(inputs={"F": "drive"}),
        ["no column 'drive', but 'F'", "{'drive': 'F'}", "the part first"],
    ),
    "a time that is not there": (
        frame(time="zeit"),
        ["no column 'zeit'", "the time", "It has: t, F, q"],
    ),
    "an sd's column that is not there": (
        frame(outputs={"mass.s": fx.Column("q", sd="std")}),
        ["'std'", "sd of 'mass.s'", "It has: t"],
    ),
    "a column of words": (
        frame(outputs={"mass.s": "name"}),
        ["Column 'name'", "'mass.s'", "numbers", "'a'", "Convert"],
    ),
    "a table with a hole": (
        frame(FRAME.assign(q=put(Q, 4, NAN))),
        ["(column 'q' of the DataFrame)", "row 4", "0.4 s", "Delete"],
    ),
    "a column twice": (
        frame(pd.concat([FRAME, FRAME[["q"]]], axis=1)),
        ["two columns called 'q'", "Rename one"],
    ),
    "no table": (
        frame({"t": T, "F": F, "q": Q}),
        ["`Record.from_pandas`", "a dict", "`Record(t, ...)`"],
    ),
    "dates as text": (
        frame(FRAME.assign(t=["2026-01-01 00:00:00"] * 11)),
        ["Column 't'", "the same time in all rows", "rate=..."],
    ),
    "dates in a column of milliseconds": (
        frame(
            FRAME.assign(t=pd.to_datetime(T, unit="s")).rename(columns={"t": "t [ms]"}),
            time="t [ms]",
        ),
        ["dates", "no unit", "'ms'", "Leave it out"],
    ),
    "an sd of True": (arrays(sd={"mass.s": True}), ["sd of 'mass.s'", "got True", "Leave it out"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_told_with_object_rule_value_and_remedy(name: str, tmp_path: Path) -> None:
    assert_told(CASES[name], tmp_path)


cells = st.lists(st.one_of(st.floats(), st.integers(-3, 3).map(float)), max_size=12)


@given(cells, cells, cells)
def test_any_numbers_are_taken_or_refused_in_a_sentence(
    t: list[float], f: list[float], q: list[float]
) -> None:
    message = "."
    try:
        found = fx.Record(t, {"drive": f}, {"mass.s": q})
        assert found.n >= 4
    except ValueError as error:
        message = str(error)
    assert message.endswith((".", "?"))
    assert "\n" not in message
