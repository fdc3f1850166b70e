"""Tables of fleets that were never measured: all that is wrong with them is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

YEAR = 365.25


def table(
    values: Mapping[str, Any],
    errors: Mapping[str, Any],
    *,
    lower: Mapping[str, float] | None = None,
    units: Mapping[str, str] | None = None,
    freedom: float | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """One row a record: numbers with their standard errors [SI], further columns by name.

    `freedom`: degrees of freedom by which intervals are as wide as they are.
    """
    from scipy.special import stdtrit

    made: dict[str, Any] = {}
    for name, x in values.items():
        made[name] = np.asarray(x, dtype=float)
        made[f"{name}.standard_error"] = np.broadcast_to(errors[name], np.shape(x)).astype(float)
        if freedom is not None:
            half = stdtrit(freedom, 0.975) * made[f"{name}.standard_error"]
            made[f"{name}.lower"], made[f"{name}.upper"] = made[name] - half, made[name] + half
    count = len(next(iter(made.values())))
    frame = pd.DataFrame({"record": [f"r{i}" for i in range(count)], **made, **columns})
    frame.attrs["frictax"] = {
        "names": list(values),
        "units": {name: (units or {}).get(name, "N") for name in values},
        "lower_bounds": {name: (lower or {}).get(name) for name in values},
        "level": 0.95,
        "title": "A synthetic fleet",
    }
    return frame


def normal(
    rng: np.random.Generator,
    n: int,
    omega: np.ndarray,
    errors: tuple[float, float] = (0.2, 1.0),
    mean: float = 10.0,
) -> tuple[pd.DataFrame, np.ndarray]:
    """n machines of one record each with the covariance `omega`, and their true numbers; errors
    differ from record to record between these two shares of the spread.
    """
    p = len(omega)
    truth = mean + rng.multivariate_normal(np.zeros(p), omega, n)
    error = rng.uniform(*errors, (n, p)) * np.sqrt(np.diag(omega))
    names = [f"part.n{k}" for k in range(p)]
    seen = truth + error * rng.standard_normal((n, p))
    return table(
        dict(zip(names, seen.T, strict=True)), dict(zip(names, error.T, strict=True))
    ), truth


def axes(
    rng: np.random.Generator,
    machines: int,
    records: int,
    *,
    drift: Any = 0.0,
    white: float = 0.05,
    slow: float = 0.0,
    memory: float = 60.0,
    warmth: float = -0.04,
    step: float = 30.4,
    error: float = 0.1,
) -> pd.DataFrame:
    """Axes with one number, measured every `step` days: drift [N/yr] of each machine, scatter
    beyond the errors that is white or remembers for `memory` days, `warmth` [N/K].
    """
    machine, k = np.repeat(np.arange(machines), records), np.tile(np.arange(records), machines)
    days, n = step * k, machine.size
    T = 25 + 8 * np.sin(2 * np.pi * days / YEAR) + rng.standard_normal(n)
    rho, walk = np.exp(-step / memory), rng.standard_normal((machines, records))
    for j in range(1, records):
        walk[:, j] = rho * walk[:, j - 1] + np.sqrt(1 - rho**2) * walk[:, j]
    F = 7.0 + 0.7 * rng.standard_normal(machines)[machine] + warmth * (T - 25)
    F = F + np.broadcast_to(drift, machines)[machine] * days / YEAR
    F = F + white * rng.standard_normal(n) + slow * walk.ravel()
    errors = error * rng.uniform(0.5, 1.5, n)
    return table(
        {"joint.F": F + errors * rng.standard_normal(n)},
        {"joint.F": errors},
        machine=[f"axis {i}" for i in machine],
        date=pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D"),
        temperature=T,
    )


def plausible(count: int, trials: int, chance: float) -> bool:
    """Whether that many of so many trials are what this chance gives in 999 of 1000 cases."""
    from scipy.stats import binomtest

    return bool(binomtest(count, trials, chance).pvalue > 1e-3)
