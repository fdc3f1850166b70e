"""`Sweep`: the measured friction force at steady speeds."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from jaxtyping import Bool, Float

from frictax.annotations import ArrayLike, Checked, DataFrame
from frictax.arguments import check_names, lists_options
from frictax.handover import Verb
from frictax.notice import Notice
from frictax.text import brief, suggestion
from frictax.verbs import SweepVerbs

from . import units
from .noise import integrated_autocorrelation_time
from .reading.columns import Decimal
from .reading.tables import Table, csv_table, pandas_table
from .record import Record

Direction = Literal["both", "positive", "negative"]


class ForceOptions(TypedDict, total=False):
    """Options of all constructors of `Sweep`; its docstring describes them."""

    sigma_known: bool
    sign: Checked[Literal[1, -1]]
    citation: str


class SweepOptions(ForceOptions, total=False):
    """The options of `Sweep(velocity, force)`, which takes arrays."""

    velocity_unit: str
    force_unit: str
    name: str
    notes: tuple[str, ...]


class SweepCsvOptions(ForceOptions, total=False):
    """The options of a sweep that is read from a text file."""

    velocity_unit: str | None
    force_unit: str | None
    name: str | None
    delimiter: str
    decimal: Checked[Decimal]
    skip: int
    header: bool


class SweepTableOptions(ForceOptions, total=False):
    """The options of a sweep that is built from a `DataFrame`."""

    velocity_unit: str | None
    force_unit: str | None
    name: str


_ARRAYS: dict[str, Any] = {
    **{"sigma_known": False, "velocity_unit": "rad/s", "force_unit": "N.m", "sign": 1},
    **{"name": "sweep", "citation": "", "notes": ()},
}
_TEXT: dict[str, Any] = {"delimiter": ",", "decimal": ".", "skip": 0, "header": True}
_FOUND: dict[str, Any] = {"velocity_unit": None, "force_unit": None}


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Sweep(SweepVerbs):
    """Friction force measured at steady speeds, and optionally the forces at which motion began.

    The force is positive if it opposes a positive velocity. Therefore velocity and force have the
    same sign, except for a constant force such as the weight of a payload.

    **Arguments:**

    - `velocity` (n,), in `velocity_unit`: m/s, mm/s, ... or rad/s, deg/s, rpm, ...
    - `force` (n,), in `force_unit`: N, mN, kN, ... or N.m, mN.m, ...; multiplied by `sign`.
    - `sigma` (n,) > 0, in `force_unit`: standard deviations of the forces up to a common factor. A
      fit estimates the common factor from the residuals; with `sigma_known=True` it is 1.
    - `breakaway` (n,): True for a row with v = 0 whose `force` is the force at which motion began.
    - `name`, `citation`: texts for the report; `notes`: which runs were left out, and why.

    **Raises:** `ValueError` for wrong shapes, non-finite values, sigma <= 0, a single speed, forces
    against the sign convention, and v = 0 in a row without breakaway.

    The fields of the object are in SI:

    >>> import frictax as fx
    >>> sweep = fx.Sweep([30, 60, 120], [2.0, 3.0, 4.0], velocity_unit="rpm", force_unit="mN.m")
    >>> sweep.velocity.round(3), sweep.force
    (array([ 3.142,  6.283, 12.566]), array([0.002, 0.003, 0.004]))
    """

    velocity: Float[np.ndarray, " n"]
    force: Float[np.ndarray, " n"]
    sigma: Float[np.ndarray, " n"] | None
    breakaway: Bool[np.ndarray, " n"]
    sigma_known: bool
    velocity_unit: units.Unit
    force_unit: units.Unit
    name: str
    citation: str
    notes: tuple[str, ...]

    @lists_options(SweepOptions, _ARRAYS)
    def __init__(
        self,
        velocity: ArrayLike,
        force: ArrayLike,
        sigma: ArrayLike | None = None,
        breakaway: ArrayLike | None = None,
        **options: Unpack[SweepOptions],
    ) -> None:
        check_names(Sweep, options)
        given: dict[str, Any] = {**_ARRAYS, **options}
        v_unit = units.velocity_unit(given["velocity_unit"])
        f_unit = units.force_unit(given["force_unit"])
        units.same_kind(v_unit, f_unit)
        sign, sigma_known = given["sign"], given["sigma_known"]
        if sign not in (1, -1):
            raise ValueError(
                f"`Sweep` sign must be 1 or -1, got {sign!r}. It multiplies the force; units are"
                " declared by name."
            )
        given_rows = {"velocity": velocity, "force": force, "sigma": sigma, "breakaway": breakaway}
        for what, values in given_rows.items():
            if np.ma.is_masked(values):
                raise ValueError(
                    f"`Sweep` {what} has {int(np.sum(np.ma.getmaskarray(values)))} masked samples,"
                    " which were not measured. Delete such rows."
                )
        v = _numbers("velocity", velocity) * v_unit.si
        f = _numbers("force", force) * (f_unit.si * sign)
        s = None if sigma is None else _numbers("sigma", sigma) * f_unit.si
        b = np.zeros(v.shape, bool) if breakaway is None else np.asarray(breakaway)
        if odd := b[~np.isin(b, (False, True))].tolist():
            raise ValueError(f"`Sweep.breakaway` must be True or False in a row, got {odd[0]!r}.")
        b = b.astype(bool)
        for what, array in (("force", f), ("sigma", s), ("breakaway", b)):
            if array is not None and array.shape != v.shape:
                raise ValueError(
                    f"`Sweep` {what} must have as many rows as velocity ({v.size}), got shape"
                    f" {array.shape}."
                )
        if sigma_known and s is None:
            raise ValueError(
                "`Sweep` sigma_known=True needs `sigma`, got None. Give the standard deviation of"
                " each row."
            )
        about = given["name"], given["citation"], tuple(given["notes"])
        fields = (v, f, s, b, sigma_known, v_unit, f_unit, *about)
        for field, value in zip(dataclasses.fields(self), fields, strict=True):
            object.__setattr__(self, field.name, value)
        _check_rows(self, sign)

    @classmethod
    @lists_options(SweepCsvOptions, _ARRAYS | _TEXT | _FOUND | {"name": None})
    def from_csv(
        cls,
        path: str | Path,
        velocity: str | int,
        force: str | int,
        sigma: str | int | None = None,
        *,
        breakaway: str | int | None = None,
        where: Mapping[str, str | Checked[float]] | None = None,
        direction: Checked[Direction] = "both",
        **options: Unpack[SweepCsvOptions],
    ) -> "Sweep":
        """Read a sweep from the columns of a text file.

        **Arguments:**

        - `velocity`, `force`, `sigma`, `breakaway`: names of columns, or their numbers from 1. The
          column `breakaway` contains 1 or 0; the velocity may be missing in a row with 1.
        - ``where={"drive": 1}`` keeps the rows in which the column ``drive`` is 1; `direction`
          keeps the rows of one direction of motion.
        - `velocity_unit`, `force_unit`: None for the unit in the cells (``30 rpm``) or in the name
          of the column (``speed [rpm]``, ``speed_rpm``). A unit there of `sigma` is used too.
          Without a unit, velocity is in rad/s and force in N.m; if the other unit belongs to a
          translation, in m/s and N. The field `notes` lists contradictions.
        - `sign`: -1 if the column contains the friction on the body, which opposes the velocity.
        - `skip`: number of lines before the column names; ``header=False`` for a file without
          column names. Lines that begin with ``#`` are comments.

        **Raises:** `FileNotFoundError`, or `ValueError` naming file, line, column and remedy.
        """
        check_names(Sweep.from_csv, options)
        given: dict[str, Any] = {**options}
        text = [given.pop(name, default) for name, default in _TEXT.items()]
        table = csv_table(path, *text)
        if where:
            table = table.where(where)
        columns = {"velocity": velocity, "force": force, "sigma": sigma, "breakaway": breakaway}
        v, f, s, began = _read_rows(table, columns, given, {})
        at_rest = np.flatnonzero((v == 0) & (~began if began is not None else True))
        if at_rest.size:
            raise ValueError(
                f"{Path(path).name}, {table.row_of(int(at_rest[0]))}: a sliding row must have a"
                f" speed, got {velocity} = 0. Delete it, or mark rows where motion began in a"
                " column and give breakaway=<its name>."
            )
        if given.get("name") is None:
            given["name"] = Path(path).stem
        return cls(v, f, s, began, **given).select(direction)

    @classmethod
    @lists_options(SweepTableOptions, _ARRAYS | _FOUND)
    def from_pandas(
        cls,
        frame: DataFrame,
        velocity: str | None = None,
        force: str | None = None,
        sigma: str | None = None,
        *,
        breakaway: str | None = None,
        where: Mapping[str, Any] | None = None,
        direction: Checked[Direction] = "both",
        **options: Unpack[SweepTableOptions],
    ) -> "Sweep":
        """Build a sweep from the columns of a `DataFrame`, as `from_csv` does.

        Columns that the caller does not specify are found by their names. Columns that are called
        ``velocity`` and ``force`` come first. Otherwise, the name of the velocity column contains
        a unit of speed (``speed [rpm]``, ``speed_rpm``) or one of the words ``velocity``,
        ``speed``, ``omega``, ``v``, ``w``. The name of the force column contains a unit of force or
        one of the words ``force``, ``torque``, ``tau``, ``f``, ``M``. A name with both comes before
        a name with one. ``N`` alone is a number of samples, not a force. The optional columns are
        called ``sigma`` and ``breakaway``. A unit that is not given is read from
        ``frame.attrs["units"]``, or as in `from_csv`.
        ``Sweep.from_pandas(sweep.to_pandas())`` equals `sweep`.

        **Raises:** `ValueError` if no column or several columns fit, and for the errors of `Sweep`.

        >>> import frictax as fx, pandas as pd
        >>> frame = pd.DataFrame({"speed [rpm]": [30, 60, 120], "torque [mN.m]": [2.0, 3.0, 4.0]})
        >>> sweep = fx.Sweep.from_pandas(frame)
        >>> sweep, sweep.force
        (Sweep(sweep: 3 rows, 30 to 120 rpm), array([0.002, 0.003, 0.004]))
        """
        check_names(Sweep.from_pandas, options)
        if not hasattr(frame, "iloc"):
            raise ValueError(
                f"`Sweep.from_pandas` needs a DataFrame, got a {type(frame).__name__}. Arrays go to"
                " `Sweep(velocity, force)`."
            )
        table = pandas_table(frame, "the DataFrame")
        if where:
            table = table.where(where)
        named = {"velocity": velocity, "force": force, "sigma": sigma, "breakaway": breakaway}
        free = [name for name in table.header if name not in named.values()]
        columns: dict[str, Any] = {
            role: _recognise_column(free, role) if name is None else name
            for role, name in named.items()
        }
        given: dict[str, Any] = {**options}
        read = _read_rows(table, columns, given, frame.attrs.get("units", {}))
        return cls(*read, **given).select(direction)

    @classmethod
    def from_records(
        cls,
        records: Checked[Iterable[Record] | Mapping[str, Record]],
        velocity: str,
        force: str,
        *,
        settle: float | int = 0.0,
        keep_unsteady: bool = False,
        sign: Checked[Literal[1, -1]] = 1,
        name: str = "sweep",
        citation: str = "",
    ) -> "Sweep":
        """Average raw runs at steady speed: each `Record` becomes one row of a sweep.

        `sigma` of a row is the standard error of its mean force. Because of autocorrelation, n
        samples count as only n / (1 + 2 * sum of autocorrelations) independent samples.

        Unsteady runs are left out, and `notes` gives the reason. A run is unsteady under one of
        three conditions:

        - Its speed or force drifts: a fitted straight line changes over the run by more than 2 % of
          the mean and 3 standard errors. The standard errors account for autocorrelation.
        - The standard deviation of its speed exceeds half of the mean speed, as in stick-slip.
        - The force of the run counts as fewer than 10 independent samples.

        **Arguments:**

        - `velocity`, `force`: channels of each record, for example ``"motor.w"`` and ``"drive"``.
        - `settle`: time that is left out at the start of each run [s].
        - `keep_unsteady`: True to keep unsteady runs; `notes` still lists them.
        - `sign`: -1 if the channel contains the friction on the body, which opposes the velocity.

        **Raises:** `ValueError` for fewer than two steady runs, and for the errors of `Sweep`.

        >>> import frictax as fx, numpy as np
        >>> t, noise = np.arange(500) * 0.01, np.random.default_rng(0).standard_normal((4, 500))

        >>> speeds = [1.0, 2.0, 3.0, 4.0 + 0.2 * t]
        >>> runs = [
        ...     fx.Record(t, {"drive": 5 + v + e}, {"mass.v": v + 0.01 * e}, name=f"run {i}")
        ...     for i, (v, e) in enumerate(zip(speeds, noise))
        ... ]
        >>> sweep = fx.Sweep.from_records(runs, "mass.v", "drive")
        >>> sweep, sweep.force.round(1), sweep.sigma.round(2)
        (Sweep(sweep: 3 rows, ... m/s), array([6. , 6.9, 8.1]), array([0.05, 0.05, 0.05]))
        >>> print(sweep.notes[0])
        run 3 is unsteady and left out: its speed drifts by 22% of its mean, ...
        """
        runs, v_unit, f_unit = steady_runs(records, velocity, force, settle)
        done = "kept" if keep_unsteady else "left out"
        notes = tuple(f"{r.name} is unsteady and {done}: {r.unsteady}." for r in runs if r.unsteady)
        kept = [r for r in runs if keep_unsteady or not r.unsteady]
        if len(kept) < 2:
            raise ValueError(
                f"`Sweep.from_records` must be left with two or more steady runs, got {len(kept)}"
                f" of {len(runs)}. {notes[0] if notes else ''} Record longer, give the runs time to"
                " `settle`, or keep_unsteady=True."
            )
        v, f, errors = np.array([(r.velocity, r.force, r.error) for r in kept]).T
        sigma = errors / f_unit.si if np.all(errors > 0) else None
        about: Any = {"velocity_unit": v_unit.name, "force_unit": f_unit.name, "sign": sign}
        about |= {"name": name, "citation": citation, "notes": notes}
        return cls(v / v_unit.si, f / f_unit.si, sigma, **about)

    def select(self, direction: Checked[Direction]) -> "Sweep":
        """Return a sweep with the rows of one direction of motion; "both": all rows."""
        if direction not in ("both", "positive", "negative"):
            raise ValueError(
                f"`direction` must be 'both', 'positive' or 'negative', got {direction!r}."
            )
        return self if direction == "both" else getattr(self, direction)()

    def positive(self) -> "Sweep":
        """Return a sweep of the rows with a positive velocity or a positive breakaway force."""
        return self._rows(self.direction > 0, "v > 0")

    def negative(self) -> "Sweep":
        """Return a sweep of the rows with negative velocity or breakaway force, signs unchanged."""
        return self._rows(self.direction < 0, "v < 0")

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The `notes` as notices. A fit repeats these notices."""
        return tuple(Notice("record-read", "", {"told": told}) for told in self.notes)

    @property
    def direction(self) -> Float[np.ndarray, " n"]:
        """1 or -1 for each row: the sign of the velocity or, in a breakaway row, of the force."""
        return np.where(self.breakaway, np.sign(self.force), np.sign(self.velocity))

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.velocity.size

    @property
    def both_directions(self) -> bool:
        return bool(np.any(self.direction > 0) and np.any(self.direction < 0))

    @property
    def rotational(self) -> bool:
        """True if speeds are in rad/s and forces in N.m; False for m/s and N."""
        return self.velocity_unit.rotational

    _repr_html_ = Verb("frictax.report.cards:sweep_html")

    def __repr__(self) -> str:
        rest = int(self.breakaway.sum())
        speeds = self.velocity[~self.breakaway] / self.velocity_unit.si
        text = (
            f"{self.name}: {self.n} rows, {speeds.min():.4g} to {speeds.max():.4g}"
            f" {self.velocity_unit.name}"
            if speeds.size
            else self.name
        )
        return f"Sweep({text}{f', {rest} of them breakaway' if rest else ''})"

    def _rows(self, keep: np.ndarray, what: str) -> "Sweep":
        if not keep.any():
            raise ValueError(
                f"`Sweep` {self.name!r} has no rows with {what}. Ask for the other direction, or"
                " check the sign of the velocity."
            )
        part = object.__new__(Sweep)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            object.__setattr__(
                part, field.name, value[keep] if isinstance(value, np.ndarray) else value
            )
        return part


