"""How does the exact stick-slip solution differ from smoothed (tanh) friction on the same block?

A block of 1 kg has Stribeck friction (F_Coulomb = 1 N, F_prop = 0.2 N.s/m, F_Stribeck = 0.4 N,
fexp = 5 s/m, peak = 1). It is simulated for 10 s in two cases:

* driven: a force of 2 sin(2 pi t) N causes 39 changes between stuck and sliding;
* held: a constant load of 1.2 N, as on an incline. The block breaks away at 1.4 N.

The result of `frictax.simulate` is called exact. Smoothed friction is f = law(|v|) * tanh(v/eps).
diffrax integrates the smooth equation with error control, by Tsit5 and by Kvaerno5 (for stiff
equations). All three methods have the tolerances rtol = 1e-7 and atol = 1e-9.

Run: python experiments/01_exact_against_smoothed.py
(under a minute; prints the table and draws 01_exact_against_smoothed.svg)
"""

import argparse
import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure

import frictax as fx
from frictax.mechanism import MechanicalSystem

RTOL, ATOL = 1e-7, 1e-9
END = 10.0  # [s] duration of each simulation
HOLD = 1.2  # [N] constant load of the held block
WIDTHS = (1e-1, 1e-2, 1e-3, 1e-4)  # [m/s] values of eps in tanh(v/eps)
TIMES = np.linspace(0.0, END, 801)
COLOURS = ("#d98032", "#5aa469", "#2f6db3", "#7d5ba6")


@dataclasses.dataclass(frozen=True)
class Row:
    """Results of one method. `eps` is None for the exact method."""

    eps: float | None
    creep: float  # velocity after 10 s under the load `HOLD`, below breakaway [m/s]
    breakaway: float  # largest load under which the block rests or creeps [N]
    end: float  # position of the driven block after 10 s [m]
    slope: float  # derivative of `end` with respect to F_Coulomb [m/N]; smoothed: Tsit5
    steps: int  # number of time steps for the driven block; smoothed: Tsit5
    evaluations: int  # number of evaluations of its acceleration in these time steps
    stiff_steps: int | None = None  # number of time steps with Kvaerno5
    stiff_evaluations: int | None = None  # evaluations of the acceleration with Kvaerno5
    stiff_slope: float | None = None  # like `slope`, with Kvaerno5 [m/N]
    driven: np.ndarray | None = None  # velocities of the driven block at `TIMES` [m/s]
    held: np.ndarray | None = None  # positions of the held block at `TIMES` [m]


# -- the block, exact
# --------------------------------------------------------------------------------------------------


def law(F_Coulomb: Any = 1.0) -> fx.Stribeck:
    return fx.Stribeck(F_Coulomb=F_Coulomb, F_prop=0.2, F_Stribeck=0.4, fexp=5.0)


def block(F_Coulomb: Any = 1.0, amplitude: float = 2.0, load: float = 0.0) -> fx.Mechanism:
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law(F_Coulomb)),
        drive=fx.Force("mass", fx.Sine(amplitude=amplitude, f=1.0, offset=load)),
    )


def exact(engine: fx.Adaptive, whole: bool = True) -> Row:
    """Return the row of the exact method. With ``whole=False``, compute only the driven block, as
    the reference for errors.
    """

    def end(F_Coulomb: Any) -> Any:
        run = fx.simulate(block(F_Coulomb), jnp.array([0.0, END]), engine)
        return run["mass"].s[-1], (run.steps, run["friction"].f0_max[0])

    position, slope, (steps, f0_max) = jax.jvp(end, (1.0,), (1.0,), has_aux=True)
    creep, calls = float("nan"), 0
    if whole:
        creep = float(
            fx.simulate(block(amplitude=0.0, load=HOLD), jnp.array([0.0, END]), engine)["mass"].v[
                -1
            ]
        )
        calls = evaluations(engine)
    return Row(None, creep, float(f0_max), float(position), float(slope), int(steps), calls)


class Counted(fx.AbstractHybridSystem):
    """A hybrid system that calls `tell` at each evaluation of its derivatives."""

    system: MechanicalSystem
    tell: Callable[[], None] = eqx.field(static=True)

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        jax.debug.callback(self.tell)
        return self.system.flow(t, y, mode, args)

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return self.system.guard(t, y, mode, args)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return self.system.jump(t, y, mode, fired, args)

    def deadline(self, mode: Any, args: Any) -> Any:
        return self.system.deadline(mode, args)


def evaluations(engine: fx.Adaptive) -> int:
    """Return the number of evaluations of the block's acceleration in the exact run."""
    system, count = MechanicalSystem(block()), Counter()
    start, mode = system.start(jnp.array(0.0))
    fx.walk(Counted(system, count), start, mode, jnp.array([0.0, END]), options=engine)
    jax.effects_barrier()
    return count.n


class Counter:
    n = 0

    def __call__(self) -> None:
        self.n += 1


