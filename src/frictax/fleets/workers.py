"""Run the chunks of a fleet in this process, in several processes, or on a Dask cluster."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, cast

from frictax.interrupts import processors, stop_here
from frictax.programs.store import is_safe, program_folder

from .chunks import Chunk, Task, fitted_chunk
from .table import failed_row, table_of_rows

TRIES = 3  # number of attempts for a chunk whose process or worker ends early


def run_chunks(
    task: Task, chunks: Sequence[Chunk], jobs: int | None, cluster: Any
) -> Iterator[tuple[Chunk, Any]]:
    """Fit the chunks, and yield each finished chunk with its rows. The fits run on the workers of
    `cluster`, or without a cluster in `jobs` processes (by default, one for each processor).
    """
    jobs = min(processors() if jobs is None else jobs, max(len(chunks), 1))
    if cluster is not None:
        yield from run_on_cluster(task, chunks, cluster)
    elif jobs > 1:
        yield from run_in_processes(task, chunks, jobs)
    else:
        for chunk in chunks:
            yield chunk, fitted_chunk(task, chunk)


def run_in_processes(task: Task, chunks: Sequence[Chunk], jobs: int) -> Iterator[tuple[Chunk, Any]]:
    """Fit the chunks in `jobs` processes, and yield each finished chunk with its rows. If a process
    ends early (out of memory, or killed), a pool of one process repeats the chunks that were
    running. A faulty chunk cannot disturb other chunks there. After the third failure of a chunk,
    the rows of its records contain a `reason` instead of estimates."""
    tries = {chunk.number: 0 for chunk in chunks}
    remaining = {chunk.number: chunk for chunk in chunks}
    folder = program_folder()
    if folder is not None:
        is_safe(folder)  # Print a warning about the folder once, not in every process.
    with _single_threaded():
        while remaining:
            suspects = [chunk for number, chunk in remaining.items() if tries[number]]
            count = 1 if suspects else jobs
            pool = _pool(count)
            try:
                yield from _run_until_broken(
                    pool, task, suspects or remaining.values(), remaining, tries, count
                )
            finally:
                running = list((pool._processes or {}).values())
                pool.shutdown(wait=False, cancel_futures=True)
                for process in running:
                    process.terminate()
                for process in running:
                    process.join(5)


def _run_until_broken(
    pool: ProcessPoolExecutor,
    task: Task,
    chunks: Iterable[Chunk],
    remaining: dict[int, Chunk],
    tries: dict[int, int],
    jobs: int,
) -> Iterator[tuple[Chunk, Any]]:
    """Fit `chunks` in `pool`; yield finished chunks with rows; update `remaining`, `tries`."""
    waiting, running = iter(list(chunks)), dict[Future, Chunk]()

    def submit_more() -> None:
        # Submit one chunk more than there are processes, so that no process waits. With one
        # process, submit only one chunk, so that the cause of a failure is certain.
        for chunk in itertools.islice(waiting, jobs + (jobs > 1) - len(running)):
            running[pool.submit(fitted_chunk, task, chunk)] = chunk

    try:
        submit_more()
        while running:
            stop_here()  # Raise `KeyboardInterrupt` if Ctrl-C was pressed.
            # The timeout lets this process react to an interrupt.
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for job in done:
                rows = job.result()
                chunk = running.pop(job)
                del remaining[chunk.number]
                yield chunk, rows
            submit_more()
    except BrokenProcessPool:
        for chunk in running.values():
            tries[chunk.number] += 1
            if tries[chunk.number] >= TRIES:
                del remaining[chunk.number]
                yield chunk, _lost_rows(chunk)


def _lost_rows(chunk: Chunk) -> Any:
    """Return rows with a `reason` for a chunk whose process ended early at each attempt."""
    why = (
        f"the process that fitted it and {len(chunk.sources) - 1} others ended {TRIES} times."
        " Possible causes: too little memory, or a fault in a compiled library."
    )
    return table_of_rows([failed_row(source.name, why) for source in chunk.sources], chunk.about)


def _pool(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # A forked process would lack JAX's threads.
    places = context.SimpleQueue()
    for i in range(jobs):
        places.put(i)
    return ProcessPoolExecutor(jobs, context, initializer=initialize_process, initargs=(places,))


@contextlib.contextmanager
def _single_threaded() -> Iterator[None]:
    """Set environment variables so that new processes use one thread for linear algebra and one
    memory arena of malloc. Further arenas would not return freed memory to the system.
    """
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX")
    before = {name: os.environ.get(name) for name in threads}
    os.environ.update(dict.fromkeys(threads, "1"))  # NumPy reads the variables when it is imported
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def initialize_process(places: Any = None) -> None:
    """Prepare a new process: set JAX options, bind it to one processor, and ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent process handles an interrupt.
    _configure_jax()
    if places is not None:
        with contextlib.suppress(AttributeError, OSError):
            mine = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {mine[places.get() % len(mine)]})

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:  # End this process if the parent process is killed.
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    import jax

    from frictax.programs import store
    from frictax.programs.store import check_jax_cache

    store.report_line = lambda sentence: None  # The parent process has already printed this text.
    check_jax_cache(keep=False)
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def _configure_jax() -> None:
    import jax

    from frictax.xla import fast_loops, has_started, keep_freed_memory

    keep_freed_memory()
    if not has_started():
        fast_loops()
    jax.config.update("jax_enable_x64", True)


def run_on_cluster(
    task: Task, chunks: Sequence[Chunk], cluster: Any
) -> Iterator[tuple[Chunk, Any]]:
    """Fit the chunks on a Dask cluster, and yield each finished chunk with its rows.

    **Arguments:** `cluster`: a `distributed.Client`, or the address of a scheduler.
    """
    try:
        from distributed import Client, KilledWorker, as_completed  # pyright: ignore
    except ImportError:
        raise ImportError(
            "A fleet on a cluster needs the package distributed, of Dask. Install it: `pip install"
            " 'frictax[cluster]'`."
        ) from None
    with contextlib.ExitStack() as stack:
        client = cluster
        if isinstance(cluster, str):
            try:
                client = stack.enter_context(Client(cluster, timeout=10))
            except (OSError, ValueError) as why:
                raise ConnectionError(
                    f"There is no Dask scheduler at {cluster}. Start one, `dask scheduler`, and"
                    " name the address that it prints."
                ) from why
        client.wait_for_workers(1, timeout=60)
        threads = sum(cast("dict[str, int]", client.nthreads()).values())
        waiting = iter(chunks)
        running: dict[Any, Chunk] = {}

        def submit_more(count: int) -> list[Any]:
            out = []
            for chunk in itertools.islice(waiting, count):
                job = client.submit(_fit_on_worker, task, chunk, retries=TRIES, pure=False)
                running[job] = chunk
                out.append(job)
            return out

        queue = as_completed(submit_more(3 * threads))  # With 3 chunks per thread, no thread waits.
        for job in queue:
            stop_here()
            chunk = running.pop(job)
            try:
                rows = job.result()
            except KilledWorker:
                rows = _lost_rows(chunk)
            yield chunk, rows
            for other in submit_more(1):
                queue.add(other)


def _fit_on_worker(task: Task, chunk: Chunk) -> Any:
    """Fit a chunk in a thread of a Dask worker, whose process has its own JAX settings."""
    _configure_jax()
    return fitted_chunk(task, chunk)
