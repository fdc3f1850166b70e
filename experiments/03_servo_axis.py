"""Does a servo with gravity hunt or stop, and how does that depend on the breakaway factor `peak`?

A motor (5e-7 kg.m2) drives an arm (0.0049 kg.m2) through a gear with ratio 60. Gravity acts on the
horizontal arm with 0.48 N.m, and the friction of the arm is 0.05 N.m. A controller lifts the arm by
45 degrees in 1 s along a sampled reference, and then holds it:

* proportional and derivative control: kp = 4 N.m/rad, kd = 0.25 N.m.s/rad;
* the same with integral action: ki = 40 N.m/(rad.s).

`peak` is the ratio of breakaway to sliding friction: 1, 1.05, 1.2 and 1.5. The machine is a class
of this file, `ServoAxis`.

Run: python experiments/03_servo_axis.py
(half a minute; prints the table and draws 03_servo_axis.svg)
"""

import argparse
import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure

import frictax as fx
from frictax.parameters import AtLeast, Positive, Scalar, parameter

TARGET = np.pi / 4  # [rad] final value of the reference
END = 60.0  # [s] end of each run
TIMES = np.linspace(0.0, END, 3001)
PEAKS = (1.0, 1.05, 1.2, 1.5)
KI = 40.0  # N.m/(rad.s), gain of the integral action
F = 0.05  # N.m, sliding friction of the arm
COLOURS = ("black", "#5aa469", "#2f6db3", "#c0392b")


class ServoAxis(fx.AbstractAxis):
    """A motor with a gear and an arm under gravity. A controller makes the angle of the arm follow
    args["reference"] [rad].

    **Arguments:** `friction` of the arm; inertias `J_arm` and `J_motor` [kg.m2]; gear `ratio`;
    `mgl`, the torque of gravity on the horizontal arm [N.m]; gains `kp` [N.m/rad], `kd`
    [N.m.s/rad], `ki` [N.m/(rad.s)].
    """

    friction: fx.SupportFriction
    J_arm: Scalar = parameter(Positive(), "kg.m2", default=4.9e-3)
    J_motor: Scalar = parameter(Positive(), "kg.m2", default=5e-7)
    ratio: Scalar = parameter(Positive(), default=60.0)
    mgl: Scalar = parameter(AtLeast(0.0), "N.m", default=0.48)
    kp: Scalar = parameter(AtLeast(0.0), "N.m/rad", default=4.0)
    kd: Scalar = parameter(AtLeast(0.0), "N.m.s/rad", default=0.25)
    ki: Scalar = parameter(AtLeast(0.0), "N.m/(rad.s)", default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J_arm + self.ratio**2 * self.J_motor

    def load(self, t: Any, y: Any, args: Any) -> Any:
        phi, w, integral = y
        motor = (
            self.kp * (args["reference"] - phi)
            + self.kd * (args["der(reference)"] - w)
            + self.ki * integral
        )
        return motor - self.mgl * jnp.sin(phi)

    def others(self, t: Any, y: Any, args: Any) -> Any:
        return jnp.stack([args["reference"] - y[0]])

    def states(self) -> tuple[str, ...]:
        return ("phi", "w", "integral")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.zeros(3))


def servo(peak: Any, ki: Any) -> fx.Driven:
    """Return the servo under its reference, a smooth step sampled at 100 Hz."""
    t = np.linspace(0.0, 1.0, 101)
    reference = TARGET * (10 * t**3 - 15 * t**4 + 6 * t**5)
    friction = fx.SupportFriction("arm", f_pos=fx.Coulomb(F_Coulomb=F), peak=peak)
    return fx.Driven(ServoAxis(friction, ki=ki), reference=fx.Sampled(t, reference))


@dataclasses.dataclass(frozen=True)
class Row:
    """Results of one run."""

    peak: float
    ki: float
    phi: np.ndarray  # at `TIMES` [rad]
    rests: np.ndarray  # a row for each rest: begin [s], end [s], error of the angle [rad]
    slope: float  # derivative of the last angle with respect to `peak` [rad]
    steps: int  # number of time steps

    @property
    def error(self) -> float:
        """Return target minus angle at the last rest [rad]."""
        return float(self.rests[-1, 2])

    @property
    def hunts(self) -> bool:
        """Return whether the arm hunts: it rests at least three times, the last two times at equal
        distances on opposite sides of the target.
        """
        return len(self.rests) > 2 and abs(self.rests[-1, 2] + self.rests[-2, 2]) < 1e-2 * abs(
            self.rests[-1, 2]
        )