# Quantity -> lower-case words in the name of a DataFrame's column that identify the quantity.
_NAMES = {
    "velocity": {"velocity", "speed", "omega", "v", "w", "vel", "rpm"},
    "force": {"force", "torque", "tau", "f", "m", "moment", "friction"},
    "sigma": {"sigma"},
    "breakaway": {"breakaway"},
}
_KINDS = {"velocity": units.VELOCITY, "force": units.FORCE, "sigma": units.FORCE}
_SLIDING = {u for kind in _KINDS.values() for u in kind if not kind[u].rotational}
_OPTIONAL = {"sigma", "breakaway"}


def _read_rows(
    table: Table, columns: Mapping[str, Any], given: dict[str, Any], declared: Mapping[str, str]
) -> list[Any]:
    """Return velocity, force, sigma and breakaway of a table, and set units and notes in `given`.

    **Arguments:** `columns`: role -> name or number of the column, or None; `declared`: units of
    columns.
    """
    if table.position(columns["velocity"], "velocity") == table.position(columns["force"], "force"):
        raise ValueError(
            f"`velocity` and `force` both name column {columns['force']!r}. Name the column of"
            " each."
        )
    began = columns["breakaway"]
    began = None if began is None else table.flags(began, "breakaway")
    v = table.column(columns["velocity"], "velocity", empty=None if began is None else 0.0)
    if began is not None and v.dtype.kind == "f":
        v = np.where(began & np.isnan(v), 0.0, v)
    f = table.column(columns["force"], "force")
    s = None if columns["sigma"] is None else table.column(columns["sigma"], "sigma")
    notes, used, said = list(table.doubts()), dict[str, str](), dict[str, str]()
    for role in _KINDS:
        column = columns[role]
        unit = None if column is None else _find_unit(table, column, role, given, declared, notes)
        if unit is not None:
            used[role], said[role] = unit
    slides = not _SLIDING.isdisjoint(map(units.normalize_unit, used.values()))
    given["velocity_unit"] = used.get("velocity", "m/s" if slides else "rad/s")
    given["force_unit"] = used.get("force", "N" if slides else "N.m")
    given["notes"] = tuple(notes)
    # A given unit of the force applies to sigma too if both columns state the same other unit.
    if "sigma" in said and said["sigma"] != said.get("force"):
        of_s, of_f = units.FORCE[said["sigma"]], units.force_unit(given["force_unit"])
        if of_s.rotational != of_f.rotational or ("force" not in used and of_s.si != 1.0):
            raise ValueError(
                f"`Sweep` force must have a unit like sigma, which is in {of_s.name}, got"
                f" {used.get('force')!r}. Give `force_unit`."
            )
        s = _numbers("sigma", s) * (of_s.si / of_f.si)
    return [v, f, s, began]


