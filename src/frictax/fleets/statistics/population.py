"""The two-stage population model of a fleet, with its function and its result `Population`."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from frictax.annotations import DataFrame
from frictax.notice import Notice
from frictax.summary import Summarised, Summary
from frictax.text import amount, format_estimate, suggestion

from ..table import Fleet
from .estimates import (
    PRINTED_ROWS,
    FleetEstimates,
    check_probability,
    flagged_rows,
    read_estimates,
    table_of_fleet,
    table_rows,
)
from .reml import expected_information, symmetric_basis, variance_interval
from .robust import (
    PopulationFit,
    RawEstimates,
    consistency_factor,
    fit_robust_population,
    outlier_threshold,
    variance_factor,
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Population(Summarised):
    """Mean, covariances and outliers of the parameters of a fleet. `print` shows a table.

    Arrays are on the unconstrained scale u, on which the population is normal. A parameter x with a
    bound in `lower` has u = log(x - lower). A parameter without a bound has u = x.

    - `mean` (p,): mean of the population; `mean_covariance` (p, p): covariance of the error of the
      mean. `between` (p, p): covariance between machines; `within` (p, p): covariance between
      records of one machine, None if no machine has two records.
    - `between_error`, `within_error` (p, p): standard errors of the entries of these matrices.
    - `spread_ends` (p, 2): ends of the interval of the standard deviation between machines.

    These tables and arrays describe the records:

    - `records`: a row for each record with estimates. ``NAME``: empirical Bayes estimate (shrunk
      towards the mean) with the interval ``NAME.lower`` to ``NAME.upper`` [SI]. `distance`:
      Mahalanobis distance from the mean; `chance`: p value of this distance; `outlier`: true if
      `chance` is below `false_alarms`. `farthest`: the parameter with the largest deviation; `z`:
      this deviation in standard deviations. `within_chance`: p value of the distance of the record
      from the other records of its machine. P values are NaN if the test is not possible.
    - `covariance` (n, p, p): covariance of the empirical Bayes estimates.
    - `machines`: a row for each machine: number of records `count`, estimates ``NAME`` with
      intervals, `chance` and `outlier`.
    - `left_out`: number of records without estimates by reason; `notices`: warnings on the fit.

    **Example:** at `population`.
    """

    names: tuple[str, ...]
    units: Mapping[str, str]
    lower: Mapping[str, float | None]
    mean: np.ndarray
    mean_covariance: np.ndarray
    between: np.ndarray
    between_error: np.ndarray
    within: np.ndarray | None
    within_error: np.ndarray | None
    spread_ends: np.ndarray
    records: DataFrame
    covariance: np.ndarray
    machines: DataFrame
    left_out: Mapping[str, int]
    notices: tuple[Notice, ...]
    false_alarms: float
    level: float

    @property
    def outliers(self) -> DataFrame:
        """The rows of `records` that are outliers, sorted by rising p value."""
        return flagged_rows(self.records, "outlier")

    @property
    def correlation(self) -> np.ndarray:
        """Correlation of the parameters between machines, on the unconstrained scale; 0 for
        parameters without spread.
        """
        size = np.sqrt(np.diag(self.between))
        with np.errstate(divide="ignore", invalid="ignore"):
            r = self.between / size[:, None] / size
        r = np.where(np.isfinite(r), np.clip(r, -1.0, 1.0), 0.0)
        np.fill_diagonal(r, 1.0)
        return r

    def to_pandas(self) -> DataFrame:
        """Return a table with one row for each parameter.

        `median`: median of the population, with `standard_error` and interval `lower` to `upper`
        [SI]. `spread`: standard deviation between machines, with interval `spread_lower` to
        `spread_upper`. `repeat_spread`: standard deviation between records of one machine. Spreads
        are in SI units, or, if `scale` is "log", relative to the distance from the lower bound.
        """
        import pandas as pd

        rows = []
        for k, name in enumerate(self.names):
            value, error, ends = self._median(k)
            spread, (low, high) = float(np.sqrt(self.between[k, k])), self.spread_ends[k]
            repeat = np.nan if self.within is None else float(np.sqrt(self.within[k, k]))
            rows.append(
                {
                    "number": name,
                    "unit": self.units[name],
                    "scale": "identity" if self.lower[name] is None else "log",
                    "median": value,
                    "standard_error": error,
                    "lower": ends[0],
                    "upper": ends[1],
                    "spread": spread,
                    "spread_lower": low,
                    "spread_upper": high,
                    "repeat_spread": repeat,
                }
            )
        return pd.DataFrame(rows).set_index("number")

    def unconstrained(self, name: str, values: Any) -> np.ndarray:
        """Transform values of a parameter [SI] to the unconstrained scale of `mean`."""
        bound = self.lower[self.names[self._index(name)]]
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.asarray(values, dtype=float)
            return x if bound is None else np.asarray(np.log(x - bound))

    def physical(self, name: str, u: Any) -> np.ndarray:
        """Transform values back to SI: the inverse of `unconstrained`."""
        bound = self.lower[self.names[self._index(name)]]
        x = np.asarray(u, dtype=float)
        return x if bound is None else np.asarray(bound + np.exp(x))

    def density(self, name: str, values: Any) -> np.ndarray:
        """Return the probability density [1/SI] of parameter `name` at `values`."""
        k = self._index(name)
        x = np.asarray(values, dtype=float)
        variance = self.between[k, k] + (0.0 if self.within is None else self.within[k, k])
        bound = self.lower[name]
        u = self.unconstrained(name, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = 1.0 if bound is None else 1.0 / (x - bound)
            height = np.exp(-0.5 * (u - self.mean[k]) ** 2 / variance)
            out = height * slope / np.sqrt(2 * np.pi * variance)
        return np.where(np.isfinite(out), out, 0.0)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise KeyError(f"The population has no number {name!r}.{suggestion(name, self.names)}")
        return self.names.index(name)

    def _median(self, k: int) -> tuple[float, float, tuple[float, float]]:
        from scipy.special import stdtrit

        error = float(np.sqrt(self.mean_covariance[k, k]))
        half = error * float(stdtrit(max(len(self.machines) - 1, 1), 0.5 + self.level / 2))
        value, low, high = (
            float(self.physical(self.names[k], self.mean[k] + x)) for x in (0.0, -half, half)
        )
        bound = self.lower[self.names[k]]
        return value, error if bound is None else error * (value - bound), (low, high)

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the printed table."""
        level = f"{100 * self.level:g} %"
        head = ("number", "median", "unit", "std. error", f"{level} interval", "between machines")
        head += (f"{level} interval",) + (() if self.within is None else ("between repeats",))
        rows = []
        for k, name in enumerate(self.names):
            value, error, ends = self._median(k)
            row = format_estimate(value, error, self.units[name], ends)
            spread, low, high = (
                self.spread_in_words(name, float(x))
                for x in (np.sqrt(self.between[k, k]), *self.spread_ends[k])
            )
            cells = (name, row.value, row.unit, row.error, row.interval, spread, f"{low} to {high}")
            if self.within is not None:
                cells += (self.spread_in_words(name, float(np.sqrt(self.within[k, k]))),)
            rows.append(cells)
        return head, rows

    def spread_in_words(self, name: str, spread: float) -> str:
        """Return the standard deviation `spread` of a parameter as text: in % if the parameter has
        a logarithmic scale, otherwise in its unit.
        """
        if self.lower[name] is None:
            return amount(spread, self.units[name])
        return f"{100 * spread:.3g} %"

    @property
    def title(self) -> str:
        lost = sum(self.left_out.values())
        left = f" ({lost} without estimates are left out)" if lost else ""
        records, machines = len(self.records), len(self.machines)
        if records == machines:
            return f"Population of {machines} machines{left}"
        return f"Population of {machines} machines with {records} records{left}"

    @property
    def scale_in_words(self) -> str:
        """A sentence that lists the parameters whose logarithm is normally distributed, or ""."""
        above = [name for name in self.names if self.lower[name] is not None]
        if not above:
            return ""
        bounds = "its bound" if any(self.lower[name] for name in above) else "0"
        return (
            f"Normal in the logarithm (of what is above {bounds}): {', '.join(above)}; their"
            " spreads are relative."
        )

    @property
    def sentences(self) -> list[str]:
        """Sentences about the scales and the outliers."""
        out = [self.scale_in_words] if self.scale_in_words else []
        flagged, judged = self.outliers, self.records["chance"].notna().sum()
        expected = self.false_alarms * judged
        out.append(
            f"{len(flagged)} of {judged} records are outliers (probability below"
            f" {self.false_alarms:g}; a fleet without outliers has {expected:.2g} such records on"
            " average)" + (":" if len(flagged) else ".")
        )
        for row in table_rows(flagged, PRINTED_ROWS):
            out.append(
                f"  {row.record}: p = {row.chance:.1g}, {row.farthest} by {row.z:+.1f} standard"
                " deviations"
            )
        if len(flagged) > PRINTED_ROWS:
            out.append(f"  and {len(flagged) - PRINTED_ROWS} more, see `outliers`")
        return out

    def _summary(self) -> Summary:
        head, rows = self.rows()
        notices = [str(notice) for notice in self.notices]
        sentences, sides = ["", *self.sentences], "lrlrlrlr"[: len(head)]
        return Summary(self.title, (head, rows), sides, sentences, notices, above=[""])


