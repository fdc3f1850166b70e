"""A column of a file: its name, unit, gain, sign and clock."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Union

from frictax.arguments import is_finite_number
from frictax.text import brief


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a file: its name, its unit, and its conversion to the measured variable.

    The variable is ``sign * gain * recorded``, in the unit `to`, or in `unit` if `to` is not given.

    **Arguments:**

    - `name`: name of the column, or its number from 1; for a MAT-file in MATLAB's notation:
      ``log.t``, ``log{2}``, ``M(:,3)``.
    - `unit`: unit of the recorded numbers: mm, deg, rpm, kN, ms, ...; by default the unit in
      brackets at the end of the name ("Position [mm]"), or SI. With `gain` and `to` any unit is
      possible (V, counts).
    - `gain` > 0 [`to` per `unit`]: for example 35.15 N/V of an amplifier and its motor, or
      2*pi/4096 rad per count of an encoder.
    - `per_turn`: counts of an encoder per turn of 360 deg, instead of `gain` and `to`.
    - `sign`: -1 reverses the sign of the recorded numbers, 1 does not.
    - `to`: the unit of the variable after multiplication by the gain.
    - `sd`, in `unit`: standard deviation of the measurement, a number, or the name of a column with
      a value in each row. A unit in the name of this column counts. Only an output has `sd`.
    - `time`: the column of this channel's own clock: a name, a number or a `Column` with its unit.
      An input is resampled to the times of the record, and its integral over time stays the same;
      an output is interpolated. The record contains only times within the range of all clocks.
    - `unwrap`: True removes the jumps of an encoder, an angle or a clock that starts again at the
      end of its range. The range is found from the values. A number (4096, 360) is the range in
      `unit`. False keeps the jumps. By default a position or time with jumps is an error.
    - `nanoseconds`: for a time in whole seconds, the column with the nanoseconds to add.

    **Raises:** `ValueError` for arguments that are not valid or contradict each other.

    >>> import frictax as fx
    >>> fx.Column("vir", unit="V", gain=35.15065, to="N").factor
    35.15065
    >>> fx.Column(2, per_turn=4096, sign=-1).factor, fx.Column(2, per_turn=4096).to
    (-0.087890625, 'deg')
    """

    name: str | int
    unit: str | None = None
    gain: float | None = None
    sign: int = 1
    to: str | None = None
    sd: float | str | None = None
    per_turn: float | int | None = None
    time: Union[str, int, "Column", None] = None
    unwrap: bool | float | int | None = None
    nanoseconds: str | int | None = None

    def __post_init__(self) -> None:
        if not _names(self.name):
            raise ValueError(
                f"`Column.name` must be the name of a column, got {self.name!r}. Write it as the"
                " file does, or its number, the first being 1."
            )
        own, factor = f"`Column` {self.name!r}:", "A factor is given as `gain`."
        for what in ("unit", "to"):
            text = getattr(self, what)
            is_name = isinstance(text, str) and bool(text.strip())
            self._require(what, is_name, "the name of a unit", factor)
        is_sign = self.sign in (1, -1) and not isinstance(self.sign, bool)
        self._require("sign", is_sign, "1 or -1", factor)
        is_other = is_finite_number(self.gain) and bool(self.gain)
        remedy = "Leave it out for a factor of 1."
        self._require("gain", is_other, "a finite number other than 0", remedy)
        self._require("gain", _is_positive(self.gain), "> 0", "Give the direction as sign=-1.")
        if self.to is not None and self.gain is None:
            raise ValueError(
                f"{own} `to` = {self.to!r} needs the `gain` that leads there, got None. Give it, or"
                " leave `to` out: units of one kind are converted anyway."
            )
        if self.per_turn is not None:
            self._check_per_turn(own)
            object.__setattr__(self, "gain", 360.0 / float(self.per_turn))
            object.__setattr__(self, "to", "deg")
        is_range = isinstance(self.unwrap, bool) or _is_positive(self.unwrap)
        remedy = "True finds the range from the numbers."
        self._require("unwrap", is_range, "True, False or a range > 0", remedy)
        remedy = "Name the column that is added to these seconds."
        self._require("nanoseconds", _names(self.nanoseconds), "the name of a column", remedy)
        if self.time is not None:
            object.__setattr__(self, "time", column_of(f"{own} `time`", self.time))
            assert isinstance(self.time, Column)
            if self.time.time is not None or self.time.sign != 1 or self.time.sd is not None:
                raise ValueError(
                    f"{own} the `time` of a channel takes a unit and a gain only, got"
                    f" {self.time!r}. Leave the rest out."
                )
        is_sd = isinstance(self.sd, str) or _is_positive(self.sd)
        remedy = "Leave it out if it is not known."
        self._require("sd", is_sd, "a number > 0 or the name of a column", remedy)

    def _require(self, what: str, is_valid: bool, rule: str, remedy: str) -> None:
        """Raise `ValueError` if the argument `what` is given and is not valid."""
        value = getattr(self, what)
        if value is not getattr(Column, what) and not is_valid:
            raise ValueError(
                f"`Column` {self.name!r}: `{what}` must be {rule}, got {value!r}. {remedy}"
            )

    def _check_per_turn(self, own: str) -> None:
        remedy = "Give the direction as sign=-1."
        is_count = _is_positive(self.per_turn)
        self._require("per_turn", is_count, "a number of counts > 0", remedy)
        if self.gain is not None or self.to is not None:
            raise ValueError(
                f"{own} `per_turn` says what `gain` and `to` would say too, got both. Leave out one"
                " of the two."
            )

    @property
    def factor(self) -> float:
        """The sign times the gain."""
        return self.sign * (1.0 if self.gain is None else float(self.gain))


def columns_of(what: str, given: Any) -> dict[str, Column]:
    """Return a dict: channel -> `Column`. Convert names and numbers of columns to `Column`s."""
    example = 'inputs={"drive": "F"}' if what == "inputs" else 'outputs={"mass.s": "q"}'
    if not isinstance(given, Mapping):
        raise ValueError(
            f"`{what}` must map names to columns, got {brief(given)}. Write {example}."
        )
    return {name: column_of(f"`{what}[{name!r}]`", column) for name, column in given.items()}


def column_of(what: str, given: Any) -> Column:
    """Return a `Column` for `given`, which is a `Column`, the name of a column or its number."""
    if isinstance(given, Column):
        return given
    if not isinstance(given, str | int) or isinstance(given, bool):
        raise ValueError(
            f"{what} must be the name of a column or a `Column`, got {brief(given)}. Arrays go to"
            " `Record(t, ...)`."
        )
    return Column(given)


def _names(name: Any) -> bool:
    """Return whether a value can be the name or the number of a column."""
    if isinstance(name, str):
        return bool(name.strip())
    return isinstance(name, int) and not isinstance(name, bool) and name >= 1


def _is_positive(value: Any) -> bool:
    """Return whether a value is a finite number above 0."""
    return is_finite_number(value) and bool(value > 0)
