"""What editors and type checkers know of the public functions: every option, and its type."""

import ast
import dataclasses
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
from frictax.fitting import options
from frictax.handover import Verb

USER = Path(__file__).parent / "typed" / "user.py"


def functions() -> Iterator[tuple[str, Any]]:
    """Public functions, and what results do."""
    for name in dir(fx):
        thing = getattr(fx, name)
        if inspect.isfunction(thing) and thing.__module__.startswith("frictax."):
            yield name, thing
    for owner, of in vars(verbs).items():
        for name, verb in vars(of).items() if inspect.isclass(of) else ():
            if isinstance(verb, Verb):
                yield f"{owner.removesuffix('Verbs')}.{name}", verb.function()


@pytest.mark.parametrize(("name", "function"), [pytest.param(*f, id=f[0]) for f in functions()])
def test_no_option_hides_behind_two_stars(name: str, function: Any) -> None:
    parameters = inspect.signature(function).parameters
    kinds = {p.kind for p in parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    if several := overloads(function):  # all that the function takes, and no more
        assert set().union(*several) == set(parameters)


def overloads(function: Any) -> list[set[str]]:
    """The parameters of each, read from the source: the hook of the tests mixes them up."""
    source = Path(str(inspect.getsourcefile(inspect.unwrap(function)))).read_text(encoding="utf-8")
    names = vars(sys.modules[function.__module__])
    found = list[set[str]]()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef) or node.name != function.__name__:
            continue
        if any(ast.unparse(mark) == "overload" for mark in node.decorator_list):
            found.append({a.arg for a in (*node.args.args, *node.args.kwonlyargs)})
            if node.args.kwarg is not None:
                kind = ast.unparse(node.args.kwarg.annotation or node)
                found[-1] |= set(
                    names[kind.removeprefix("Unpack[").removesuffix("]")].__annotations__
                )
    return found


def test_the_options_of_fit_are_one_list(root: Path) -> None:
    """The value, the types that checkers read, the problem file and the structure agree."""
    fields = {f.name: f for f in dataclasses.fields(options.FitOptions)}
    listed = inspect.signature(fx.fit).parameters
    assert set(options.FitOptionsDict.__annotations__) == set(fields)
    assert [name for name in listed if name not in ("model", "data")] == list(fields)
    for name, field in fields.items():
        assert listed[name].default == field.default, name
        assert listed[name].annotation is not Any, name
    written = ast.parse(inspect.getsource(options))
    by_class = {
        node.name: {
            item.target.id: ast.unparse(item.annotation)
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        for node in written.body
        if isinstance(node, ast.ClassDef)
    }
    for name, kind in by_class.pop("FitOptions").items():
        given = {kinds[name] for kinds in by_class.values() if name in kinds}
        assert f"Checked[{kind.removeprefix('Checked[')}" == kind, name
        assert kind in {f"Checked[{one}]" for one in given}, name
    in_no_file = {"engine", "method", "progress", *options.DEFAULTS.keys() - schema_names()}
    assert in_no_file == {"engine", "method", "progress", "f_neg", "peak", "offset"}
    assert schema_names() - set(fields) == {"records", "tolerance"}
    page = (root / "docs" / "problems.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| `[fit]` |")]
    assert schema_names() <= set(re.findall(r"`(\w+)`", row))
    of_structure = {f.name for f in dataclasses.fields(fx.Structure)}
    assert of_structure - {"model"} <= set(fields)


def schema_names() -> set[str]:
    from frictax.problems.schema import FitEntry

    return set(FitEntry.model_fields)


@pytest.mark.parametrize("name", ["fit", "fit_many", "outlook", "fleet", "compare"])
def test_a_misspelt_option_is_named_when_it_runs(name: str) -> None:
    with pytest.raises(TypeError, match="no option 'objectve'. Did you mean 'objective'"):
        getattr(fx, name)(fx.Coulomb, {}, objectve=fx.FreeRun())


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
    reported = messages(read)
    assert len(wrong) > 30
    assert {lines[i]: reported[i] for i in reported.keys() - wrong.keys()} == {}
    assert [line for i, line in wrong.items() if i not in reported] == []


def messages(read: list[dict[str, Any]]) -> dict[int, str]:
    """What is reported of each line."""
    out = dict[int, str]()
    for d in read:
        if d["severity"] != "information":
            line = d["range"]["start"]["line"]
            out[line] = f"{out.get(line, '')}{d['message']}\n"
    return out


def test_a_type_checker_names_a_misspelt_option(read: list[dict[str, Any]]) -> None:
    lines, reported = USER.read_text(encoding="utf-8").splitlines(), messages(read)
    misspelt = {i: line for i, line in enumerate(lines) if "objectve=" in line}
    assert len(misspelt) == 5
    for i, line in misspelt.items():
        assert '"objectve"' in reported[i], line


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
    for name in inspect.signature(fx.fit).parameters.keys() - {"model", "data"}:
        assert re.search(rf"\b{name}: ", told), name
    assert "objective: AbstractObjective | None = None" in told
    assert "method: AbstractMethod | None = None" in told
    assert "loss: AbstractLoss | None = None" in told
