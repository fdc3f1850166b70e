"""Problem files: what is to be identified, from which data, and how it is judged."""

from frictax.problems.building import ProblemError as ProblemError
from frictax.problems.checking import check as check
from frictax.problems.identification import Identification as Identification
from frictax.problems.identification import identify as identify
from frictax.problems.overview import overview as overview
from frictax.problems.overview import write_overview as write_overview
from frictax.problems.reading import Problem as Problem
from frictax.problems.reading import read as read
from frictax.problems.results import check_results as check_results
from frictax.problems.results import claimed as claimed
from frictax.problems.results import result_texts as result_texts
from frictax.problems.results import write_results as write_results
