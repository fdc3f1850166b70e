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
        own = f"`Column` {self.name!r}:"
        for what in ("unit", "to"):
            value = getattr(self, what)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ValueError(
                    f"{own} `{what}` must be the name of a unit, got {value!r}. A factor is given"
                    " as `gain`."
                )
        if self.sign not in (1, -1) or isinstance(self.sign, bool):
            raise ValueError(
                f"{own} `sign` must be 1 or -1, got {self.sign!r}. A factor is given as `gain`."
            )
        if self.gain is not None and not (is_finite_number(self.gain) and self.gain != 0):
            raise ValueError(
                f"{own} `gain` must be a finite number other than 0, got {self.gain!r}. Leave it"
                " out for a factor of 1."
            )
        if self.gain is not None and self.gain < 0:
            raise ValueError(
                f"{own} `gain` must be > 0, got {self.gain!r}. Give the direction as sign=-1."
            )
        if self.to is not None and self.gain is None:
            raise ValueError(
                f"{own} `to` = {self.to!r} needs the `gain` that leads there, got None. Give it, or"
                " leave `to` out: units of one kind are converted anyway."
            )
        if self.per_turn is not None:
            self._check_per_turn(own)
            object.__setattr__(self, "gain", 360.0 / float(self.per_turn))
            object.__setattr__(self, "to", "deg")
        if not (
            self.unwrap is None
            or isinstance(self.unwrap, bool)
            or (is_finite_number(self.unwrap) and self.unwrap > 0)
        ):
            raise ValueError(
                f"{own} `unwrap` must be True, False or a range > 0, got {self.unwrap!r}. True"
                " finds the range from the numbers."
            )
        if self.nanoseconds is not None and not _names(self.nanoseconds):
            raise ValueError(
                f"{own} `nanoseconds` must be the name of a column, got {self.nanoseconds!r}. Name"
                " the column that is added to these seconds."
            )
        if self.time is not None:
            object.__setattr__(self, "time", column_of(f"{own} `time`", self.time))
            assert isinstance(self.time, Column)
            if self.time.time is not None or self.time.sign != 1 or self.time.sd is not None:
                raise ValueError(
                    f"{own} the `time` of a channel takes a unit and a gain only, got"
                    f" {self.time!r}. Leave the rest out."
                )
        if (
            self.sd is not None
            and not isinstance(self.sd, str)
            and not (is_finite_number(self.sd) and self.sd > 0)
        ):
            raise ValueError(
                f"{own} `sd` must be a number > 0 or the name of a column, got {self.sd!r}. Leave"
                " it out if it is not known."
            )

    def _check_per_turn(self, own: str) -> None:
        counts = self.per_turn
        if not (is_finite_number(counts) and counts is not None and counts > 0):
            raise ValueError(
                f"{own} `per_turn` must be a number of counts > 0, got {self.per_turn!r}. Give the"
                " direction as sign=-1."
            )
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
