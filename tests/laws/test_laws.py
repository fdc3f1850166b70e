"""The friction laws: closed forms, limits, derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import frictax as fx

force, slope, speed = (st.floats(0.0, most, allow_subnormal=False) for most in (100.0, 10.0, 50.0))


def central(f, x: float, h: float = 1e-6) -> np.ndarray:
    return np.asarray((f(x + h) - f(x - h)) / (2 * h))


@given(force, slope, speed)
def test_coulomb_is_a_constant_and_a_part_in_proportion_to_speed(
    F_Coulomb: float, F_prop: float, v: float
) -> None:
    law = fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    assert float(law(v)) == pytest.approx(F_Coulomb + F_prop * v, rel=1e-14)
    assert float(law.f0) == F_Coulomb


@given(force, slope, force, st.floats(0.0, 20.0), st.sampled_from([1.0, 2.0, 0.7, 3.0]), speed)
def test_stribeck_is_its_formula(
    F_C: float, F_p: float, F_S: float, fexp: float, exponent: float, v: float
) -> None:
    expected = F_C + F_p * v + F_S * np.exp(-((fexp * v) ** exponent))
    fixed = fx.Stribeck(F_prop=F_p, F_Coulomb=F_C, F_Stribeck=F_S, fexp=fexp, exponent=exponent)
    fitted = eqx.tree_at(lambda law: law.exponent, fixed, jnp.asarray(exponent))
    for law in (fixed, fitted):
        assert float(law(v)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert float(law.f0) == pytest.approx(F_C + F_S, rel=1e-14)


@given(force, slope, st.floats(0.0, 20.0), speed)
def test_stribeck_without_stribeck_force_is_coulomb(
    F_Coulomb: float, F_prop: float, fexp: float, v: float
) -> None:
    stribeck = fx.Stribeck(F_prop=F_prop, F_Coulomb=F_Coulomb, F_Stribeck=0.0, fexp=fexp)
    assert float(stribeck(v)) == float(fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)(v))


@given(st.floats(0.01, 10.0), force, force)
def test_a_gaussian_has_fallen_to_1_over_e_at_the_stribeck_speed(
    vs: float, Fc: float, drop: float
) -> None:
    law = fx.Stribeck(F_prop=0.0, F_Coulomb=Fc, F_Stribeck=drop, fexp=1 / vs, exponent=2.0)
    assert float(law(vs)) == pytest.approx(Fc + drop / np.e, rel=1e-12)


def test_a_fast_fall_leaves_coulomb_friction() -> None:
    law = fx.Stribeck(F_prop=0.0, F_Coulomb=2.0, F_Stribeck=3.0, fexp=1e6)
    assert float(law(1.0)) == 2.0
    assert float(law.f0) == 5.0


LAWS = {
    "Coulomb": fx.Coulomb(F_Coulomb=5.0, F_prop=0.3),
    "Stribeck of exponent 1": fx.Stribeck(F_prop=0.3, F_Coulomb=5.0, F_Stribeck=2.0, fexp=1.7),
    "Stribeck of exponent 2": fx.Stribeck(
        F_prop=0.3, F_Coulomb=5.0, F_Stribeck=2.0, fexp=1.7, exponent=2.0
    ),
    "Stribeck of exponent 1, to be fitted": fx.Stribeck(
        0.3, 5.0, 2.0, 1.7, exponent=jnp.array(1.0)
    ),
    "Stribeck of exponent 1.6, to be fitted": fx.Stribeck(
        0.3, 5.0, 2.0, 1.7, exponent=jnp.array(1.6)
    ),
    "Stribeck without Stribeck": fx.Stribeck(0.3, 5.0, 0.0, 1.7, exponent=jnp.array(1.6)),
    "Table": fx.Table([[0, 15], [1, 6.4], [12, 17]]),
}


@pytest.mark.parametrize("name", LAWS)
def test_derivatives_by_every_parameter_equal_central_differences_also_at_rest(name: str) -> None:
    law = LAWS[name]
    arrays, static = eqx.partition(law, eqx.is_inexact_array)
    leaves, tree = jax.tree_util.tree_flatten(arrays)
    for v in (0.0, 0.4, 3.0):

        def value(*values, v: float = v):
            return eqx.combine(jax.tree_util.tree_unflatten(tree, values), static)(v)

        for i, leaf in enumerate(leaves):
            slope = np.ravel(jax.jacfwd(value, argnums=i)(*leaves))
            assert np.all(np.isfinite(slope))
            for j in range(np.size(leaf)):

                def moved(x: float, i: int = i, j: int = j):
                    changed = jnp.ravel(leaves[i]).at[j].set(x).reshape(jnp.shape(leaves[i]))
                    return value(*leaves[:i], changed, *leaves[i + 1 :])

                assert slope[j] == pytest.approx(
                    central(moved, float(jnp.ravel(leaf)[j])), abs=1e-8
                )


@pytest.mark.parametrize("name", LAWS)
def test_the_derivative_by_speed_equals_central_differences_and_at_rest_the_slope_to_the_right(
    name: str,
) -> None:
    law = LAWS[name]
    for v in (0.3, 0.9, 5.0):
        assert float(jax.grad(law)(v)) == pytest.approx(central(law, v), abs=1e-8)
    h = 1e-7
    right = (float(law(h)) - float(law(0.0))) / h
    assert float(jax.grad(law)(0.0)) == pytest.approx(right, abs=1e-3)


@pytest.mark.parametrize("name", LAWS)
def test_a_law_takes_arrays_of_any_shape(name: str) -> None:
    v = jnp.linspace(0.0, 15.0, 12).reshape(3, 4)
    assert jnp.allclose(LAWS[name](v), jnp.vectorize(LAWS[name])(v), rtol=1e-15)


# -- tables
# --------------------------------------------------------------------------------------------------


def at_rest(rows: np.ndarray) -> float:
    """Where the line through the first two rows meets speed 0."""
    (v0, f0), (v1, f1) = rows[:2]
    return f0 - v0 * (f1 - f0) / (v1 - v0)


tables = (
    st.lists(st.tuples(st.floats(0.01, 5.0), st.floats(0.0, 20.0)), min_size=2, max_size=6)
    .map(
        lambda rows: np.stack(
            [np.cumsum([gap for gap, _ in rows]) - rows[0][0] / 2, [f for _, f in rows]], axis=1
        )
    )
    .filter(lambda rows: at_rest(rows) >= 0)  # less is refused
)


@given(tables)
def test_a_table_passes_through_its_points_and_is_straight_between_them(rows: np.ndarray) -> None:
    table = fx.Table(rows)
    assert np.allclose(table(jnp.asarray(rows[:, 0])), rows[:, 1], rtol=1e-12, atol=1e-12)
    between = np.linspace(rows[0, 0], rows[-1, 0], 37)
    assert np.allclose(
        table(jnp.asarray(between)),
        np.interp(between, rows[:, 0], rows[:, 1]),
        rtol=1e-10,
        atol=1e-10,
    )


@given(tables)
def test_a_table_goes_on_along_its_first_and_its_last_line_and_never_below_0(
    rows: np.ndarray,
) -> None:
    table = fx.Table(rows)
    (va, fa), (vb, fb) = rows[-2:]
    scale = 1 + np.max(np.abs(np.diff(rows[:, 1]) / np.diff(rows[:, 0]))) * (1 + vb)
    beyond = max(fb + 3.0 * (fb - fa) / (vb - va), 0.0)
    assert abs(float(table(vb + 3.0)) - beyond) <= 1e-12 * scale
    # Friction at rest is read off the first line, as in Modelica, also where the first speed lies
    # above 0.
    assert abs(float(table.f0) - at_rest(rows)) <= 1e-12 * scale


def test_a_first_speed_above_0_gives_f0_by_extrapolation() -> None:
    assert float(fx.Table([[1.0, 4.0], [2.0, 3.0], [5.0, 3.0]]).f0) == 5.0


def test_a_first_line_that_is_below_0_at_rest_is_0_there_in_traced_code_and_refused_otherwise() -> (
    None
):
    table = fx.Table([[1.0, 4.0], [2.0, 5.0], [3.0, 9.0]])
    low = jnp.array([0.5, 4.0, 9.0])

    def force(f: jax.Array, v: jax.Array) -> jax.Array:
        return fx.parameters.replace(table, {"f": f})(v)

    v = jnp.array([0.0, 0.5, 0.9, 1.0, 1.5, 2.5])
    np.testing.assert_allclose(jax.jit(force)(low, v), [0, 0, 0.15, 0.5, 2.25, 6.5], atol=1e-14)
    np.testing.assert_allclose(jax.jit(force)(table.f, -v), 3.0 - v, rtol=1e-14)
    with pytest.raises(ValueError, match="must be >= 0 at rest"):
        fx.parameters.check(fx.parameters.replace(table, {"f": low}))


@pytest.mark.parametrize("path", ["f", "v"])
def test_a_table_has_one_force_for_each_speed(path: str) -> None:
    table = fx.parameters.replace(fx.Table([[0.0, 1.0], [1.0, 2.0]]), {path: np.arange(3.0)})
    with pytest.raises(ValueError, match="`Table.v` and `Table.f` must be two lists of one length"):
        fx.parameters.check(table)


@pytest.mark.parametrize("law", [fx.Coulomb(5.0, 1.0), fx.Table([[0.0, 5.0], [1.0, 6.0]])])
def test_a_law_in_two_layers_of_temperature_has_the_factors_of_both(law: fx.AbstractLaw) -> None:
    inner = fx.TemperatureDependent(law, beta=0.02, T_ref=300.0)
    both = fx.TemperatureDependent(inner, beta=0.01).at_temperature(310.0)
    expected = law(0.5) * np.exp(-0.02 * 10.0 - 0.01 * (310.0 - 293.15))
    assert float(both(0.5)) == pytest.approx(float(expected), rel=1e-14)
    assert float(both.f0) == pytest.approx(float(expected * law.f0 / law(0.5)), rel=1e-14)


def test_one_row_is_a_constant_at_every_speed() -> None:
    table = fx.Table([[0.3, 4.0]])
    assert [float(table(v)) for v in (0.0, 0.3, 100.0)] == [4.0, 4.0, 4.0]
    assert float(jax.grad(table)(1.0)) == 0.0


def test_a_table_of_two_rows_equals_coulomb() -> None:
    table, coulomb = fx.Table([[0.0, 5.0], [2.0, 6.0]]), fx.Coulomb(F_Coulomb=5.0, F_prop=0.5)
    v = jnp.linspace(0.0, 9.0, 10)
    assert jnp.allclose(table(v), coulomb(v), rtol=1e-15)


def test_the_pieces_of_a_table_meet_at_its_inner_speeds() -> None:
    table = fx.Table([[0, 15], [1, 6.4], [4, 6.0], [12, 17]])
    assert table.breaks.tolist() == [1.0, 4.0, np.inf]
    for k, v in enumerate(table.breaks[:-1]):
        assert float(table.on_piece(v, jnp.array(k))) == pytest.approx(
            float(table.on_piece(v, jnp.array(k + 1))), rel=1e-14
        )


def test_a_contact_takes_a_table_where_a_law_may_stand() -> None:
    friction = fx.SupportFriction("mass", f_pos=[[0, 15], [1, 6.4], [12, 17]])
    assert isinstance(friction.f_pos, fx.Table)
    assert float(friction.law(-1)(0.5)) == pytest.approx(10.7)


class Several(fx.AbstractLaw):
    """The sum of laws."""

    laws: tuple[fx.AbstractLaw, ...]

    def __call__(self, v):
        return sum(law(v) for law in self.laws)


def test_a_law_made_of_laws_is_checked_again() -> None:
    law = Several((fx.Coulomb(F_Coulomb=1.0), fx.Coulomb(F_Coulomb=2.0)))
    fx.parameters.check(law)
    wrong = fx.parameters.replace(law, {"laws.1.F_Coulomb": -2.0})
    with pytest.raises(ValueError, match=r"`Coulomb.F_Coulomb` must be >= 0, got -2"):
        fx.parameters.check(wrong)


def test_a_law_of_ones_own_may_call_its_numbers_what_it_likes_but_for_what_every_law_computes() -> (
    None
):
    class Drag(fx.AbstractLaw):
        dip: float
        viscous: float

        def __call__(self, v):
            return self.dip + self.viscous * v

    assert Drag(dip=1.0, viscous=2.0)(3.0) == 7.0
    with pytest.raises(TypeError, match="law Flat: no field can be called f0, which every law"):

        class Flat(fx.AbstractLaw):
            f0: float

            def __call__(self, v):
                return self.f0 + 0.0 * v
