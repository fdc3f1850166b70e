"""Write files completely or not at all, and check before the work that they can be written."""

import contextlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_OURS = re.compile(r"\.frictax-([0-9a-f]{16})\.(journal|\d+\.part|\d+\.old)")
_FORWARD, _BACK = b"forward\n", b"back\n"
_FLAGS = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def write_whole(
    target: Path, content: str | bytes, *, replace: bool, sync: bool = True, mode: int | None = None
) -> None:
    """Write one file. If writing fails or the process is killed, the old file remains. `sync`:
    whether the content must survive a power failure; `mode`: permissions of the file, by default
    those of the old file.
    """
    with _one_sentence([target]):
        finish_interrupted(target.parent)
        part, file = _create_locked(target.parent, "0.part")
        try:
            try:
                _fill(file, part, content, target, sync, mode)
                if os.name == "nt":  # Windows cannot rename an open file.
                    os.close(file)
                    file = -1
                _check_absent(target, replace)
                os.replace(part, target)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        finally:
            if file >= 0:
                os.close(file)
        if sync:
            _sync_folder(target.parent)


def write_together(files: Mapping[Path, str | bytes], *, replace: bool) -> None:
    """Write several files of one folder: all or none of them, even if the process is killed."""
    targets = list(files)
    if len(targets) < 2:
        for target in targets:
            write_whole(target, files[target], replace=replace)
        return
    folder = targets[0].parent
    if {target.parent for target in targets} != {folder}:
        raise ValueError("`write_together` writes the files of one folder, got several folders.")
    current = targets[:1]
    with _one_sentence(current):
        finish_interrupted(folder)
        path, journal = _create_locked(folder, "journal")
        token, is_pending = path.name.removeprefix(".frictax-").removesuffix(".journal"), False
        try:
            names = [[target.name, not target.exists()] for target in targets]
            _append(journal, json.dumps(names).encode() + b"\n")
            _sync_folder(folder)
            for i, target in enumerate(targets):
                current[0] = target
                part = _part(folder, token, i)
                file = os.open(part, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
                try:
                    _fill(file, part, files[target], target)
                finally:
                    os.close(file)
            for i, target in enumerate(targets):
                current[0] = target
                _check_absent(target, replace)
                if not names[i][1]:
                    old = _old(folder, token, i)
                    try:
                        os.link(target, old)
                    except OSError:  # The file system does not have hard links.
                        shutil.copy2(target, old)
            _sync_folder(folder)
            _append(journal, _FORWARD)
            try:
                for i, target in enumerate(targets):
                    current[0] = target
                    os.replace(_part(folder, token, i), target)
                _sync_folder(folder)
            except BaseException:
                # If the restoration fails, the next process that writes to the folder repeats it.
                is_pending = True
                _append(journal, _BACK)
                _go_back(folder, token, names)
                is_pending = False
                raise
        finally:
            if is_pending:
                os.close(journal)
            else:
                _remove_all(folder, token, journal)


def finish_interrupted(folder: Path, *, reading: bool = False) -> None:
    """Complete or undo the writing of a killed process in `folder`, and remove its temporary files.
    With `reading`, the function ignores system errors, and waits for a process that is renaming
    files.
    """
    try:
        found = [match for name in os.listdir(folder) if (match := _OURS.fullmatch(name))]
    except OSError:
        return
    with contextlib.suppress(OSError) if reading else contextlib.nullcontext():
        for token in {match[1] for match in found if match[2] == "journal"}:
            _finish(folder, token, reading)
        for match in found:
            journal = _journal(folder, match[1])
            if match[2] != "journal" and not journal.exists():
                part = folder / match[0]
                # The file may belong to another user, or another process may have removed it.
                with contextlib.suppress(OSError):
                    file = _open(part)
                    try:
                        is_abandoned = _is_abandoned(file)
                        if is_abandoned and os.name != "nt":
                            part.unlink(missing_ok=True)
                    finally:
                        os.close(file)
                    if is_abandoned:
                        part.unlink(missing_ok=True)


def _create_locked(folder: Path, ending: str) -> tuple[Path, int]:
    """Create, open and lock a temporary file; return its path and its file descriptor."""
    while True:
        path = folder / f".frictax-{secrets.token_hex(8)}.{ending}"
        file = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        # If another process removed the new file before this process locked it, try again.
        if lock_file(file) is not False and is_at(path, file):
            return path, file
        os.close(file)


def _fill(
    file: int,
    path: Path,
    content: str | bytes,
    target: Path,
    sync: bool = True,
    mode: int | None = None,
) -> None:
    """Write `content`; the file gets the permissions `mode`, or mode and owner of the old file."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "xmlcharrefreplace")
    if mode is None and target.exists():
        before = target.stat()
        mode = stat.S_IMODE(before.st_mode)
        os.chmod(path, 0o600)  # Until the file has its final owner, no other user may read it.
        mine = os.fstat(file)
        if os.name == "posix" and (before.st_uid, before.st_gid) != (mine.st_uid, mine.st_gid):
            with contextlib.suppress(OSError):  # Only root may give a file to another user.
                os.chown(path, before.st_uid, before.st_gid)
    if mode is not None:
        os.chmod(path, mode)
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(data)
    if sync:
        os.fsync(file)


def _check_absent(target: Path, replace: bool) -> None:
    if not replace and target.exists():
        raise FileExistsError(
            f"{target.name} was created in the meantime and is not replaced. Name another file."
        )


def _go_back(folder: Path, token: str, names: list[list]) -> None:
    """Restore the old files. A second call changes nothing."""
    for i, (name, is_new) in enumerate(names):
        if not is_new and _old(folder, token, i).exists():
            os.replace(_old(folder, token, i), folder / name)
        elif is_new and not _part(folder, token, i).exists():
            (folder / name).unlink(missing_ok=True)
    _sync_folder(folder)


def _finish(folder: Path, token: str, reading: bool) -> None:
    """Complete or undo the replacements in a journal if the process that wrote it has ended."""
    path = _journal(folder, token)
    try:
        journal = _open(path)
    except FileNotFoundError:
        return
    is_finished = False
    try:
        # [s] longest waiting time; a process that is renaming files needs less
        until = time.monotonic() + 10.0
        while not _is_abandoned(journal):
            if not reading or _FORWARD not in _lines(journal) or time.monotonic() > until:
                return
            time.sleep(0.01)
        if not is_at(path, journal):
            return  # Another process has finished the replacement.
        lines = _lines(journal)
        try:
            names = [[str(name), bool(is_new)] for name, is_new in json.loads(lines[0])]
        except (ValueError, TypeError, IndexError):
            names = []
        # Ignore a journal whose names contain folders; `write_together` writes only plain names.
        if not all(os.path.basename(name) == name not in ("", ".", "..") for name, _ in names):
            names = []
        if _BACK in lines:
            _go_back(folder, token, names)
        elif _FORWARD in lines:
            for i, (name, _) in enumerate(names):
                if _part(folder, token, i).exists():
                    os.replace(_part(folder, token, i), folder / name)
            _sync_folder(folder)
        is_finished = True
    finally:
        if is_finished:
            _remove_all(folder, token, journal)
        else:
            os.close(journal)


def _lines(journal: int) -> list[bytes]:
    os.lseek(journal, 0, os.SEEK_SET)
    return os.read(journal, 2**20).splitlines(keepends=True)


def _remove_all(folder: Path, token: str, journal: int) -> None:
    """Remove the temporary files that belong to a journal, and then the journal itself."""
    for name in os.listdir(folder):
        match = _OURS.fullmatch(name)
        if match and match[1] == token and match[2] != "journal":
            (folder / name).unlink(missing_ok=True)
    if os.name == "nt":  # Windows cannot remove an open file.
        os.close(journal)
    _journal(folder, token).unlink(missing_ok=True)
    if os.name != "nt":
        os.close(journal)


def _journal(folder: Path, token: str) -> Path:
    return folder / f".frictax-{token}.journal"


def _part(folder: Path, token: str, i: int) -> Path:
    return folder / f".frictax-{token}.{i}.part"


def _old(folder: Path, token: str, i: int) -> Path:
    return folder / f".frictax-{token}.{i}.old"


def _open(path: Path) -> int:
    try:
        return os.open(path, _FLAGS)
    except PermissionError:
        # The file belongs to another user, in a folder where both users may write.
        return os.open(path, _FLAGS & ~os.O_RDWR | os.O_RDONLY)


def is_at(path: Path, file: int) -> bool:
    """Return whether the open file `file` is still the file at `path`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except OSError:
        return False


def lock_file(file: int) -> bool | None:
    """Lock an open file until it is closed. Return False if another process has the lock, and None
    if the system has no locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            # A locked byte cannot be read on Windows, so lock a byte far beyond the content.
            os.lseek(file, 2**30, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            os.lseek(file, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except (ImportError, OSError):
        return None
    return True


def _is_abandoned(file: int) -> bool:
    """Return whether the process that wrote an open file has ended."""
    is_free = lock_file(file)
    if is_free is None:
        # Without locks, a file that did not change for 3600 s counts as abandoned.
        return time.time() - os.fstat(file).st_mtime > 3600.0
    return is_free


def _append(journal: int, line: bytes) -> None:
    os.lseek(journal, 0, os.SEEK_END)
    os.write(journal, line)
    os.fsync(journal)


def _sync_folder(folder: Path) -> None:
    # Windows cannot open a folder, and some systems cannot sync it.
    with contextlib.suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


@contextlib.contextmanager
def _one_sentence(current: list[Path]) -> Iterator[None]:
    """Replace a system error in this context by an error about the file `current[0]`."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            raise
        raise type(error)(
            f"{current[0].name} could not be written ({error.strerror}). Nothing was changed: free"
            " some space, or write elsewhere."
        ) from None


def check_target(path: str | Path, what: str) -> Path:
    """Return the file to write, with links followed, or raise an error with one sentence. `what`:
    the thing to be written, such as "the report".
    """
    asked, target = Path(path), Path(path).resolve()
    folder = target.parent
    if target.is_dir():
        raise IsADirectoryError(f"{asked} is a folder. Name a file in it for {what}.")
    if not folder.exists():
        raise FileNotFoundError(
            f"There is no folder {asked.parent} for {what}. Make it first, or write to another one."
        )
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{asked.parent} is a file, so {what} cannot be written into it. Name a folder."
        )
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{asked} is no ordinary file. Name another one for {what}.")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(
            f"{asked} may not be written to. Name another file for {what}, or change its"
            " permissions."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(
            f"The folder {asked.parent} may not be written to. Choose another one for {what}."
        )
    return target


def check_folder(folder: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Check that `folder`, which may not exist yet, contains none of the files `names`. With
    `overwrite`, the files may exist, but not as links.

    **Raises:** `FileExistsError` with one sentence.
    """
    finish_interrupted(folder, reading=True)
    for path in (folder / name for name in names):
        if path.is_symlink():
            raise FileExistsError(
                f"{path} is a link, and nothing is written through links. Remove it."
            )
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists. Give --overwrite to replace it, or another folder with --out."
            )


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Create a folder and its missing parent folders for the work in this context. If the work
    fails, remove the created folders that are empty.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file. Name another folder with --out.")
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        # A folder remains if another program has written a file to it.
        with contextlib.suppress(OSError):
            for one in new:
                one.rmdir()
        raise
