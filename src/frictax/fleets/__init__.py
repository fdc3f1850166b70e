"""Fleets: one machine's fit for each of thousands of records, on all processors or a cluster.

Read in this order: `sources` (where records are), `task` (what is done with each), `chunk` (the one
function that does it, a table out of a list of records), `plan` and `parts` (what is done when, and
what is done already), `workers` and `cluster` (by whom), `fleet`.
"""

from .chunk import fitted_chunk as fitted_chunk
from .fleet import Fleet as Fleet, chunks_of as chunks_of, fleet as fleet
from .task import Chunk as Chunk, Task as Task
