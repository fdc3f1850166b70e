"""Fleets: one machine's fit for each of thousands of records, on all processors or a cluster, and
what the table of all fits tells.

Read in this order: `sources` (where records are), `task` (what is done with each), `chunk` (the one
function that does it, a table out of a list of records), `plan` and `parts` (what is done when, and
what is done already), `workers` and `cluster` (by whom), `fleet`; then `statistics` (the
population, drift, end-of-line verdicts) and `page` (their report).
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
