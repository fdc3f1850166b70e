"""A key stops long work at once, while XLA compiles or runs, and then the process ends well."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import jax
import pytest

import frictax as fx
from frictax.interrupts import (
    Keys,
    Workers,
    call_interruptibly,
    defer_interrupt,
    may_keep,
    nested_work,
    results_of,
    stop_here,
)
from frictax.programs.executables import config_of

# a shell's background job ignores it
HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

# compiles for tens of seconds, and says when it begins to
COMPILING = """
import os, sys, threading, time, jax, jax.numpy as jnp
from frictax.programs import cached_jit

@cached_jit
def long(x):
    for i in range(3000):
        x = jnp.sin(x) @ x + i * jnp.cos(x).T
    threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    return x,

begun = open({name!r}, "w")
begun.write("kept")
try:
    long(jnp.ones((8, 8)))
except KeyboardInterrupt:
    print("stopped", flush=True)
    {then}
"""

RECORD = """
import os, time, jax, numpy as np, frictax as fx
jax.config.update("jax_enable_x64", True)
fx.fast_loops()
t = np.linspace(0.0, 4.0, 801)
push = 3.0 * np.sin(3.0 * t) + np.sin(1.3 * t)

def block(force=0.0, **law):
    law = fx.Stribeck(**{"F_prop": 0.2, "F_Coulomb": 1.0, "F_Stribeck": 0.5, "fexp": 5.0} | law)
    friction = fx.SupportFriction("mass", f_pos=law)
    return fx.Mechanism(mass=fx.Mass(m=1.0), friction=friction, drive=fx.Force("mass", force))

noise = 1e-3 * np.random.default_rng(0).standard_normal(801)
v = np.asarray(fx.simulate(block(fx.Sampled(t, push), F_Coulomb=1.2), t)["mass"].v) + noise
record = fx.Record(t, {"drive": push}, {"mass.v": v}, name="run")
free = ["mass.m", "friction.f_pos"]

def said(*words):  # at once, whatever other threads say
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def told(line):
    said("line")
"""
# Each work ends by a key after this many lines of progress: 0 while it compiles, 2 while it runs.
LINES = {
    "starts, compiling": 0,
    "starts": 2,
    "profile": 2,
    "posterior": 2,
    "compare": 2,
    "design": 2,
}
WORKS = """
def works():
    starts = lambda: fx.fit(block(), record, free=free, starts=40, spread=1.0, progress=told)
    yield starts
    yield starts
    found = fx.fit(block(), record, free=free)
    yield lambda: found.profile(("mass.m", "friction.f_pos.fexp"), points=60, progress=told)
    yield lambda: found.posterior(draws=50_000, progress=told)
    rivals = {f"f{i}": fx.Structure(block(fexp=5.0 + i), free=free) for i in range(40)}
    yield lambda: fx.compare(record, rivals, progress=told)
    about = {"free": free, "duration": 4.0, "rate": 50.0, "progress": told}
    limits = fx.Limits(force=3.0, travel=0.2, band=(0.25, 3.0))
    yield lambda: fx.design(block(), {"mass.v": 2e-3}, limits=limits, **about)

for work in works():
    said("begins")
    try:
        made = work()
    except KeyboardInterrupt:
        said("stopped", time.time())
    else:
        said("made", time.time(), *(w for w in made.warnings if "was interrupted" in w))