def _find_unit(
    table: Table, column: Any, role: str, given: Any, declared: Mapping[str, str], notes: list[str]
) -> tuple[str, str] | None:
    """Return the unit of a column, and the unit that the table states; add doubts to `notes`."""
    name, known, own = table.name(column), _KINDS[role], given.get(f"{role}_unit")
    this = f"Column {name!r} of {table.source}"
    remedy = "Rename the column" if role == "sigma" else f"Give `{role}_unit`"
    stated = (declared.get(name), table.unit(column), _unit_in(name, known))
    seen = list(dict.fromkeys(units.normalize_unit(u) for u in (own, *stated) if u))
    odd = seen[:1] or _misspelt_units(name, known)
    if own is None and odd and odd[0] not in known:
        raise ValueError(
            f"{this} is read as the {role} and must be in one of {', '.join(known)}, got"
            f" {odd[0]!r}. {remedy}, or name another column."
        )
    if len(seen) > 1:
        notes.append(
            f"{this} is read in {seen[0]}, but its cells or its name contain {seen[1]}. Correct the"
            " unit if that is wrong."
        )
    if seen:
        return own or seen[0], units.normalize_unit(next(filter(None, stated), ""))
    if inside := re.search(r"[\[(]([^\[\]()]*[^\W\d][^\[\]()]*)[\])]\s*$", name):
        notes.append(
            f"{this} has {inside[1]!r} in its name, which is not a known unit and is not used."
            f" {remedy} if it is a unit."
        )
    return None


