"""Chunks on a cluster: Dask's scheduler and workers, as their users start them."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from .chunk import fitted_chunk
from .task import Chunk, Task
from .workers import lost

_RETRIES = 3  # of a chunk whose worker is lost
_AHEAD = 3  # chunks for each thread of a worker that are with the scheduler


def on_cluster(task: Task, chunks: Sequence[Chunk], cluster: Any) -> Iterator[tuple[Chunk, Any]]:
    """The chunks and their rows as they come, by the workers of a Dask cluster.

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
        told: Any = client.nthreads()
        threads = sum(told.values())
        waiting = iter(chunks)
        running: dict[Any, Chunk] = {}

        def more(count: int) -> list[Any]:
            out = []
            for chunk in itertools.islice(waiting, count):
                job = client.submit(_by_worker, task, chunk, retries=_RETRIES, pure=False)
                running[job] = chunk
                out.append(job)
            return out

        queue = as_completed(more(_AHEAD * threads))
        for job in queue:
            chunk = running.pop(job)
            try:
                made = job.result()
            except KilledWorker:
                made = lost(chunk)
            yield chunk, made
            for other in more(1):
                queue.add(other)


def _by_worker(task: Task, chunk: Chunk) -> Any:
    """In a worker's thread: its process may have been started by anybody."""
    import jax

    from frictax.xla import fast_loops, has_started, keep_freed_memory

    if not has_started():
        fast_loops()
    jax.config.update("jax_enable_x64", True)
    keep_freed_memory()
    return fitted_chunk(task, chunk)
