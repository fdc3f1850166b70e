"""Build the channels of a record from the columns of a table: apply units, signs and clocks."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypedDict, TypeGuard

import numpy as np

from frictax.arguments import is_finite_number
from frictax.text import brief

from .checks import check_no_dates, check_unit_of_dates, numbers
from .clocks import Channel, Clock, epoch_unit, mean_rate, resample_channels
from .diagnostics import are_held
from .readers import Column, column_of, columns_of
from .reading.tables import Table
from .reading.wraps import find_seams, find_wrap, unwrap_column
from .units import (
    TIME,
    VARIABLES,
    VELOCITY_OF,
    channel_unit,
    known_unit,
    named_in,
    normalize_unit,
    split_channel,
    unread_unit,
)


class ColumnOptions(TypedDict, total=False):
    """Options that name and describe the columns of a table; see `Record.from_csv`."""

    time: str | int | Column | None
    rate: float | int | None
    inputs: Mapping[str, str | int | Column] | None
    hold: bool | None
    drop_missing: bool
    where: Mapping[str, str | float] | None
    part: int | None


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """The options of `ColumnOptions` with their defaults."""

    time: Any = None
    rate: Any = None
    inputs: Any = None
    hold: Any = None
    drop_missing: Any = False
    where: Any = None
    part: Any = None


def assemble(table: Table, outputs: Any, given: Columns) -> dict[str, Any]:
    """Return a dict with all arguments of `RecordArguments` except `name` and `citation`."""
    clock, drives, measured = _named_columns(table, outputs, given)
    every = [*drives.values(), *measured.values()]
    own = any(column.time is not None for column in every)
    gaps = own or given.drop_missing
    found = list[str]()
    table, t, unit, since = _read_clock(table, clock, given, gaps, found)
    declared = {} if unit is None else {"time": unit}
    channels = [
        _read_channel(table, kind, name, column, gaps, found)
        for kind, columns in (("inputs", drives), ("outputs", measured))
        for name, column in columns.items()
    ]
    if t is None:
        n = next((np.size(c.values) for c in channels if c.clock is None), 0)
        if not n:
            raise ValueError(
                "`rate` is that of the channels without a `time` of their own, got none of these."
                " Name the time column of the record instead."
            )
        rows, more = table.row_numbers(n)
        t = rows / float(given.rate)
        found += more
    base = Clock(t, TIME.get(normalize_unit(unit or "s"), TIME["s"]).si, "time", since)
    labels, kinds = dict[str, str](), list[tuple[Column, Sequence[str] | None]]()
    clocks: list[tuple[Any, Clock | None]] = [(clock, base)]
    for column, channel in zip(every, channels, strict=True):
        name = channel.name
        labels[name] = f" (column {table.name(column.name)!r} of {table.source})"
        if (unit := _unit_of(column, table)) is not None:
            declared[name] = unit
        measures = VARIABLES.get(split_channel(name)[1], ())
        kinds.append((column, ("N", "N.m") if channel.kind == "inputs" else measures))
        clocks.append((column.time, channel.clock))
    hold = given.hold
    # Test recorded samples for held inputs, because interpolation to other times adds values.
    if hold is None:
        hold = are_held(c.values[np.isfinite(c.values)] for c in channels if c.kind == "inputs")
    drop = given.drop_missing
    made = resample_channels(table, base, channels, hold=bool(hold), drop=drop, own=own)
    # The size of times since 1970, and the form of dates, show their unit.
    kinds = [(e, ("s",) if c.since[0] == "0" else None) for e, c in clocks if e and c] + kinds
    notes = [note for column, kind in kinds for note in _contradiction(column, table, kind)]
    return {
        "t": made.t,
        "inputs": made.inputs,
        "outputs": made.outputs,
        "sd": made.sd,
        "declared": declared,
        "hold": hold,
        "place": made.place,
        "labels": labels,
        "notes": tuple(dict.fromkeys((*table.doubts(), *notes, *found, *made.notes))),
    }


def _named_columns(
    table: Table, outputs: Any, given: Columns
) -> tuple[Column | None, dict[str, Column], dict[str, Column]]:
    """Return the checked columns of time (None if `rate` is given), inputs and outputs."""
    if (given.time is None) == (given.rate is None):
        both = "both" if given.time is not None else "neither"
        raise ValueError(
            f"A record needs the column of its `time`, or the `rate` of its samples in Hz, got"
            f" {both}. Give one of the two."
        )
    if given.time is None and (not is_finite_number(given.rate) or given.rate <= 0):
        raise ValueError(
            f"`rate` must be a number of samples in a second > 0, got {brief(given.rate)}. 1000 is"
            " one each millisecond."
        )
    clock = None if given.time is None else column_of("`time`", given.time)
    drives, measured = columns_of("inputs", given.inputs or {}), columns_of("outputs", outputs)
    # Several inputs may share one column. The time and each output need a column of their own.
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
    if not isinstance(given.drop_missing, bool):
        raise ValueError(
            f"`drop_missing` must be True or False, got {given.drop_missing!r}. True leaves rows"
            " out in which a number is missing."
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
    return clock, drives, measured


def _read_clock(
    table: Table, clock: Column | None, given: Columns, gaps: bool, found: list[str]
) -> tuple[Table, np.ndarray | None, str | None, tuple[str, Fraction]]:
    """Return the table rows that `where` and `part` select, their times (or None), their time unit
    and what the times count from (see `Clock`).
    """
    few = 0.01  # largest fraction of rows in which a valid clock repeats a time or starts again
    if given.where:
        table = table.where(given.where)
    if clock is None:
        if given.part is not None:
            raise ValueError(
                "`part` is one between which the clock starts again, and a record by `rate` has no"
                " clock. Name the column of its `time`."
            )
        return table, None, None, ("0", Fraction(0))
    if given.part is not None:
        whole = isinstance(given.part, int | np.integer) and not isinstance(given.part, bool)
        t = _times(table, clock, "the time", True, [])[0]
        ends = np.concatenate([[0], _starts_of(t), [t.size]])
        if not whole or not 1 <= given.part < ends.size:
            raise ValueError(
                f"`part` must be a number from 1 to {ends.size - 1}, got {given.part!r}. The clock"
                f" of {table.source} starts again {ends.size - 2} times."
            )
        table = table.rows(np.arange(ends[given.part - 1], ends[given.part]), t.size)
    t, unit, since = _times(table, clock, "the time", gaps, found)
    again = np.flatnonzero(np.diff(t) == 0) + 1
    if given.drop_missing and 0 < again.size <= few * t.size:
        found.append(
            f"{again.size} rows of {table.source} repeat the previous time, the first"
            f" {table.place(int(again[0]))}. They are left out."
        )
        kept = np.delete(np.arange(t.size), again)
        table, t = table.rows(kept, t.size), t[kept]
    starts = _starts_of(t)
    if 0 < starts.size <= few * t.size:
        by = _column_of_parts(table, starts, t.size)
        remedy = f"where={{{by[0]!r}: {by[1]}}}, or " if by else ""
        raise ValueError(
            f"The clock {table.name(clock.name)!r} of {table.source} starts again in"
            f" {table.place(int(starts[0]))}, so the file holds {starts.size + 1} parts. Give"
            f" {remedy}part=1 to read the first of them."
        )
    step = np.diff(t)
    if np.sum(step == 0) > max(2, few * t.size) and not np.any(step < 0):
        if t[-1] == t[0]:
            raise ValueError(
                f"Column {table.name(clock.name)!r} of {table.source} has the same time in all"
                " rows. Check how it was exported, or give rate=... in Hz in place of `time`."
            )
        rate = mean_rate(t) / TIME.get(normalize_unit(unit or "s"), TIME["s"]).si
        raise ValueError(
            f"Column {table.name(clock.name)!r} of {table.source} repeats the time of the"
            f" row before {np.sum(step == 0)} times: it has too few digits for its samples. Give"
            f" rate={rate:.15g}, their mean rate in Hz, in place of `time` if they are evenly"
            " spaced."
        )
    return table, t, unit, since


def _column_of_parts(table: Table, starts: np.ndarray, n: int) -> tuple[str, Any] | None:
    """Return a column that differs between the parts of the file, and its first value; or None."""
    for j, name in enumerate(table.header):
        cells = table.read(j)
        if cells.ndim != 1 or cells.size < (n if table.chosen is None else table.chosen[-1] + 1):
            continue
        cells = cells if table.chosen is None else cells[table.chosen]
        firsts = [str(cells[i]) for i in (0, *starts)]
        ends = [str(cells[i]) for i in (*(starts - 1), n - 1)]
        if firsts == ends and len(set(firsts)) == len(firsts) and table.header.count(name) == 1:
            first = cells[0].item() if hasattr(cells[0], "item") else cells[0]
            return name, repr(first)
    return None


def _read_channel(
    table: Table, kind: str, name: str, column: Column, gaps: bool, found: list[str]
) -> Channel:
    """Return a channel, unwrapped if its `Column` has `unwrap`. Add notes on jumps to `found`."""
    role = f"{kind[:-1]} {name!r}"
    values = _numbers_of(table, column, role, table.column(column.name, role, gaps))
    position = split_channel(name)[1] in (*VELOCITY_OF, "s_rel", "phi_rel")
    if column.unwrap is not False and (column.unwrap is not None or position):
        raw, told = values / column.factor, table.name(column.name)
        wrap = find_wrap(raw, None if column.per_turn is None else float(column.per_turn))
        if column.unwrap is None and wrap is not None:
            raise ValueError(
                f"Column {told!r} of {table.source} wraps at {wrap.range:.6g}, as an encoder does:"
                f" it jumps {wrap.samples.size} times, the first time in"
                f" {table.place(int(wrap.samples[0]))}. Give unwrap=True in its `Column`, or"
                " unwrap=False to keep the jumps."
            )
        size = float(column.unwrap) if _is_range(column.unwrap) else wrap and wrap.range
        if size:
            smooth = unwrap_column(raw, size)
            for at in find_seams(smooth, size)[:3]:
                found.append(
                    f"Column {told!r} of {table.source} jumps by {smooth[at] - smooth[at - 1]:.6g}"
                    f" in {table.place(int(at))} when unwrapped at {size:.6g}, which does not fit"
                    " the speeds around it. Trim the record there."
                )
            values = column.factor * smooth
        else:
            found += _unexplained_jumps(raw, column, table)
    sd = _deviations(table, name, column, gaps, found)
    if column.time is None:
        return Channel(name, kind, values, sd, None)
    assert isinstance(column.time, Column)
    times, unit, since = _times(table, column.time, f"{name!r} as the time", True, found)
    told, unit = table.name(column.time.name), normalize_unit(unit or "s")
    if unit not in TIME:
        raise ValueError(
            f"Column {told!r} of {table.source}, the clock of {name!r}, must be in a unit of time"
            f" ({', '.join(TIME)}), got {unit!r}. Name one of these."
        )
    return Channel(name, kind, values, sd, Clock(times, TIME[unit].si, told, since))


def _unexplained_jumps(raw: np.ndarray, column: Column, table: Table) -> Iterator[str]:
    """Yield a sentence on jumps of more than half of the range of a column without a known wrap."""
    at = np.flatnonzero(np.isfinite(raw))
    step = np.diff(raw[at])
    jumps = np.flatnonzero(np.abs(step) > 0.5 * np.ptp(raw[at])) if step.size else step
    if not jumps.size:
        return
    row = int(at[np.argmax(np.abs(step)) + 1])
    this = (
        f"Column {table.name(column.name)!r} of {table.source} jumps by"
        f" {np.max(np.abs(step)):.6g} in {table.place(row)}"
    )
    # A single sample far from its neighbours and a change between few levels are not wraps.
    single = (np.diff(jumps) == 1) & (step[jumps[1:]] * step[jumps[:-1]] < 0)
    if column.unwrap:
        yield (
            f"{this}, and no counter range explains this. Give the range as unwrap=4096, or trim"
            " the record there."
        )
    elif jumps.size - 2 * np.sum(single) > 1 and np.unique(raw[at]).size > 3:
        yield (
            f"{this}, and {jumps.size} times by more than half of its range. If it wraps there,"
            " give the range in its `Column`, such as unwrap=360. Otherwise give unwrap=False."
        )


def _deviations(table: Table, name: str, column: Column, gaps: bool, found: list[str]) -> Any:
    """Return the standard deviation of a channel in the unit of its values after the gain. Convert
    the unit in the name or the cells of its column. Add a note on a unit that is not read.
    """
    sd, factor = column.sd, abs(column.factor)
    if not isinstance(sd, str):
        return None if sd is None else factor * sd
    this = f"Column {sd!r} of {table.source}"
    values = numbers(this, table.column(sd, f"sd of {name!r}", gaps))
    told = column.unit or table.unit(column.name) or named_in(table.name(column.name))
    said, kinds = (
        table.unit(sd) or named_in(sd),
        VARIABLES.get(split_channel(name)[1], ()),
    )
    if said is None:
        unread = unread_unit(sd, kinds)
        if unread is not None and unread[1] not in (None, normalize_unit(told or "")):
            found.append(
                f"{this} has {unread[0]!r} in its name, which is not read as a unit, so it is read"
                f" in the unit of column {table.name(column.name)!r}. Write the unit in brackets."
            )
    if said is None or said == normalize_unit(told or ""):
        return factor * values
    if told is None and column.gain is None:
        return channel_unit(f"{this}, the sd of {name!r},", said, kinds).si * values
    for unit, size in ((told, factor), (column.to, 1.0)):
        known, own = known_unit(unit), known_unit(said)
        if known is not None and own is not None and known.si_name == own.si_name:
            return size * own.si / known.si * values
    raise ValueError(
        f"{this}, the sd of {name!r}, must be in the unit of column"
        f" {table.name(column.name)!r} ({told or 'without a unit'}), got {said!r}. Convert it, or"
        " give `sd` as a number."
    )


def _numbers_of(table: Table, column: Column, role: str, read: np.ndarray) -> np.ndarray:
    """Return the cells `read` of a column as numbers, multiplied by the column's sign and gain."""
    told = table.name(column.name)
    label = f"Column {told!r} of {table.source} for {role}"
    if role.endswith("the time"):
        check_unit_of_dates(label, read, column.unit or named_in(told))
    else:
        check_no_dates(label, read)
    return column.factor * numbers(label, read)


