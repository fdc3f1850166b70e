"""A process that is killed while it replaces files. It needs nothing but the module that writes.

`python kills.py MODULE FOLDER each` kills a writer at each of its calls to the system, and prints
what a reader then finds; `python kills.py MODULE FOLDER random COUNT SEED` at random moments.
"""

import importlib.util
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

NAMES = ("result.json", "result.fit", "parameters.toml", "report.html")
NEW = "new.txt"  # which only the second generation has
os.fsync = lambda file: None  # a kill, unlike a power failure, loses nothing that is not synced
CALLS = ("open", "write", "fsync", "link", "replace", "unlink", "chmod", "close")


def load(path):
    spec = importlib.util.spec_from_file_location("replacing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contents(folder, generation, more=()):
    return {folder / name: f"{name} {generation}\n" * 400 for name in (*NAMES, *more)}


def clear(folder):
    for path in folder.iterdir():
        path.unlink()


def state(folder):
    """What a reader finds: the generation of each file, and the names of everything else."""
    found = {}
    for path in sorted(folder.iterdir()):
        lines = path.read_text().splitlines()
        whole = len(set(lines)) == 1 and len(lines) == 400 and lines[0].startswith(path.name)
        found[path.name] = lines[0].split()[-1] if whole else "broken"
    return found


def in_child(work):
    """Run `work` in a process of its own; return whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def kill_at(number):
    """Kill this process at its call of that number, before it or after it in turn."""
    left = [number // 2]

    def wrapped(call):
        def run(*args, **options):
            left[0] -= 1
            if left[0] == -1 and number % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **options)
            if left[0] == -1:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))


def each(replacing, folder, more, finish):
    rows, number, was_killed = [], 0, True
    while was_killed:
        clear(folder)
        replacing.write_together(contents(folder, 1), replace=True)

        def work(number=number):
            kill_at(number)
            replacing.write_together(contents(folder, 2, more), replace=True)

        was_killed = in_child(work)
        finish(replacing, folder)
        rows.append(state(folder))
        number += 1
    return rows


def twice(replacing, folder):
    """Recovery that is itself killed at a random call, and then goes to its end."""

    def work():
        kill_at(random.randrange(40))
        replacing.finish_interrupted(folder)

    in_child(work)
    replacing.finish_interrupted(folder)


def at_random(replacing, folder, count):
    rows = []
    clear(folder)
    replacing.write_together(contents(folder, 0), replace=True)
    for number in range(count):
        child = os.fork()
        if child == 0:
            generation = 10000 * number
            while True:
                generation += 1
                replacing.write_together(contents(folder, generation), replace=True)
        time.sleep(random.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        replacing.finish_interrupted(folder, reading=random.random() < 0.5)
        rows.append(state(folder))
    return rows


if __name__ == "__main__":
    module, place, how = load(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    random.seed(int(sys.argv[5]) if len(sys.argv) > 5 else 0)
    if how == "random":
        made = at_random(module, place, int(sys.argv[4]))
    else:
        finish = twice if how == "twice" else lambda m, f: m.finish_interrupted(f)
        made = each(module, place, (NEW,) if how != "same" else (), finish)
    json.dump(made, sys.stdout)
