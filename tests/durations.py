"""Write durations.json, by which the longest test files begin first: `make durations` calls it."""

import collections
import json
import sys
import xml.etree.ElementTree
from pathlib import Path

_SHORT = 3.0  # [s] files that take less need no place in the order
_TESTS = Path(__file__).parent


def main(report: str, mark: str) -> None:
    """Add up the seconds of each file in a `report` of pytest in the JUnit format. `mark` selected
    the tests: "slow" or "not slow".
    """
    seconds = collections.defaultdict[str, float](float)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        # The class name is the module, such as tests.engine.test_ends, or a class in it.
        names = case.attrib["classname"].split(".")
        last = max((i for i, name in enumerate(names) if name.startswith("test_")), default=-1)
        path = "/".join(names[1 : last + 1]) + ".py"
        seconds[path] += float(case.attrib["time"])
    long = {path: round(s) for path, s in sorted(seconds.items()) if s > _SHORT}
    table = _TESTS / "durations.json"
    known = json.loads(table.read_text(encoding="utf-8")) | {mark: long}
    table.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


main(*sys.argv[1:])