def _words_of(column: str) -> list[str]:
    """Return the words in a column's name, and pairs of words that may be a unit: "mm_s", "N m"."""
    words = [word.strip("[](),;") for word in re.split(r"[\s_]+", column)]
    pairs = [f"{a}{sign}{b}" for a, b in itertools.pairwise(words) for sign in "/."]
    return [*pairs, *words]


def _unit_in(column: str, known: Mapping[str, units.Unit]) -> str | None:
    """Return the unit in a column's name (in brackets, after "_" or a space) that is in `known`; or
    the unit of another quantity that the name has in brackets at the end.
    """
    inside = units.named_in(column)
    words = [inside, *map(units.normalize_unit, _words_of(column))]
    return next((word for word in words if word in known), inside)


def _misspelt_units(column: str, known: Mapping[str, units.Unit]) -> list[str]:
    """Return the words in a column's name that equal a unit in `known` if case is ignored."""
    plain = {unit.lower().replace(".", "") for unit in known} - {"n"}
    return [word for word in _words_of(column) if word.lower().replace(".", "") in plain]


def _recognise_column(columns: Sequence[str], role: str) -> str | None:
    """Return the column for `role` ("force", ...); None if sigma or breakaway has no column."""
    words, every = {}, units.VELOCITY | units.FORCE
    known = {} if role in _OPTIONAL else _KINDS[role]
    for c in columns:
        plain = " ".join(w for w in re.split(r"[\s_]+", c) if units.normalize_unit(w) not in every)
        words[c] = set(re.split(r"[^a-z]+", re.sub(r"[\[(].*", "", plain).lower()))
    others = _OPTIONAL if known else _NAMES["velocity"]
    # "N" is the usual name of a number of samples.
    left = [c for c in columns if c.strip() != "N" and not words[c] & others]
    by_name = [c for c in left if words[c] & _NAMES[role]]
    by_unit = [c for c in left if _unit_in(c, known) in known]
    exact = [c for c in by_name if c.strip().lower() == role]
    both = [c for c in by_name if c in by_unit]
    found = exact or both or list(dict.fromkeys([*by_unit, *by_name]))
    if len(found) == 1:
        return found[0]
    if not found and role in _OPTIONAL:
        return None
    many = f"several ({', '.join(map(repr, found))})" if found else "none"
    raise ValueError(
        f"`Sweep.from_pandas` must recognise one column as {role}, got {many} of"
        f" {', '.join(map(repr, columns))}. Write Sweep.from_pandas(frame, velocity=..., force=...)"
        " with the names of the columns."
    )


