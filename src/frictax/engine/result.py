"""`Result`: how a run ended, with its message."""

import equinox as eqx

CHATTER = 30  # number of successive phases of length 0 that count as chatter; 2 more per mode entry
NONFINITE = 2  # status of an event if an event function or deadline is NaN; `jump` returns 0 or 1
SECOND = (
    "frictax gives first derivatives of a run, exact through its events; a second derivative was"
    " asked for. Use Gauss-Newton (`fit`, or J'J from `jax.jacfwd`), `information` for the"
    " derivative of the information in a run, or central differences of `jax.grad`, which omit the"
    " effect of an event that passes a sample."
)


class Result(eqx.Enumeration):
    """How a run ended. The value of each item is a message that also gives a remedy.

    The values of a run are valid up to its end only if the run is `successful`.

    >>> import frictax as fx, jax.numpy as jnp
    >>> class Clock(fx.AbstractHybridSystem):
    ...     def flow(self, t, y, mode, args):
    ...         return jnp.ones(1)
    ...
    ...     def guard(self, t, y, mode, args):
    ...         return mode + 1 - y
    ...
    ...     def jump(self, t, y, mode, fired, args):
    ...         return y, mode + 1, jnp.array(0)
    >>> start, ts = (jnp.zeros(1), jnp.array([0])), jnp.array([0.0, 4.5])
    >>> path = fx.walk(Clock(), *start, ts, options=fx.Adaptive(max_events=3))

    >>> path.result == fx.Result.successful
    Array(False, dtype=bool)
    >>> print(fx.Result[path.result])
    The run has more mode changes and drive switches than there is room ...
    """

    successful = "The run reached its end."
    too_many_events = (
        "The run has more mode changes and drive switches than there is room for. The limit is"
        " `max_events=...` of `Adaptive` or `OnSamples`, by default 1000 plus the samples of"
        " drives. Raise it, shorten the run, or look in `run.events.time` whether the machine"
        " chatters. `simulate` outside of `jit` and `vmap`, with `max_events` left out, makes the"
        " room itself; its `run.path.count` is a `max_events` that suffices."
    )
    max_steps_reached = (
        "The run needs more solver steps than `max_steps=...` of `Adaptive` or `OnSamples` allows."
        " Raise it, loosen the tolerances, or, if the machine is stiff, give an implicit solver"
        " such as `Adaptive(solver=diffrax.Kvaerno5())`."
    )
    chatter = (
        "Modes change again and again at one instant without time passing. Two events cause each"
        " other. Look at the last entries of `run.events` and give the machine a consistent load,"
        " or a peak > 1 where stuck and sliding friction are equal."
    )
    nonfinite = (
        "The state or its derivative is not finite. Look for a parameter or a drive that is NaN or"
        " infinite, for a law that grows without bound, or for a `Table` with"
        " extrapolation='error' whose last row the motion passes."
    )
    inconsistent = (
        "No mode is consistent with the forces at an event. Look at the last entry of `run.events`"
        " and the forces there."
    )
    inaccurate = (
        "The run reached its end, but the error of a state is above 1e-3 of its range: 4096 parts"
        " of a step between two samples were too few. Give `ts` more samples, or use `Adaptive()`."
    )


FAILURES = {int(item._value): Result[item] for item in Result._name_to_item.values()}
del FAILURES[0]
