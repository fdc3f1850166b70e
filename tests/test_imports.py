"""Imports point one way, the forward half stays pure, and importing frictax does nothing but
import.
"""

import ast
import functools
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "frictax"

# The rooms in the order in which data flows. A room imports from itself and from rooms to its left.
GROUND = [
    "jax_internals",
    "annotations",
    "text",
    "arguments",
    "notice",
    "interrupts",
    "handover",
    "verbs",
    "summary",
    "pytree",
    "progress",
    "xla",
    "files",
    "programs",
]
FORWARD = [
    "parameters",
    "laws",
    "bristles",
    "signals",
    "engine",
    "contacts",
    "mechanism",
    "trajectory",
    "simulation",
    "linearization",
    "cycles",
]
INVERSE = [
    "measurements",
    "fitting",
    "observers",
    "analysis",
    "excitation",
    "export",
    "report",
    "data",
    "problems",
    "fleets",
    "cli",
]
RANK = {room: rank for rank, room in enumerate(GROUND + FORWARD + INVERSE)}
# Within `fitting`, too.
STAGES = ["problem", "search", "result"]
# These two stand beside each other and do not know one another.
APART = [{"laws", "signals"}]
RIM = {"pandas", "scipy", "matplotlib", "plotly", "typer", "rich", "jinja2", "pydantic", "pooch"}
NEVER_FORWARD = RIM | {"xarray", "optax", "optimistix"}
# An event of diffrax asks for a root finder of optimistix's type: that is no optimiser. And what
# type checkers alone read may name any type.
ROOT_FINDER = {("engine", "optimistix"), ("annotations", "optax"), ("annotations", "pandas")}
COSTLY = RIM | {"diffrax", "optax", "optimistix", "lineax"}
OF_THE_ENGINE = tuple(
    f"frictax.{room}"
    for room in (
        "engine",
        "parameters",
        "programs",
        "annotations",
        "handover",
        "jax_internals",
        "pytree",
    )
)
READS_OR_WRITES = {
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "read_csv",
    "loadtxt",
    "savetxt",
    "tofile",
    "fromfile",
}
VERBS = {"frictax.handover", "frictax.verbs"}
MOST_FILES = 25  # of a folder


def _files(rooms: list[str]) -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if _room(path) in rooms)


def _room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _module(path: Path) -> str:
    parts = ["frictax", *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module(path): path for path in SOURCE.rglob("*.py")}


def _imports(path: Path) -> Iterator[tuple[str, bool, int]]:
    """Dotted module, whether the import stands inside a function, and the line; those for type
    checkers and by name are told too.
    """

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool, int]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, inside, node.lineno
        elif isinstance(node, ast.ImportFrom):
            package = ["frictax", *path.relative_to(SOURCE).parts[:-1]]
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{module}.{alias.name}"
                yield (
                    full if full in MODULES or module == "frictax" else module,
                    inside,
                    node.lineno,
                )
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module"
        ):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value), inside, node.lineno
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


def _verbs() -> Iterator[tuple[type, str, str]]:
    """The class, the name and the target of every verb that a room hands over."""
    from frictax.handover import Verb

    for name, path in sorted(MODULES.items()):
        if "Verb" not in path.read_text(encoding="utf-8") or name in VERBS:
            continue
        module = importlib.import_module(name)
        for thing in vars(module).values():
            if inspect.isclass(thing) and thing.__module__ == name:
                yield from (
                    (thing, verb, value.target)
                    for of in thing.__mro__
                    for verb, value in vars(of).items()
                    if isinstance(value, Verb)
                )