def population(
    table: DataFrame | Fleet,
    names: Iterable[str] | str | None = None,
    *,
    log: Iterable[str] | str | bool | None = None,
    false_alarms: float = 1e-3,
    level: float = 0.95,
) -> Population:
    """Estimate the population of a fleet: mean, spreads and outliers.

    Omega is the covariance between machines, and Psi between records of one machine. The model has
    two stages. First, the fit of record i of machine j yields estimates with the error covariance
    C_ij. Second, on the unconstrained scale the estimates are u_ij ~ N(mu + a_j, Psi + C_ij) with
    a_j ~ N(0, Omega). The mean mu, Omega and Psi are estimated by restricted maximum likelihood.
    The estimates of each record are then shrunk towards the mean, further for errors that are large
    compared with the spread (empirical Bayes; Davidian and Giltinan, Nonlinear Models for Repeated
    Measurement Data, 1995, chapter 5). No fit or simulation is repeated.

    Outliers do not increase the estimated spread, and one outlier does not hide another. A record
    is excluded from mean and spread if its distance from the mean exceeds the 99 % quantile (99.9 %
    with fewer than 100 machines). A consistency factor corrects the spread for excluded records
    that are not outliers. The covariance in the distance is the sum of the spread and the errors of
    the record, so large errors alone do not make a record an outlier.

    **Arguments:**

    - `table`: the result of `fx.fleet`, or a table with one row for each record and the columns
      ``NAME``, ``NAME.standard_error``, and optionally ``correlation:NAME:NAME``, `machine` and
      `reason`. Records without estimates are counted and excluded. If a fit does not identify one
      parameter, the estimates of the other parameters are used.
    - `names`: names of the parameters; by default all.
    - `log`: names of the parameters whose logarithm is normally distributed; True for all with a
      lower bound, False for none. By default, these are the parameters with a lower bound for which
      fewer than 5 % of the records are within two standard errors of this bound.
    - `false_alarms`: probability that a record which is not an outlier is reported as an outlier.
    - `level`: confidence level of the intervals.

    **Returns:** a `Population`.

    **Raises:** `KeyError` for a parameter that the table lacks. `ValueError` if fewer than two
    machines have estimates, for the logarithm of a parameter without lower bound, and for
    probabilities outside of 0 to 1.

    Three hundred drives have friction with a spread of 10 %, and one of them is wrongly assembled:

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
    table = table_of_fleet(table)
    check_probability("false_alarms", false_alarms, "Write 0.001 for one in a thousand.")
    check_probability("level", level, "Write 0.95 for 95 %.")
    fleet = read_estimates(table, names)
    if np.unique(fleet.machine).size < 2:
        raise ValueError(
            "A population needs two machines with numbers at least, got 1 (records of one machine,"
            " or a single record): fit more machines."
        )
    lower, notices = _scales(fleet, log)
    order = np.argsort(fleet.machine, kind="stable")
    machine = fleet.machine[order]
    start = np.flatnonzero(np.diff(machine, prepend=-1))
    bound = np.array([x or 0.0 for x in lower.values()])
    errors = fleet.errors[order]
    freedom = np.array(
        [np.median(f[np.isfinite(e)]) for f, e in zip(fleet.freedom[order], errors, strict=True)]
    )
    raw = RawEstimates(
        z=fleet.values[order] - bound,
        covariance=fleet.correlation[order] * errors[:, :, None] * errors[:, None, :],
        log=np.array([x is not None for x in lower.values()]),
        start=start,
        freedom=freedom,
    )
    found = fit_robust_population(raw)
    p, several = len(fleet.names), found.within is not None
    machines = found.estimates.start.size
    threshold = outlier_threshold(machines)
    # Scale the information matrix by typical standard errors, so that its inversion is accurate.
    size = np.sqrt(machines / np.diag(found.likelihood.G.sum(0)))
    E = symmetric_basis(p)
    scales = np.concatenate([np.einsum("aij,i,j->a", np.tril(E), size, size)] * (1 + several))
    information = expected_information(found.estimates, found.likelihood, several)
    variances = np.diag(np.linalg.pinv(information * scales[:, None] * scales, hermitian=True))
    errors = np.sqrt(np.maximum(variances, 0.0) * variance_factor(p, threshold))
    spread_errors = [
        np.einsum("a,aij->ij", errors[a : a + len(E)] * scales[: len(E)], E)
        for a in range(0, len(errors), len(E))
    ]
    ends = _spread_ends(found, raw.known, spread_errors[0], level)
    records, machine_table = _tables(fleet, lower, order, found, false_alarms, level)
    result = Population(
        names=fleet.names,
        units=fleet.units,
        lower=lower,
        mean=found.likelihood.mean,
        mean_covariance=found.likelihood.P * consistency_factor(p, threshold),
        between=found.between,
        between_error=spread_errors[0],
        within=found.within,
        within_error=spread_errors[1] if several else None,
        spread_ends=ends,
        records=records,
        covariance=found.T[np.argsort(order)],
        machines=machine_table,
        left_out=fleet.left_out,
        notices=(),
        false_alarms=false_alarms,
        level=level,
    )
    return dataclasses.replace(result, notices=(*notices, *_notices(result, fleet, found)))


def _spread_ends(
    found: PopulationFit, known: np.ndarray, errors: np.ndarray, level: float
) -> np.ndarray:
    """Return the ends (p, 2) of the intervals of the standard deviations between machines."""
    from scipy.special import ndtri

    at, estimates, p = found.likelihood, found.estimates, known.shape[1]
    machines, records = estimates.counted_machines > 0, estimates.counted > 0
    factors = ()
    if not (machines.all() and records.all()):
        threshold = outlier_threshold(machines.size)
        factors = consistency_factor(p, threshold), variance_factor(p, threshold)
    counted = np.logical_or.reduceat(known & records[:, None], estimates.start)
    counted &= machines[:, None]
    ends = []
    for k, some in enumerate(counted.T):
        variance = found.between[k, k]
        low, high = variance_interval(at.ybar[some, k], at.V[some, k, k], level, *factors)
        # If machines differ by less than their errors, Cochran's Q gives an interval that is empty
        # or too short.
        most = variance + ndtri(0.5 + level / 2) * errors[k, k] if low == 0 else variance
        ends.append((min(low, variance), max(high, most)))
    return np.sqrt(ends)


def _tables(
    fleet: FleetEstimates,
    lower: Mapping[str, float | None],
    order: np.ndarray,
    found: PopulationFit,
    false_alarms: float,
    level: float,
) -> tuple[DataFrame, DataFrame]:
    """Return the table `records` and the table `machines` of a `Population`."""
    import pandas as pd

    back, estimates, tests = np.argsort(order), found.estimates, found.tests
    spread = found.between + (0.0 if found.within is None else found.within)
    known = np.isfinite(fleet.values[order])
    total = np.einsum("nii->ni", spread + estimates.C)
    deviations = np.where(known, (estimates.y - found.likelihood.mean) / np.sqrt(total), 0.0)
    far = np.argmax(np.abs(deviations), axis=1)
    machines = np.array(fleet.machines, dtype=object)
    records = {
        "record": fleet.record,
        "machine": machines[fleet.machine],
        "row": fleet.row,
        **_values(fleet.names, lower, found.u[back], found.T[back], level),
        "distance": np.sqrt(tests.squared)[back],
        "chance": tests.chance[back],
        "outlier": (tests.chance < false_alarms)[back],
        "farthest": np.array(fleet.names, dtype=object)[far][back],
        "z": deviations[np.arange(len(far)), far][back],
        "within_chance": tests.within[back],
    }
    first = np.unique(fleet.machine)
    by_machine = {
        "machine": machines[first],
        "count": np.bincount(fleet.machine)[first],
        **_values(fleet.names, lower, found.machine_u, found.machine_T, level),
        "chance": tests.machine,
        "outlier": tests.machine < false_alarms,
    }
    return pd.DataFrame(records), pd.DataFrame(by_machine)


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
    fleet: FleetEstimates, log: Iterable[str] | str | bool | None
) -> tuple[dict[str, float | None], list[Notice]]:
    """Return a dict from parameter to lower bound (None without a logarithm), and notices."""
    asked = None
    if log is not None and not isinstance(log, bool):
        asked = {log} if isinstance(log, str) else set(log)
    out, notices = dict[str, float | None](), []
    for name in sorted(asked or ()):
        if name not in fleet.names:
            raise KeyError(
                f"`log`: the table has no number {name!r}.{suggestion(name, fleet.names)}"
            )
        if fleet.lower[name] is None:
            raise ValueError(
                f"`log`: {name} has no lower bound, so its logarithm may not exist. Name it in"
                " table.attrs['frictax']['lower_bounds'], or leave it out of `log`."
            )
    for k, name in enumerate(fleet.names):
        bound, known = fleet.lower[name], np.isfinite(fleet.values[:, k])
        wanted = log is True or (asked is not None and name in asked)
        if log is None and bound is not None:
            near = int(np.sum(fleet.values[known, k] - bound < 2 * fleet.errors[known, k]))
            # If 5 % of the records or more are near the bound, the logarithm is not used.
            wanted = near < 0.05 * known.sum()
            if not wanted:
                about = {"count": near, "records": int(known.sum()), "bound": bound}
                notices.append(Notice("population-near-bound", name, about))
        if not known.any():
            raise ValueError(f"No record has an error of {name}: leave it out of `names`.")
        out[name] = bound if wanted else None
    return out, notices


def _notices(result: Population, fleet: FleetEstimates, found: PopulationFit) -> list[Notice]:
    out = []
    machines, records = len(result.machines), len(result.records)
    if result.left_out:
        count = sum(result.left_out.values())
        reasons = "; ".join(f"{why} ({n})" for why, n in list(result.left_out.items())[:3])
        about = {"count": count, "records": records + count, "reasons": reasons}
        out.append(Notice("population-left-out", "", about))
    if not found.converged:
        out.append(Notice("population-unfinished"))
    if machines < 5 * len(result.names):
        about = {"machines": machines, "count": len(result.names)}
        out.append(Notice("population-few-machines", "", about))
    if result.within is None:
        out.append(Notice("population-no-repeats"))
    for k, name in enumerate(result.names):
        low, high = result.spread_ends[k]
        if low == 0.0:
            most = result.spread_in_words(name, float(high))
            out.append(Notice("population-no-spread", name, {"most": most}))
    if fleet.n > machines and np.any(result.records["within_chance"] < result.false_alarms):
        some = result.records[result.records["within_chance"] < result.false_alarms]
        about = {"count": len(some), "record": str(some.iloc[0]["record"])}
        out.append(Notice("population-unlike-its-machine", "", about))
    return out