"""


def begun(script: str) -> subprocess.Popen:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    return subprocess.Popen(
        [sys.executable, "-c", HEARS + script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(os.name != "posix", reason="ends a process by a signal, as POSIX has them")
def test_a_key_stops_a_compilation_and_the_process_ends_by_the_keys_signal(tmp_path: Any) -> None:
    process = begun(COMPILING.format(name=str(tmp_path / "open"), then="raise"))
    assert process.stdout is not None
    assert process.stdout.readline() == "stopped\n"
    at = time.monotonic()
    out, error = process.communicate(timeout=60)
    assert time.monotonic() - at < 5.0  # and not the rest of the compilation
    assert process.returncode == -signal.SIGINT
    assert error.rstrip().endswith("KeyboardInterrupt")
    assert "terminate" not in error
    assert (tmp_path / "open").read_text() == "kept"


@pytest.mark.slow
def test_a_program_that_goes_on_after_a_key_ends_well(tmp_path: Any) -> None:
    short = COMPILING.replace("3000", "500").replace("2.0", "0.3")
    process = begun(short.format(name=str(tmp_path / "open"), then="sys.exit(3)"))
    out, error = process.communicate(timeout=120)
    assert (out, error, process.returncode) == ("stopped\n", "", 3)


@pytest.mark.slow
def test_a_key_stops_long_work_while_it_compiles_and_while_it_runs() -> None:
    process = begun(RECORD + WORKS)
    assert process.stdout is not None
    for name, lines in LINES.items():
        # and no line of the work before, which was stopped
        assert process.stdout.readline() == "begins\n", name
        for _ in range(lines):
            assert process.stdout.readline() == "line\n", name
        time.sleep(0.0 if lines else 1.0)
        at = time.time()
        process.send_signal(signal.SIGINT)
        last = next(line for line in process.stdout if line != "line\n")
        word, when, *notes = last.split(" ", 2)
        assert float(when) - at < 2.0, name
        assert word == ("made" if name == "starts" else "stopped"), name
        if name == "starts":  # what was found so far
            assert notes[0].startswith("The search was interrupted after ")
    assert process.communicate(timeout=300) == ("", "")
    # where the key came while a string was run, as of a dataclass, CPython ends by its signal,
    # although it was caught
    assert process.returncode in (0, -signal.SIGINT)


def test_workers_stop_before_their_next_call_and_nobody_waits_for_them() -> None:
    calls, gate = [], threading.Event()

    def work(k: int) -> None:
        calls.append(k)
        gate.wait(10.0)
        call_interruptibly(calls.append, -1)

    began = time.monotonic()
    jobs = []

    def stopped() -> None:
        with Workers(2) as pool:
            jobs.extend(pool.submit(work, k) for k in range(5))
            while len(calls) < 2:
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert time.monotonic() - began < 5.0
    gate.set()
    assert all(isinstance(job.exception(10.0), KeyboardInterrupt) for job in jobs[:2])
    assert all(job.cancelled() for job in jobs[2:])
    assert sorted(calls) == [0, 1]


def test_the_first_error_of_workers_is_raised_and_the_others_are_waited_for() -> None:
    ended = []

    def fails() -> None:
        raise ValueError("no")

    def lasts() -> None:
        time.sleep(0.3)
        ended.append(1)

    with pytest.raises(ValueError, match="no"), Workers(2) as pool:
        results_of([pool.submit(lasts), pool.submit(fails)])
    assert ended == [1]


def test_workers_return_in_order_as_many_at_a_time_as_asked() -> None:
    now, most, lock = [0], [0], threading.Lock()

    def work(k: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01)
        with lock:
            now[0] -= 1
        return k * k

    with Workers(3) as pool:
        assert pool.map(work, range(10)) == [k * k for k in range(10)]
    assert most[0] <= 3


def test_workers_compute_under_the_settings_of_who_asks_them() -> None:
    def made() -> Any:
        return jax.numpy.ones(1).dtype, config_of("jax_default_device")

    device = jax.devices("cpu")[0]
    with jax.enable_x64(False), jax.default_device(device), Workers() as pool:
        assert pool.submit(made).result() == (jax.numpy.float32, device)
    with Workers() as pool:
        assert pool.submit(made).result() == (jax.numpy.float64, None)


class Garbage:
    """Python drops an exception that is raised while this object is deleted."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)


