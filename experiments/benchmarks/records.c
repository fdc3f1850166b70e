/* The floor for benchmarks P2 and P4: a block under a force that is known on samples, when everything is written for this
   one problem.

   A mass of 1 kg, from rest at x = 0, under a force u that is linear between its samples, with friction over the speed
   w = |v|
       f(w) = F_Coulomb + F_prop w + F_Stribeck exp(-fexp w),      breakaway at f(0).
   Method: one Runge-Kutta step of order 4 a sample. Within a sample the force is linear, so breakaway has a closed form; a
   stop is where the cubic through the step's ends has its root, and the step is taken again up to there. Where asked for,
   the derivatives of x and v by the four parameters are carried along.

   What makes it fast: the field does not depend on x, so its stages need no state of their own; and the exponential is
   taken from its last value, exp(-fexp (w + d)) = exp(-fexp w) exp(-fexp d), a short polynomial as d is small. */

#include "friction.h"

#include <string.h>

/* Acceleration and the exponential it was computed with. */
typedef struct { double e, a; v4 da; } Rate;

/* exp(z) to rounding where |z| < 1/8, which P2 and P4 hardly ever leave. */
ALWAYS_INLINE double growth(double z)
{
    if (__builtin_expect(fabs(z) > 0.125, 0)) return exp(z);
    const double z2 = z * z, z4 = z2 * z2;
    const double low = (1 + z) + z2 * (1.0 / 2 + z * (1.0 / 6));
    const double high = (1.0 / 24 + z * (1.0 / 120)) + z2 * (1.0 / 720 + z * (1.0 / 5040)) + z4 * (1.0 / 40320 + z * (1.0 / 362880));
    return low + z4 * high;
}

/* The rate at a speed of v + rise, where the rate at v was k0. */
ALWAYS_INLINE Rate rate(double u, double v, double rise, v4 dv, double sign, const Law *p, const Rate *k0, const int tangents)
{
#ifdef LIBRARY_EXP
    const double e = exp(-p->fexp * sign * (v + rise));
#else
    const double e = k0->e * growth(-p->fexp * sign * rise);
#endif
    Rate k = {.e = e, .a = (u - sign * p->F_Coulomb - p->F_prop * v) - p->F_prop * rise - sign * p->F_Stribeck * e};
    if (tangents) {
        const double w = sign * (v + rise), stribeck = p->F_Stribeck * e;
        const v4 by_parameter = {-sign, -sign * w, -sign * e, sign * w * stribeck};
        k.da = (p->fexp * stribeck - p->F_prop) * dv + by_parameter;
    }
    return k;
}

/* One step of length h from y, under a force that goes from u0 to u1; k is the rate at y. Returns the rate at y1. */
ALWAYS_INLINE Rate step(double h, double u0, double u1, const State *y, double sign, const Law *p, const Rate *k, State *y1, const int tangents)
{
    const double half = 0.5 * h, middle = 0.5 * (u0 + u1), sixth = h / 6;
    const Rate k2 = rate(middle, y->v, half * k->a, y->dv + half * k->da, sign, p, k, tangents);
    const Rate k3 = rate(middle, y->v, half * k2.a, y->dv + half * k2.da, sign, p, k, tangents);
    const Rate k4 = rate(u1, y->v, h * k3.a, y->dv + h * k3.da, sign, p, k, tangents);
    const double rise = sixth * (k->a + 2 * (k2.a + k3.a) + k4.a);
    y1->x = y->x + h * (y->v + sixth * (k->a + k2.a + k3.a));
    y1->v = y->v + rise;
    if (tangents) {
        y1->dx = y->dx + h * (y->dv + sixth * (k->da + k2.da + k3.da));
        y1->dv = y->dv + sixth * (k->da + 2 * (k2.da + k3.da) + k4.da);
    }
    return rate(u1, y->v, rise, y1->dv, sign, p, k, tangents);
}

/* All that changes from sample to sample. */
typedef struct { State y; Rate k; double sign; int events; } Motion;

/* Over one sample: from u0 to u1 in a time h. */
ALWAYS_INLINE void advance(Motion *m, double h, double u0, double u1, const Law *p, double f0, const int tangents)
{
    const v4 none = {0};
    const Rate rest = {.e = 1};
    for (;;) {
        if (m->sign == 0) { /* stuck */
            if (fabs(u1) <= f0) return; /* all the sample: |u| is greatest at an end */
            const double limit = copysign(f0, u1), share = (limit - u0) / (u1 - u0);
            if (share > 0) {
                h *= 1 - share;
                u0 = limit;
            }
            /* It starts with acceleration 0, so that the instant of breakaway, whatever its derivative, moves nothing. */
            m->sign = copysign(1.0, u1);
            m->k = rate(u0, 0, 0, none, m->sign, p, &rest, tangents);
            m->events++;
        }
        State y1;
        Rate k1 = step(h, u0, u1, &m->y, m->sign, p, &m->k, &y1, tangents);
        if (__builtin_expect(m->sign * y1.v >= 0, 1)) {
            m->y = y1;
            m->k = k1;
            return;
        }
        if (m->y.v == 0) { /* at rest, and not moved forward */
            m->sign = 0;
            continue;
        }
        double share = stop_guess(h, m->y.v, m->k.a, y1.v, k1.a);
        k1 = step(share * h, u0, u0 + share * (u1 - u0), &m->y, m->sign, p, &m->k, &y1, tangents);
        const double shift = -y1.v / k1.a; /* the little that the guess missed */
        share += shift / h;
        u0 += share * (u1 - u0);
        h *= 1 - share;
        m->y.x = y1.x + 0.5 * shift * y1.v;
        m->y.v = 0;
        m->sign = fabs(u0) > f0 ? copysign(1.0, u0) : 0;
        if (tangents) {
            const double after = m->sign == 0 ? 0 : u0 - m->sign * f0;
            m->y.dx = y1.dx + shift * y1.dv;
            m->y.dv = after == 0 ? none : after / k1.a * y1.dv; /* the jump of the derivative where the field jumps */
        }
        if (m->sign != 0) m->k = rate(u0, 0, 0, m->y.dv, m->sign, p, &rest, tangents);
        m->events++;
    }
}

