"""The measurement: friction force at steady speeds."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Float

from frictax.annotations import ArrayLike, Checked
from frictax.handover import Verb
from frictax.verbs import SweepVerbs

from . import units
from .reading.columns import Decimal
from .reading.tables import csv_table

if TYPE_CHECKING:
    from .record import Record

Direction = Literal["both", "positive", "negative"]


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Sweep(SweepVerbs):
    """Friction force measured at steady speeds, with rows, if there are any, of the force at which
    motion began.

    The force is positive where it opposes positive velocity, so v > 0 goes with f > 0 and v < 0
    with f < 0, but for a constant force such as a payload's weight.

    **Arguments:**

    - `velocity` (n,), in `velocity_unit`: m/s, mm/s, ... or rad/s, deg/s, rpm, ...
    - `force` (n,), in `force_unit`: N, mN, kN, ... or N.m, mN.m, ...; multiplied by `sign`.
    - `sigma` (n,) > 0, in `force_unit`: relative accuracies of the rows. The noise scale is
      estimated from the residuals all the same, unless `sigma_known`: then they are standard
      deviations.
    - `breakaway` (n,), true where v = 0 and `force` is the one at which motion began.
    - `name`, `citation`: for the report; `notes`: which runs it was not made of, and why.

    **Raises:** `ValueError` for what cannot be a sweep: shapes, non-finite values, a row at rest
    that is not declared as breakaway, one speed only, forces against the sign convention, sigma <=
    0.

    The fields hold SI values:

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

    def __init__(
        self,
        velocity: ArrayLike,
        force: ArrayLike,
        sigma: ArrayLike | None = None,
        breakaway: ArrayLike | None = None,
        *,
        sigma_known: bool = False,
        velocity_unit: str = "rad/s",
        force_unit: str = "N.m",
        sign: Checked[Literal[1, -1]] = 1,
        name: str = "sweep",
        citation: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        v_unit, f_unit = units.velocity_unit(velocity_unit), units.force_unit(force_unit)
        units.same_kind(v_unit, f_unit)
        if sign not in (1, -1):
            raise ValueError(
                f"`Sweep` sign must be 1 or -1, got {sign!r}. It multiplies the force; units are"
                " declared by name."
            )
        v = _numbers("velocity", velocity) * v_unit.si
        f = _numbers("force", force) * (f_unit.si * sign)
        s = None if sigma is None else _numbers("sigma", sigma) * f_unit.si
        b = np.zeros(v.shape, bool) if breakaway is None else np.asarray(breakaway, dtype=bool)
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
        fields = (v, f, s, b, sigma_known, v_unit, f_unit, name, citation, tuple(notes))
        for field, value in zip(dataclasses.fields(self), fields, strict=True):
            object.__setattr__(self, field.name, value)
        _check_rows(self, sign)

    @classmethod
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
        sign: Checked[Literal[1, -1]] = 1,
        velocity_unit: str = "rad/s",
        force_unit: str = "N.m",
        sigma_known: bool = False,
        delimiter: str = ",",
        decimal: Checked[Decimal] = ".",
        skip: int = 0,
        header: bool = True,
        name: str | None = None,
        citation: str = "",
    ) -> "Sweep":
        """Read a sweep from the columns of a text file.

        **Arguments:** `velocity`, `force`, `sigma`, `breakaway` name columns, or say where they
        stand, the first being 1 (the last holds 1 or 0; its rows may leave the velocity empty);
        `where={"drive": 1}` keeps the rows with these values; `direction` keeps one branch;
        `sign=-1` turns a force that is recorded as acting on the body; `skip`: how many lines stand
        before that of the column names; ``header=False`` where there is none. Lines that begin with
        ``#`` are comments.

        **Raises:** `FileNotFoundError`, or `ValueError` naming file, line, column and remedy.
        """
        if velocity == force:
            raise ValueError(
                f"`velocity` and `force` both name column {force!r}. Name the column of each."
            )
        table = csv_table(path, delimiter, decimal, skip, header)
        if where:
            table = table.where(where)
        began = None if breakaway is None else table.flags(breakaway, "breakaway")
        v = table.column(velocity, "velocity", empty=None if began is None else 0.0)
        f = table.column(force, "force")
        s = None if sigma is None else table.column(sigma, "sigma")
        at_rest = np.flatnonzero((v == 0) & (~began if began is not None else True))
        if at_rest.size:
            raise ValueError(
                f"{Path(path).name}, {table.row_of(int(at_rest[0]))}: a sliding row must have a"
                f" speed, got {velocity} = 0. Delete it, or mark rows where motion began in a"
                " column and give breakaway=<its name>."
            )
        sweep = cls(
            v,
            f,
            s,
            began,
            sigma_known=sigma_known,
            velocity_unit=velocity_unit,
            force_unit=force_unit,
            sign=sign,
            name=Path(path).stem if name is None else name,
            citation=citation,
            notes=table.doubts(),
        )
        return sweep.select(direction)

    @classmethod
    def from_records(
        cls,
        records: "Iterable[Record] | Mapping[str, Record]",
        velocity: str,
        force: str,
        *,
        settle: float | int = 0.0,
        keep_unsteady: bool = False,
        sign: Checked[Literal[1, -1]] = 1,
        name: str = "sweep",
        citation: str = "",
    ) -> "Sweep":
        """Average raw runs at steady speed, each a `Record`, to the rows of a sweep.

        `sigma` of a row is the standard error of its mean force, which allows for the memory of the
        noise: of n samples as many count as n over 1 + 2 times the sum of their autocorrelations.

        A run is unsteady where its speed or its force drifts: the straight line through it rises by
        more than 3 standard errors, which allow for memory too, and by more than 2 % of the mean;
        where its speed scatters by more than half of its mean, as of a motion that sticks and
        slips; or where it is worth fewer than 10 independent samples. Such runs are left out, and
        `notes` says which and why.

        **Arguments:**

        - `velocity`, `force`: channels of each record, ``"motor.w"`` and ``"drive"``, say.
        - `settle` [s], left out at the start of each run.
        - `keep_unsteady`: keep these rows all the same; `notes` still tells them.
        - `sign`: -1 for a force recorded as acting on the body.

        **Raises:** `ValueError` where no two steady runs are left, and what `Sweep` raises.

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
        from .steady import steady_runs

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
        size = v_unit.si, f_unit.si
        errors = np.array([r.error for r in kept])
        return cls(
            np.array([r.velocity for r in kept]) / size[0],
            np.array([r.force for r in kept]) / size[1],
            errors / size[1] if np.all(errors > 0) else None,
            velocity_unit=v_unit.name,
            force_unit=f_unit.name,
            sign=sign,
            name=name,
            citation=citation,
            notes=notes,
        )

    def select(self, direction: Checked[Direction]) -> "Sweep":
        """The rows of one direction, or all."""
        if direction not in ("both", "positive", "negative"):
            raise ValueError(
                f"`direction` must be 'both', 'positive' or 'negative', got {direction!r}."
            )
        return self if direction == "both" else getattr(self, direction)()

    def positive(self) -> "Sweep":
        """The rows moving, or breaking away, forward."""
        return self._rows(self.direction > 0, "v > 0")

    def negative(self) -> "Sweep":
        """The rows moving, or breaking away, backward; their velocities and forces stay
        negative.
        """
        return self._rows(self.direction < 0, "v < 0")

    @property
    def direction(self) -> Float[np.ndarray, " n"]:
        """1 for rows forward, -1 for rows backward; a breakaway row goes where its force points."""
        return np.where(self.breakaway, np.sign(self.force), np.sign(self.velocity))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.velocity.size

    @property
    def both_directions(self) -> bool:
        return bool(np.any(self.direction > 0) and np.any(self.direction < 0))

    @property
    def rotational(self) -> bool:
        """Whether speeds are rad/s and forces N.m, rather than m/s and N."""
        return self.velocity_unit.rotational

    _repr_html_ = Verb("frictax.report.notebook.cards:sweep_html")

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


def _numbers(what: str, values) -> np.ndarray:
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`Sweep` {what} must be numbers, got {values!r}.") from None
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
                " friction, so that no breakaway row tells its direction. Subtract the constant"
                " force first."
            )