@functools.partial(jax.jit, static_argnames="engine")
def _runs(peaks: Any, ki: Any, engine: Any) -> Any:
    def run(peak: Any) -> Any:
        system = servo(peak, ki)
        path = fx.walk(system, *system.start(jnp.array(0.0)), jnp.asarray(TIMES), options=engine)
        return path.ys, path

    def one(peak: Any) -> Any:
        _, slopes, path = jax.jvp(run, (peak,), (jnp.ones_like(peak),), has_aux=True)
        return path, slopes[-1, 0]

    return jax.lax.map(one, peaks)


def study(peaks: Sequence[float] = PEAKS, engine: fx.Adaptive | None = None) -> list[Row]:
    """Run every `peak` without and with integral action."""
    rows = []
    for ki in (0.0, KI):
        paths, slopes = _runs(jnp.asarray(peaks), ki, fx.Adaptive() if engine is None else engine)
        for i, peak in enumerate(peaks):
            path = jax.tree_util.tree_map(lambda x, i=i: x[i], paths)
            assert path.result == fx.Result.successful
            rows.append(
                Row(
                    peak,
                    ki,
                    np.asarray(path.ys[:, 0]),
                    rests_of(path),
                    float(slopes[i]),
                    int(path.steps),
                )
            )
    return rows


def rests_of(path: Any) -> np.ndarray:
    """Return begin [s], end [s] (at most `END`) and error [rad] of each rest."""
    n = int(path.count)
    before, after, times = (
        np.asarray(x)[:n] for x in (path.before[:, 0], path.after[:, 0], path.times)
    )
    begins = times[(before != 0) & (after == 0)]
    ends = times[(before == 0) & (after != 0)]
    rows = []
    for begin in begins:
        end = min([e for e in ends if e > begin], default=END)
        inside = np.searchsorted(TIMES, 0.5 * (begin + end))
        if end - begin > 2 * TIMES[1]:  # shorter rests belong to the lift
            rows.append((begin, end, TARGET - float(path.ys[inside, 0])))
    return np.array(rows)


def stick_band(peak: float) -> tuple[float, float]:
    """Return the range of errors [rad] that friction holds without integral action."""
    axis = servo(peak, 0.0).system
    assert isinstance(axis, ServoAxis)
    low, high = -peak * F, peak * F
    # Solve kp*error = gravity +- friction by fixed-point iteration. It converges for mgl < kp.
    for _ in range(60):
        low, high = (
            float((axis.mgl * np.sin(TARGET - e) + f) / axis.kp)
            for e, f in ((low, -peak * F), (high, peak * F))
        )
    return low, high


# -- the answer
# --------------------------------------------------------------------------------------------------


def report(rows: Sequence[Row]) -> str:
    lines = [
        f"{'control':>8} | {'peak':>5} | rests | last errors [mrad] | length of the last full rest"
        " [s] | d error/d peak [mrad]"
    ]
    for row in rows:
        errors = ", ".join(f"{1e3 * e:+.3f}" for e in row.rests[-3:, 2])
        length = f"{row.rests[-2, 1] - row.rests[-2, 0]:.2f}" if len(row.rests) > 1 else "-"
        name = "PID" if row.ki else "PD"
        lines.append(
            f"{name:>8} | {row.peak:>5g} | {len(row.rests):>5} | {errors} | {length} |"
            f" {-1e3 * row.slope:+.3f}"
        )
    return "\n".join(lines)


