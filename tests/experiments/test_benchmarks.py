"""The benchmarks run, and what they compare gives the same answer."""

import csv
import importlib
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "experiments" / "benchmarks"
FLOORS = "C", "C with library exp"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch):
    """Imports a module of the benchmarks."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not on the PATH: the benchmark's C floor needs it")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("who", ["c_floor", "frictax", "scipy"])
def test_every_contestant_solves_p1_at_tolerance_1e_7(benchmark, who: str) -> None:
    contestants = benchmark("contestants")
    truth = {"forward": contestants.STATE, "jacobian": contestants.DERIVATIVES}
    for contestant in getattr(contestants, who)():
        tolerance = 1e-4 if (who, contestant.task) == ("scipy", "jacobian") else 1e-5
        np.testing.assert_allclose(contestant.answer(), truth[contestant.task], rtol=tolerance)


@pytest.mark.slow
def test_c_solves_p2_to_1e_9_of_a_run_at_tolerance_1e_13(benchmark) -> None:
    p2, records = benchmark("p2"), benchmark("sampled_problem")
    exact = sample_by_sample(p2.PARAMETERS, p2.FORCE, p2.TIMES[1])
    for options in [(), ("-DLIBRARY_EXP",)]:
        found = records.Floor.build(*options).forward(p2.PARAMETERS, p2.FORCE)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12, err_msg=str(options))


def test_the_derivatives_of_c_are_central_differences(benchmark) -> None:
    p2, records = benchmark("p2"), benchmark("sampled_problem")
    floor = records.Floor.build()
    jacobian = floor.jacobian(p2.PARAMETERS, p2.FORCE)
    for i, value in enumerate(p2.PARAMETERS):
        step = 1e-6 * value * np.eye(4)[i]
        difference = (
            floor.forward(p2.PARAMETERS + step, p2.FORCE)
            - floor.forward(p2.PARAMETERS - step, p2.FORCE)
        ) / (2e-6 * value)
        np.testing.assert_allclose(jacobian[..., i], difference, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_every_contestant_solves_p3(benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    p3 = benchmark("p3")
    monkeypatch.setattr(p3, "DRAWN", p3.DRAWN[:4])
    for contestant in p3.frictax():
        if "vmap" in contestant.name:
            assert p3.error(contestant) < {"forward": 1e-6, "jacobian": 1e-5}[contestant.task]


@pytest.mark.slow
def test_frictax_takes_the_steps_of_c_in_p6(benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    p6 = benchmark("p6")
    monkeypatch.setattr(p6, "TIMES", p6.TIMES[:2501])
    monkeypatch.setattr(p6, "FORCE", p6.FORCE[:2501])
    monkeypatch.setattr(p6, "END", p6.TIMES[2500])
    of_c = {c.task: c.answer() for c in p6.c_floor()}
    for c in p6.frictax()[:2]:
        size = np.abs(of_c[c.task]).max(axis=0)
        rounding = {"forward": 1e-9, "jacobian": 1e-5}[c.task]  # differences have theirs
        np.testing.assert_allclose(c.answer() / size, of_c[c.task] / size, atol=rounding)


@pytest.mark.slow
def test_scipy_with_default_differences_does_not_leave_the_start_of_p4(benchmark) -> None:
    p4 = benchmark("p4")
    answer = {c.name: c.answer for c in p4.scipy()}
    np.testing.assert_allclose(answer["scipy with default step"](), p4.START, rtol=1e-3)
    np.testing.assert_allclose(answer["scipy on C with step 1e-3"](), p4.optimum(), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "errors"),
    [
        (
            "p2",
            {
                ("forward", "frictax"): 1e-6,
                ("jacobian", "frictax"): 1e-5,
                ("forward", "scipy"): 1e-4,
                ("jacobian", "scipy"): np.inf,
            }
            | {(task, name): np.inf for task in ("forward", "jacobian") for name in FLOORS},
        ),
        (
            "p4",
            {("fit", name): 1e-5 for name in (*FLOORS, "frictax fit", "frictax fit_many")}
            | {("fit", f"frictax fit {how}"): 1e-5 for how in ("with 8 starts", "8 times")}
            | {("fit", "scipy with step 1e-3"): np.inf, ("fit", "scipy with default step"): np.inf}
            | {("fit", "scipy on C with step 1e-3"): np.inf},
        ),
    ],
)
def test_a_contest_prints_and_writes_a_row_for_each_contestant_and_they_find_the_truth(
    benchmark,
    tmp_path: Path,
    script: str,
    errors: dict[tuple[str, str], float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module, timed, table = benchmark(script), benchmark("contest").timed, tmp_path / "table.csv"
    monkeypatch.setattr(sys, "argv", [f"{script}.py", "--rounds", "1", "--csv", str(table)])
    monkeypatch.setattr(module, "timed", lambda call, calls: timed(call, 1))
    monkeypatch.setattr(module, "STARTS", 8, raising=False)
    module.hold(module.__doc__, "unused.csv", module.field, module.error)
    printed = capsys.readouterr().out
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    assert head == "task,solver,microseconds,times_C,relative_error"
    found = {tuple(row.split(",")[:2]): float(row.split(",")[-1]) for row in rows}
    assert len(rows) == len(found)
    assert set(found) == set(errors)
    for key, most in errors.items():
        assert key[1] in printed
        assert found[key] < most, key


def test_the_table_of_questions_quotes_the_tables_of_the_benchmarks() -> None:
    lines = (BENCHMARKS.parent / "README.md").read_text(encoding="utf-8").splitlines()
    says = {
        name: next(x for x in lines if f"[benchmarks/{name}.py]" in x)
        for name in ("p1", "p2", "p4", "p6")
    }
    took = {}
    for name in says:
        with (BENCHMARKS / f"{name}.csv").open(encoding="utf-8") as table:
            took |= {
                (name, row["task"], row["solver"]): float(row["microseconds"])
                for row in csv.DictReader(table)
            }

    def times(name: str, task: str, slow: str, fast: str) -> str:
        """To two digits."""
        ratio = took[name, task, slow] / took[name, task, fast]
        return f"{ratio:.1f}" if ratio < 9.95 else f"{float(f'{ratio:.2g}'):.0f}"

    tasks, exp = ("forward", "jacobian"), "C with library exp"
    slower, scipy = (
        [times("p1", task, *pair) for task in tasks]
        for pair in (("frictax", "C"), ("scipy", "frictax"))
    )
    assert f"{slower[0]} times C forward and {slower[1]} times C with" in says["p1"]
    assert f"{scipy[0]} and {scipy[1]} times faster" in says["p1"]
    to_c, to_exp, scipy = (
        [times("p2", task, *pair) for task in tasks]
        for pair in (("frictax", "C"), ("frictax", exp), ("scipy", "C"))
    )
    assert f"{to_c[0]} times C forward ({to_exp[0]} times C that calls" in says["p2"]
    assert (
        f"{to_c[1]} ({to_exp[1]}) times C with the derivatives; scipy {scipy[0]} and {scipy[1]}"
        " times" in says["p2"]
    )
    bent, both = "frictax, LuGre", "frictax, sticks (P2)"
    assert f"{times('p6', 'forward', bent, 'C')} times C that takes" in says["p6"]
    assert f"and {times('p6', 'forward', bent, both)} times the block that sticks" in says["p6"]
    assert f"derivatives {times('p6', 'jacobian', bent, 'C')} times C's central" in says["p6"]
    many, one = (took["p4", "fit", name] / 1000 for name in ("frictax fit_many", "frictax fit"))
    assert f"{many:.1f} ms, {times('p4', 'fit', 'frictax fit_many', 'C')} times C" in says["p4"]
    assert (
        f"{times('p4', 'fit', 'scipy with step 1e-3', 'frictax fit_many')} times faster"
        in says["p4"]
    )
    assert f"{one:.1f} ms with checks" in says["p4"]


@pytest.mark.slow
def test_the_process_benchmark_prints_times_without_and_with_a_cache(
    benchmark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two processes run, with an empty and a filled cache. Both options have their times, because
    `first_answer.py` runs optimised programs.
    """
    module, taken = benchmark("p4_process"), list[Any]()
    process = module.process

    def once(record: Path, cache: Path, how: str) -> Any:
        taken.append(process(record, cache, "once") if len(taken) < 2 else taken[-2])
        return taken[-1]

    monkeypatch.setattr(module, "process", once)
    monkeypatch.setattr(sys, "argv", ["p4_process.py", "--rounds", "1"])
    module.main()
    first, *_, a, b, c, d = capsys.readouterr().out.splitlines()
    assert float(first.split()[-1]) < 1e-5  # from the optimum
    assert [line.split("  ")[0] for line in (a, b, c, d)] == [
        "optimised, empty cache",
        "optimised, filled cache",
        "once, empty cache",
        "once, filled cache",
    ]