def _times(
    table: Table, clock: Column, role: str, gaps: bool, found: list[str]
) -> tuple[np.ndarray, str | None, tuple[str, Fraction]]:
    """Return the times of a clock, their unit, and what they count from (see `Clock`). Remove
    wraps, and add the nanoseconds of another column. Convert times since 1970 to times since the
    first row, to keep all digits.
    """
    name = table.name(clock.name)
    read = table.column(clock.name, role, gaps)
    unit = _unit_of(clock, table)
    start, zero = "0", Fraction(0)
    finite = read[np.isfinite(read)] if read.dtype.kind == "f" else np.zeros(0)
    if finite.size > 1 and clock.nanoseconds is None:
        step = float(np.median(np.abs(np.diff(finite.astype(float)))))
        if (digit := float(np.spacing(np.max(np.abs(finite))))) > 1e-2 * step:
            found.append(
                f"Column {name!r} of {table.source} is given in {read.dtype}, whose steps there are"
                f" {digit:.2g}, for samples {step:.3g} apart. Give it as whole numbers, or as the"
                " time since its start."
            )
    if read.dtype.kind in "iuf" and (epoch := epoch_unit(read)) is not None:
        if unit is None and epoch != "s":
            unit = epoch
            found.append(
                f"Column {name!r} of {table.source} is read as the time since 1970 in {epoch}, by"
                " the size of its numbers."
            )
        start = "1970" if epoch_unit(clock.factor * read) == normalize_unit(unit or "s") else "0"
        if epoch != "s" or clock.nanoseconds is not None:
            read = read.astype(np.int64) if read.dtype.kind == "u" else read
            first = read[np.isfinite(read)][0]
            zero, read = Fraction(first.item()) * Fraction(clock.factor), read - first
    values = _numbers_of(table, clock, role, read)
    there = values[np.isfinite(values)]
    zero *= Fraction(str(TIME.get(normalize_unit(unit or "s"), TIME["s"]).si))
    if clock.nanoseconds is not None:
        if np.any(np.floor(there) != there) or clock.gain is not None:
            raise ValueError(
                f"Column {name!r} of {table.source} has `nanoseconds` and must hold whole seconds"
                " without a gain. Leave `nanoseconds` out if it holds the whole time."
            )
        more = table.column(clock.nanoseconds, f"the nanoseconds of {name!r}", gaps)
        values = values + 1e-9 * numbers(f"Column {clock.nanoseconds!r} of {table.source}", more)
        first = next(iter(values[np.isfinite(values)]), 0.0)
        values, zero = values - first, zero + Fraction(float(first))
    values = _unwrap_clock(values, clock, f"Column {name!r} of {table.source} for {role}", table)
    return values, unit, table.since(clock.name) or (start, zero)


