"""Set-up for all tests: 64 bit, run-time checks of shapes and types, and where the reference
material lies.
"""

import collections
import contextlib
import ctypes
import gc
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows
# What tests compile is for them alone; a folder may keep it from run to run, which `make test` asks
# for and `.ci/run` does not.
os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
os.environ["FRICTAX_CACHE"] = "off"
# Workers, and processes that tests start, find frictax compiled to byte code by the one before.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# There is a worker for each core: threads of linear algebra would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import jax
import jaxtyping
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
_kept = os.environ.get("FRICTAX_TEST_CACHE", "")
_MOST = 500e6  # bytes of it
if _kept:
    jax.config.update("jax_compilation_cache_dir", _kept)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
# Every annotated function of frictax checks its arguments' types and shapes while the tests run, if
# this variable is set. `.ci/run` sets it. The checks take a quarter of the time.
if os.environ.get("FRICTAX_CHECK_TYPES"):
    install_import_hook("frictax", "beartype.beartype")

from checks import OPTIMISED  # noqa: E402
from excluded_notices import contradictions  # noqa: E402
from frictax import fast_loops  # noqa: E402
from frictax.fitting import FitResult  # noqa: E402
from frictax.laws import Stribeck  # noqa: E402
from frictax.measurements import Sweep  # noqa: E402
from frictax.notice import Notice  # noqa: E402
from frictax.programs.executables import Programs  # noqa: E402

fast_loops()

# Most tests compile a program and run it once or twice: they wait for the compiler. LLVM does
# without its optimisations here, and XLA without passes that matter for speed alone; what is
# computed stays the same but for rounding. Processes that tests start, for commands and problem
# files, have the usual flags, and a test that computes for long compiles with `checks.OPTIMISED`.
_usual = os.environ["XLA_FLAGS"]
_passes = (
    "while-loop-invariant-code-motion,simplify-while-loops,while-loop-constant-sinking,"
    "while-loop-trip-count-annotator,tree_reduction_rewriter,reshape-mover,"
    "simplify-conditional,simplify-sorts"
)
# Each worker has one core, so LLVM gets each program in one part.
os.environ["XLA_FLAGS"] = (
    f"{_usual} --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    f" --xla_disable_hlo_passes={_passes}"
)
jax.devices()  # reads the flags
os.environ["XLA_FLAGS"] = _usual

# The same examples every time: a test's result depends on the code alone.
hypothesis.settings.register_profile("frictax", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("frictax")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What was kept of earlier code is never asked for again: too much of it goes all at once."""
    if _kept and not hasattr(session.config, "workerinput"):
        files = list(Path(_kept).glob("*-cache"))
        if sum(file.stat().st_size for file in files) > _MOST:
            for file in files:
                file.unlink(missing_ok=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        default="1/1",
        help="2/3: of the files with slow tests each third, from the second",
    )


# [s] of each file that takes longer than 3 s: its quick and its slow tests (`make durations`)
_DURATIONS = json.loads((Path(__file__).parent / "durations.json").read_text(encoding="utf-8"))


def _seconds(item: pytest.Item) -> float:
    """The time of the item's file. A worker that gets a long file last keeps all others waiting."""
    mark = "slow" if item.config.getoption("markexpr") == "slow" else "not slow"
    return _DURATIONS[mark].get(item.path.relative_to(Path(__file__).parent).as_posix(), 0.0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``slow_after(n)``: of a family of cases the first n are not slow."""
    seen: collections.Counter[str] = collections.Counter()
    for item in items:
        mark = item.get_closest_marker("slow_after")
        if mark is not None:
            family = item.nodeid.partition("[")[0]
            seen[family] += 1
            if seen[family] > mark.args[0]:
                item.add_marker(pytest.mark.slow)
    items.sort(key=_seconds, reverse=True)
    part, parts = (int(number) for number in str(config.getoption("--part")).split("/"))
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    files = sorted({item.path for item in slow})
    later = {path for i, path in enumerate(files) if i % parts != part - 1}
    left = [item for item in slow if item.path in later]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


_MAPPINGS = Path("/proc/self/maps")
_MANY = 1_000  # with some 300 MB; Linux refuses a process more than 65530
_left = 0  # after the last time


def _mappings() -> int:
    return _MAPPINGS.read_bytes().count(b"\n") if _MAPPINGS.exists() else 0


@pytest.fixture(autouse=True, scope="session")
def _no_contradictions() -> Iterator[None]:
    """The notices of every fit that a test asks for its notices agree with each other."""
    made = FitResult._collect_notices

    def noticed(found: FitResult, *args: Any) -> tuple[Notice, ...]:
        notices = made(found, *args)
        wrong = contradictions(notices)
        assert not wrong, f"notices that contradict each other: {wrong}"
        return notices

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitResult, "_collect_notices", noticed)
        yield


@pytest.fixture(autouse=True, scope="module")
def _room_for_programs() -> Iterator[None]:
    """Each program that XLA compiles keeps three memory mappings: thousands of tests in one process
    run out of them, and of memory. Between two files, what one compiled is of no use to the next.
    """
    global _left
    yield
    if _mappings() > _left + _MANY:
        gc.unfreeze()  # `fast_loops` hides what was imported before it, also tables of programs
        for programs in [x for x in gc.get_objects() if type(x) is Programs]:
            programs.made.clear()
        jax.clear_caches()
        gc.collect()
        gc.freeze()
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)  # what is free goes back to the system
        _left = _mappings()


@pytest.fixture
def optimised_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of fits are compiled with LLVM's optimisations: for tests that run one hundreds of
    times.
    """
    monkeypatch.setattr("frictax.programs.executables.options_of_fits", lambda: OPTIMISED)


def _folder(variable: str, holds: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: it names the folder with {holds}")
    folder = Path(value)
    if not folder.is_dir():
        pytest.fail(f"{variable} = {value} is not a folder")
    return folder


@pytest.fixture(scope="session")
def reference_folder() -> Path:
    """The folder with the reference trajectories of the Modelica Standard Library's examples."""
    return _folder("FRICTAX_REFERENCE", "the reference trajectories")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the measured records of others, which are not ours to ship."""
    return _folder("FRICTAX_DATA", "the measured records")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def drive(root: Path) -> Callable[..., Sweep]:
    """``drive(1, "positive")``: the shipped sweep of a screw drive."""

    def read(number: int, direction: Any = "both", **options) -> Sweep:
        path = root / "data" / "screw_drives" / "sweep.csv"
        return Sweep.from_csv(
            path,
            velocity="omega",
            force="torque",
            where={"drive": number},
            direction=direction,
            **options,
        )

    return read


@pytest.fixture(scope="session")
def truth() -> Stribeck:
    """The published curve of drive 1, forward."""
    return Stribeck(
        F_prop=4.87e-5, F_Coulomb=2.148e-3, F_Stribeck=6.01e-4, fexp=0.222, exponent=2.0
    )


@pytest.fixture
def as_a_user_runs_it() -> Iterator[None]:
    """Without the tests' own checks of types, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def folder(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the shipped sweep and a straight line."""
    from commands import LINE

    shutil.copy(root / "data" / "screw_drives" / "sweep.csv", tmp_path / "sweep.csv")
    (tmp_path / "line.csv").write_text(LINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
