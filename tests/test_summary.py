"""A result is printed and shown in a notebook by one summary."""

from frictax.report.cards import card
from frictax.summary import Summarised, Summary

SHOWN = Summary(
    "A fit",
    (("name", "value"), [("mass", "1"), ("friction", "2.5")]),
    "lr",
    sentences=["It fits."],
    notices=["Beware."],
    above=["First of all."],
    chosen="mass",
)


class Result(Summarised):
    def _summary(self) -> Summary:
        return SHOWN


def test_text_has_title_sentences_table_and_notices_behind_exclamation_marks() -> None:
    assert SHOWN.text().splitlines() == [
        "A fit",
        "First of all.",
        "name      value",
        "mass      1",
        "friction  2.5",
        "It fits.",
        "! Beware.",
    ]
    assert Summary("Only a title").text() == "Only a title"


def test_a_result_prints_its_summary_and_a_notebook_shows_the_same() -> None:
    assert str(Result()) == repr(Result()) == SHOWN.text()
    html = Result()._repr_html_()
    assert html == card(SHOWN)
    for text in ("A fit", "First of all.", "friction", "2.5", "It fits.", "Beware."):
        assert text in html
    assert html.count("bold") == 2, "the chosen row"