def _unwrap_clock(values: np.ndarray, clock: Column, this: str, table: Table) -> np.ndarray:
    """Remove wraps from the times of a clock, or raise `ValueError` if `unwrap` is not given."""
    if clock.unwrap is False or not _starts_of(values).size:
        return values
    raw = values / clock.factor
    wrap = None if _is_range(clock.unwrap) else find_wrap(raw, rising=True)
    if wrap is not None and clock.unwrap is None:
        raise ValueError(
            f"{this} wraps at {wrap.range:.15g}: it starts again in"
            f" {table.place(int(wrap.samples[0]))}. Give unwrap=True in its `Column`."
        )
    size = clock.unwrap if wrap is None else wrap.range
    if not _is_range(size):
        return values
    return clock.factor * unwrap_column(raw, float(size), rising=True)


def _is_range(unwrap: Any) -> TypeGuard[float]:
    return unwrap is not None and not isinstance(unwrap, bool)


def _starts_of(t: np.ndarray) -> np.ndarray:
    """Return the rows at which the clock starts again: their time is less than the time before."""
    if np.all(np.diff(t) >= 0):
        return np.zeros(0, int)
    there = np.flatnonzero(np.isfinite(t))
    return there[np.flatnonzero(np.diff(t[there]) < 0) + 1]


