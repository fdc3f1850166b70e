"""A posterior that is stopped, and questions that it refuses."""

import os
import signal
import sys
from typing import Any

import pytest

import frictax as fx
from pushed_block import block, fitted, pushed


@pytest.fixture(scope="module")
def found() -> fx.FoundMachine:
    return fitted()


@pytest.mark.slow
def test_a_key_stops_it_and_what_was_drawn_is_kept() -> None:
    sent = []

    def tell(line: str) -> None:
        if line.startswith("chain 1: 400 of"):  # once: none is lost
            sent.append(line)
            os.kill(os.getpid(), signal.SIGINT)

    # a shell's background job ignores it
    found, before = fitted(), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        drawn = found.posterior(samples=30, draws=100_000, warmup=100, chains=2, progress=tell)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(sent) == 1
    assert 100 <= drawn.draws.shape[1] < 50_000
    assert drawn.warnings[0].startswith("The sampling was interrupted")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"draws": 10}, "`draws` must be a whole number >= 100, got 10"),
        ({"warmup": 0.5}, "`warmup` must be a whole number >= 100, got 0.5"),
        ({"chains": 1}, "`chains` must be a whole number >= 2, got 1"),
        ({"samples": 3}, "`samples` must be more than the 3 fitted numbers, got 3"),
        ({"samples": float("nan")}, "`samples` must be more than the 3 fitted numbers, got nan"),
        ({"level": 95}, "`level` must lie between 0.5 and 1, got 95"),
    ],
)
def test_wrong_settings_are_told(
    options: dict[str, Any], says: str, found: fx.FoundMachine
) -> None:
    with pytest.raises(ValueError, match=says):
        found.posterior(**options)


def test_what_has_no_end_is_refused() -> None:
    found = fx.fit(
        block(peak=1.4),
        pushed(0),
        free=["mass.m", "friction.peak"],
        objective=fx.InverseDynamics(40.0, v_min=0.05, at_samples=True),
    )
    with pytest.raises(
        ValueError,
        match=(
            r"neither data nor priors identify friction\.peak, .* as "
            r"fx\.Normal\(\"friction\.peak\", mean, sd\)"
        ),
    ):
        found.posterior(samples=100)


def test_more_numbers_than_the_residuals_are_worth_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "frictax.analysis.errors.posterior.posterior_sample_size", lambda found: 2.5
    )
    with pytest.raises(
        ValueError,
        match=r"2\.5 effective samples for 3 fitted parameters",
    ):
        fitted().posterior()


def test_a_robust_loss_is_no_likelihood() -> None:
    with pytest.raises(ValueError, match="needs a likelihood, and Huber does not"):
        fitted(loss=fx.Huber()).posterior()


def test_without_blackjax_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, found: fx.FoundMachine
) -> None:
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=r"pip install 'frictax\[bayes\]'"):
        found.posterior()
