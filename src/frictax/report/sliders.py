"""Make the sliders of a page. A slider changes one estimate; then the page simulates again.

If a page cannot simulate, its curves change linearly, by their derivative with respect to the
estimate. Simulations at both ends of the range of the slider test this linear approximation.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from frictax.export.code.lowering import CannotBeWritten
from frictax.fitting import Estimate, FitResult
from frictax.fitting.problem.problem import bounds, predictions, upper_bounds
from frictax.measurements import Record
from frictax.text import format_alike, prefix_unit

from . import plotly_json as plotly
from .record_figure import Channel, channels_of, fit_panels, pick, with_gaps
from .simulation import simulate_records
from .style import FAINT, FORWARD, Curve, Panel


@dataclasses.dataclass(frozen=True, eq=False)
class Range:
    """The range of a slider: estimate + `lower` to estimate + `upper` [SI], with `lower` <= 0.

    `off`: largest rms deviation of the linear approximation from a simulation at both ends, divided
    by the allowed deviation. `off` is above 1 if the search did not find a valid range.
    """

    estimate: Estimate
    lower: float
    upper: float
    off: float

    @property
    def size(self) -> float:
        """The distance from the estimate to the farther end of the range [SI]."""
        return max(-self.lower, self.upper)


def ranges(
    found: FitResult, channels: Sequence[Channel], estimates: Sequence[Estimate]
) -> list[Range | None]:
    """Return for each estimate the range in which simulations confirm the linear approximation, or
    None if the estimate does not change a curve.
    """
    x, shown = np.asarray(found.x), np.flatnonzero(found.shown)
    room = bounds(found.problem.unknowns) - x, upper_bounds(found.problem.unknowns) - x
    records = [u.record for u in found.problem.unknowns for _ in u.names]
    out = []
    for k, (i, estimate) in enumerate(zip(shown, estimates, strict=True)):
        moved = [c for c in channels if c.rms(c.slopes[:, k]) > 0]
        if not moved:
            out.append(None)
            continue
        # If possible, the slider changes at least one curve by ten times the allowed deviation.
        visible = max(c.rms(c.slopes[:, k]) / (10.0 * _tolerance(c)) for c in moved)
        error = estimate.standard_error
        most = max(1 / visible, 3 * error if np.isfinite(error) else 0.0)
        ends, worst = [0.0, 0.0], 0.0
        for side, (sign, way) in enumerate(zip((-1.0, 1.0), room, strict=True)):
            following, step, off = min(most, 0.9 * abs(float(way[i]))), 0.0, 0.0
            for _ in range(5 if following > 0 else 0):  # at most 5 simulations per side
                step, at = following, x.copy()
                at[i] += sign * step
                off = 0.0  # largest rms deviation from a simulation / allowed deviation
                for n, label in enumerate(found.records):
                    if records[i] not in (None, n):
                        continue
                    simulated = np.asarray(predictions(found.problem, jnp.asarray(at), n))
                    for j, c in enumerate(c for c in channels if c.label == label):
                        moved_by = np.ravel(simulated[..., j]) - c.fitted
                        wrong = c.rms(moved_by - sign * step * c.slopes[:, k])
                        off = max(off, wrong / _tolerance(c) if np.isfinite(wrong) else np.inf)
                if off <= 1:
                    break
                # As the deviation grows with the square of the step or faster, shorten the step.
                less = 0.9 / np.sqrt(off) if np.isfinite(off) else 0.1
                following = step * float(np.clip(less, 0.1, 0.7))
            ends[side], worst = sign * step, max(worst, off)
        out.append(Range(estimate, ends[0], ends[1], worst))
    return out


def simulated_ranges(
    found: FitResult, channels: Sequence[Channel], estimates: Sequence[Estimate]
) -> list[Range | None]:
    """Return the range of each slider, or None for an estimate that does not change any curve.

    A range is from 0 to twice the estimate, or ten standard errors to each side if this is wider.
    The range ends inside the bounds of the parameter.
    """
    shown = np.flatnonzero(found.shown)
    least, most = bounds(found.problem.unknowns)[shown], upper_bounds(found.problem.unknowns)[shown]
    out = []
    for k, estimate in enumerate(estimates):
        moved = [c for c in channels if c.rms(c.slopes[:, k]) > 0]
        error = estimate.standard_error
        size = max(abs(estimate.value), 10 * error if np.isfinite(error) else 0.0)
        if moved and size == 0:
            size = min(10 * _tolerance(c) / c.rms(c.slopes[:, k]) for c in moved)
        # A slider ends before a bound, because many machines cannot be simulated at a bound.
        room = [0.98 * (end[k] - estimate.value) for end in (least, most)]
        lower, upper = max(-size, room[0]), min(size, room[1])
        out.append(Range(estimate, float(lower), float(upper), 0.0) if moved else None)
    return out


def _tolerance(channel: Channel) -> float:
    """Return the allowed rms deviation of the linear approximation [SI]: half of the rms residual,
    or 1 % of the standard deviation of the curve if that is larger. The page states this rule.
    """
    shown = channel.measured[channel.counts]
    of_curve = 0.01 * float(np.std(shown)) if shown.size else 0.0
    return max(0.5 * channel.rms(channel.residual), of_curve, 1e-300)


@dataclasses.dataclass(frozen=True, eq=False)
class Sliders:
    """The sliders of a page. `figures`: name -> plot; `captions`: names and captions; `rows`: texts
    of each slider; `data`: numbers for the script; `still`: estimates that do not change curves.

    `lead`: text below the sliders; `script`: script that simulates, or "" if curves change
    linearly; `group`: label of the group of sliders; `found`: word before the initial value of a
    slider; `back`: label of the button that resets the sliders.
    """

    steps: ClassVar[int] = 500  # slider steps from initial value to the farther end of the range

    figures: dict[str, dict[str, Any]]
    captions: list[tuple[str, str]]
    rows: list[dict[str, Any]]
    data: dict[str, Any]
    still: list[str]
    lead: str
    script: str = ""
    group: str = "Fitted parameters"
    found: str = "found"
    back: str = "Back to the fit"

    def blocks(self) -> list[tuple[str, Any]]:
        blocks: list[tuple[str, Any]] = [("sliders", self)]
        if self.rows:
            typing = "Click a value, double-click a slider, or press Enter on it, to type a value."
            blocks.append(("lead", f"{self.lead} {typing}"))
        if self.still:
            blocks.append(("lead", f"No effect on these curves: {', '.join(self.still)}."))
        return blocks


def sliders(found: FitResult, estimates: Sequence[Estimate] | None = None) -> Sliders:
    """Plot measured and fitted curves of up to six records, with a slider for each estimate that
    changes a curve. `estimates`: estimates with standard errors, by default those of the fit.
    """
    channels = channels_of(found)
    estimates = found.estimates if estimates is None else estimates
    code, why = "", ""
    if not found.of_sweep:
        try:
            code = simulate_records(found.problem, np.asarray(found.x))
        except CannotBeWritten as reason:
            why = str(reason).rstrip(".")
    all_ranges = (simulated_ranges if code else ranges)(found, channels, estimates)
    moving = [(k, r) for k, r in enumerate(all_ranges) if r is not None and r.upper > r.lower]
    labels = list(found.records)[:6]  # At most six records are drawn.
    drawn = [c for c in channels if c.label in labels]
    # Choose the number of bins so that the curves of a page have about 30 000 numbers (300 kB).
    slopes = 0 if code else len(moving)
    bins = int(np.clip(30_000 / (4 * max(len(drawn), 1) * (4 + slopes)), 20, 250))
    figures, captions, moves = {}, [], []
    for i, label in enumerate(labels):
        name = f"fit-{i}"
        mine = [c for c in drawn if c.label == label]
        figures[name], caption, moved = _plot(found, label, mine, None if code else moving, bins)
        place = {"plot": name} | ({"record": found.number(label)} if code else {})
        moves += [place | move for move in moved]
        captions.append((name, caption))
    if len(labels) < len(found.records):
        more = f" The page draws the first {len(labels)} of {len(found.records)} records."
        captions[-1] = (captions[-1][0], captions[-1][1] + more)
    rows, steps = [], []
    for k, r in moving:
        # A slider uses the unit of the parameter table.
        e, shown = r.estimate, r.estimate.shown
        unit, one = "" if shown.unit == "1" else shown.unit, shown.size
        steps.append({"value": e.value / one, "step": r.size / Sliders.steps / one})
        if code:
            x = int(np.flatnonzero(found.shown)[k])
            steps[-1] |= {"x": x, "size": one}
            # Write finite bounds of the parameter in the unit of the slider.
            unknowns = found.problem.unknowns
            limits = {"low": bounds(unknowns)[x] / one, "high": upper_bounds(unknowns)[x] / one}
            steps[-1] |= {name: float(end) for name, end in limits.items() if np.isfinite(end)}
        ends = [e.value / one + end / one for end in (r.lower, r.upper)]
        low, high = format_alike(ends, r.size / one / 20)
        holds = f"{'' if code else 'valid '}{low} to {high} {unit}".rstrip()
        if r.off > 1:
            holds = (
                f"{low} to {high} {unit}: the linear approximation is not valid here, because its"
                f" error is {r.off:.2g} times the tolerance"
            )
        error = e.standard_error / one
        known = f" ± {shown.error}" if np.isfinite(error) else ""
        rows.append(
            {
                "name": e.name,
                "unit": unit,
                "least": round(Sliders.steps * r.lower / r.size),
                "most": round(Sliders.steps * r.upper / r.size),
                "found": f"{shown.value}{known} {unit}".rstrip(),
                "error": error if np.isfinite(error) else 0.0,
                "holds": holds,
                "doubtful": r.off > 1,
            }
        )
    sums = []
    for c in channels:
        # The page computes each rms from a sum of squares over all samples, not only drawn samples.
        unit, size = prefix_unit(c.unit, np.array([c.rms(c.residual)]))
        left = c.residual[c.counts] / size
        sums.append({"says": f"{c.label}: {c.name}", "unit": unit, "n": int(c.counts.sum())})
        sums[-1] |= {"squares": float(left @ left)}
        if code:
            names = found.problem.prepared[found.number(c.label)].names
            sums[-1] |= {"record": found.number(c.label), "column": names.index(c.name)}
            sums[-1] |= {"size": size, "absent": np.flatnonzero(~c.counts).tolist()}
            # `rounding`: allowed difference between the rms residuals of the page and of the fit.
            # If the difference is larger, the page's simulation differs from that of the fit.
            rounding = 1e-6 * c.rms(c.residual) + 1e-9 * c.rms(c.measured)
            sums[-1]["rounding"] = rounding / size
        else:
            moved = _scale(c.slopes, moving)[c.counts] / size
            sums[-1] |= {"cross": (moved.T @ left).tolist(), "gram": (moved.T @ moved).tolist()}
    data = {"steps": Sliders.steps, "sliders": steps, "moves": moves, "rms": sums}
    data |= {"x": np.asarray(found.x).tolist()} if code else {}
    still = [e.name for e, r in zip(estimates, all_ranges, strict=True) if r is None]
    lead = (
        "Each slider changes one parameter. Then this page simulates all records again, with the"
        " equations, the events and the steps of the fit. The screen shows a part of the samples;"
        " each rms uses all samples."
    )
    if not code:
        reason = f": {why[0].lower()}{why[1:]}" if why else ""
        reason = f" This page does not simulate{reason}."
        lead = (
            "Each slider changes one parameter, and the curve follows its exact derivative (a"
            f" linear approximation).{reason} “valid”: the range of"
            " the linear approximation, tested by simulation at the ends of the slider. There its"
            " error is at most half of the rms residual, or 1 % of the standard deviation of the"
            " curve if that is more. The screen shows a part of the samples; each rms uses all"
            " samples and the linear approximation."
        )
    return Sliders(figures, captions, rows, data, still, lead, code)


def _scale(slopes: np.ndarray, moving: Sequence[tuple[int, Range]]) -> np.ndarray:
    """Return changes (n, k) of a curve if each slider moves to the farther end of its range."""
    if not moving:
        return slopes[:, :0]
    return np.stack([slopes[:, k] * r.size for k, r in moving], axis=1)


def _plot(
    found: FitResult,
    label: str,
    mine: Sequence[Channel],
    moving: Sequence[tuple[int, Range]] | None,
    bins: int,
) -> tuple[dict[str, Any], str, list[dict[str, Any]]]:
    """Return the plot of a record, its caption, and the data with which sliders change its curves.
    `moving`: index and range of each estimate with a slider, or None if the page simulates.

    Each channel has three curves: measured, fitted, residual.
    """
    record = found.records[label]
    motion = isinstance(record, Record)
    panels: list[Panel] = []
    moves: list[dict[str, Any]] = []
    bands, of = [], "median standard" if any(c.noise_varies for c in mine) else "standard"
    for c, channel in enumerate(mine):
        unit, size = prefix_unit(channel.unit, np.array([2 * channel.noise]))
        bands.append(f"{channel.name} ±{2 * channel.noise / size:.3g} {unit}")
        rows = np.arange(channel.x.size)
        if rows.size > 6 * bins:
            # The plot shows only the lowest and the highest value of each curve in each bin.
            curves = channel.measured, channel.fitted, channel.residual
            rows = np.union1d([0, rows.size - 1], plotly.extreme_rows(curves, bins))
        rows = with_gaps(rows, channel)  # -1 separates rows of different windows
        if not motion:
            assert moving is not None
            panels += _sweep_panels(found, label, channel, rows, moving, moves)
            continue
        pair, one, below = fit_panels(channel, rows, plotly.escape_name(channel.name))
        panels += pair
        if moving is None:
            counted = [-1 if r < 0 or not channel.counts[r] else int(r) for r in rows]
            curves = [[3 * c + 1, one], [3 * c + 2, below]]
            moves.append({"column": c, "rows": counted, "curves": curves})
        else:
            fitted, residual = pair[0].curves[1].y, pair[1].curves[0].y
            slopes = _scale(channel.slopes, moving)[rows] / one
            both = [(3 * c + 1, fitted, 1.0), (3 * c + 2, residual, -one / below)]
            moves.append(_move(both, slopes))
    kind = "the fit" if found.of_sweep else type(found.problem.objective).__name__
    windows = f", {mine[0].windows} windows" if mine[0].windows > 1 else ""
    known = "given" if found.problem.noise_known else "estimated from the residuals"
    caption = (
        f"{label}: the residuals of {kind}{windows}. Below each pair: measured −"
        f" {'simulated' if motion else 'fitted'}; band: two {of} deviations of the noise, as"
        f" {known} ({'; '.join(bands)})."
    )
    caption += "" if motion else " Forces against the motion are positive."
    what = "time [s]" if motion else f"velocity [{record.velocity_unit.name}]"
    return plotly.plot_panels(panels, what, 260 * len(mine) + 150), caption, moves


def _sweep_panels(
    found: FitResult,
    label: str,
    channel: Channel,
    rows: np.ndarray,
    moving: Sequence[tuple[int, Range]],
    moves: list[dict[str, Any]],
) -> list[Panel]:
    """Return the panels of a sweep. Append to `moves` how each slider changes the curves. A force
    against the motion is positive. The curve has a gap between the two directions of motion.
    """
    sweep = found.records[label]
    over, way = sweep.velocity_unit.si, sweep.direction
    unit, size = prefix_unit(channel.unit, channel.measured[channel.counts])
    residual = pick(way * channel.residual, rows)
    residual_unit, residual_size = prefix_unit(channel.unit, residual[np.isfinite(residual)])
    top, least = (float(f(np.abs(sweep.velocity))) for f in (np.max, np.min))
    count = 120  # number of points of the friction curve in each direction
    v = np.linspace(min(least, 1e-3 * top) or 1e-3 * top, 1.03 * top, count)
    ways = [w for w in (-1, 1) if np.any(sweep.direction == w)]
    v = np.concatenate([w * v for w in ways])
    # The curve is the prediction of the fit, which includes the normal force of a brake or clutch.
    number, zeros, problem = found.number(label), np.zeros(v.size), found.problem
    rest = {"breakaway": zeros > 0, "measured": zeros[:, None], "weight": zeros[:, None]}
    prepared: Any = problem.prepared[number]
    drawn = dataclasses.replace(prepared, velocity=v, direction=np.sign(v), **rest)

    def at(x: Any) -> Any:
        how = problem.objective, problem.engine, problem.delayed
        return drawn.predict(problem.setup_at(x, number), *how)[:, 0]

    z = jnp.asarray(found.x)
    force, slopes = np.asarray(at(z)), np.asarray(jax.jacfwd(at)(z))[:, found.shown]
    force, changes = np.sign(v) * force, _scale(np.sign(v)[:, None] * slopes, moving)
    if len(ways) > 1:
        v, force = (np.insert(a, count, np.nan) for a in (v, force))
        changes = np.insert(changes, count, 0.0, axis=0)
    x, measured = pick(channel.x, rows) / over, pick(way * channel.measured, rows) / size
    residual, force = residual / residual_size, force / size
    curves = [
        Curve(x, measured, FAINT, "measured", 6.0, "points"),
        Curve(v / over, force, FORWARD, "fitted", 1.8),
    ]
    below = [Curve(x, residual, FAINT, "", 6.0, "points")]
    slopes = _scale(way[:, None] * channel.slopes, moving)[rows] / residual_size
    moves.append(_move([(1, force, 1.0)], changes / size))
    moves.append(_move([(2, residual, -1.0)], slopes))
    name, noise = plotly.escape_name(channel.name), 2 * channel.noise / residual_size
    return [
        Panel(f"{name} [{unit}]", curves, layout={"nticks": 6}),
        Panel(f"residual [{residual_unit}]", below, "", 0.5, noise, layout={"nticks": 4}),
    ]


def _move(targets: Sequence[tuple[int, np.ndarray, float]], slopes: np.ndarray) -> dict[str, Any]:
    """Return a dict for the script: curves (number, values, factor), and changes by each slider."""
    return {
        "targets": [
            {"trace": trace, "base": plotly.six_figures(base), "factor": factor}
            for trace, base, factor in targets
        ],
        "slopes": [[float(f"{v:.4g}") for v in np.nan_to_num(column)] for column in slopes.T],
    }
