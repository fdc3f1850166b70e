"""Numbers as tables print them."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from frictax.fitting import Estimate, Knowledge
from frictax.text import amount, figures, format_alike, format_estimate, prefix_unit

UNITS = ["kg.m2", "N.m", "N", "s/rad", "1", "m", "rad/s", "kg", "N.m.s/rad", "s", "N.m/A", "1/K"]
SIZES = st.floats(-13.0, 9.0).map(lambda power: 10.0**power)
SIGNED = st.tuples(SIZES, st.sampled_from([-1.0, 1.0, 0.0])).map(math.prod)


@settings(max_examples=400, deadline=None)
@given(
    value=SIGNED, share=st.floats(-9.0, 3.0), unit=st.sampled_from(UNITS), t=st.floats(1.5, 40.0)
)
def test_what_is_printed_is_the_number_to_a_tenth_of_its_error(value, share, unit, t):
    error = 10.0**share * (abs(value) or 1.0)
    row = format_estimate(value, error, unit, (value - t * error, value + t * error))
    for text, x in (
        (row.value, value),
        (row.lower, value - t * error),
        (row.upper, value + t * error),
    ):
        assert abs(float(text) * row.size - x) <= 0.1 * error
    assert float(row.error) * row.size == pytest.approx(error, rel=0.051)
    assert float(row.lower) < float(row.value) < float(row.upper)


@settings(max_examples=400, deadline=None)
@given(value=SIGNED, lower=SIZES, upper=SIZES, error=SIZES, unit=st.sampled_from(UNITS))
def test_ends_that_differ_from_the_number_are_printed_so_whatever_the_error(
    value, lower, upper, error, unit
):
    low, high = value - lower, value + upper
    assume(low < value < high)
    row = format_estimate(value, error, unit, (low, high))
    assert float(row.lower) < float(row.value) < float(row.upper)
    assert max(map(len, (row.value, row.lower, row.upper))) <= 25


@settings(max_examples=200, deadline=None)
@given(size=SIZES, unit=st.sampled_from(UNITS))
def test_an_amount_is_within_a_half_of_its_third_figure(size, unit):
    text, _, name = amount(size, unit).partition(" ")
    _, one = prefix_unit(unit, size)
    assert float(text) * one == pytest.approx(size, rel=0.0051)
    assert "e-0" not in text
    assert "e+" not in text
    assert name == ("" if unit == "1" else prefix_unit(unit, size)[0])


@pytest.mark.parametrize(
    ("value", "error", "unit", "cells"),
    [
        (2e-4, 1e-6, "kg.m2", ("2.000e-4", "kg.m2", "1.0e-6", "1.980e-4 to 2.020e-4")),
        (3e-9, 1e-11, "kg.m2", ("3.000e-9", "kg.m2", "1.0e-11", "2.980e-9 to 3.020e-9")),
        (1e7, 1e5, "N/m", ("10.00", "MN/m", "0.10", "9.80 to 10.20")),
        (0.0, 1e-12, "1", ("0", "1", "1.0e-12", "-2.0e-12 to 2.0e-12")),
        (0.0, 1e-3, "N.m", ("0.0", "mN.m", "1.0", "-2.0 to 2.0")),
        (0.01, 3.0, "N", ("0.0", "N", "3.0", "-6.0 to 6.0")),
        (0.05, 0.0012, "kg", ("50.0", "g", "1.2", "47.6 to 52.4")),
        (0.0321, 0.0005, "N.m/A", ("32.10", "mN.m/A", "0.50", "31.10 to 33.10")),
        (0.02, 0.001, "s/rad", ("0.0200", "s/rad", "0.0010", "0.0180 to 0.0220")),
        (5e-5, 1e-6, "N.m.s/rad", ("50.0", "µN.m.s/rad", "1.0", "48.0 to 52.0")),
    ],
)
def test_rows_of_small_large_and_unknown_numbers(value, error, unit, cells):
    row = format_estimate(value, error, unit, (value - 2 * error, value + 2 * error))
    assert (row.value, row.unit, row.error, row.interval) == cells


def test_a_number_without_error_has_four_figures_and_no_interval():
    row = format_estimate(1.0 / 3.0, math.nan, "N")
    assert (row.value, row.error, row.interval) == ("0.3333", "", "")
    assert format_alike([math.nan, math.inf, 2.0], 0.1) == ["", "inf", "2.00"]
    assert figures(float("nan")) == "nan"


def test_a_unit_that_is_kept_has_no_prefix_of_its_own():
    row = format_estimate(0.0389, 0.0011, "N.m", (0.0367, 0.0411), fixed=("N.cm", 0.01))
    assert (row.value, row.unit, row.error, row.interval) == (
        "3.89",
        "N.cm",
        "0.11",
        "3.67 to 4.11",
    )


@pytest.mark.parametrize(
    ("knowledge", "error", "says"),
    [
        (Knowledge.KNOWN, 0.5, "s 12.00 mm, std. error 0.50 mm, 11.00 to 13.00 mm"),
        (Knowledge.FIXED, math.nan, "s 12 mm, fixed"),
        (Knowledge.UNKNOWN, 1e12, "s 12.00 mm, not identifiable"),
    ],
)
def test_an_estimate_says_what_is_known_of_it(knowledge, error, says):
    e = Estimate("s", "s", 0.012, 1e-3 * error, 0.011, 0.013, "m", knowledge)
    assert str(e) == says
