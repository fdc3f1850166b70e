"""Draw the figures of the README of EMPS."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from free_runs import Spread, free_run, rms
from identify import DRIFT

import frictax as fx
from frictax.measurements.filters import smooth
from frictax.report.style import CYCLE, FAINT, style

COLOURS = {"windows": CYCLE[5], "closed loop": CYCLE[1], "free run, drift": CYCLE[6]}


def draw(
    folder: Path,
    first: fx.Record,
    second: fx.Record,
    found: dict[str, fx.FoundMachine],
    repeats: Spread,
) -> None:
    """Draw free runs and friction as PNG files in `folder`."""
    with style():
        _runs(first, second, found, repeats).savefig(folder / "free_runs.png", dpi=110)
        _friction(first, found).savefig(folder / "friction.png", dpi=110)
        plt.close("all")


def _runs(
    first: fx.Record, second: fx.Record, found: dict[str, fx.FoundMachine], repeats: Spread
) -> plt.Figure:
    figure, (top, middle, bottom) = plt.subplots(
        3, 1, figsize=(8.2, 7.6), sharex=True, layout="constrained", height_ratios=[1, 2, 2]
    )
    default, six = found["windows"], found["free run, drift"]
    top.plot(first.t, first.outputs["mass.s"], color=CYCLE[0], lw=1)
    top.set(ylabel="position [m]", title="Measured position, identification record")
    error = free_run(default.model, first)
    middle.plot(
        first.t,
        1e3 * error,
        color=COLOURS["windows"],
        lw=1.2,
        label=f"fitted on windows: {rms(error):.2f} mm rms",
    )
    error = free_run(six.model, first, six.values[DRIFT] * (first.t - first.t[0]))
    label = f"fitted on the free run, with a drift: {rms(error):.2f} mm rms"
    middle.plot(first.t, 1e3 * error, color=COLOURS["free run, drift"], lw=1.2, label=label)
    middle.set(ylabel="error of position [mm]", title="Free run of the identification record")
    error = free_run(default.model, second)
    low, high = np.quantile(1e3 * repeats.errors, [0.1, 0.9], axis=0)
    bottom.fill_between(
        second.t[::20],
        low,
        high,
        color=COLOURS["windows"],
        alpha=0.2,
        lw=0,
        label="10 to 90 % of axes that differ like the cycles",
    )
    bottom.plot(
        second.t,
        1e3 * error,
        color=COLOURS["windows"],
        lw=1.2,
        label=f"fitted on windows: {rms(error):.2f} mm rms",
    )
    bottom.set(
        xlabel="time [s]",
        ylabel="error of position [mm]",
        title="Free run of the validation record, never fitted",
    )
    for ax in (middle, bottom):
        ax.axhline(0.0, color=FAINT, lw=0.8)
        ax.legend(frameon=False, loc="upper left")
        ax.margins(y=0.25)
    return figure


def _friction(record: fx.Record, found: dict[str, fx.FoundMachine]) -> plt.Figure:
    """Draw the friction that follows from the smoothed motion, and the fitted laws."""
    motion, m = smooth(record.t, record.outputs["mass.s"], 50.0), 95.2
    friction = record.inputs["drive"] - m * motion.a
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.8), layout="constrained")
    for ax, way, law in zip(axes, (1, -1), ("f_pos", "f_neg"), strict=True):
        speed = way * motion.v
        sliding = (speed > 2e-3) & (np.arange(record.n) % 10 == 0)
        ax.plot(
            speed[sliding],
            way * friction[sliding],
            ".",
            ms=2,
            color=FAINT,
            alpha=0.5,
            label=f"force − {m:g} kg × acceleration, 50 Hz",
        )
        grid = np.linspace(0.0, speed.max(), 50)
        for name, answer in found.items():
            part = getattr(answer.model["friction"], law)
            mean = 0.5 * answer.values.get(DRIFT, 0.0) * record.duration
            ax.plot(
                grid,
                np.array([float(part(v)) for v in grid]) - way * mean,
                color=COLOURS[name],
                lw=1.5,
                label=f"fitted: {name}",
            )
        ax.set(xlabel="speed [m/s]", title="forward" if way > 0 else "backward", ylim=(15.0, 60.0))
    axes[0].set_ylabel("friction [N]")
    axes[0].legend(frameon=False, loc="upper left", fontsize=8)
    return figure
