"""Imports point one way, the forward half stays pure, and importing frictax does nothing but import."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "frictax"

# The rooms in the order in which data flows. A room imports from itself and from rooms to its left.
FORWARD = ["xla", "parameters", "laws", "signals", "contacts", "mechanism", "engine", "trajectory", "simulation", "linearization"]
INVERSE = ["fitting", "report", "export", "data", "problems", "cli"]
RANK = {room: rank for rank, room in enumerate(FORWARD + INVERSE)}
# These two stand beside each other and do not know one another.
APART = [{"laws", "signals"}, {"report", "export"}]
# A result hands itself over when it is asked to (`run.plot()`, `found.report()`): an import inside that method.
HANDED_TO = {"report", "export"}
# What a result turns itself into on request (`run.to_pandas()`, `run.to_xarray()`).
TURNED_INTO = {"pandas", "xarray"}
RIM = {"pandas", "scipy", "matplotlib", "plotly", "typer", "rich", "jinja2", "pydantic", "pooch"}
NEVER_FORWARD = RIM | TURNED_INTO | {"optax", "optimistix"}
# An event of diffrax asks for a root finder of optimistix's type: that is no optimiser.
ROOT_FINDER = {("engine", "optimistix")}
COSTLY = RIM | {"diffrax", "optax", "optimistix", "lineax"}
READS_OR_WRITES = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "read_csv", "loadtxt", "savetxt", "tofile", "fromfile"}


def _files(rooms: list[str]) -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if _room(path) in rooms)


def _room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(path: Path) -> Iterator[tuple[str, bool, int]]:
    """Dotted module, whether the import stands inside a function, and the line. Type-checking imports cost nothing and are passed over."""

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool, int]]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, inside, node.lineno
        elif isinstance(node, ast.ImportFrom):
            package = ["frictax", *path.relative_to(SOURCE).parts[:-1]]
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "frictax":
                for alias in node.names:
                    yield f"frictax.{alias.name}", inside, node.lineno
            else:
                yield module, inside, node.lineno
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


def _id(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_every_source_file_stands_in_a_room_of_the_design() -> None:
    strangers = {_room(path) for path in SOURCE.rglob("*.py")} - set(RANK) - {"__init__", "__main__", "py.typed"}
    assert not strangers, f"give {strangers} a place in FORWARD or INVERSE"


@pytest.mark.parametrize("path", _files(FORWARD + INVERSE), ids=_id)
def test_a_room_imports_only_from_itself_and_from_rooms_before_it(path: Path) -> None:
    room, wrong = _room(path), []
    for module, inside, line in _imports(path):
        if module.split(".")[0] != "frictax" or module == "frictax":
            continue
        other = module.split(".")[1]
        handed = inside and other in HANDED_TO
        if other not in RANK:
            wrong.append(f"line {line}: {module}: import from the room that defines it")
        elif not handed and (RANK[other] > RANK[room] or {room, other} in APART):
            wrong.append(f"line {line}: {room} imports {module}")
    assert not wrong


@pytest.mark.parametrize("path", _files(["engine"]), ids=_id)
def test_the_engine_knows_the_contract_of_a_hybrid_system_and_nothing_of_friction(path: Path) -> None:
    friction = [
        m
        for m, _, _ in _imports(path)
        if m.startswith("frictax.") and not m.startswith(("frictax.engine", "frictax.mechanism.system", "frictax.parameters"))
    ]
    assert not friction


@pytest.mark.parametrize("path", _files(FORWARD), ids=_id)
def test_the_forward_half_knows_no_optimiser_no_plot_and_no_file(path: Path) -> None:
    wrong = [
        f"line {line}: {module}"
        for module, inside, line in _imports(path)
        if (top := module.split(".")[0]) in NEVER_FORWARD and not (inside and top in TURNED_INTO) and (_room(path), top) not in ROOT_FINDER
    ]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if called in READS_OR_WRITES:
                wrong.append(f"line {node.lineno}: {called}()")
    assert not wrong


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)


def test_importing_frictax_loads_nothing_costly() -> None:
    code = "import json, sys; import {}; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    added = set(json.loads(_python(code.format("frictax")).stdout)) - set(json.loads(_python(code.format("jax")).stdout))
    assert not added & COSTLY


def test_importing_frictax_prints_nothing_and_leaves_jax_as_it_was() -> None:
    code = "import jax; before = dict(jax.config.values); import frictax; assert dict(jax.config.values) == before"
    done = _python(code)
    assert (done.stdout, done.stderr) == ("", "")


def test_types_are_told_to_those_who_install_it_as_the_classifier_says() -> None:
    assert '"Typing :: Typed"' in (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert (SOURCE / "py.typed").is_file()


def test_every_public_name_can_be_loaded() -> None:
    _python("import frictax as fx; [getattr(fx, name) for name in dir(fx)]")
