"""Results in a process pool, and asked again there. What examples make is pickled by
test_documentation.py.
"""

import concurrent.futures
import multiprocessing
import pickle

import numpy as np
import pytest

import frictax as fx
from pickled import asked, fitted, noisy_sweep


def test_a_fit_that_was_pickled_answers_what_nobody_asked_before() -> None:
    found = fitted(noisy_sweep(0))
    before, (text, *_) = pickle.dumps(found), asked(found)
    for again in (pickle.loads(before), pickle.loads(pickle.dumps(found))):
        assert str(again) == text
        assert str(again.uncertainty(fx.HAC())) == str(found.uncertainty(fx.HAC()))
        assert np.array_equal(again.band([1.0, 2.0]).upper, found.band([1.0, 2.0]).upper)
        assert np.array_equal(again.predict([0.7]), found.predict([0.7]))


@pytest.mark.slow
def test_fits_come_back_from_processes_as_they_were_made_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "1")  # for the processes
    spawned = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawned) as pool:
        founds = list(pool.map(fitted, [noisy_sweep(seed) for seed in range(3)]))
        texts = list(pool.map(asked, founds))
    assert [asked(found) for found in founds] == texts
