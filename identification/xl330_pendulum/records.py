"""How well do the published friction parameters of a Dynamixel XL330 servo explain the free decay
of a pendulum on its shaft?

The measured runs are `lift_and_drop` (`frictax data fetch xl330_pendulum`): the servo lifts the
pendulum, its torque is switched off at 2 s, and the pendulum swings until it rests. The script
simulates each run from its measured start with the published values. It prints the difference from
the measurement, and whether dry friction can hold the pendulum at its final angle.

Run: python identification/xl330_pendulum/records.py [--figure decay.svg]
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from pendulum import Pendulum

import frictax as fx

CITATION = (
    "M. Duclusaud, G. Passault, V. Padois, O. Ly, Extended friction models for the physics"
    " simulation of servo actuators, ICRA 2025; github.com/Rhoban/bam, commit af22604, Apache-2.0"
)
TICK = 2 * np.pi / 4096  # step of the servo's position sensor [rad]
G = 9.80665  # m/s2
COLOURS = {100: "#2f6db3", 200: "#d98032", 400: "#5aa469"}

# Published values of this servo (model M1: Coulomb and viscous friction), and mass and length of
# the pendulum on the test bench.
F_COULOMB, F_PROP, ARMATURE = 0.01283, 0.003662, 0.001814  # N.m, N.m.s/rad, kg.m2
MASS, LENGTH = 0.49, 0.10  # kg, m


def raw_folder() -> Path:
    """Return the folder of the raw logs; `FileNotFoundError` if they are not on this computer."""
    return fx.data.path("xl330_pendulum") / "raw"


def decays(folder: Path | None = None) -> dict[int, fx.Record]:
    """Return the free decay of each `lift_and_drop` run by its kp: the angle `phi` [rad]. t = 0 is
    the first sample without motor torque.
    """
    found = {}
    for kp, log in _logs(folder).items():
        # The assumed noise is rounding to the steps of the sensor, uniform within a step.
        sd = {"phi": TICK / np.sqrt(12)}
        t = log["timestamp"] - log["timestamp"][0]
        found[kp] = fx.Record(
            t, outputs={"phi": log["position"]}, sd=sd, name=f"kp {kp}", citation=CITATION
        )
    return found


def decay(kp: int) -> fx.Record:
    """Return the decay of the run `kp`, for the problem file."""
    return decays()[kp]


def starts(folder: Path | None = None) -> dict[int, tuple[float, float]]:
    """Return angle [rad] and speed [rad/s] of each run at t = 0, as reported by the servo. The
    reported speed has a delay of about 10 ms.
    """
    return {
        kp: (float(log["position"][0]), float(log["speed"][0])) for kp, log in _logs(folder).items()
    }


def _logs(folder: Path | None) -> dict[int, dict[str, np.ndarray]]:
    """Return the logged samples without motor torque of each `lift_and_drop` run, by kp."""
    found = {}
    for path in sorted((raw_folder() if folder is None else folder).glob("*.json")):
        log = json.loads(path.read_text(encoding="utf-8"))
        if log["trajectory"] == "lift_and_drop":
            free = [entry for entry in log["entries"] if not entry["torque_enable"]]
            found[log["kp"]] = {
                name: np.array([entry[name] for entry in free])
                for name in ("timestamp", "position", "speed")
            }
    return dict(sorted(found.items()))


def published(phi: float = 0.0, w: float = 0.0, phi_offset: float = 0.0) -> Pendulum:
    """Return the pendulum with the published parameters and the given initial state."""
    friction = fx.SupportFriction("joint", f_pos=fx.Coulomb(F_Coulomb=F_COULOMB, F_prop=F_PROP))
    return Pendulum(
        friction,
        J=ARMATURE + MASS * LENGTH**2,
        mgl=MASS * G * LENGTH,
        phi_offset=phi_offset,
        phi=phi,
        w=w,
    )


def stick_band(pendulum: Pendulum) -> tuple[float, float]:
    """Return the limits of the angles at which friction holds the pendulum at rest [rad]."""
    half = float(jnp.arcsin(pendulum.friction.peak * pendulum.friction.f_pos.f0 / pendulum.mgl))
    return -half - float(pendulum.phi_offset), half - float(pendulum.phi_offset)


@dataclasses.dataclass(frozen=True)
class Row:
    """One run: the measured decay, and the simulated decay at the times of the record."""

    record: fx.Record
    pendulum: Pendulum
    phi: np.ndarray  # simulated [rad]
    stopped: float  # first rest of the simulated pendulum [s]; inf without a rest

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean((self.phi - self.record.outputs["phi"]) ** 2)))

    @property
    def dead_stop(self) -> float:
        """The last measured angle [rad]."""
        return float(self.record.outputs["phi"][-1])

    @property
    def held(self) -> bool:
        """True if the last measured angle is in the stick band."""
        low, high = stick_band(self.pendulum)
        return low <= self.dead_stop <= high


def compared(record: fx.Record, start: tuple[float, float], phi_offset: float = 0.0) -> Row:
    """Simulate the record with published parameters, from angle and speed `start`; return both."""
    pendulum = published(*start, phi_offset)
    path = _walk(pendulum, jnp.asarray(record.t))
    rests = np.asarray(path.after[: int(path.count), 0]) == 0
    stopped = float(path.times[np.argmax(rests)]) if np.any(rests) else np.inf
    return Row(record, pendulum, np.asarray(path.ys[:, 0]), stopped)


@jax.jit
def _walk(pendulum: Pendulum, ts: jax.Array) -> Any:
    return fx.walk(pendulum, *pendulum.start(ts[0]), ts)


def report(rows: Sequence[Row]) -> str:
    """Return a table with a line for each run."""
    lines = [
        "run     samples  start [rad, rad/s]   rms [mrad]  dead stop [mrad]  stick band [mrad] "
        " held  simulated [mrad, s]"
    ]
    for row in rows:
        low, high = (1e3 * x for x in stick_band(row.pendulum))
        start = f"{float(row.pendulum.phi):.3f}, {float(row.pendulum.w):+.2f}"
        end = f"{1e3 * row.phi[-1]:+.1f}, {row.stopped:.2f}"
        lines.append(
            f"{row.record.name:<8}{row.record.n:>6}   {start:<20}{1e3 * row.rms:>9.1f}  "
            f" {1e3 * row.dead_stop:>14.1f}   {f'{low:.1f} to {high:.1f}':>18}  "
            f" {'yes' if row.held else 'no':<4}  {end:>18}"
        )
    return "\n".join(lines)


def draw(rows: Sequence[Row]) -> Figure:
    """Draw each decay, measured and simulated, and the difference."""
    figure = Figure(figsize=(9.0, 2.2 * len(rows) + 0.4), layout="constrained", facecolor="white")
    grid = figure.subplots(len(rows), 2, sharex=True, squeeze=False, width_ratios=[2, 1])
    for (swing, misfit), row in zip(grid, rows, strict=True):
        colour = COLOURS.get(int(row.record.name.split()[-1]), "black")
        low, high = stick_band(row.pendulum)
        swing.axhspan(1e3 * low, 1e3 * high, color="#e4e6e9", lw=0, label="stick band")
        swing.plot(
            row.record.t,
            1e3 * row.record.outputs["phi"],
            color=colour,
            lw=2.2,
            alpha=0.55,
            label=f"measured, {row.record.name}",
        )
        swing.plot(row.record.t, 1e3 * row.phi, color="black", lw=0.9, label="published parameters")
        swing.set_ylabel("angle [mrad]")
        swing.legend(frameon=False, fontsize=8, ncols=3, loc="lower right")
        misfit.axhline(0.0, color="#999999", lw=0.6)
        misfit.plot(row.record.t, 1e3 * (row.phi - row.record.outputs["phi"]), color=colour, lw=1.2)
        misfit.set_title(f"simulated - measured [mrad], rms {1e3 * row.rms:.1f}", fontsize=9)
        for axes in (swing, misfit):
            axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("time since torque off [s]")
    return figure


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(
        description="The free decay of a servo's pendulum beside its published parameters."
    )
    parser.add_argument("--figure", type=Path, help="where to draw it")
    parser.add_argument(
        "--phi-offset",
        type=float,
        default=0.0,
        help="what the sensor's zero lies beside hanging down [rad]",
    )
    given = parser.parse_args(arguments)
    start = starts()
    rows = [compared(record, start[kp], given.phi_offset) for kp, record in decays().items()]
    print(report(rows))
    if given.figure:
        draw(rows).savefig(given.figure)
    return rows


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
