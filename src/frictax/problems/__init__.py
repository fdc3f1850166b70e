"""Problem files: data, machine, free parameters and validation in one file."""

from .building import ProblemError as ProblemError
from .checking import check as check
from .designing import designed as designed
from .identification import Identification as Identification, identify as identify
from .overview import overview as overview, write_overview as write_overview
from .problem import Problem as Problem
from .reading import read as read
from .results import (
    check_results as check_results,
    claimed as claimed,
    result_files as result_files,
    result_texts as result_texts,
    write_results as write_results,
)
from .simulating import preview_page as preview_page, simulate as simulate
