"""How fast is the code that frictax exports?

Problem P7: the block of P2, with 2001 samples of its force and 39 mode changes. The time is that of
one run with position and speed at all samples. The error is the largest one over all samples,
relative to the largest value of its column. The reference is C with eight time steps per sample.

    python experiments/benchmarks/p7.py [--rounds 9] [--csv FILE]
"""

import ctypes
import functools
import json
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np
from contest import HERE, Contestant, built, hold, timed
from sampled_problem import PARAMETERS, Floor, outputs_of_frictax, refined, times

from frictax import fast_loops

jax.config.update("jax_enable_x64", True)
fast_loops()  # must run before jax computes anything

TIMES = times(2000)
FORCE = 2.0 * np.sin(2.0 * np.pi * TIMES)
CALLS = 50


def block():
    import frictax as fx

    names = ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")
    law = fx.Stribeck(**dict(zip(names, PARAMETERS.tolist(), strict=True)))
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law, peak=1.0),
        drive=fx.Force("mass", fx.Sampled(TIMES, FORCE)),
    )


def c_by_hand(name: str, *options: str) -> list[Contestant]:
    floor, y = Floor.build(*options), np.zeros((len(FORCE), 2))
    return [
        Contestant(
            name,
            "run",
            lambda: floor.forward(PARAMETERS, FORCE),
            lambda: timed(lambda i: floor.forward(PARAMETERS, FORCE, y), CALLS),
        )
    ]


def exported_c() -> list[Contestant]:
    import frictax as fx
    from frictax.export.code.machine import MachineCode
    from frictax.export.code.texts import c_text

    machine = MachineCode(block(), None, fx.OnSamples(), {}, ["mass.s", "mass.v"])
    source = HERE / "exported.c"
    source.write_text(c_text(machine), encoding="utf-8")
    code = built("exported", "-ffp-contract=off")
    source.unlink()
    p, out, events = np.array(machine.p), np.zeros((len(FORCE), 2)), ctypes.c_int32()
    at = [a.ctypes.data_as(ctypes.c_void_p) for a in (p, TIMES, out)]

    def run() -> np.ndarray:
        code.fx_run(at[0], len(TIMES), at[1], None, at[2], ctypes.byref(events))
        return out

    seconds = lambda: timed(lambda i: run(), CALLS)  # noqa: E731
    return [Contestant("exported C", "run", lambda: run().copy(), seconds)]


@functools.cache
def in_node() -> tuple[np.ndarray, float]:
    """Return outputs of the exported JavaScript in node, and the mean time of later runs [s]."""
    import frictax as fx

    with TemporaryDirectory() as folder:
        text = fx.to_javascript(block(), outputs=["mass.s", "mass.v"])
        (Path(folder) / "machine.js").write_text(text, encoding="utf-8")
        (Path(folder) / "ts.json").write_text(json.dumps(TIMES.tolist()))
        call = (
            "const m=require('./machine.js'),ts=Float64Array.from(require('./ts.json'));"
            "const p=m.start();let r;for(let i=0;i<200;i++)r=m.run(p,ts);"
            "const t=performance.now();for(let i=0;i<200;i++)r=m.run(p,ts);"
            "console.log(JSON.stringify([(performance.now()-t)/200,[...r.outputs]]))"
        )
        node = ["node", "-e", call]
        done = subprocess.run(node, cwd=folder, check=True, capture_output=True, text=True)
    ms, values = json.loads(done.stdout)
    return np.reshape(values, (-1, 2)), 1e-3 * ms


def javascript() -> list[Contestant]:
    if shutil.which("node") is None:
        return []
    return [Contestant("exported JavaScript", "run", lambda: in_node()[0], lambda: in_node()[1])]


def frictax() -> list[Contestant]:
    import jax.numpy as jnp

    jax.config.update("jax_cpu_enable_async_dispatch", False)  # otherwise JAX switches threads
    run, p = jax.jit(outputs_of_frictax(FORCE)), jnp.asarray(PARAMETERS)
    call = lambda i: run(p).block_until_ready()  # noqa: E731
    return [Contestant("frictax", "run", lambda: np.asarray(run(p)), lambda: timed(call, CALLS))]


@functools.cache
def truth() -> np.ndarray:
    return Floor.build().forward(PARAMETERS, refined(FORCE))[::8].copy()


def error(c: Contestant) -> float:
    """Return the largest error over all samples, relative to the largest value of its column."""
    most = lambda x: np.abs(x).max(axis=0)  # noqa: E731
    return float(np.max(most(c.answer() - truth()) / most(truth())))


def field() -> list[Contestant]:
    """Return all compared programs."""
    by_hand = [*c_by_hand("C with short exp"), *c_by_hand("C", "-DLIBRARY_EXP")]
    return [*by_hand, *exported_c(), *javascript(), *frictax()]


if __name__ == "__main__":
    hold(__doc__, "p7.csv", field, error)
