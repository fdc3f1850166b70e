"""Long work that is stopped by keys at random moments: how many keys were heard, and how soon.

`python keys.py NAME COUNT SEED [LIMIT]` repeats the work NAME in one process, each time with a key
after a random time, half of the times with all compiled programs forgotten. It prints a line of
JSON: the count of keys, how many were heard within LIMIT [s] (2), and the longest time from a key
to its exception.
"""

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import frictax as fx
from frictax.interrupts import processors

SOONEST, LONGEST = 0.02, 4.0  # [s] before a key; a key is as likely in each factor of time


def block(force: Any = 0.0, fexp=5.0, F_Coulomb=1.0):
    law = fx.Stribeck(F_prop=0.2, F_Coulomb=F_Coulomb, F_Stribeck=0.5, fexp=fexp)
    friction = fx.SupportFriction("mass", f_pos=law)
    return fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=fx.Force("mass", force))


def belt(peak):
    return fx.Mechanism(
        wall=fx.Fixed(),
        mass=fx.Mass(m=1.0),
        spring=fx.Spring("wall", "mass", c=100.0),
        belt=fx.Mass(m=1.0),
        drive=fx.Position("belt", lambda t: 0.1 * t),
        friction=fx.SupportFriction(
            "mass", f_pos=fx.Coulomb(F_Coulomb=4.0), peak=peak, support="belt"
        ),
    )


def measured():
    t = np.linspace(0.0, 4.0, 801)
    push = 3.0 * np.sin(3.0 * t) + np.sin(1.3 * t)
    v = np.asarray(fx.simulate(block(fx.Sampled(t, push), F_Coulomb=1.2), t)["mass"].v)
    noise = 1e-3 * np.random.default_rng(0).standard_normal(t.size)
    return fx.Record(t, {"drive": push}, {"mass.v": v + noise}, name="run")


FREE = ["mass.m", "friction.f_pos"]


def work_of(name, folder):
    """Return a function that works for longer than `LONGEST`."""
    record = measured()
    if name == "fit":
        return lambda: repeated(lambda _: fx.fit(block(), record, free=FREE))
    if name == "compare":
        rivals = {f"f{i}": fx.Structure(block(fexp=5.0 + i), free=FREE) for i in range(12)}
        return lambda: repeated(lambda _: fx.compare(record, rivals))
    if name == "design":
        limits = fx.Limits(force=3.0, travel=0.2, band=(0.25, 3.0))
        about = {"free": FREE, "duration": 8.0, "rate": 100.0, "limits": limits}
        return lambda: fx.design(block(), {"mass.v": 2e-3}, **about, starts=64, steps=20_000)
    if name == "fleet":
        many = [record] * 4000
        return lambda: fx.fleet(block(), many, free=FREE, jobs=1)
    if name == "fleet-processes":
        many = [record] * 20_000
        return lambda: fx.fleet(block(), many, free=FREE, jobs=2)
    if name == "cycles":
        return lambda: repeated(lambda peak: fx.limit_cycle(belt(peak), 20.0))
    found = fx.fit(block(), record, free=FREE)
    if name == "posterior":
        return lambda: found.posterior(draws=50_000)
    if name == "missing":
        return lambda: repeated(lambda _: fx.fit(block(), record, free=FREE).missing())
    raise SystemExit(f"There is no work {name!r}.")


def repeated(function):
    for i in range(1000):
        made = function(1.5 + 1e-3 * i)
        if was_interrupted(made):
            return made
    raise SystemExit("The work ended before its key.")


def was_interrupted(made):
    """Return whether a result says that it is what was found so far."""
    return any("nterrupted" in w for w in getattr(made, "warnings", ()))


def main(name, count, seed, limit="2.0"):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    jax.config.update("jax_enable_x64", True)
    sys.unraisablehook = lambda what: None
    chance, heard, latest, sooner = random.Random(int(seed)), 0, 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        work = work_of(name, Path(folder))
        for i in range(int(count)):
            if i % 2 and name != "design":  # whose programs take minutes, and go on to be compiled
                jax.clear_caches()
            pressed = [0.0]

            def press(pressed=pressed):
                pressed[0] = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)

            after = SOONEST * (LONGEST / SOONEST) ** chance.random()
            timer = threading.Timer(after, press)
            try:
                timer.start()
                made: Any = work()
                was_heard = pressed[0] > 0.0 and was_interrupted(made)
            except KeyboardInterrupt:
                was_heard = True
            took = time.monotonic() - pressed[0] if pressed[0] else float("nan")
            timer.cancel()
            if was_heard and took <= float(limit):
                heard += 1
            else:
                sooner.append([i, round(took, 2), bool(was_heard)])
            latest = max(latest, took)
    print(json.dumps({"work": name, "keys": int(count), "heard": heard, "latest": round(latest, 2),
                      "not": sooner, "processors": processors()}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # nobody waits for what is still compiled
