"""How much time and memory do ten thousand fits need, and how accurate are they?

A long Parquet table has 10 000 records of 2000 samples each (480 MB as numbers). Each record is of
a block of 1 kg with its own friction and force, and its speed has autocorrelated noise. `frictax
fleet` fits four parameters to each record, with the default intervals. The results are:

- wall-clock and processor time of the whole command, with an empty and a filled program cache;
- the largest memory of all its processes together (proportional set size);
- whether a run that is killed halfway and resumed gives the same table;
- the time of as many Dask workers on this computer, with and without Dask's profiler;
- the differences between rows and results of `fx.fit`, and the coverage of the intervals.

    python experiments/benchmarks/fleet.py [--records 10000] [--jobs 2] [--csv FILE]
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil

SAMPLES, TOGETHER = 2000, 500
NAMES = ("F_Coulomb", "F_prop", "F_Stribeck", "fexp")
USUAL = np.array([1.0, 0.2, 0.4, 5.0])
MEMORY, NOISE = 0.6, 0.002  # sensor noise: AR(1) coefficient, standard deviation [m/s]
PROBLEM = """
title = "Blocks"

[records.any]
file = "any.csv"
time = "t"
inputs.drive = { column = "F", unit = "N" }
outputs."mass.v" = { column = "v", unit = "m/s" }

[machine.mass]
kind = "Mass"
m = 1.0

[machine.friction]
kind = "SupportFriction"
body = "mass"
peak = 1.0
f_pos = { kind = "Stribeck", F_Coulomb = 1.3, F_prop = 0.14, F_Stribeck = 0.28, fexp = 6.5 }

[machine.drive]
kind = "Force"
body = "mass"
f = 0.0

[fit]
free = ["friction.f_pos"]
"""


def drawn(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return true parameters of each record (count, 4), with a scatter of 8 %."""
    return USUAL * np.exp(0.08 * rng.standard_normal((count, 4)))


def made(folder: Path, truth: np.ndarray, rng: np.random.Generator) -> None:
    """Write a long table with a record for each row of `truth`, and the problem file."""
    import jax
    import jax.numpy as jnp
    import pyarrow as pa
    import pyarrow.parquet as parquet
    from scipy.signal import lfilter

    import frictax as fx

    jax.config.update("jax_enable_x64", True)
    t, count = np.linspace(0.0, 10.0, SAMPLES), len(truth)
    ts = jnp.asarray(t)

    def speed(p, u):
        law = fx.Stribeck(**dict(zip(NAMES, p, strict=True)))
        block = fx.Mechanism(
            mass=fx.Mass(m=1.0),
            friction=fx.SupportFriction("mass", f_pos=law, peak=1.0),
            drive=fx.Force("mass", fx.Sampled(ts, u)),
        )
        return fx.simulate(block, ts)["mass"].v

    speeds = jax.jit(jax.vmap(speed))
    (folder / "any.csv").write_text("t,F,v\n" + "".join(f"{x},0,{x}\n" for x in t[:30]))
    (folder / "problem.toml").write_text(PROBLEM)
    writer = None
    for first in range(0, count, TOGETHER):
        k = min(TOGETHER, count - first)
        a, b = rng.uniform(0.0, 2 * np.pi, (2, TOGETHER, 1))
        u = 3.0 * np.sin(2 * np.pi * t + a) + 3.0 * np.sin(2 * np.pi * 0.37 * t + b)
        p = np.resize(truth[first : first + k], (TOGETHER, 4))
        e = rng.standard_normal((TOGETHER, SAMPLES)) * NOISE * np.sqrt(1 - MEMORY**2)
        v = np.asarray(speeds(p, u)) + lfilter([1.0], [1.0, -MEMORY], e, axis=1)
        ids = pa.array(np.repeat([f"r{first + i:05d}" for i in range(k)], SAMPLES))
        table = pa.table({"record_id": ids, "t": np.tile(t, k), "F": u[:k].ravel()})
        table = table.append_column("v", pa.array(v[:k].ravel()))
        writer = writer or parquet.ParquetWriter(folder / "records.parquet", table.schema)
        writer.write_table(table, row_group_size=50 * SAMPLES)
    assert writer is not None
    writer.close()