def _unit_of(column: Column, table: Table) -> str | None:
    """Return the unit of a column after its gain (given, or found in cells or name), or None."""
    return column.to or column.unit or table.unit(column.name) or named_in(table.name(column.name))


def _contradiction(column: Column, table: Table, kinds: Sequence[str] | None) -> Iterator[str]:
    """Yield a sentence for each doubt about a column's unit, such as another unit in its name.
    `kinds`: possible SI units of the column; None if its values show their unit.
    """
    name = table.name(column.name)
    cells, unit = table.unit(column.name), column.unit and normalize_unit(column.unit)
    if cells is not None and unit not in (None, cells):
        yield (
            f"Column {name!r} of {table.source} has the unit {cells} in its cells, but `unit` is"
            f" {column.unit}. {column.unit} is used. Correct `unit` if the cells are right."
        )
    said = named_in(name)
    numbers_in = unit or normalize_unit(said or "counts")
    if column.per_turn is not None and known_unit(numbers_in) is not None:
        yield (
            f"Column {name!r} of {table.source} is in {numbers_in}, but `per_turn` reads its"
            " numbers as counts of an encoder. Leave one of the two out."
        )
    this, untold = f"Column {name!r} of {table.source}", column.unit is None and column.to is None
    if column.gain is not None and untold and said is not None:
        yield (
            f"{this} has a gain. The result is read in {said}, which is the unit in its name. Give"
            f" the unit after the gain: to={said!r} if this is right."
        )
    unread = unread_unit(name, kinds) if untold and cells is None and kinds is not None else None
    if unread is not None:
        text, read = unread
        what, remedy = ("read as a unit", f"unit={read!r}") if read else ("a known unit", "`unit`")
        yield (
            f"{this} has {text!r} in its name, which is not {what}, so it is read in SI units. Give"
            f" {remedy}{'' if read else ', or a gain and `to`'}."
        )
    if said is not None and unit not in (None, said):
        yield (
            f"{this} has {said} in its name, but `unit` is {column.unit}. {column.unit} is used."
            " Correct `unit` if the name is right."
        )