# -- the block, smoothed
# ------------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames="solver")
def smoothed(F_Coulomb: Any, eps: Any, amplitude: Any, load: Any, solver: Any) -> Any:
    """Return positions and velocities at `TIMES`, their derivatives with respect to F_Coulomb, and
    the number of time steps.
    """

    def acceleration(t: Any, y: Any, F: Any) -> Any:
        drive = load + amplitude * jnp.sin(2 * jnp.pi * t)
        return jnp.stack([y[1], drive - law(F)(jnp.abs(y[1])) * jnp.tanh(y[1] / eps)])

    (ys, steps), (dys, _) = jax.jvp(
        lambda F: _solve(acceleration, F, solver), (F_Coulomb,), (jnp.ones_like(F_Coulomb),)
    )
    return ys, dys, steps


def _solve(acceleration: Callable[..., Any], F_Coulomb: Any, solver: Any) -> Any:
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(acceleration),
        solver,
        0.0,
        END,
        None,
        jnp.zeros(2),
        args=F_Coulomb,
        saveat=diffrax.SaveAt(ts=jnp.asarray(TIMES)),
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=ATOL),
        adjoint=diffrax.ForwardMode(),
        max_steps=1_000_000,
    )
    return solution.ys, solution.stats["num_steps"]


def smooth_row(eps: float) -> Row:
    explicit, stiff = diffrax.Tsit5(), diffrax.Kvaerno5()
    ys, dys, steps = smoothed(1.0, eps, 2.0, 0.0, explicit)
    _, stiff_dys, stiff_steps = smoothed(1.0, eps, 2.0, 0.0, stiff)
    held, _, _ = smoothed(1.0, eps, 0.0, HOLD, stiff)
    v = np.linspace(0.0, 1.0, 100_001)
    f = np.asarray(law()(jnp.asarray(v))) * np.tanh(v / eps)
    return Row(
        eps=eps,
        creep=float(held[-1, 1]),
        # Beyond this maximum friction decreases with the speed, and the block runs away.
        breakaway=float(f[np.argmax(np.diff(f) < 0)]),
        end=float(ys[-1, 0]),
        slope=float(dys[-1, 0]),
        steps=int(steps),
        # Tsit5 has seven stages. The first one is the last stage of the previous step.
        evaluations=6 * int(steps) + 1,
        stiff_steps=int(stiff_steps),
        stiff_evaluations=14 * int(stiff_steps),  # measured: 7 stages with 2 evaluations each
        stiff_slope=float(stiff_dys[-1, 0]),
        driven=np.asarray(ys[:, 1]),
        held=np.asarray(held[:, 0]),
    )


# -- the answer
# --------------------------------------------------------------------------------------------------


def study(widths: Sequence[float] = WIDTHS) -> tuple[Row, Row, list[Row]]:
    """Return the exact row at tight and at common tolerances, and a row for each width `eps`."""
    truth = exact(fx.Adaptive(rtol=1e-12, atol=1e-13), whole=False)
    return truth, exact(fx.Adaptive(rtol=RTOL, atol=ATOL)), [smooth_row(eps) for eps in widths]


def report(truth: Row, exact_row: Row, rows: Sequence[Row]) -> str:
    """Return the table of results."""
    head = (
        "eps [m/s]",
        "creep [m/s]",
        "holds to [N]",
        "error s(10) [m]",
        "error ds/dF",
        "steps",
        "f calls",
        "Kv.: ds/dF",
        "steps",
        "f calls",
    )
    lines = [" | ".join(f"{h:>15}" for h in head)]
    for row in (exact_row, *rows):
        name = "exact" if row.eps is None else f"{row.eps:g}"
        found = (
            f"{row.creep:.2e}",
            f"{row.breakaway:.4f}",
            f"{abs(row.end - truth.end):.1e}",
            f"{percent(row.slope, truth)} %",
        )
        stiff = ("-", "-", "-")
        if row.stiff_slope is not None:
            stiff = (
                f"{percent(row.stiff_slope, truth)} %",
                str(row.stiff_steps),
                str(row.stiff_evaluations),
            )
        lines.append(
            " | ".join(
                f"{text:>15}"
                for text in (name, *found, str(row.steps), str(row.evaluations), *stiff)
            )
        )
    return "\n".join(lines)


