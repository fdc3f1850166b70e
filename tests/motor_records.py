"""Files of records that `frictax init` reads: motions of one body, written as tables."""

from pathlib import Path
from typing import Any

import numpy as np

from frictax.problems.starting import Draft, Options, draft_of


def moved(
    duration: float, rate: float, inertia: float, friction, load, q: float = 0.0, v: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions and speeds of one body: inertia*dv/dt = load(t, q) - friction(|v|)*sign(v),
    by small steps that end where it stops.
    """
    step, each = 1.0 / rate / 10, list[tuple[float, float]]()
    for k in range(int(duration * rate) * 10 + 1):
        if k % 10 == 0:
            each.append((q, v))
        pushed = load(k * step, q)
        if v != 0 or abs(pushed) > friction(0.0):
            way = np.sign(v) if v != 0 else np.sign(pushed)
            after = v + step / inertia * (pushed - way * friction(abs(v)))
            after = 0.0 if v != 0 and after * v < 0 else after
            q, v = q + 0.5 * step * (v + after), after
    x = np.array(each)
    return np.arange(len(x)) / rate, x[:, 0], x[:, 1]


def current(t: Any) -> Any:
    return 0.42 * np.sin(5.7 * t) + 0.25 * np.sin(14.5 * t + 1.0)


def write(path: Path, header: str, *columns: np.ndarray) -> str:
    rows = (",".join(f"{x:.6g}" for x in row) for row in zip(*columns, strict=True))
    path.write_text("\n".join([header, *rows] if header else rows), encoding="utf-8")
    return str(path)


def drafted(file: str, *columns: str, **more: Any) -> Draft:
    """The draft of a file, with columns that the user names as "role=column[unit]"."""
    named = dict(text.split("=", 1) for text in columns)
    return draft_of(Path(file), Options(columns=named, **more))
