"""Programs are loaded only from folders that no other user can write to, however they are named."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import compilation_cache

from files_of_others import STRANGER, give_away, plant
from frictax.cli.working import keep_compiled
from frictax.programs import cached_jit, store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no owners and modes")

Spoil = Callable[[Path, pytest.MonkeyPatch], None]


def doubled(values: np.ndarray) -> list[float]:
    """What a kept function returns that passes for one of frictax's."""

    def function(x: Any) -> Any:
        return (2.0 * jnp.asarray(x),)

    function.__module__, function.__qualname__ = "frictax.fitting", "doubled"
    return np.asarray(cached_jit(function)(values)[0]).tolist()


def open_to_all(place: Path, _: pytest.MonkeyPatch) -> None:
    place.chmod(0o777)


def open_to_the_group(place: Path, _: pytest.MonkeyPatch) -> None:
    place.chmod(0o770)


SPOILT = [give_away, open_to_all, open_to_the_group]


@pytest.fixture(params=["FRICTAX_CACHE", "JAX's", "the user's"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Where programs are kept, by each of the three routes; those made at once, too."""
    monkeypatch.setattr(store, "_reported", set())
    monkeypatch.setattr("frictax.programs.executables._LEAST_COMPILE_TIME", 0.0)
    place = tmp_path / "cache" / "deep"
    place.mkdir(parents=True)
    for path in (place, place.parent):
        path.chmod(0o700)
    before = {
        name: getattr(jax.config, name)
        for name in (
            "jax_compilation_cache_dir",
            "jax_persistent_cache_min_compile_time_secs",
            "jax_persistent_cache_min_entry_size_bytes",
            "jax_enable_compilation_cache",
        )
    }
    monkeypatch.delenv("FRICTAX_CACHE")
    monkeypatch.setattr(store, "report_line", store.report_line)
    monkeypatch.setattr(compilation_cache, "get_file_cache", compilation_cache.get_file_cache)
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "true")
    if request.param == "FRICTAX_CACHE":
        monkeypatch.setenv("FRICTAX_CACHE", str(place))
    elif request.param == "JAX's":
        jax.config.update("jax_compilation_cache_dir", str(place))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    else:
        monkeypatch.setattr(store, "users_folder", lambda: place)
    yield place
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.parametrize("up", [0, 1])
@pytest.mark.parametrize("spoil", SPOILT)
def test_nothing_is_loaded_from_where_others_may_write_or_kept_there_and_one_line_says_so(
    folder: Path, spoil: Spoil, up: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled(np.arange(3.0))
    marker, part = tmp_path / "loaded", [folder, *folder.parents][up]
    assert plant(folder, marker) == 1
    with monkeypatch.context() as patch:
        spoil(part, patch)
        with pytest.warns(RuntimeWarning) as said:
            found = doubled(np.arange(3.0))
        assert found == [0.0, 2.0, 4.0]
        assert doubled(np.arange(4.0)) == [0.0, 2.0, 4.0, 6.0]  # without a second line
        assert not marker.exists()
        assert len(list(folder.rglob("*.program"))) == 1
        (line,) = [str(warning.message) for warning in said]
        assert str(part) in line
        assert "\n" not in line
        assert ("belongs to" if spoil is give_away else "other users may write to") in line
        assert "name another folder by FRICTAX_CACHE" in line.replace("Name", "name")


def test_a_planted_program_is_run_where_only_its_owner_can_have_planted_it(
    folder: Path, tmp_path: Path
) -> None:
    """So the tests above see what they should."""
    doubled(np.arange(3.0))
    plant(folder, tmp_path / "loaded")
    doubled(np.arange(3.0))
    assert (tmp_path / "loaded").exists()


def test_a_program_that_another_user_left_in_ones_own_folder_is_made_again(
    folder: Path, tmp_path: Path
) -> None:
    doubled(np.arange(3.0))
    plant(folder, tmp_path / "loaded")
    (program,) = folder.rglob("*.program")
    program.chmod(0o666)
    assert doubled(np.arange(3.0)) == [0.0, 2.0, 4.0]
    assert not (tmp_path / "loaded").exists()
    assert program.stat().st_mode & 0o777 == 0o600
    assert b"\n" in program.read_bytes()
    if os.geteuid() == 0:
        plant(folder, tmp_path / "loaded")
        os.chown(program, STRANGER, STRANGER)
        doubled(np.arange(3.0))
        assert not (tmp_path / "loaded").exists()
        assert program.stat().st_uid == 0


def test_new_folders_are_the_users_alone_whatever_the_umask(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new" / "newer"
    monkeypatch.setenv("FRICTAX_CACHE", str(new))
    before = os.umask(0)
    try:
        doubled(np.arange(3.0))
    finally:
        os.umask(before)
    assert [place.stat().st_mode & 0o777 for place in (new, new.parent)] == [0o700] * 2
    assert [path.stat().st_mode & 0o777 for path in new.iterdir()] == [0o600]


@pytest.mark.parametrize("spoil", SPOILT)
def test_the_command_line_switches_jax_s_own_cache_off_where_others_may_write(
    folder: Path, spoil: Spoil, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        spoil(folder, patch)
        keep_compiled()
        assert getattr(jax.config, "jax_enable_compilation_cache") is False  # noqa: B009
        assert os.environ["JAX_ENABLE_COMPILATION_CACHE"] == "false"
        doubled(np.arange(3.0))
        lines = capfd.readouterr().err.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith(f"frictax: No compiled program is loaded from {folder} ")
        assert list(folder.rglob("*")) == []


def test_the_command_line_lets_jax_keep_programs_and_makes_a_damaged_one_again(
    folder: Path, capfd: pytest.CaptureFixture
) -> None:
    keep_compiled()
    place = Path(getattr(jax.config, "jax_compilation_cache_dir"))  # noqa: B009
    assert place.is_relative_to(folder)
    made = compilation_cache.get_file_cache(str(place))
    assert made is not None
    cache = made[0]
    assert cache.get("some-key") is None
    cache.put("some-key", b"compiled")
    assert cache.get("some-key") == b"compiled"
    (path,) = place.glob("*.program")
    whole = path.read_bytes()
    for damaged in (b"", b"\xff\xfe\n", whole[:-1], whole[:-3] + b"xxx", whole + b"x"):
        path.write_bytes(damaged)
        assert cache.get("some-key") is None
        cache.put("some-key", b"compiled")
        assert path.read_bytes() == whole
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("word", ["off", "0", ""])
def test_a_word_switches_it_off_on_the_command_line_too(
    folder: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRICTAX_CACHE", word)
    given = getattr(jax.config, "jax_compilation_cache_dir")  # noqa: B009
    keep_compiled()
    assert store.program_folder() is None
    is_on = getattr(jax.config, "jax_enable_compilation_cache")  # noqa: B009
    assert is_on == (given is not None)


def test_a_note_of_what_was_read_next_that_is_damaged_is_ignored_and_written_again(
    folder: Path,
) -> None:
    for size in (3, 4):
        doubled(np.arange(float(size)))
    notes = list(folder.rglob("*.then"))
    assert notes
    for damaged in (b"\xff\xfe\x00", b"", b"../../elsewhere", b"a/b", b"\0"):
        for note in notes:
            note.write_bytes(damaged)
        for size in (3, 4):
            assert len(doubled(np.arange(float(size)))) == size
        assert all(note.read_bytes().endswith(b".program") for note in notes)