def test_a_key_that_python_drops_is_raised_again() -> None:
    went_on = []

    def drops() -> None:
        with Keys():
            Garbage()
            call_interruptibly(time.sleep, 0.0)
            went_on.append(True)

    before, hook = signal.signal(signal.SIGINT, signal.default_int_handler), sys.unraisablehook
    printed: list[Any] = []
    sys.unraisablehook = printed.append
    try:
        with pytest.raises(KeyboardInterrupt):
            drops()
        assert went_on == []
        assert printed == []  # and not a traceback of the key
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert sys.unraisablehook == printed.append
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def heard() -> Any:
    """Keys are heard as in a terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_key_in_garbage_before_the_search_of_a_design_is_not_lost(
    heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(request: Any) -> None:
        Garbage()
        stop_here()
        raise AssertionError("the key was lost")

    module = sys.modules[fx.design.__module__]
    monkeypatch.setattr(module, "build_problem", build)
    limits = fx.Limits(force=1.0)
    with pytest.raises(KeyboardInterrupt):
        fx.design(fx.Mechanism(mass=fx.Mass(m=1.0)), {}, duration=1.0, rate=50.0, limits=limits)


def test_a_key_while_the_main_thread_compiles_is_raised_afterwards_and_nothing_crashes() -> None:
    code = """
    import threading, time
    import jax, jax.numpy as jnp
    import frictax.jax_internals
    from frictax.interrupts import Keys

    def long(x):
        for i in range(40):
            x = jnp.sin(x) + jax.lax.fori_loop(0, 3, lambda k, y: jnp.tanh(y) + i, x)
        return x

    heard = 0
    for i in range(3):
        lowered = jax.jit(lambda x: long(x) + i).lower(jnp.ones(10))
        timer = threading.Timer(0.02 + 0.02 * i, lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            with Keys():
                timer.start()
                compiled = lowered.compile()
                timer.join()
        except KeyboardInterrupt:
            heard += 1
        del lowered, compiled
    print(heard)
    """
    code = f"import os\n{HEARS}{textwrap.dedent(code)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr


def test_a_key_that_became_another_error_is_a_key(heard: Any) -> None:
    @Keys()
    def fails(number: int) -> None:
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt as key:
            raise ValueError("as compiled code does") from key
        raise ValueError("no key")

    with pytest.raises(KeyboardInterrupt):
        fails(signal.SIGINT)
    with pytest.raises(ValueError, match="no key"):
        fails(0)


def test_a_function_with_the_decorator_loses_no_key_also_when_it_calls_itself(heard: Any) -> None:
    @Keys()
    def work(depth: int) -> None:
        if depth:
            work(depth - 1)
        else:
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        work(3)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_key_waits_for_the_end_of_an_import(heard: Any) -> None:
    after = []

    def imports() -> None:
        with defer_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            after.append("import")

    with pytest.raises(KeyboardInterrupt):
        imports()
    assert after == ["import"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_key_that_left_a_result_is_answered(heard: Any) -> None:
    with Keys():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            assert may_keep()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["fit", "posterior", "compare", "missing", "design", "fleet", "fleet-processes", "cycles"],
)
def test_twelve_of_twelve_keys_at_random_moments_are_heard(name: str) -> None:
    counted(name, 12)


def counted(name: str, count: int) -> None:
    script = Path(__file__).with_name("keys.py")
    # Other tests work beside it: two seconds are asked by hand, on a quiet machine.
    words = [sys.executable, str(script), name, str(count), "1", "20"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["heard"] == count, made


def test_what_a_key_leaves_of_a_part_is_not_kept() -> None:
    assert may_keep()
    with nested_work():
        assert may_keep()
        with nested_work():
            assert not may_keep()
    assert may_keep()


def test_what_is_raised_elsewhere_is_raised_here() -> None:
    def fails() -> None:
        raise jax.errors.JaxRuntimeError("why")

    with pytest.raises(jax.errors.JaxRuntimeError, match="why"):
        call_interruptibly(fails)
    with pytest.raises(TimeoutError):
        call_interruptibly(_late)


def _late() -> None:
    raise TimeoutError
