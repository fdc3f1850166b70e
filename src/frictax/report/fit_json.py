"""A fit as JSON, whatever was fitted."""

from frictax.fitting import FitResult
from frictax.report.json_text import found_json
from frictax.report.machine_json import found_machine_json


def fit_json(found: FitResult) -> str:
    """All of a fit as JSON, with units: see `found_json` and, for records, `found_machine_json`."""
    return found_json(found) if found.of_sweep else found_machine_json(found)
