"""Write the C code of an FMU: the functions of FMI, and simulator functions traced by JAX."""

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import frictax
from frictax.engine.result import CHATTER, FAILURES, Result
from frictax.engine.reused import Reused, model_of
from frictax.engine.system import DEADLINE, END

from ..code.languages import C
from ..code.lowering import Program
from ..code.machine import LONG_AGO, METHODS, MachineCode
from ..code.statements import REAL
from .description import Description

FAR = -LONG_AGO  # [s] end time of the straight line of a linear input; no simulation is so long
EARLY = 1e-9  # [time] tolerance of time events; importers such as FMPy may stop slightly too early


def fmu_source(code: MachineCode, description: Description) -> str:
    """Return the C code of the FMU, which is the same for both versions of FMI."""
    language, at = C(), description.at

    def literals(values: Sequence[float]) -> str:
        return ", ".join(language.literal(x, REAL) for x in [*values, 0.0])

    sizes = {"STATES": code.states, "MODES": code.modes, "INPUTS": len(code.inputs)}
    sizes |= {"MARGINS": at["TIME"] - at["MARGIN"]} | at
    failures = [f"[{i}] = {json.dumps(text.partition('. ')[0])}" for i, text in FAILURES.items()]
    functions = language.print(_trace(code, description.outputs))
    return "\n".join(
        [
            f"/* Written by frictax {frictax.__version__}. */",
            language.head(functions),
            f"enum {{ {', '.join(f'FX_{name} = {n}' for name, n in sizes.items())} }};",
            f"static const double fx_step_size = {description.step!r}, fx_far = {0.1 * FAR!r};",
            f"static const double fx_first[FX_STATE + 1] = {{{literals(code.p.tolist())}}};",
            f"static const double fx_nominals[] = {{{literals(description.nominals)}}};",
            f"static const char *const fx_failures[] = {{{', '.join(failures)}}};",
            functions,
            Path(__file__).with_name("fmu.c").read_text(encoding="utf-8"),
        ]
    )


def _trace(code: MachineCode, outputs: list[int]) -> Program:
    """Return the functions `fx_start`, `fx_event`, `fx_step`, `fx_now` and `fx_tangent`.

    The argument `u` of these functions contains the inputs, followed by their time derivatives.
    `fx_event` handles all simultaneous events. `fx_now` returns the state derivatives, the outputs
    with the indices `outputs`, and the event functions. For a constant mode, `fx_tangent`
    differentiates the state derivatives and outputs in the direction (dp, du, dy).
    """

    def system(p: Any, t: Any, u: Any) -> Any:
        return Reused(model_of(code.system(with_inputs(p, t, u)), None))

    def with_inputs(p: Any, t: Any, u: Any) -> Any:
        for i, (name, (how, time, value)) in enumerate(code.inputs.items()):
            x, slope, sensor = u[i], u[len(code.inputs) + i], code.instruments.get(f"inputs.{name}")
            if sensor is not None:
                gain, offset, drift = (p[sensor + k] for k in range(3))
                x, slope = gain * x + offset + drift * (t - code.first), gain * slope + drift
            p = p.at[value].set(x)
            if how == "linear":
                line = jnp.stack([t, FAR, x + FAR * slope])
                p = p.at[jnp.array([time, time + 1, value + 1])].set(line)
        return p

    def start(p: Any, u: Any, t: Any) -> Any:
        y, mode = code.start(with_inputs(p, t, u), t)
        return y, t, mode, jnp.zeros(2, jnp.int32)

    def step(p: Any, u: Any, t: Any, y: Any, mode: Any, t_end: Any) -> Any:
        after = code.step(with_inputs(p, t, u), t, t_end, y, mode)
        return after.y, t_end, after.mode, after.events, after.failure

    def event(p: Any, u: Any, t: Any, y: Any, mode: Any) -> Any:
        machine, ends = system(p, t, u), t + EARLY * jnp.abs(t) + EARLY**2
        number = lambda result: result._value.astype(jnp.int32)  # noqa: E731

        def find(y: Any, mode: Any) -> tuple[Any, Any]:
            g = machine.guard(t, y, mode)
            fired = jnp.where(jnp.all(g > 0), END, jnp.argmin(g))
            return jnp.where(machine.deadline(mode) <= ends, DEADLINE, fired), jnp.any(jnp.isnan(g))

        def cross(c: Any) -> Any:
            y, mode, count, _, fired = c
            y, mode, status = machine.jump(t, y, mode, fired)
            fired, is_broken = find(y, mode)
            failure = jnp.where(count > CHATTER + 2 * code.modes, number(Result.chatter), 0)
            failure = jnp.where(status != 0, number(Result.inconsistent), failure)
            failure = jnp.where(is_broken, number(Result.nonfinite), failure)
            return y, mode, count + 1, failure, fired

        nought = jnp.array(0, jnp.int32)
        first = y, mode, nought, nought, find(y, mode)[0]
        more = lambda c: (c[-1] != END) & (c[-2] == 0)  # noqa: E731
        y, mode, count, failure, _ = jax.lax.while_loop(more, cross, first)
        return y, machine.deadline(mode), mode, count, failure

    def moment(p: Any, u: Any, t: Any, y: Any, mode: Any) -> Any:
        shown = code.read(with_inputs(p, t, u), t, y, mode)
        return system(p, t, u).flow(t, y, mode), *(shown[i] for i in outputs)

    def now(p: Any, u: Any, t: Any, y: Any, mode: Any) -> Any:
        return moment(p, u, t, y, mode), system(p, t, u).guard(t, y, mode)

    def tangent(p: Any, u: Any, t: Any, y: Any, mode: Any, dp: Any, du: Any, dy: Any) -> Any:
        at = lambda p, u, y: moment(p, u, t, y, mode)  # noqa: E731
        return jax.jvp(at, (p, u, y), (dp, du, dy))[1]

    program = Program(METHODS, ["step_with_events"], copied=["y", "mode"])
    u, t, y = jnp.zeros(2 * len(code.inputs)), jnp.asarray(0.0), jnp.zeros(code.states)
    given = {"p": code.p, "u": u, "t": t, "y": y, "mode": jnp.zeros(code.modes, jnp.int32)}
    given |= {"t_end": t + 1.0, "dp": code.p, "du": u, "dy": y}
    for function in (start, event, step, now, tangent):
        arguments = {name: given[name] for name in inspect.signature(function).parameters}
        program.trace(f"fx_{function.__name__}", function, arguments)
    return program
