"""Print the lowest versions that pyproject.toml allows, as pip takes them: `jax==0.7.2 ...`.

`make oldest` installs these on the oldest Python. Names of extras as arguments add their packages.
With `--python` the script prints the oldest Python instead.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lower_bounds(extras: Iterable[str] = ()) -> list[str]:
    """Return `name==version` for each dependency of frictax and of its `extras`."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    asked = list(project["dependencies"])
    for extra in extras:
        asked += project["optional-dependencies"][extra]
    found = []
    for one in asked:
        parts = re.fullmatch(r"([\w.-]+(?:\[\w+\])?)>=([\d.]+)(?:; .*)?", one)
        if parts is None:
            raise ValueError(f"`{one}` of pyproject.toml must be written as name>=version.")
        found.append(f"{parts[1]}=={parts[2]}")
    return found


def oldest_python() -> str:
    """Return the lowest version of Python that pyproject.toml allows."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return str(project["requires-python"]).removeprefix(">=")


if __name__ == "__main__":
    given = sys.argv[1:]
    print(oldest_python() if given == ["--python"] else " ".join(lower_bounds(given)))
