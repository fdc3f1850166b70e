"""Checks of the arguments of a `Record`. Each error names the rule, the value and a remedy."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from frictax.text import brief, nearest, suggestion

from . import units
from .diagnostics import are_held

# Smallest number of samples of a record. Three samples determine position, velocity and
# acceleration, and a fourth sample can contradict them.
FEWEST = 4

Place = Callable[[int], str]


def row(i: int) -> str:
    return f"row {i} (counted from 0)"


@dataclasses.dataclass(frozen=True, eq=False)
class RecordArguments:
    """The arguments of a `Record`, not yet checked.

    - `declared`: channel or ``"time"`` -> its unit as the user gave it.
    - `place`: function from the index of a row to its name in error messages; `labels`: channel ->
      its source in error messages; `notes`: doubts about the columns that were read.
    """

    t: Any
    inputs: Any
    outputs: Any
    sd: Any
    declared: Any
    hold: Any
    name: Any
    citation: Any
    place: Place = row
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()


def record_fields(given: RecordArguments) -> dict[str, Any]:
    """Return a dict: name of a field of `Record` -> its checked value in SI."""
    inputs, outputs = _channels("inputs", given.inputs), _channels("outputs", given.outputs)
    sd, declared = _channels("sd", given.sd), _channels("units", given.declared)
    for what, text, example in (
        ("name", given.name, "emps"),
        ("citation", given.citation, "Janot 2019"),
    ):
        if not isinstance(text, str):
            raise ValueError(
                f"`Record` {what} must be a text, got {brief(text)}. Write {what}={example!r}."
            )
    if not (given.hold is None or isinstance(given.hold, bool | np.bool_)):
        raise ValueError(
            f"`Record` hold must be True or False, got {brief(given.hold)}. Inputs of a digital"
            " controller are held: hold=True."
        )
    if not outputs:
        raise ValueError(
            "`Record` outputs must name at least one measured variable, got none. Write"
            ' outputs={"mass.s": ...}.'
        )
    both = [*filter(outputs.__contains__, inputs)]
    if both:
        raise ValueError(
            f"`Record` {both[0]!r} must be an input or an output, got it as both. Name an input by"
            " the part that it drives."
        )
    check_names("sd", sd, list(outputs))
    check_names("units", declared, ["time", *inputs, *outputs])
    unit_of = _channel_units(inputs, outputs, declared)
    clock = units.channel_unit("`Record` time", declared.get("time", "s"), ("s",))
    check_unit_of_dates("`Record` time", given.t, declared.get("time"))
    t = numbers("`Record` time", given.t) * clock.si
    notes, kind = given.notes, getattr(given.t, "dtype", None)
    kind = getattr(kind, "numpy_dtype", kind)  # of a nullable type of pandas
    if kind in (np.float32, np.float16):
        step = float(np.median(np.diff(np.asarray(given.t, dtype=float))))
        digit = float(np.spacing(np.max(np.abs(np.asarray(given.t)))))
        if digit > 1e-2 * step:
            notes += (
                f"Time is given in {kind}, whose steps there are {digit:.2g}, for samples"
                f" {step:.3g} apart: give it in 64 bits.",
            )
    check_times(t, given.place)
    rows: dict[str, np.ndarray] = {}
    for kind, channels in (("input", inputs), ("output", outputs)):
        for key, values in channels.items():
            label = f"`Record` {kind} {key!r}{given.labels.get(key, '')}"
            check_no_dates(label, values)
            rows[key] = numbers(label, values) * unit_of[key].si
            check_channel(label, rows[key], t, given.place)
            if kind == "output":
                check_moves(label, rows[key], unit_of[key])
    inputs, outputs = {key: rows[key] for key in inputs}, {key: rows[key] for key in outputs}
    for (drive, u), (name, y) in itertools.product(inputs.items(), outputs.items()):
        if np.array_equal(u, y) and np.any(u != u[0]):
            raise ValueError(
                f"`Record` input {drive!r} and output {name!r} must differ, got the same numbers in"
                " both. Check which column is which."
            )
    deviations = {
        key: None if sd.get(key) is None else _deviation(key, sd[key], t.size, unit_of[key])
        for key in outputs
    }
    held = are_held(inputs.values()) if given.hold is None else bool(given.hold)
    return {
        **read_only({"t": t, "inputs": inputs, "outputs": outputs, "sd": deviations}),
        **{"units": unit_of, "declared": frozenset(declared)},
        **{"hold": held, "hold_is_chosen": given.hold is None},
        **{"name": str(given.name), "citation": given.citation, "notes": notes},
    }


def _channel_units(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], declared: Mapping[str, str]
) -> dict[str, units.Unit]:
    """Return the unit of each channel: the declared unit, or SI. If one output of a part is phi, w
    or tau, or has a rotational unit, all outputs of this part are rotational.
    """
    choices = {name: units.VARIABLES[variable(name)] for name in outputs}
    found = {
        name: units.channel_unit(f"`Record` output {name!r}", declared[name], choices[name])
        for name in outputs
        if name in declared
    }
    found |= {
        name: units.channel_unit(f"`Record` output {name!r}", si[0], si)
        for name, si in choices.items()
        if len(si) == 1
    } | found
    turning = {units.split_channel(name)[0] for name, unit in found.items() if unit.rotational}
    for name in outputs:
        if name not in found:
            found[name] = units.channel_unit(
                name,
                choices[name][-1 if units.split_channel(name)[0] in turning else 0],
                choices[name],
            )
    first: dict[str, str] = {}
    for name, unit in found.items():
        part, last = units.split_channel(name)
        if last in ("fn", "lossPower"):  # fn and lossPower exist in rotations and translations.
            continue
        other = first.setdefault(part, name)
        if found[other].rotational != unit.rotational:
            raise ValueError(
                f"`Record` outputs of {part!r} must all be of a rotation or all of a translation,"
                f" got {other!r} in {found[other].name!r} and {name!r} in {unit.name!r}. Correct"
                " one of the units."
            )
    default = "N.m" if all(unit.rotational for unit in found.values()) else "N"
    drives = {
        name: units.channel_unit(
            f"`Record` input {name!r}", declared.get(name, default), units.DRIVEN
        )
        for name in inputs
    }
    return {**drives, **{name: found[name] for name in outputs}}


def _channels(what: str, given: Any) -> dict[str, Any]:
    """Return argument `what` as a dict ({} for None). Raise an error if a key is not a text."""
    example = {
        "inputs": '{"drive": F}',
        "outputs": '{"mass.s": q}',
        "sd": '{"mass.s": 1e-5}',
        "units": '{"mass.s": "mm"}',
    }[what]
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"`Record` {what} must be a dict, got {brief(given)}. Write {what}={example}."
        )
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(
                f"`Record` {what} must be named by texts, got {name!r}. Write {what}={example}."
            )
    return {str(name): values for name, values in given.items()}  # also for `numpy.str_`


def variable(name: str) -> str:
    """Return the variable that an output measures: "s" for "mass.s". In a machine of the user's own
    class, the output's name does not have a part, but may end in a joint number: "phi" for "phi1".
    """
    part, last = units.split_channel(name)
    if part.isdigit() and name.endswith(part):
        return last
    if not part.strip() and (name != last or last not in units.VARIABLES):
        raise ValueError(
            f'`Record` output {name!r} must name a part and its variable. Write outputs={{"mass.s":'
            " ...}, say."
        )
    if last not in units.VARIABLES:
        near = units.ELSEWHERE.get(last.lower()) or nearest(last.lower(), units.VARIABLES)
        hint = f"Did you mean '{part}.{near}'?" if near else "A position is s, an angle phi."
        raise ValueError(
            f"`Record` output {name!r} must end in a variable ({', '.join(units.VARIABLES)}), got"
            f" {last!r}. {hint}"
        )
    return last


def check_names(what: str, given: Mapping[str, Any], names: list[str]) -> None:
    """Raise an error if a key of `given` is not one of `names`."""
    for name in given:
        if name not in names:
            hint = suggestion(name, names, 0.5) or f" Name one of these: {', '.join(names)}."
            raise ValueError(
                f"`Record` {what} must belong to a channel of the record, got {name!r}.{hint}"
            )


def check_unit_of_dates(label: str, values: Any, unit: str | None) -> None:
    """Raise an error if dates or durations, which are converted to s, have another unit."""
    if _holds_dates(values) and unit not in (None, "s"):
        raise ValueError(
            f"{label} holds dates or durations, which become seconds, so it takes no unit, got"
            f" {unit!r}. Leave it out."
        )


def check_no_dates(label: str, values: Any) -> None:
    """Raise an error if a channel that is not the time contains dates."""
    if _holds_dates(values):
        raise ValueError(
            f"{label} must be one row of numbers, got dates or durations. Name the column that was"
            " measured."
        )


def _holds_dates(values) -> bool:
    return getattr(getattr(values, "dtype", None), "kind", "") in ("M", "m")


def numbers(label: str, values: Any) -> np.ndarray:
    """Return `values` as a 1-D array of real numbers; dates become seconds since the first date."""
    what = f"{label} must be one row of numbers, got"
    if np.ma.is_masked(values):
        hidden = int(np.sum(np.ma.getmaskarray(values)))
        raise ValueError(
            f"{label} has {hidden} masked samples, which were not measured. Delete such rows: time"
            " need not be uniform."
        )
    try:
        zoned = getattr(getattr(values, "dtype", None), "tz", None) is not None
        array = np.asarray(values, dtype="datetime64[ns]" if zoned else None)
        if array.dtype.kind == "M":
            array = array - array.flat[0] if array.size else array.astype(float)
        if array.dtype.kind == "m":
            array = array / np.timedelta64(1, "s")
        if array.dtype.kind == "O":
            array = array.astype(float)
    except (TypeError, ValueError, OverflowError):
        remedy = "Convert dates with `pandas.to_datetime`, other things with numpy first"
        raise ValueError(f"{what} {brief(values)}. {remedy}.") from None
    if array.dtype.kind == "c":
        raise ValueError(
            f"{label} must be real, got complex numbers such as {array.flat[0]}. Take their real"
            " part."
        )
    if array.dtype.kind not in "bifu":
        raise ValueError(
            f"{what} {brief(values)}. Convert text to numbers"
            " first, dates with `pandas.to_datetime`."
        )
    if array.ndim == 0:
        raise ValueError(f"{what} {brief(values)}. Give one value for each time.")
    if array.ndim != 1:
        raise ValueError(
            f"{what} shape {array.shape}. Choose one column, or flatten it with .ravel()."
        )
    return np.array(array, dtype=np.float64)


def check_times(t: np.ndarray, place: Place) -> None:
    """Raise an error if there are too few times, or if times are not finite or do not increase."""
    if t.size < FEWEST:
        raise ValueError(
            f"`Record` must hold at least {FEWEST} samples, got {t.size}. Check the file, or take a"
            " longer part of it."
        )
    bad = np.flatnonzero(~np.isfinite(t))
    if bad.size:
        raise ValueError(
            f"`Record` time must be finite, got {t[bad[0]]} in {place(bad[0])}. Delete that row, or"
            " fill in the time."
        )
    repeated, falls = np.flatnonzero(np.diff(t) == 0), np.flatnonzero(np.diff(t) < 0)
    if falls.size:
        i = int(falls[0])
        remedy = (
            "Reverse the rows"
            if falls.size == t.size - 1
            else "Sort the rows by time, or cut where the clock starts again"
        )
        raise ValueError(
            f"`Record` time must increase, got {t[i + 1]:.9g} s after {t[i]:.9g} s in"
            f" {place(i + 1)}. {remedy}."
        )
    if repeated.size:
        i = int(repeated[0])
        more = f"; {repeated.size} rows repeat a time" if repeated.size > 1 else ""
        raise ValueError(
            f"`Record` time must increase, got {t[i]:.9g} s twice, the second time in"
            f" {place(i + 1)}{more}. Drop them, or write the time with more digits."
        )


def check_channel(label: str, values: np.ndarray, t: np.ndarray, place: Place) -> None:
    """Raise an error unless the channel has one finite value, of at most 1e100, for each time."""
    if values.size != t.size:
        hint = (
            "A constant goes into `gain` or the machine."
            if values.size == 1
            else "Drop the rows in which one of the two is missing."
        )
        raise ValueError(
            f"{label} must have as many samples as time ({t.size}), got {values.size}. {hint}"
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        i = int(bad[0])
        more = f"; {bad.size} samples are missing" if bad.size > 1 else ""
        raise ValueError(
            f"{label} must be finite, got {values[i]} in {place(i)}, at {t[i]:.9g} s{more}. Delete"
            " such rows: time need not be uniform."
        )

    # Products of numbers above 1e100 [SI] can overflow.
    large = np.flatnonzero(np.abs(values) > 1e100)
    if large.size:
        i = int(large[0])
        raise ValueError(
            f"{label} must be of a size that a machine has, got {values[i]:.3g} in {place(i)}, at"
            f" {t[i]:.9g} s. Check the unit, or delete such rows: time need not be uniform."
        )


def check_moves(label: str, values: np.ndarray, unit: units.Unit) -> None:
    if np.all(values == values[0]):
        raise ValueError(
            f"{label} must change, got {values[0] / unit.si:.6g} {unit.name} in all {values.size}"
            " samples: it has no information. Check the column, or leave it out."
        )


def _deviation(name: str, given: Any, n: int, unit: units.Unit) -> Any:
    """Return the standard deviation of output `name` in SI: one number > 0, or one per sample."""
    label = f"`Record` sd of {name!r}"
    if np.ma.is_masked(given):
        raise ValueError(f"{label} must be > 0 for each sample, got masked ones. Give one number.")
    try:
        if np.asarray(given).dtype == bool:
            raise TypeError
        sd = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{label} must be a number > 0, got {brief(given)}. Leave it out if it is not known."
        ) from None
    if sd.shape not in ((), (n,)):
        raise ValueError(
            f"{label} must be one number or one for each of the {n} samples, got shape {sd.shape}."
            " Give one number."
        )
    with np.errstate(over="ignore", under="ignore"):
        square = sd * sd
    wrong = np.flatnonzero(~(np.isfinite(square) & (square > 0) & (sd > 0)))
    if wrong.size:
        where = f" in {row(int(wrong[0]))}" if sd.ndim else ""
        raise ValueError(
            f"{label} must be > 0 and finite, as its square must, got"
            f" {sd.flat[wrong[0]]:g}{where}. Leave it out if it is not known."
        )
    return sd * unit.si if sd.ndim else float(sd) * unit.si


def read_only(value: Any) -> Any:
    """Return `value` with read-only copies of its arrays, to protect measured data."""
    if isinstance(value, dict):
        return {key: read_only(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(read_only, value))
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.setflags(write=False)
    return value