def _numbers(what: str, values) -> np.ndarray:
    try:
        if np.asarray(values).dtype == bool:
            raise TypeError
        array = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"`Sweep` {what} must be numbers, got {brief(values)}.") from None
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"`Sweep` {what} must be one row of numbers, at least one long, got shape"
            f" {array.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(
            f"`Sweep` {what} must be finite, got {array[bad[0]]} in row {bad[0]} (counted from 0)."
            " Delete that row."
        )
    return array


def _check_rows(sweep: Sweep, sign: int) -> None:
    v, f, b = sweep.velocity, sweep.force, sweep.breakaway
    at_rest = np.flatnonzero((v == 0) & ~b)
    if at_rest.size:
        raise ValueError(
            f"`Sweep` velocity must not be 0 in a sliding row, got 0 in row {at_rest[0]}. Delete"
            " it, or declare it in `breakaway`."
        )
    moving = np.flatnonzero((v != 0) & b)
    if moving.size:
        raise ValueError(
            f"`Sweep` velocity must be 0 in a breakaway row, got {v[moving[0]]:g} in row"
            f" {moving[0]}. Motion began from rest."
        )
    without = np.flatnonzero(b & (f == 0))
    if without.size:
        raise ValueError(
            f"`Sweep` force must not be 0 in a breakaway row, got 0 in row {without[0]}. Give the"
            " force at which motion began."
        )
    if not np.any(f):
        raise ValueError(
            "`Sweep` force must not be 0 in every row. Check the column, and the resolution with"
            " which it was written."
        )
    if sweep.sigma is not None and np.any(sweep.sigma <= 0):
        i = int(np.flatnonzero(sweep.sigma <= 0)[0])
        raise ValueError(
            f"`Sweep` sigma must be > 0, got {sweep.sigma[i]:g} in row {i}. Leave `sigma` out to"
            " weigh all rows alike."
        )
    speeds = np.unique(np.abs(v[~b]))
    if speeds.size < 2:
        seen = f"only {speeds[0]:g} {sweep.velocity_unit.si_name}" if speeds.size else "none"
        raise ValueError(
            f"`Sweep` must hold sliding rows at two or more speeds, got {seen}. A curve over speed"
            " needs a sweep."
        )
    against = np.mean((v * f)[~b] < 0)
    if against > 0.5:
        raise ValueError(
            f"`Sweep` force must oppose the motion, positive for v > 0: {100 * against:.0f} % of"
            f" the rows have the other sign. Give sign={-sign}."
        )
    for way, text in ((1, "v > 0"), (-1, "v < 0")):
        own = np.sign(v) == way
        if b.any() and own.any() and np.mean(f[own]) * way < 0:
            raise ValueError(
                f"`Sweep` force has the other sign for {text}: a constant force is greater than"
                " friction, so the direction of breakaway rows is unknown. Subtract the constant"
                " force first."
            )


