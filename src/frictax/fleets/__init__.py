"""Fit thousands of records on all processors or a cluster, and evaluate their table.

Read in this order: `sources` (the records), `task` (the work for each record), `chunk` (the
function that turns a list of records into a table), `plan` and `parts` (order of the work, finished
parts), `workers` and `cluster` (processes), `fleet`; then `statistics` (population, drift,
verdicts) and `page` (their report).
"""

from .chunk import fitted_chunk as fitted_chunk
from .fleet import chunks_of as chunks_of, fleet as fleet
from .result import Fleet as Fleet
from .statistics.drift import drift as drift
from .statistics.drift_result import Drift as Drift
from .statistics.population import population as population
from .statistics.population_result import Population as Population
from .statistics.verdicts import Verdicts as Verdicts, verdicts as verdicts
from .task import Chunk as Chunk, Task as Task