def _id(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_every_source_file_stands_in_a_room_of_the_design() -> None:
    strangers = (
        {_room(path) for path in SOURCE.rglob("*.py")}
        - set(RANK)
        - {"__init__", "__main__", "py.typed"}
    )
    assert not strangers, f"give {strangers} a place in GROUND, FORWARD or INVERSE"


@pytest.mark.parametrize("path", _files(GROUND + FORWARD + INVERSE), ids=_id)
def test_a_room_imports_only_from_itself_and_from_rooms_before_it(path: Path) -> None:
    room, wrong = _room(path), []
    for module, _, line in _imports(path):
        parts = module.split(".")
        if parts[0] != "frictax" or len(parts) == 1 or module == "frictax.__version__":
            continue
        if parts[1] not in RANK:
            wrong.append(f"line {line}: {module}: import from the room that defines it")
        elif RANK[parts[1]] > RANK[room] or {room, parts[1]} in APART:
            wrong.append(f"line {line}: {room} imports {module}")
        elif room == parts[1] == "fitting" and _stage(parts) > _stage(_module(path).split(".")):
            wrong.append(f"line {line}: {_module(path)} imports {module}")
    assert not wrong


def _stage(parts: list[str]) -> int:
    return STAGES.index(parts[2]) if len(parts) > 2 and parts[2] in STAGES else len(STAGES)


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {}
    for name, path in MODULES.items():
        known = {
            module
            for module, _, _ in _imports(path)
            if module in MODULES and module not in ("frictax", name)
        }
        # A package's own face lists its modules, which do not need it.
        graph[name] = {
            m
            for m in known
            if name != "frictax"
            and not (MODULES[m].name == "__init__.py" and name.startswith(f"{m}."))
        }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_folder_is_a_heap() -> None:
    for folder in {path.parent for path in MODULES.values()}:
        assert len(list(folder.glob("*.py"))) <= MOST_FILES, folder


def test_every_verb_is_carried_out_above_and_takes_the_object_first() -> None:
    found = list(_verbs())
    assert len(found) > 20
    for owner, verb, target in found:
        module, _, function = target.partition(":")
        assert module not in _below(owner.__module__), (
            f"{owner.__name__}.{verb} is carried out below"
        )
        carried_out = getattr(importlib.import_module(module), function)
        first = next(iter(inspect.signature(carried_out).parameters.values()))
        assert first.annotation in (
            *owner.__mro__,
            inspect.Parameter.empty,
        ) or owner.__name__ in str(first.annotation), f"{verb}: {first}"
        assert verb.startswith("_") or carried_out.__doc__, target


def test_editors_and_type_checkers_know_each_public_verb_by_its_function() -> None:
    typed = {}
    stub = ast.parse((SOURCE / "verbs.pyi").read_text(encoding="utf-8"))
    homes = {
        str(alias.asname): f"{node.module}:{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            owner = node.name.removesuffix("Verbs")
            for line in map(ast.unparse, node.body):
                name, _, function = line.partition(" = ")
                typed[owner, name] = homes[function]
    verbs = {
        (owner.__name__, verb): target
        for owner, verb, target in _verbs()
        if not verb.startswith("_")
    }
    untyped = {f"{owner}.{verb}" for owner, verb in verbs.keys() - typed.keys()}
    assert not untyped, f"move {untyped} into verbs.py and its stub"
    assert typed == verbs


@functools.cache
def _graph() -> dict[str, set[str]]:
    return {
        name: {m for m, _, _ in _imports(path) if m in MODULES and m not in ("frictax", name)}
        for name, path in MODULES.items()
    }


@functools.cache
def _below(name: str) -> set[str]:
    """What a module imports, and what that imports."""
    direct = _graph()[name]
    return direct.union(*(_below(m) for m in direct))


@pytest.mark.parametrize("path", _files(["engine"]), ids=_id)
def test_the_engine_knows_the_contract_of_a_hybrid_system_and_nothing_of_friction(
    path: Path,
) -> None:
    friction = [
        m
        for m, _, _ in _imports(path)
        if m.startswith("frictax.") and not m.startswith(OF_THE_ENGINE)
    ]
    assert not friction


@pytest.mark.parametrize("path", _files(FORWARD), ids=_id)
def test_the_forward_half_knows_no_optimiser_no_plot_and_no_file(path: Path) -> None:
    wrong = [
        f"line {line}: {module}"
        for module, _, line in _imports(path)
        if (top := module.split(".")[0]) in NEVER_FORWARD and (_room(path), top) not in ROOT_FINDER
    ]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = (
                node.func.id
                if isinstance(node.func, ast.Name)
                else node.func.attr
                if isinstance(node.func, ast.Attribute)
                else ""
            )
            if called in READS_OR_WRITES:
                wrong.append(f"line {node.lineno}: {called}()")
    assert not wrong


@pytest.mark.parametrize("path", _files(["measurements"]), ids=_id)
def test_measurements_are_numpy_alone(path: Path) -> None:
    assert not {m.split(".")[0] for m, _, _ in _imports(path)} & {
        "jax",
        "equinox",
        "diffrax",
        "optax",
    }


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )


def test_importing_frictax_loads_nothing_costly() -> None:
    code = (
        "import json, sys; import {}; print(json.dumps(sorted({{m.split('.')[0] for m in"
        " sys.modules}})))"
    )
    added = set(json.loads(_python(code.format("frictax")).stdout)) - set(
        json.loads(_python(code.format("jax")).stdout)
    )
    assert not added & COSTLY


def test_a_fit_and_the_worker_of_a_fleet_load_no_package_of_figures_or_statistics() -> None:
    code = (
        "import sys; from frictax.fleets.workers import initialize_process;"
        " import frictax as fx; fx.fit;"
        " print(*{m.split('.')[0] for m in sys.modules}, *{'scipy.stats'} & set(sys.modules))"
    )
    assert not set(_python(code).stdout.split()) & {"matplotlib", "jinja2", "pandas", "scipy"}


def test_importing_frictax_prints_nothing_and_leaves_jax_as_it_was() -> None:
    code = (
        "import jax; before = dict(jax.config.values); import frictax; assert"
        " dict(jax.config.values) == before"
    )
    done = _python(code)
    assert (done.stdout, done.stderr) == ("", "")


def test_types_are_told_to_those_who_install_it_as_the_classifier_says() -> None:
    assert '"Typing :: Typed"' in (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert (SOURCE / "py.typed").is_file()


def test_every_public_name_can_be_loaded() -> None:
    _python("import frictax as fx; [getattr(fx, name) for name in dir(fx)]")