@dataclasses.dataclass(frozen=True)
class SteadyRun:
    """The averages of one run: mean `velocity` and `force`, and standard error of the mean force
    (`error`), all in SI. `unsteady`: why the run is not steady, or "".
    """

    name: str
    velocity: float
    force: float
    error: float
    unsteady: str


def steady_runs(
    records: Any, velocity: str, force: str, settle: Any
) -> tuple[list[SteadyRun], units.Unit, units.Unit]:
    """Return the averages of each record after its first `settle` seconds, the unit of velocity and
    the unit of force.

    **Raises:** `ValueError` if one of `records` is not a `Record` or lacks a channel.
    """
    named = _records_by_name(records)
    if (
        not isinstance(settle, int | float | np.integer | np.floating)
        or isinstance(settle, bool)
        or not 0 <= settle < math.inf
    ):
        raise ValueError(
            f"`settle` must be a time >= 0 in seconds, got {settle!r}. It is left out at the start"
            " of each run."
        )
    out, channel_units = list[SteadyRun](), list[tuple[units.Unit, units.Unit]]()
    for name, record in named.items():
        v, f = _channel(name, record, velocity), _channel(name, record, force)
        kept = record.t >= record.t[0] + settle
        if kept.sum() < 4:
            raise ValueError(
                f"Run {name!r} has {int(kept.sum())} samples after the {settle:g} s that it is"
                f" given to settle, of {record.duration:g} s. Give a smaller `settle`."
            )
        t, v, f = record.t[kept], v[kept], f[kept]
        speed, mean_force = float(np.mean(v)), float(np.mean(f))
        independent = f.size / integrated_autocorrelation_time(f - mean_force)
        error = float(np.std(f) / math.sqrt(max(independent - 1.0, 1.0)))
        reasons = []
        if np.std(v) > 0.5 * abs(speed):  # stick-slip has such a large scatter of speed
            reasons.append(
                f"its speed scatters by {np.std(v) / max(abs(speed), 1e-300):.0%} of its mean, as"
                " in stick-slip motion"
            )
        u = (t - np.mean(t)) / (t[-1] - t[0])
        # The residuals of a polynomial of degree 7 count as noise. With a straight line instead,
        # a slow approach to the steady speed would count as autocorrelated noise.
        degree = min(7, t.size // 4)
        for what, x in (("speed", v), ("force", f)):
            drift, mean = abs(float(u @ x / (u @ u))), abs(float(np.mean(x)))
            left = x - np.polynomial.Chebyshev.fit(t, x, degree)(t)
            freedom = max(x.size / integrated_autocorrelation_time(left) - degree - 1.0, 1.0)
            chance = float(np.std(left) / math.sqrt(np.mean(u**2) * freedom))
            if drift > 3.0 * chance and drift > 0.02 * mean:
                reasons.append(
                    f"its {what} drifts by {drift / max(mean, 1e-300):.0%} of"
                    f" its mean, {drift / max(chance, 1e-300):.0f} standard errors"
                )
        # With fewer than 10 independent samples, the standard error of the mean is not reliable.
        fewest = 10
        if independent < fewest and not reasons:
            reasons.append(
                f"its force is so strongly autocorrelated that it has only {independent:.0f}"
                f" effective samples, fewer than {fewest}"
            )
        out.append(SteadyRun(name, speed, mean_force, error, " and ".join(reasons)))
        channel_units.append((record.units[velocity], record.units[force]))
    return out, *channel_units[0]


def _records_by_name(records: Any) -> dict[str, Record]:
    if isinstance(records, Record) or not isinstance(records, Iterable):
        raise ValueError(
            "`Sweep.from_records` needs the records of several runs, got a"
            f" {type(records).__name__}. Give a list of them, one for each speed."
        )
    if isinstance(records, Mapping):
        named = {str(name): record for name, record in records.items()}
    else:
        all_of_them = list(records)
        names = [getattr(record, "name", "") for record in all_of_them]
        named = {
            name if names.count(name) == 1 else f"{name} {i + 1}": record
            for i, (name, record) in enumerate(zip(names, all_of_them, strict=True))
        }
    for name, record in named.items():
        if not isinstance(record, Record):
            raise ValueError(
                f"`Sweep.from_records` needs `Record`s, got a {type(record).__name__} for {name!r}."
                " Read each run with `Record.from_csv`."
            )
    if not named:
        raise ValueError("`Sweep.from_records` needs the records of several runs, got none.")
    return named


def _channel(name: str, record: Record, channel: str) -> Float[np.ndarray, " n"]:
    channels = {**record.inputs, **record.outputs}
    if channel not in channels:
        raise ValueError(
            f"Run {name!r} has no channel {channel!r}.{suggestion(channel, channels, 0.5)} It has:"
            f" {', '.join(channels)}."
        )
    return channels[channel]
