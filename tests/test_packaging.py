"""What an index, conda, a container and a citation say of the package agrees with the package."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import frictax as fx
from lower_bounds import lower_bounds, oldest_python

CONDA = {"matplotlib": "matplotlib-base"}  # the names that differ there


@pytest.fixture(scope="module")
def project(root: Path) -> Any:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_page_of_the_package_index_has_absolute_links_alone(root: Path, project: Any) -> None:
    page = metadata.metadata("frictax").json["description"]
    assert isinstance(page, str)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    home = project["urls"]["Homepage"].removeprefix("https://github.com/")
    picture, *_ = [link for link in links if link.endswith(".svg")]
    assert picture.startswith(f"https://raw.githubusercontent.com/{home}/v{fx.__version__}/")
    pages = f"https://github.com/{home}/blob/v{fx.__version__}/"
    ours = [link.removeprefix(pages) for link in links if link.startswith(pages)]
    assert len(ours) > 20
    assert [path for path in ours if not (root / path.split("#")[0]).exists()] == []


def test_version_and_address_are_the_same_everywhere(root: Path, project: Any) -> None:
    version, home = fx.__version__, project["urls"]["Homepage"]
    assert metadata.version("frictax") == version
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (root / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    for text in (f"version: {version}\n", f'repository-code: "{home}"'):
        assert text in citation
    for text in (f'version: "{version}"\n', f"homepage: {home}\n"):
        assert text in recipe
    assert f"\n## {version} " in (root / "CHANGELOG.md").read_text(encoding="utf-8")


def test_conda_asks_for_what_pip_asks_for(root: Path, project: Any) -> None:
    recipe = (root / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    host, run = re.findall(r"  (?:host|run):\n((?:    - .+\n)+)", recipe)
    asked = {line.strip("- ") for line in run.splitlines()}
    built = {line.strip("- ") for line in host.splitlines()} - {"pip"}
    by_pip = [re.split("(?=>=)", one) for one in project["dependencies"]]
    python = f"python {project['requires-python']}"
    assert asked == {python} | {f"{CONDA.get(name, name)} {least}" for name, least in by_pip}
    build = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    assert built == {python} | {one.replace(">=", " >=") for one in build["requires"]}


def test_make_oldest_takes_each_lower_bound_and_the_oldest_python(project: Any) -> None:
    assert lower_bounds() == [one.replace(">=", "==") for one in project["dependencies"]]
    assert [one for one in lower_bounds(["fleet"]) if one not in lower_bounds()] == ["pyarrow==17"]
    assert f">={oldest_python()}" == project["requires-python"]
    pythons = [one.rsplit(" ", 1)[1] for one in project["classifiers"] if ":: 3." in one]
    assert pythons[0] == oldest_python()


def test_the_hook_before_a_commit_has_the_ruff_of_the_tests(root: Path) -> None:
    hooks = (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    pinned = re.findall(r"^ruff==.+$", (root / "constraints.txt").read_text("utf-8"), re.M)
    assert len(pinned) == 1
    assert re.findall(r"\[(ruff==[^\]]+)\]", hooks) == 2 * pinned


def test_every_package_that_is_imported_is_declared(root: Path, project: Any) -> None:
    imported = set()
    for path in (root / "src" / "frictax").rglob("*.py*"):
        if path.suffix not in (".py", ".pyi"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported.add(node.module.partition(".")[0])
    extras = project["optional-dependencies"]
    used = [*project["dependencies"], *(one for name in extras for one in extras[name])]
    declared = {re.split(r"[^\w.-]", one)[0].lower() for one in used}
    others = imported - set(sys.stdlib_module_names) - {"frictax"}
    assert len(others) > 15
    assert {name for name in others if name.lower() not in declared} == set()


def test_actions_are_pinned_by_digest_and_only_a_job_that_runs_no_code_may_publish(
    root: Path,
) -> None:
    workflows = sorted((root / ".github" / "workflows").glob("*.yml"))
    assert len(workflows) == 2
    jobs: dict[str, str] = {}
    for path in workflows:
        text = path.read_text(encoding="utf-8")
        uses = re.findall(r"uses: (.+)", text)
        others = [one for one in uses if not one.startswith("./")]
        pinned = r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
        assert [one for one in others if not re.fullmatch(pinned, one)] == []
        for job in re.split(r"\n(?=  [\w-]+:\n)", text.partition("\njobs:")[2]):
            name, _, body = job.strip().partition(":\n")
            jobs[f"{path.stem}.{name}"] = body
    may = [name for name, body in jobs.items() if "id-token: write" in body]
    assert sorted(may) == ["release.publish", "release.publish-site"]
    assert all("run:" not in jobs[name] and "checkout" not in jobs[name] for name in may)
    assert "needs: package" in jobs["release.publish"]
    assert "needs: test" in jobs["release.package"]
    assert "uses: ./.github/workflows/test.yml" in jobs["release.test"]


def test_the_container_has_an_init_a_user_and_a_cache_that_lasts(root: Path) -> None:
    lines = (root / "packaging" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == 'ENTRYPOINT ["tini", "--", "frictax"]'
    (user,) = [line for line in lines if line.startswith("USER ")]
    assert user != "USER root"
    assert "VOLUME /cache" in lines
    assert any("XDG_CACHE_HOME=/cache" in line for line in lines if line.startswith("ENV "))
