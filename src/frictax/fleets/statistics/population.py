"""What a fleet has in common and how its machines differ: the two-stage population model."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.notice import Notice
from frictax.text import suggestion

from ..result import Fleet
from . import frames
from .distances import cut, growth, lost
from .hierarchy import basis, information
from .numbers import Numbers, read
from .population_result import Population
from .robust import Given, Settled, settle

_NEAR = 0.05  # of the records within two errors of a bound: their logarithm is no scale


def population(
    table: DataFrame | Fleet,
    names: Iterable[str] | str | None = None,
    *,
    log: Iterable[str] | str | bool | None = None,
    false_alarms: float = 1e-3,
    level: float = 0.95,
) -> Population:
    """The population that a fleet of fits is drawn from: mean, spread between machines, spread
    between records of one machine, and which records do not belong to it.

    Two stages: each fit gave its numbers x_i with the covariance C_i of their errors; of these,
    u_ij ~ N(mu + a_j, Psi + C_ij) and a_j ~ N(0, Omega) with machine j, on the unconstrained scale.
    mu, Omega and Psi are by restricted maximum likelihood, after which the numbers of each record
    are drawn towards the population as far as their errors are larger than its spread (empirical
    Bayes; Davidian and Giltinan, Nonlinear Models for Repeated Measurement Data, 1995, chapter 5).
    No fit and no simulation is done anew.

    Outliers neither widen the spread nor hide: beyond the 99 % point of its distance (99.9 % with
    fewer than 100 machines) a record does not count for mean and spread, from medians on, and what
    that cut takes from a normal population is put back. A record's own errors belong to its
    distance: a badly told number is no outlier.

    **Arguments:**

    - `table`: of `fx.fleet`, or one row a record as in it: ``NAME``, ``NAME.standard_error``, and
      where it has them ``correlation:NAME:NAME``, `machine` and `reason`. Records without numbers
      are left out and counted; where a fit did not tell one number, the others count.
    - `names`: of numbers, all of them unless given.
    - `log`: which numbers are normal in their logarithm, or all (True) or none (False) of those
      with a lower bound; unless given, those of them that stay clear of it: fewer than 5 % of the
      records within two errors.
    - `false_alarms`: how often a record that belongs to the population is called an outlier.
    - `level`: of intervals.

    **Returns:** a `Population`.

    **Raises:** `KeyError` for a number that the table lacks; `ValueError` where fewer than two
    machines have numbers, for a logarithm of a number without a bound, and for chances and levels
    that are none.

    Three hundred drives whose friction differs by 10 %, one of them wrongly assembled:

    >>> import frictax as fx, numpy as np, pandas as pd
    >>> rng, n = np.random.default_rng(0), 300
    >>> F = 7.0 * np.exp(0.1 * rng.standard_normal(n))
    >>> F[11] = 12.0
    >>> fleet = pd.DataFrame(
    ...     {
    ...         "record": [f"drive {i}" for i in range(n)],
    ...         "friction.F_Coulomb": F + 0.2 * rng.standard_normal(n),
    ...         "friction.F_Coulomb.standard_error": 0.2,
    ...     }
    ... )
    >>> bounds, units = {"friction.F_Coulomb": 0.0}, {"friction.F_Coulomb": "N"}
    >>> fleet.attrs["frictax"] = {"lower_bounds": bounds, "units": units}
    >>> found = fx.population(fleet)
    >>> print(found)
    Population of 300 machines
    <BLANKLINE>
    number              median  unit  std. error  95 % interval   between machines  95 % interval
    friction.F_Coulomb  ...     N     0.0...      ... to ...      ... %             ... to ... %
    ...
    >>> list(found.outliers["record"])
    ['drive 11']
    """
    table = frames.table_of(table)
    _chance("false_alarms", false_alarms, "Write 0.001 for one in a thousand.")
    _chance("level", level, "Write 0.95 for 95 %.")
    numbers = read(table, names)
    if np.unique(numbers.machine).size < 2:
        raise ValueError(
            "A population needs two machines with numbers at least, got 1 (records of one machine,"
            " or a single record): fit more machines."
        )
    lower, notices = _scales(numbers, log)
    order = numbers.sorted_by_machine()
    machine = numbers.machine[order]
    start = np.flatnonzero(np.diff(machine, prepend=-1))
    bound = np.array([x or 0.0 for x in lower.values()])
    errors = numbers.errors[order]
    freedom = np.array(
        [np.median(f[np.isfinite(e)]) for f, e in zip(numbers.freedom[order], errors, strict=True)]
    )
    given = Given(
        z=numbers.values[order] - bound,
        covariance=numbers.correlation[order] * errors[:, :, None] * errors[:, None, :],
        log=np.array([x is not None for x in lower.values()]),
        start=start,
        freedom=freedom,
    )
    found = settle(given)
    return _answer(numbers, lower, order, found, false_alarms, level, notices)


def _answer(
    numbers: Numbers,
    lower: dict[str, float | None],
    order: np.ndarray,
    found: Settled,
    false_alarms: float,
    level: float,
    notices: list[Notice],
) -> Population:
    p, several = len(numbers.names), found.within is not None
    beyond = cut(found.of.start.size)
    size = np.sqrt(found.of.start.size / np.diag(found.at.G.sum(0)))  # of a machine's own error
    E = basis(p)
    scales = np.concatenate([np.einsum("aij,i,j->a", np.tril(E), size, size)] * (1 + several))
    told = information(found.of, found.at, several) * scales[:, None] * scales
    errors = np.sqrt(
        np.maximum(np.diag(np.linalg.pinv(told, hermitian=True)), 0.0) * lost(p, beyond)
    )
    both = [
        np.einsum("a,aij->ij", errors[a : a + len(E)] * scales[: len(E)], E)
        for a in range(0, len(errors), len(E))
    ]
    made = Population(
        names=numbers.names,
        units=numbers.units,
        lower=lower,
        mean=found.at.mean,
        mean_covariance=found.at.P * growth(p, beyond),
        between=found.between,
        between_error=both[0],
        within=found.within,
        within_error=both[1] if several else None,
        records=_records(numbers, lower, order, found, false_alarms, level),
        covariance=found.T[np.argsort(order)],
        machines=_machine_table(numbers, lower, found, false_alarms, level),
        left_out=numbers.left_out,
        notices=(),
        false_alarms=false_alarms,
        level=level,
    )
    return dataclasses.replace(made, notices=(*notices, *_notices(made, numbers, found)))


def _records(
    numbers: Numbers,
    lower: Mapping[str, float | None],
    order: np.ndarray,
    found: Settled,
    false_alarms: float,
    level: float,
) -> DataFrame:
    import pandas as pd

    back, of = np.argsort(order), found.of
    spread = found.between + (0.0 if found.within is None else found.within)
    told = np.isfinite(numbers.values[order])
    deviations = (of.y - found.at.mean) / np.sqrt(np.einsum("nii->ni", spread + of.C))
    deviations = np.where(told, deviations, 0.0)
    far = np.argmax(np.abs(deviations), axis=1)
    tests = found.tests
    columns = {
        "record": numbers.record,
        "machine": np.array(numbers.machines, dtype=object)[numbers.machine],
        "row": numbers.row,
        **_values(numbers.names, lower, found.u[back], found.T[back], level),
        "distance": np.sqrt(tests.squared)[back],
        "chance": tests.chance[back],
        "outlier": (tests.chance < false_alarms)[back],
        "farthest": np.array(numbers.names, dtype=object)[far][back],
        "z": deviations[np.arange(len(far)), far][back],
        "within_chance": tests.within[back],
    }
    return pd.DataFrame(columns)


def _machine_table(
    numbers: Numbers,
    lower: Mapping[str, float | None],
    found: Settled,
    false_alarms: float,
    level: float,
) -> DataFrame:
    import pandas as pd

    first = np.unique(numbers.machine)
    columns = {
        "machine": np.array(numbers.machines, dtype=object)[first],
        "count": np.bincount(numbers.machine)[first],
        **_values(numbers.names, lower, found.machine_u, found.machine_T, level),
        "chance": found.tests.machine,
        "outlier": found.tests.machine < false_alarms,
    }
    return pd.DataFrame(columns)


def _values(
    names: tuple[str, ...],
    lower: Mapping[str, float | None],
    u: np.ndarray,
    T: np.ndarray,
    level: float,
) -> dict[str, np.ndarray]:
    from scipy.special import ndtri

    half = float(ndtri(0.5 + level / 2)) * np.sqrt(np.maximum(np.einsum("nii->ni", T), 0.0))
    out = {}
    for k, name in enumerate(names):
        for end, at in (("", u), (".lower", u - half), (".upper", u + half)):
            bound = lower[name]
            out[name + end] = at[:, k] if bound is None else bound + np.exp(at[:, k])
    return out


def _scales(
    numbers: Numbers, log: Iterable[str] | str | bool | None
) -> tuple[dict[str, float | None], list[Notice]]:
    """The bound above which each number counts by its logarithm, None for one as it is."""
    asked = (
        None
        if log is None or isinstance(log, bool)
        else {log}
        if isinstance(log, str)
        else set(log)
    )
    out, notices = dict[str, float | None](), []
    for name in sorted(asked or ()):
        if name not in numbers.names:
            raise KeyError(
                f"`log`: the table has no number {name!r}.{suggestion(name, numbers.names)}"
            )
        if numbers.lower[name] is None:
            raise ValueError(
                f"`log`: {name} has no lower bound, so its logarithm may not exist. Name it in"
                " table.attrs['frictax']['lower_bounds'], or leave it out of `log`."
            )
    for k, name in enumerate(numbers.names):
        bound, told = numbers.lower[name], np.isfinite(numbers.values[:, k])
        wanted = log is True or (asked is not None and name in asked)
        if log is None and bound is not None:
            near = int(np.sum(numbers.values[told, k] - bound < 2 * numbers.errors[told, k]))
            wanted = near < _NEAR * told.sum()
            if not wanted:
                about = {"count": near, "records": int(told.sum()), "bound": bound}
                notices.append(Notice("population-near-bound", name, about))
        if not told.any():
            raise ValueError(f"No record tells {name} with an error: leave it out of `names`.")
        out[name] = bound if wanted else None
    return out, notices


def _notices(made: Population, numbers: Numbers, found: Settled) -> list[Notice]:
    out = []
    machines, records = len(made.machines), len(made.records)
    if made.left_out:
        count = sum(made.left_out.values())
        reasons = "; ".join(f"{why} ({n})" for why, n in list(made.left_out.items())[:3])
        about = {"count": count, "records": records + count, "reasons": reasons}
        out.append(Notice("population-left-out", "", about))
    if not found.ended:
        out.append(Notice("population-unfinished"))
    if machines <= len(made.names) + 1:
        about = {"machines": machines, "count": len(made.names)}
        out.append(Notice("population-few-machines", "", about))
    if made.within is None:
        out.append(Notice("population-no-repeats"))
    for k, name in enumerate(made.names):
        if made.between[k, k] > 1.645 * made.between_error[k, k]:
            continue
        most = made.spread_in_words(name, made.spread_of(made.between, made.between_error, k)[2])
        out.append(Notice("population-no-spread", name, {"most": most}))
    if numbers.n > machines and np.any(made.records["within_chance"] < made.false_alarms):
        some = made.records[made.records["within_chance"] < made.false_alarms]
        about = {"count": len(some), "record": str(some.iloc[0]["record"])}
        out.append(Notice("population-unlike-its-machine", "", about))
    return out


def _chance(what: str, value: Any, remedy: str) -> None:
    if not (isinstance(value, int | float | np.floating) and 0 < value < 1):
        raise ValueError(f"`{what}` must lie between 0 and 1, got {value!r}. {remedy}")
