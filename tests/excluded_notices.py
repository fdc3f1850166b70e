"""Codes of notices that contradict each other: no fit has two of one group."""

from collections import Counter
from collections.abc import Iterable

from frictax.notice import Notice

# At most one of each group in a fit
_ENDS = {"search-flat", "search-kink", "search-edge", "search-unfinished"}
OF_A_FIT = (
    _ENDS,
    {"term-missing", "residuals-unexplained", "remembers"},
    {"search-above-noise", "misfit-above-noise", "tells-next-to-nothing", "windows-too-short"},
    {"search-above-noise", "search-not-certified"},
    {"misfit-above-noise", "search-not-certified"},
    {"motion-near-noise", "motion-within-noise", "no-stretch", "forces-at-samples"},
    {"offset-missing", "directions-differ"},
    {"offset-missing", "offset-if-symmetric"},
    {"steps-too-long", "bent-between-samples"},
    {"nothing-moves", "term-missing"},
    {"nothing-moves", "misfit-above-noise"},
    {"nothing-moves", "far-from-start"},
)
# ... and for a subject, as a parameter or a channel
OF_A_SUBJECT = (
    {
        "near-bound",
        "at-lower-bound",
        "at-upper-bound",
        "ran-away",
        "left-at-bound",
        "no-effect",
        "little-effect",
    },
    {"far-from-start", "ran-away", "no-effect", "little-effect", "left-at-bound"},
    {"explains-nothing", "misfit-above-noise", "tells-next-to-nothing", "no-better-than-line"},
    {"starts-elsewhere", "starts-at-another-speed"},
    {"record-ticks", "record-coarse"},
    {"record-ticks", "record-gaps"},
    {"record-rate-unlike", "record-rate-against", "record-rate-size"},
    {"record-sd-too-small", "record-sd-too-large"},
)


def contradictions(notices: Iterable[Notice]) -> list[str]:
    """Each group of which these notices have two, with the codes."""
    notices, out = list(notices), []
    codes = {n.code for n in notices}
    out += [str(sorted(group & codes)) for group in OF_A_FIT if len(group & codes) > 1]
    for group in OF_A_SUBJECT:
        of = {(n.subject, n.numbers.get("record", ""), n.code) for n in notices if n.code in group}
        many = Counter(where[:2] for where in of)
        out += [f"{sorted(x for x in of if x[:2] == one)}" for one, k in many.items() if k > 1]
    return out