@pytest.mark.slow
def test_the_import_benchmark_prints_ratios() -> None:
    command = [sys.executable, str(BENCHMARKS / "import_time.py"), "--rounds", "1"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[1].endswith("x import jax")


@pytest.mark.slow
def test_the_benchmark_of_first_answers_writes_a_row_for_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module, table = importlib.import_module("first_answer"), tmp_path / "table.csv"
    for script in ("jacfwd of a product", "grad of a product"):  # without processes of their own
        exec(module.SCRIPTS[script], {"__name__": "product"})
        monkeypatch.delitem(module.SCRIPTS, script)
    monkeypatch.setattr(sys, "argv", ["first_answer.py", "--rounds", "1", "--csv", str(table)])
    module.main()
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = {(row["task"], row["process"]): float(row["processor_seconds"]) for row in rows}
    for task in ("simulate", "jacfwd", "grad"):
        assert kinds[task, "second"] < 0.7 * kinds[task, "first"]


def sample_by_sample(p: np.ndarray, u: np.ndarray, h: float) -> np.ndarray:
    """Positions and speeds of the block, with a call of DOP853 for each sample, so that no step
    meets a kink of the force.
    """
    from scipy.integrate import solve_ivp

    F_Coulomb, F_prop, F_Stribeck, fexp = p
    f0, y, sign = F_Coulomb + F_Stribeck, np.zeros(2), 0.0

    def flow(t, y, sign, a, b):
        w = sign * y[1]
        return [
            y[1],
            a + b * t - sign * (F_Coulomb + F_prop * w + F_Stribeck * math.exp(-fexp * w)),
        ]

    def guard(t, y, sign, a, b):  # positive while it slides
        return sign * y[1]

    guard.terminal, guard.direction = True, -1  # type: ignore[attr-defined]
    out = np.zeros((len(u), 2))
    for i in range(len(u) - 1):
        t, a, b = 0.0, u[i], (u[i + 1] - u[i]) / h
        while t < h:
            if sign == 0:
                if abs(u[i + 1]) <= f0:
                    break
                sign = math.copysign(1.0, u[i + 1])
                t = max(t, (sign * f0 - a) / b)
            part = solve_ivp(
                flow,
                (t, h),
                y,
                args=(sign, a, b),
                events=guard,
                method="DOP853",
                rtol=1e-13,
                atol=1e-16,
            )
            t, y = part.t[-1], part.y[:, -1].copy()
            if part.status == 1:
                y[1] = 0.0
                sign = math.copysign(1.0, a + b * t) if abs(a + b * t) > f0 else 0.0
        out[i + 1] = y
    return out