def answer(rows: Sequence[Row]) -> str:
    pd, pid = [r for r in rows if r.ki == 0], [r for r in rows if r.ki > 0]
    hunting = [r for r in pid if r.hunts]
    per = np.mean([abs(r.error) / (r.peak - 1) for r in hunting])
    (low1, high1), (low, high) = (stick_band(r.peak) for r in (pd[0], pd[-1]))
    still = min(pid, key=lambda r: r.peak)
    approach = ", ".join(f"{1e3 * abs(e):.2g}" for e in np.abs(still.rests[:, 2]))
    return (
        f"Answer: without integral action it stops, {1e3 * pd[0].error:.1f} mrad below the target"
        " whatever `peak` is: it comes to rest from sliding, and `peak` acts only when it leaves"
        f" rest. What grows with `peak` is the band in which it would stay: {1e3 * low1:.0f} to"
        f" {1e3 * high1:.0f} mrad at peak = {pd[0].peak:g}, {1e3 * low:.0f} to {1e3 * high:.0f}"
        f" mrad at {pd[-1].peak:g}. With integral action gravity leaves no error, and `peak`"
        f" decides: at peak = 1 each rest is nearer to the target than the one before ({approach}"
        f" mrad) and longer; above 1 it hunts for ever, by {1e3 * per:.2f} mrad*(peak - 1) to"
        " either side, which is also what the exact derivative through all"
        f" {2 * len(hunting[-1].rests)} events says ({1e3 * abs(hunting[-1].slope):.2f} mrad)."
    )


def draw(rows: Sequence[Row]) -> Figure:
    """Draw the lift, the errors with integral action, and the dependence on `peak`."""
    figure = Figure(figsize=(9.5, 5.6), layout="constrained", facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1.6, 1])
    lift, hunt = left.subplots(2, 1)
    band, size = right.subplots(2, 1)
    pd, pid = [r for r in rows if r.ki == 0], [r for r in rows if r.ki > 0]
    early = TIMES <= 3.0
    t = np.clip(TIMES[early], 0.0, 1.0)
    lift.plot(
        TIMES[early],
        np.degrees(TARGET * (10 * t**3 - 15 * t**4 + 6 * t**5)),
        color="#999999",
        lw=3.0,
        label="reference",
    )
    lift.plot(
        TIMES[early],
        np.degrees(pd[0].phi[early]),
        color="#d98032",
        lw=1.4,
        label="PD: stops, gravity leaves an error",
    )
    lift.plot(TIMES[early], np.degrees(pid[-1].phi[early]), color="#2f6db3", lw=1.4, label="PID")
    lift.set(ylabel="angle [degrees]", title="the lift", xlabel="time [s]")
    for row, colour in zip(pid, COLOURS, strict=False):
        hunt.plot(
            TIMES, 1e3 * (TARGET - row.phi), color=colour, lw=1.4, label=f"peak = {row.peak:g}"
        )
    most = 1.6e3 * max(abs(r.error) for r in pid)
    hunt.set(
        ylabel="error [mrad]",
        xlabel="time [s]",
        title="PID: it hunts where peak > 1",
        ylim=(-1.3 * most, most),
        xlim=(0.0, END / 3),
    )
    peaks = [r.peak for r in pd]
    edges = np.array([stick_band(p) for p in peaks])
    band.fill_between(
        peaks,
        1e3 * edges[:, 0],
        1e3 * edges[:, 1],
        color="#f0d9c3",
        lw=0,
        label="where it would stay",
    )
    band.plot(peaks, [1e3 * r.error for r in pd], "o-", color="#d98032", label="where it stops")
    band.set(title="PD: error [mrad] over peak", ylim=(60, 102))
    errors = np.array([abs(r.error) if r.hunts else 0.0 for r in pid])
    size.plot(peaks, 1e3 * errors, "o-", color="#2f6db3", label="size of the hunting")
    size.set(title="PID: error [mrad] over peak", xlabel="peak")
    for axes in (lift, hunt, band, size):
        axes.legend(
            frameon=False,
            fontsize=8,
            ncols=4 if axes is hunt else 1,
            loc="lower center" if axes is hunt else "best",
        )
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Does a servo with gravity hunt or stop?")
    parser.add_argument("--figure", type=Path, default=Path(__file__).with_suffix(".svg"))
    parser.add_argument("--peaks", type=float, nargs="+", default=list(PEAKS))
    given = parser.parse_args(arguments)
    rows = study(given.peaks)
    print(report(rows), answer(rows), sep="\n\n")
    matplotlib.rcParams["svg.hashsalt"] = "frictax"  # makes the SVG file reproducible
    metadata = {"Date": None} if given.figure.suffix == ".svg" else None
    draw(rows).savefig(given.figure, metadata=metadata)
    print(f"\nFigure: {given.figure}")
    return rows


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
