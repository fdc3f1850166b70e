"""`frictax identify` beside folders of programs that others can write to, or that are damaged."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from files_of_others import plant

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no owners and modes")


@pytest.mark.slow
@pytest.mark.parametrize("route", ["FRICTAX_CACHE", "JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME"])
def test_identify_runs_no_foreign_code_and_survives_damage_by_each_route(
    route: str, tmp_path: Path, problem: Callable[..., Path]
) -> None:
    cache, marker, work = tmp_path / "cache", tmp_path / "loaded", problem()
    cache.mkdir(mode=0o700)
    environment = {k: v for k, v in os.environ.items() if k != "FRICTAX_CACHE"}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "home"), route: str(cache)}
    if route == "XDG_CACHE_HOME":
        (cache / "frictax").mkdir(mode=0o700)
        cache = cache / "frictax"

    def identify() -> str:
        command = "from frictax.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", command, "identify", str(work), "--overwrite"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert identify() == ""
    expected = (work / "parameters.toml").read_bytes()
    if route == "XDG_CACHE_HOME":
        for path in cache.rglob("*"):
            if path.is_file():
                path.write_bytes(b"\xff" + path.read_bytes()[1:-7])
        assert identify() == ""
        assert (work / "parameters.toml").read_bytes() == expected
    assert plant(cache, marker) > 0
    cache.chmod(0o777)
    said = identify()
    assert not marker.exists()
    assert said.count("\n") == 1
    assert str(cache) in said
    assert (work / "parameters.toml").read_bytes() == expected