class Watch(threading.Thread):
    """A thread that measures largest memory [MB] and processor time [s] of a process tree."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.most, self.seconds = psutil.Process(pid), 0.0, 0.0
        self.start()

    def run(self) -> None:
        while self.process.is_running():
            size = seconds = 0.0
            try:
                for one in (self.process, *self.process.children(recursive=True)):
                    size += one.memory_full_info().pss / 1e6
                    seconds += sum(one.cpu_times()[:2])
            except psutil.Error:
                if not psutil.pid_exists(self.process.pid):
                    return
            self.most, self.seconds = max(self.most, size), max(self.seconds, seconds)
            time.sleep(0.2)


def caching(cache: Path) -> dict[str, str]:
    """Return the environment of a process that stores compiled programs in `cache`."""
    kept = {"FRICTAX_CACHE": str(cache), "JAX_COMPILATION_CACHE_DIR": str(cache / "jax")}
    return os.environ | kept


def run(folder: Path, out: str, cache: Path, *more: str, until: str = "") -> Watch:
    """Run `frictax fleet`. If `until` is given, kill it as soon as the part file `until` exists."""
    words = [sys.executable, "-m", "frictax", "fleet", str(folder), str(folder / "records.parquet")]
    words += ["--out", str(folder / out), *more]
    began = time.perf_counter()
    process = subprocess.Popen(words, env=caching(cache), stdout=subprocess.DEVNULL)
    watch = Watch(process.pid)
    while process.poll() is None:
        if until and (folder / f"{out}.parts" / until).exists():
            process.send_signal(signal.SIGKILL)
        time.sleep(0.05)
    watch.wall = time.perf_counter() - began
    watch.join(5)
    assert until or process.returncode == 0, process.returncode
    return watch


def by_dask(folder: Path, cache: Path, jobs: int, *, profiled: bool) -> Watch:
    """Run `frictax fleet` on a Dask scheduler and `jobs` Dask workers of this computer. `profiled`:
    whether Dask's profiler samples the workers a hundred times a second (Dask's default).
    """
    profiles = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": str(profiled)}
    dask, quiet = (
        [sys.executable, "-m"],
        {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
    )
    at, address = folder / "scheduler.json", "tcp://127.0.0.1:8799"
    words = ["distributed.cli.dask_scheduler", "--port", "8799", "--no-dashboard"]
    started = [subprocess.Popen([*dask, *words, "--scheduler-file", str(at)], **quiet)]
    try:
        while not at.is_file():
            time.sleep(0.1)
        words = ["distributed.cli.dask_worker", address, "--no-dashboard", "--nthreads", "1"]
        started += [
            subprocess.Popen([*dask, *words], env=caching(cache) | profiles, **quiet)
            for _ in range(jobs)
        ]
        from distributed import Client

        with Client(address) as client:
            client.wait_for_workers(jobs, timeout=120)
        return run(folder, f"dask{profiled:d}.parquet", cache, "--cluster", address)
    finally:
        for process in started:
            process.terminate()
            process.wait()


def worth(folder: Path, truth: np.ndarray) -> dict[str, float]:
    """Return coverages, and the largest difference of 50 rows from `fx.fit` [standard errors]."""
    import jax

    import frictax as fx

    jax.config.update("jax_enable_x64", True)
    from frictax.fleets.sources import read_rows, sources_in_table
    from frictax.problems import read
    from frictax.problems.problem import record_reader

    table = fx.Fleet.read(folder / "fleet.parquet").table
    out, asked = {"not fitted": float(np.sum(~table["converged"]))}, read(folder)
    reader = record_reader(asked, "any")
    sources = sources_in_table(folder / "records.parquet", "record_id")
    far = 0.0
    for i in np.random.default_rng(1).choice(len(truth), min(50, len(truth)), replace=False):
        record = reader(sources[i].name, read_rows(sources[i]))
        found = fx.fit(asked.machine, record, **asked.settings())
        for e in found.estimates:
            told = table.iloc[i][[e.name, f"{e.name}.lower", f"{e.name}.upper"]].to_numpy(float)
            off = np.abs(told - [e.value, e.lower, e.upper]) / e.standard_error
            far = max(far, float(np.max(off)))
    out["standard errors from fit, at most"] = far
    for k, name in enumerate(NAMES):
        path = f"friction.f_pos.{name}"
        inside = (table[f"{path}.lower"] < truth[:, k]) & (truth[:, k] < table[f"{path}.upper"])
        out[f"intervals of {name} that hold, %"] = 100.0 * float(np.mean(inside))
    return out


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--records", type=int, default=10_000)
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rng = np.random.default_rng(0)
        truth = drawn(given.records, rng)
        made(folder, truth, rng)
        cache = folder / "cache"
        rows: dict[str, float] = {"records": given.records, "jobs": given.jobs}
        by = "--jobs", str(given.jobs)
        for name, out in (("empty cache", "fleet.parquet"), ("filled cache", "again.parquet")):
            watch = run(folder, out, cache, *by)
            rows[f"{name}: seconds on the wall"] = watch.wall
            rows[f"{name}: seconds of processors"] = watch.seconds
            rows[f"{name}: memory, MB"] = watch.most
        half = f"{given.records // 128:06d}.parquet"
        run(folder, "half.parquet", cache, *by, until=half)
        run(folder, "half.parquet", cache, *by, "--resume")
        for name, profiled in (("", False), (", profiled", True)):
            watch = by_dask(folder, cache, given.jobs, profiled=profiled)
            rows[f"workers of Dask{name}: seconds on the wall"] = watch.wall
        import pandas as pd

        a, b = (pd.read_parquet(folder / n) for n in ("fleet.parquet", "half.parquet"))
        pd.testing.assert_frame_equal(
            a.drop(columns="seconds"), b.drop(columns="seconds"), check_exact=True
        )
        rows |= worth(folder, truth)
        shutil.rmtree(cache)
    text = "what,number\n" + "".join(f'"{name}",{x:.4g}\n' for name, x in rows.items())
    given.csv.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
