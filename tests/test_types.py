"""What editors and type checkers know of the public functions: every option, and its type."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frictax as fx
from frictax import verbs
from frictax.handover import Verb

USER = Path(__file__).parent / "typed" / "user.py"


def functions() -> Iterator[tuple[str, Any]]:
    """Public functions, and what results do."""
    for name in dir(fx):
        thing = getattr(fx, name)
        if inspect.isfunction(thing) and thing.__module__.startswith("frictax."):
            yield name, inspect.unwrap(thing)
    for owner, of in vars(verbs).items():
        for name, verb in vars(of).items() if inspect.isclass(of) else ():
            if isinstance(verb, Verb):
                yield f"{owner.removesuffix('Verbs')}.{name}", inspect.unwrap(verb.function())


@pytest.mark.parametrize(("name", "function"), [pytest.param(*f, id=f[0]) for f in functions()])
def test_no_option_hides_behind_two_stars(name: str, function: Any) -> None:
    parameters = inspect.signature(function).parameters
    kinds = {p.kind for p in parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    if several := overloads(function):  # all that the function takes, and no more
        assert set().union(*several) == set(parameters)


def overloads(function: Any) -> list[set[str]]:
    """The parameters of each, read from the source: the hook of the tests mixes them up."""
    source = Path(str(inspect.getsourcefile(function))).read_text(encoding="utf-8")
    return [
        {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__
        if any(ast.unparse(mark) == "overload" for mark in node.decorator_list)
    ]


@pytest.fixture(scope="module")
def read(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What pyright says of a user's file."""
    folder = tmp_path_factory.mktemp("typed")
    shutil.copy(USER, folder)
    settings = {"include": [USER.name], "extraPaths": [str(root / "src")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(folder)], capture_output=True, text=True)
    return json.loads(done.stdout)["generalDiagnostics"]


def test_a_type_checker_reports_wrong_options_and_no_right_ones(read: list[dict[str, Any]]) -> None:
    lines = USER.read_text(encoding="utf-8").splitlines()
    wrong = {i: line for i, line in enumerate(lines) if line.endswith("# wrong")}
    reported = {
        d["range"]["start"]["line"]: d["message"] for d in read if d["severity"] != "information"
    }
    assert len(wrong) > 30
    assert {lines[i]: reported[i] for i in reported.keys() - wrong.keys()} == {}
    assert [line for i, line in wrong.items() if i not in reported] == []


@pytest.mark.slow
def test_another_type_checker_reports_the_same_lines(root: Path, tmp_path: Path) -> None:
    shutil.copy(USER, tmp_path)
    how = ["--follow-imports=silent", "--ignore-missing-imports", "--output=json"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *how, f"--cache-dir={tmp_path / 'cache'}", USER.name],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(root / "src")},
        capture_output=True,
        text=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    lines = USER.read_text(encoding="utf-8").splitlines()
    wrong = {i + 1 for i, line in enumerate(lines) if line.endswith("# wrong")}
    assert {d["line"] for d in said if d["severity"] == "error"} == wrong


def test_an_editor_is_told_every_option_of_a_fit(read: list[dict[str, Any]]) -> None:
    (told,) = [d["message"] for d in read if d["severity"] == "information"]
    for name in inspect.signature(fx.fit).parameters:
        assert re.search(rf"\b{name}: ", told), name
    assert "objective: AbstractObjective | None = None" in told
    assert "method: AbstractMethod | None = None" in told
    assert "loss: AbstractLoss | None = None" in told
