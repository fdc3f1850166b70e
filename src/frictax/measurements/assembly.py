"""From the columns of a source to the channels of a record: roles, signs, units, and one clock."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from frictax.arguments import is_finite_number
from frictax.text import brief

from .checks import no_dates, no_unit_of_dates, numbers
from .clocks import Channel, Clock, onto_one
from .diagnostics import are_held
from .readers import Column, column_of, columns_of
from .tables import Table
from .units import TIME, named_in, spelled

# of a column's name, and other than SI
_ENDINGS = ("ms", "us", "mm", "cm", "um", "deg", "rpm", "kN", "mA")


def assemble(
    table: Table,
    time: Any,
    inputs: Any,
    outputs: Any,
    *,
    rate: Any = None,
    hold: Any = None,
    drop_missing: Any = False,
) -> dict[str, Any]:
    """The arguments of a record: times, channels in their declared units, these units, standard
    deviations, whether inputs are held, and words for messages.
    """
    clock = _clock_of(time, rate)
    drives, measured = columns_of("inputs", inputs or {}), columns_of("outputs", outputs)
    _each_once(table, clock, drives, measured)
    if not isinstance(drop_missing, bool):
        raise ValueError(
            f"`drop_missing` must be True or False, got {drop_missing!r}. True leaves rows out in"
            " which a number is missing."
        )
    if clock is not None and (clock.sign != 1 or clock.sd is not None or clock.time is not None):
        raise ValueError(
            f"`Column` {clock.name!r} of the time takes neither `sign` nor `sd` nor `time`. Leave"
            " them out."
        )
    for name, column in drives.items():
        if column.sd is not None:
            raise ValueError(
                f"`Column` {column.name!r} of input {name!r} takes no `sd`, got {column.sd!r}:"
                " inputs are taken as exact. Leave it out."
            )
    own = any(column.time is not None for column in (*drives.values(), *measured.values()))
    t = None if clock is None else _values(table, clock, "the time", own or drop_missing)
    channels = list[Channel]()
    for kind, columns in (("inputs", drives), ("outputs", measured)):
        for name, column in columns.items():
            values = _values(table, column, f"{kind[:-1]} {name!r}", own or drop_missing)
            sd = _deviation(table, name, column, own or drop_missing)
            on = None if column.time is None else _own_clock(table, column, name)
            channels.append(Channel(name, kind, values, sd, on))
    declared, labels = dict[str, str](), dict[str, str]()
    if t is None:
        t = _by_rate(rate, channels)
    if clock is not None:
        _declare(declared, "time", clock, table)
    for name, column in (*drives.items(), *measured.items()):
        labels[name] = f" (column {table.name(column.name)!r} of {table.source})"
        _declare(declared, name, column, table)
    size = TIME[spelled(declared["time"])].si if spelled(declared.get("time", "")) in TIME else 1.0
    base = Clock(t, size, "time")
    if hold is None:  # here, because interpolation to other times adds levels
        hold = are_held(c.values[np.isfinite(c.values)] for c in channels if c.kind == "inputs")
    made = onto_one(table, base, channels, hold=bool(hold), drop=drop_missing, own=own)
    every = [*drives.values(), *measured.values()]
    every = [*([] if clock is None else [clock]), *every, *(c.time for c in every if c.time)]
    notes = tuple(note for column in every for note in _contradiction(column, table))
    return {
        "t": made.t,
        "inputs": made.inputs,
        "outputs": made.outputs,
        "sd": made.sd,
        "declared": declared,
        "hold": hold,
        "place": made.place,
        "labels": labels,
        "notes": (*notes, *made.notes),
    }


def _clock_of(time: Any, rate: Any) -> Column | None:
    """The column of the time; None where the samples come at a rate."""
    if (time is None) == (rate is None):
        both = "both" if time is not None else "neither"
        raise ValueError(
            f"A record needs the column of its `time`, or the `rate` of its samples in Hz, got"
            f" {both}. Give one of the two."
        )
    if rate is None:
        return column_of("`time`", time)
    if not is_finite_number(rate) or rate <= 0:
        raise ValueError(
            f"`rate` must be a number of samples in a second > 0, got {brief(rate)}. 1000 is one"
            " each millisecond."
        )
    return None


def _by_rate(rate: Any, channels: list[Channel]) -> np.ndarray:
    """The times of samples that come at a rate."""
    size = next((np.size(c.values) for c in channels if c.clock is None), 0)
    if not size:
        raise ValueError(
            "`rate` is that of the channels without a `time` of their own, got none of these. Name"
            " the time column of the record instead."
        )
    return np.arange(size) / float(rate)


def _each_once(
    table: Table,
    clock: Column | None,
    drives: Mapping[str, Column],
    measured: Mapping[str, Column],
) -> None:
    """No column may stand for two things, but for one force that drives two parts."""
    used = {} if clock is None else {table.name(clock.name): "the time"}
    for kind, columns in (("output", measured), ("input", drives)):
        for name, column in columns.items():
            told = table.name(column.name)
            if told in used:
                raise ValueError(
                    f"Column {told!r} is named for {used[told]} and for {kind}"
                    f" {name!r}. Name the column of each."
                )
            if kind == "output":
                used[told] = f"output {name!r}"


def _values(table: Table, column: Column, role: str, gaps: bool) -> np.ndarray:
    told = table.name(column.name)
    label = f"Column {told!r} of {table.source} for {role}"
    read = table.column(column.name, role, gaps)
    if role.endswith("the time"):
        no_unit_of_dates(label, read, column.unit or named_in(told))
    else:
        no_dates(label, read)
    return column.factor * numbers(label, read)


def _own_clock(table: Table, channel: Column, name: str) -> Clock:
    """The clock of a channel that has its own, its unit that of its own column."""
    column = channel.time
    assert isinstance(column, Column)
    values = _values(table, column, f"{name!r} as the time", True)
    told = table.name(column.name)
    unit = spelled(column.to or column.unit or named_in(told) or "s")
    if unit not in TIME:
        raise ValueError(
            f"Column {told!r} of {table.source}, the clock of {name!r}, must be in a unit of time"
            f" ({', '.join(TIME)}), got {unit!r}. Name one of these."
        )
    return Clock(values, TIME[unit].si, told)


def _deviation(table: Table, name: str, column: Column, gaps: bool) -> Any:
    if isinstance(column.sd, str):
        label = f"Column {column.sd!r} of {table.source}"
        return abs(column.factor) * numbers(label, table.column(column.sd, f"sd of {name!r}", gaps))
    return None if column.sd is None else abs(column.factor) * column.sd


def _declare(declared: dict[str, str], name: str, column: Column, table: Table) -> None:
    """The unit that the column has after its gain: as given, or as its name says in brackets."""
    unit = column.to or column.unit or named_in(table.name(column.name))
    if unit is not None:
        declared[name] = unit


def _in_brackets(name: str) -> str:
    """What stands in square brackets at the end of a column's name."""
    text = name.strip()
    return text[text.rindex("[") + 1 : -1].strip() if text.endswith("]") and "[" in text else ""


def _contradiction(column: Column, table: Table) -> Iterator[str]:
    """A sentence where the column's name says another unit than the user does."""
    name = table.name(column.name)
    said, inside = named_in(name), _in_brackets(name)
    this, untold = f"Column {name!r} of {table.source}", column.unit is None and column.to is None
    if column.gain is not None and untold and said is not None:
        yield (
            f"{this} has a gain, and what it leads to is taken as"
            f" {said}, as its name says. Give the unit after the gain, to={said!r} if that is"
            " right."
        )
    if said is None and inside and untold:
        yield (
            f"{this} says {inside!r}, which is no unit known here, so"
            " that it counts as SI. Give `unit`, or a gain and `to`."
        )
    ending = name.rpartition("_")[2]
    if said is None and untold and ending in _ENDINGS:
        yield (
            f"{this} ends in {ending}, which is not read as a unit: it"
            f" counts as SI. Give unit={ending!r}."
        )
    if said is not None and column.unit is not None and said != spelled(column.unit):
        yield (
            f"{this} says {said} in its name, `unit` says"
            f" {column.unit}, which counts: correct it if the name is right."
        )