/* y = x and v at all n + 1 samples, h apart; dy = dx and dv by the four parameters. Returns the number of mode changes. */
ALWAYS_INLINE int run(const Law *p, int n, double h, const double *u, double *y, double *dy, const int tangents)
{
    const double f0 = p->F_Coulomb + p->F_Stribeck;
    Motion m = {.sign = 0};
    for (int i = 0;; i++) {
        y[2 * i] = m.y.x;
        y[2 * i + 1] = m.y.v;
        if (tangents) {
            memcpy(dy + 8 * i, &m.y.dx, sizeof(v4));
            memcpy(dy + 8 * i + 4, &m.y.dv, sizeof(v4));
        }
        if (i == n) return m.events;
        advance(&m, h, u[i], u[i + 1], p, f0, tangents);
    }
}

int records_forward(const double *p, int n, double h, const double *u, double *y) { return run((const Law *)p, n, h, u, y, 0, 0); }
int records_jacobian(const double *p, int n, double h, const double *u, double *y, double *dy) { return run((const Law *)p, n, h, u, y, dy, 1); }

/* Half the gradient and half the Gauss-Newton matrix of the sum of squares of v - measured, which is returned. */
static double normal_equations(const Law *p, int n, double h, const double *u, const double *measured, v4 *gradient, v4 matrix[4])
{
    const double f0 = p->F_Coulomb + p->F_Stribeck;
    const double first = -measured[0];
    double sum = first * first;
    v4 g = {0}, m0 = {0}, m1 = {0}, m2 = {0}, m3 = {0};
    Motion m = {.sign = 0};
    for (int i = 0; i < n; i++) {
        advance(&m, h, u[i], u[i + 1], p, f0, 1);
        const double r = m.y.v - measured[i + 1];
        const v4 d = m.y.dv;
        sum += r * r;
        g += r * d;
        m0 += d[0] * d;
        m1 += d[1] * d;
        m2 += d[2] * d;
        m3 += d[3] * d;
    }
    *gradient = g;
    matrix[0] = m0;
    matrix[1] = m1;
    matrix[2] = m2;
    matrix[3] = m3;
    return sum;
}

/* The step that solves (matrix + damping diag(matrix)) step = -gradient, by elimination: the matrix is positive definite. */
static void damped_step(const v4 matrix[4], v4 gradient, double damping, double *step)
{
    double a[4][5];
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) a[i][j] = matrix[i][j];
        a[i][i] *= 1 + damping;
        a[i][4] = -gradient[i];
    }
    for (int i = 0; i < 4; i++)
        for (int row = i + 1; row < 4; row++) {
            const double factor = a[row][i] / a[i][i];
            for (int j = i; j < 5; j++) a[row][j] -= factor * a[i][j];
        }
    for (int i = 3; i >= 0; i--) {
        step[i] = a[i][4];
        for (int j = i + 1; j < 4; j++) step[i] -= a[i][j] * step[j];
        step[i] /= a[i][i];
    }
}

/* Levenberg-Marquardt from p, which becomes the answer, on n + 1 samples of v, until no parameter moves by more than
   `tolerance` of itself. Returns the number of simulations, at most 100. */
int records_fit(double *p, int n, double h, const double *u, const double *measured, double tolerance, double *sum_of_squares)
{
    v4 gradient, matrix[4], next_gradient, next_matrix[4];
    double sum = normal_equations((const Law *)p, n, h, u, measured, &gradient, matrix), damping = 1e-3;
    int simulations = 1;
    while (simulations < 100) {
        double step[4], q[4], moved = 0;
        int allowed = 1;
        damped_step(matrix, gradient, damping, step);
        for (int i = 0; i < 4; i++) {
            q[i] = p[i] + step[i];
            moved = fmax(moved, fabs(step[i] / p[i]));
            allowed &= q[i] > 0;
        }
        double next = HUGE_VAL;
        if (allowed) {
            next = normal_equations((const Law *)q, n, h, u, measured, &next_gradient, next_matrix);
            simulations++;
        }
        if (next <= sum * (1 + 1e-12)) {
            sum = next;
            gradient = next_gradient;
            memcpy(p, q, sizeof q);
            memcpy(matrix, next_matrix, sizeof matrix);
            damping = fmax(0.1 * damping, 1e-12);
        } else
            damping *= 10;
        if (allowed && moved < tolerance) break;
    }
    *sum_of_squares = sum;
    return simulations;
}
