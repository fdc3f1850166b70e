"""Problem files, which describe data, machine, free parameters and validation of a fit."""

from .building import ProblemError as ProblemError
from .checking import check as check
from .identification import (
    Identification as Identification,
    design_experiment as design_experiment,
    identify as identify,
    preview_page as preview_page,
    simulate as simulate,
)
from .problem import Problem as Problem, read as read
from .results import (
    check_results as check_results,
    lock_results as lock_results,
    overview as overview,
    result_files as result_files,
    result_texts as result_texts,
    write_overview as write_overview,
    write_results as write_results,
)
