"""`OnSamples`: runs that step from sample to sample, with events inside the steps.

- `march`: the loop of one run; `lanes`: the loop of a batch of runs; `one_step`: a single step.
- `events`: the search for events; `control`: the error control; `bookkeeping`: times and logs.
- `derivatives`: forward and reverse mode; `operation`: the run as a JAX primitive.
"""

from .derivatives import run_samples as run_samples
