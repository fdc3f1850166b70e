"""Chunks on the processors of one machine: a process each."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from frictax.programs.store import is_safe, program_folder

from .chunk import fitted_chunk
from .table import failed_row, table_of
from .task import Chunk, Task

TRIES = 3  # of a chunk whose process ends before it does
_OFTEN = 0.2  # seconds after which a waiting process looks up
_ALONE = {  # linear algebra on one processor, memory from one allocator
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
}


def here(task: Task, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, Any]]:
    """The chunks and their rows, one after the other in this process."""
    for chunk in chunks:
        yield chunk, fitted_chunk(task, chunk)


def in_processes(task: Task, chunks: Sequence[Chunk], jobs: int) -> Iterator[tuple[Chunk, Any]]:
    """The chunks and their rows as they come, by so many processes.

    A chunk whose process ends (out of memory, or killed) is begun anew by itself, so that the
    others with it are spared; the third time its records are rows that say so.
    """
    tries = {chunk.number: 0 for chunk in chunks}
    left = {chunk.number: chunk for chunk in chunks}
    folder = program_folder()
    if folder is not None:
        is_safe(folder)  # one line for all processes
    with _threads_of_one():
        while left:
            suspects = [chunk for number, chunk in left.items() if tries[number]]
            count = 1 if suspects else jobs
            pool = _pool(count)
            try:
                yield from _until_broken(pool, task, suspects or left.values(), left, tries, count)
            finally:
                _stop(pool)


def _until_broken(
    pool: ProcessPoolExecutor,
    task: Task,
    chunks: Iterable[Chunk],
    left: dict[int, Chunk],
    tries: dict[int, int],
    jobs: int,
) -> Iterator[tuple[Chunk, Any]]:
    """What one pool of processes gives; what it does not stays in `left`."""
    waiting, running = iter(list(chunks)), dict[Future, Chunk]()

    def more() -> None:
        # one waits for the first that is free, but where one is to be alone
        for chunk in itertools.islice(waiting, jobs + (jobs > 1) - len(running)):
            running[pool.submit(fitted_chunk, task, chunk)] = chunk

    try:
        more()
        while running:
            done, _ = wait(running, _OFTEN, FIRST_COMPLETED)
            for job in done:
                made = job.result()
                chunk = running.pop(job)
                del left[chunk.number]
                yield chunk, made
            more()
    except BrokenProcessPool:
        for chunk in running.values():
            tries[chunk.number] += 1
            if tries[chunk.number] >= TRIES:
                del left[chunk.number]
                yield chunk, lost(chunk)


def lost(chunk: Chunk) -> Any:
    """Rows for records that no process came to the end of."""
    why = (
        f"the process that fitted it and {len(chunk.sources) - 1} others ended {TRIES} times, as"
        " when memory is short or a compiled library fails."
    )
    return table_of([failed_row(source.name, why) for source in chunk.sources], chunk.about)


def _pool(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # jax has threads, which no fork survives
    places = context.SimpleQueue()
    for i in range(jobs):
        places.put(i)
    return ProcessPoolExecutor(jobs, context, initializer=begun, initargs=(places,))


@contextlib.contextmanager
def _threads_of_one() -> Iterator[None]:
    """Processes that start meanwhile do their linear algebra on one processor, and keep little
    memory: many allocators of one process keep what each has freed.
    """
    before = {name: os.environ.get(name) for name in _ALONE}
    os.environ.update(_ALONE)  # read when numpy is imported there
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def begun(places: Any = None) -> None:
    """In a process of its own, once: fast loops, wide numbers, one processor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key ends the process that asks
    from frictax.xla import fast_loops, has_started, keep_freed_memory

    keep_freed_memory()

    if not has_started():
        fast_loops()
    if places is not None:
        with contextlib.suppress(AttributeError, OSError):
            mine = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {mine[places.get() % len(mine)]})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import jax

    from frictax.programs import store
    from frictax.programs.store import check_jax_cache

    store.report_line = lambda sentence: None  # the process that asks has said it
    check_jax_cache(keep=False)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def _end_with_parent() -> None:
    """No process stays behind where the one that asks is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes, whatever they do: what they have not given is lost."""
    running = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in running:
        process.terminate()
    for process in running:
        process.join(5)
