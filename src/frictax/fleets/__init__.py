"""Fit thousands of records on all processors or a cluster, and evaluate the table of results.

Read the code in this order:

- `sources`: read the records;
- `chunks`: divide the records into lists, fit a list, and store finished lists on disk;
- `table`: the table of results; `workers`: processes and clusters; `fleet`: the public function;
- `statistics`: population, drift and verdicts; `page`: the report of a fleet.
"""

from .chunks import Chunk as Chunk, Task as Task, fitted_chunk as fitted_chunk
from .fleet import chunks_of as chunks_of, fleet as fleet
from .statistics.drift import Drift as Drift, drift as drift
from .statistics.population import Population as Population, population as population
from .statistics.verdicts import Verdicts as Verdicts, verdicts as verdicts
from .table import Fleet as Fleet