def answer(truth: Row, exact_row: Row, rows: Sequence[Row]) -> str:
    """Return the answer in words."""
    wide, fine = max(rows, key=lambda r: r.eps or 0), min(rows, key=lambda r: r.eps or 1)
    mm = lambda row: two_digits(1e3 * abs(row.end - truth.end))  # noqa: E731
    times = lambda count: two_digits((count or 0) / exact_row.evaluations)  # noqa: E731
    return (
        f"Answer: the smoothed block never rests. Under a load of {HOLD} N it creeps at"
        f" {fine.creep / (fine.eps or 1):.2f} eps for ever, where the exact one stands still; with"
        f" eps = {wide.eps:g} m/s friction holds up to {wide.breakaway:.2f} N only, not"
        f" {truth.breakaway:.2f} N. Driven for 10 s, its end is off by {mm(wide)} mm with eps ="
        f" {wide.eps:g} m/s and by {mm(fine)} mm with {fine.eps:g} m/s; the derivative by F_Coulomb"
        f" is off by {percent(wide.slope, truth)} % and {percent(fine.slope, truth)} % with Tsit5,"
        f" at {times(fine.evaluations)} times the evaluations of the exact run, and by"
        f" {percent(fine.stiff_slope or 0.0, truth)} % with Kvaerno5, at"
        f" {times(fine.stiff_evaluations)} times. (Error control looks at the motion alone: once"
        " stability binds the steps of Tsit5, the derivative grows while the motion stays right.)"
        f" The exact run takes {exact_row.steps} steps and is off by {mm(exact_row)} mm and"
        f" {percent(exact_row.slope, truth)} %."
    )


def percent(slope: float, truth: Row) -> str:
    return two_digits(100 * abs(slope / truth.slope - 1))


def two_digits(x: float) -> str:
    return np.format_float_positional(x, 2, fractional=False, trim="-") if x > 1e-3 else f"{x:.0e}"


def draw(truth: Row, exact_row: Row, rows: Sequence[Row]) -> Figure:
    """Draw velocity near a standstill, creep of the held block, and errors and cost over eps."""
    figure = Figure(figsize=(9.0, 6.0), layout="constrained", facecolor="white")
    (stop, creep), (error, cost) = figure.subplots(2, 2)
    run = fx.simulate(block(), TIMES)
    shown = (TIMES >= 0.4) & (TIMES <= 0.9)
    stop.plot(TIMES[shown], run["mass"].v[shown], color="black", lw=2.0, label="exact")
    creep.plot(TIMES, 0 * TIMES, color="black", lw=2.0, label="exact")
    for row, colour in zip(rows, COLOURS, strict=False):
        assert row.driven is not None
        assert row.held is not None
        if row.breakaway < 0.999 * truth.breakaway:  # The other curves coincide with the exact one.
            stop.plot(
                TIMES[shown],
                row.driven[shown],
                color=colour,
                lw=1.3,
                label=f"eps = {row.eps:g} m/s",
            )
        creep.plot(
            TIMES[::8], 1e3 * row.held[::8], color=colour, lw=1.3, label=f"eps = {row.eps:g} m/s"
        )
    stop.set(
        title="coming to rest and leaving it, driven", xlabel="time [s]", ylabel="velocity [m/s]"
    )
    creep.set(
        title=f"held: {HOLD} N against 1.4 N",
        xlabel="time [s]",
        ylabel="position [mm]",
        yscale="symlog",
    )
    eps = [row.eps for row in rows]
    error.loglog(
        eps,
        [abs(row.end / truth.end - 1) for row in rows],
        "o-",
        color="#2f6db3",
        label="end position",
    )
    error.loglog(
        eps,
        [abs(row.slope / truth.slope - 1) for row in rows],
        "s-",
        color="#c0392b",
        label="derivative by F_Coulomb, Tsit5",
    )
    stiff = [abs((row.stiff_slope or 0.0) / truth.slope - 1) for row in rows]
    error.loglog(eps, stiff, "^--", color="#5aa469", label="derivative, Kvaerno5")
    error.axhline(
        abs(exact_row.slope / truth.slope - 1),
        color="black",
        ls="--",
        lw=1.0,
        label="derivative, exact",
    )
    error.set(title="relative error after 10 s", xlabel="eps [m/s]")
    cost.loglog(
        eps, [row.evaluations for row in rows], "o-", color="#2f6db3", label="smoothed, Tsit5"
    )
    cost.loglog(
        eps,
        [row.stiff_evaluations for row in rows],
        "s-",
        color="#5aa469",
        label="smoothed, Kvaerno5",
    )
    cost.axhline(exact_row.evaluations, color="black", ls="--", lw=1.0, label="exact, Tsit5")
    cost.set(title="evaluations of the right-hand side", xlabel="eps [m/s]")
    for axes in (stop, creep, error, cost):
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: Sequence[str] | None = None) -> tuple[Row, Row, list[Row]]:
    parser = argparse.ArgumentParser(
        description="How does exact stick-slip differ from smoothed friction?"
    )
    parser.add_argument("--figure", type=Path, default=Path(__file__).with_suffix(".svg"))
    parser.add_argument(
        "--widths",
        type=float,
        nargs="+",
        default=list(WIDTHS),
        help="eps [m/s], of " + ", ".join(map(str, WIDTHS)),
    )
    given = parser.parse_args(arguments)
    truth, exact_row, rows = study(given.widths)
    print(report(truth, exact_row, rows), answer(truth, exact_row, rows), sep="\n\n")
    matplotlib.rcParams["svg.hashsalt"] = "frictax"  # the same picture gives the same file
    draw(truth, exact_row, rows).savefig(given.figure, metadata={"Date": None})
    print(f"\nFigure: {given.figure}")
    return truth, exact_row, rows


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
