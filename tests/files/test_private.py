"""Which folders only this user and root can write to."""

import os
from pathlib import Path

import pytest

from files_of_others import give_away
from frictax.files.private import read_private, unsafe_part

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no owners and modes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three folders, one in the other."""
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for place in (deep, deep.parent, deep.parent.parent):
        place.chmod(0o700)
    return deep


def test_a_folder_of_ones_own_is_safe_and_so_is_one_that_is_not_there(folder: Path) -> None:
    assert unsafe_part(folder) is None
    assert unsafe_part(folder / "new" / "newer") is None


@pytest.mark.parametrize("up", [0, 1, 2])
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o777, 0o702])
def test_a_mode_that_lets_others_write_is_found_at_each_height(
    folder: Path, up: int, mode: int
) -> None:
    place = [folder, *folder.parents][up]
    place.chmod(mode)
    found = unsafe_part(folder)
    assert found is not None
    assert found[0] == place
    assert f"other users may write to {place} (mode {mode:04o})" in found[1]


@pytest.mark.parametrize("up", [0, 1, 2])
def test_another_owner_is_found_at_each_height(
    folder: Path, up: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = [folder, *folder.parents][up]
    give_away(place, monkeypatch)
    found = unsafe_part(folder)
    assert found is not None
    assert found[0] == place
    assert "belongs to user 54321, and not to you or root" in found[1]


def test_a_folder_in_which_users_cannot_touch_the_files_of_others_may_stand_above(
    folder: Path,
) -> None:
    folder.parent.chmod(0o1777)
    assert unsafe_part(folder) is None
    assert unsafe_part(folder.parent / "new") is None
    found = unsafe_part(folder.parent)
    assert found is not None
    assert found[0] == folder.parent


def test_links_are_followed_and_the_folders_on_their_way_count(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = tmp_path / "way"
    way.mkdir(mode=0o700)
    (way / "absolute").symlink_to(folder)
    (way / "relative").symlink_to("../a/./b/c")
    (way / "twice").symlink_to("relative")
    (way / "loop").symlink_to("loop")
    links = [way / name for name in ("absolute", "relative", "twice")]
    assert [unsafe_part(link) for link in links] == [None] * 3
    assert unsafe_part(way / "loop") is None  # nothing can be read there
    assert read_private(way / "loop" / "x") is None
    folder.parent.chmod(0o777)  # where the links lead
    assert [found[0] for link in links if (found := unsafe_part(link))] == [folder.parent] * 3
    folder.parent.chmod(0o700)
    way.chmod(0o777)  # where the links stand
    assert [found[0] for link in links if (found := unsafe_part(link))] == [way] * 3
    way.chmod(0o1777)
    assert [unsafe_part(link) for link in links] == [None] * 3
    if os.geteuid() == 0:
        os.chown(way / "twice", 54321, 54321, follow_symlinks=False)
    else:
        give_away(way / "twice", monkeypatch)
    assert [unsafe_part(link) is None for link in links] == [True, True, False]


def test_a_path_that_goes_up_ends_where_the_system_ends(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert unsafe_part(tmp_path / "link" / ".." / "c") is None
    folder.parent.chmod(0o1777)
    assert unsafe_part(tmp_path / "link" / ".." / "c") is None
    found = unsafe_part(folder / "..")
    assert found is not None
    assert found[0] == folder.parent
    monkeypatch.chdir(folder)
    assert unsafe_part(Path()) is None
    assert unsafe_part(Path("..")) is not None


def test_a_file_that_others_can_write_is_not_read_and_no_link_is_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "file"
    file.write_bytes(b"mine")
    file.chmod(0o600)
    assert read_private(file) == b"mine"
    assert read_private(folder / "other") is None
    assert read_private(folder) is None
    (folder / "link").symlink_to(file)
    assert read_private(folder / "link") is None
    os.mkfifo(folder / "pipe")
    assert read_private(folder / "pipe") is None
    file.chmod(0o620)
    assert read_private(file) is None
    file.chmod(0o600)
    folder.chmod(0o777)
    assert read_private(file) is None
    folder.chmod(0o700)
    assert read_private(file) == b"mine"
    if os.geteuid() == 0:
        os.chown(file, 54321, 54321)
        assert read_private(file) is None


def test_without_owners_and_modes_every_folder_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o777)
    (folder / "file").write_bytes(b"mine")
    monkeypatch.setattr("frictax.files.private._HAS_OWNERS", False)
    assert unsafe_part(folder) is None
    assert read_private(folder / "file") == b"mine"
