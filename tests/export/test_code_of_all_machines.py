"""Every machine that the tests build, and the identified ones, as code that compilers accept."""

import inspect
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exported_machines
import frictax as fx
import hunters
import machines
from frictax.export.code import machine as code_of_machine
from frictax.export.code.machine import MachineCode
from frictax.export.code.texts import c_text, javascript_text, structured_text
from frictax.problems import read

from .test_code import GCC, MACHINES, needs_gcc

T = np.linspace(0.0, 4.0, 801)
IDENTIFIED = Path(__file__).parents[2] / "identification"


def _built() -> dict[str, Callable[[], Any]]:
    """The functions of the tests that return a machine and need no argument."""
    found: dict[str, Callable[[], Any]] = dict(MACHINES)
    for module in (machines, exported_machines, hunters):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            parameters = inspect.signature(function).parameters.values()
            is_own = function.__module__ == module.__name__
            if is_own and all(p.default is not p.empty for p in parameters):
                found.setdefault(name, function)
    for folder in ("emps", "xl330_pendulum"):
        problem = IDENTIFIED / folder
        found[folder] = lambda at=problem: read(at, allow_code=True).machine
    return found


BUILT = _built()


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT)
def test_its_code_compiles_without_a_warning(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        machine = BUILT[name]()
    except FileNotFoundError as missing:
        pytest.skip(f"the records of {name} are not here: {missing}")
    # The number of steps needs a simulation, which other tests compare.
    monkeypatch.setattr(code_of_machine, "_steps", lambda *_: (1, 0.0, np.ones(1)))
    code = MachineCode(machine, T, fx.OnSamples(), {}, None)
    (tmp_path / "machine.c").write_text(c_text(code))
    subprocess.run([*GCC, "-c", "machine.c"], cwd=tmp_path, check=True)
    (tmp_path / "machine.js").write_text(javascript_text(code))
    if node := shutil.which("node"):
        subprocess.run([node, "--check", "machine.js"], cwd=tmp_path, check=True)
    assert "FUNCTION_BLOCK FX_Machine" in structured_text(code)
