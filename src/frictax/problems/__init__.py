"""Problem files: what is to be identified, from which data, and how it is judged."""

from frictax.problems.building import ProblemError as ProblemError
from frictax.problems.checking import check as check
from frictax.problems.identification import Identification as Identification, identify as identify
from frictax.problems.overview import overview as overview, write_overview as write_overview
from frictax.problems.reading import Problem as Problem, read as read
from frictax.problems.results import (
    check_results as check_results,
    claimed as claimed,
    result_texts as result_texts,
    write_results as write_results,
)
