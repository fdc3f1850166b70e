/* The floor for benchmark P1: what the arithmetic costs when everything is written for this one problem.

   A mass of 1 kg, pulled by u(t) = 2 sin(2 pi t) N, from rest at x = 0, with friction over the speed w = |v|
       f(w) = F_Coulomb + F_prop w + F_Stribeck exp(-fexp w),      breakaway at f(0).
   Method: Tsitouras 5(4) with error control, rms norm of e / (tol (1 + |y|)) over x and v, located events; and, where
   asked for, the derivatives of x and v by the four parameters, carried along (Tsitouras, Computers & Mathematics with
   Applications 62, 2011, table 1).

   Two things make it fast. The field does not depend on x, so the stages of x are those of v and cost nothing. The force
   depends on t alone, so its values at the five stage times are taken before the stages and overlap with them. */

#define _POSIX_C_SOURCE 199309L
#include "friction.h"

#include <time.h>

#define TWO_PI 6.283185307179586476925
/* Speed and acceleration at the stages, with their derivatives; the seventh is the first of the next step. */
typedef struct { double v[7], a[7]; v4 dv[7], da[7]; } Stages;

ALWAYS_INLINE double force(double t) { return 2.0 * sin(TWO_PI * t); }
ALWAYS_INLINE double force_rate(double t) { return 2.0 * TWO_PI * cos(TWO_PI * t); }

ALWAYS_INLINE void stage(int i, double u, double v, v4 dv, double sign, const Law *p, Stages *k, const int tangents)
{
    const double w = sign * v, e = exp(-p->fexp * w), stribeck = p->F_Stribeck * e;
    k->v[i] = v;
    k->a[i] = u - sign * (p->F_Coulomb + p->F_prop * w + stribeck);
    if (tangents) {
        const v4 by_parameter = {-sign, -sign * w, -sign * e, sign * w * stribeck};
        k->dv[i] = dv;
        k->da[i] = (p->fexp * stribeck - p->F_prop) * dv + by_parameter;
    }
}

static const double C[] = {0.161, 0.327, 0.9, 0.9800255409045097};
static const double A[5][5] = {
    {0.161},
    {-0.008480655492356989, 0.335480655492357},
    {2.8971530571054935, -6.359448489975075, 4.3622954328695815},
    {5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525},
    {5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383}};
static const double B[6] = {0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774};
static const double E[7] = {-0.00178001105222577714, -0.0008164344596567469, 0.007880878010261995, -0.1447110071732629,
                            0.5823571654525552, -0.45808210592918697, 1.0 / 66};

/* One step of length h from y, with the first stage already in k. */
ALWAYS_INLINE void step(double t, double h, const State *y, double sign, const Law *p, Stages *k, State *y1, const int tangents)
{
    double u[6];
    for (int i = 0; i < 4; i++) u[i] = force(t + C[i] * h);
    u[4] = u[5] = force(t + h);
#pragma GCC unroll 5
    for (int i = 0; i < 5; i++) {
        double sum = 0;
        v4 dsum = {0};
#pragma GCC unroll 5
        for (int j = 0; j <= i; j++) {
            sum += A[i][j] * k->a[j];
            if (tangents) dsum += A[i][j] * k->da[j];
        }
        stage(i + 1, u[i], y->v + h * sum, tangents ? y->dv + h * dsum : dsum, sign, p, k, tangents);
    }
    double x = 0, v = 0;
    v4 dx = {0}, dv = {0};
#pragma GCC unroll 6
    for (int j = 0; j < 6; j++) {
        x += B[j] * k->v[j];
        v += B[j] * k->a[j];
        if (tangents) {
            dx += B[j] * k->dv[j];
            dv += B[j] * k->da[j];
        }
    }
    y1->x = y->x + h * x;
    y1->v = y->v + h * v;
    if (tangents) {
        y1->dx = y->dx + h * dx;
        y1->dv = y->dv + h * dv;
    }
    stage(6, u[5], y1->v, y1->dv, sign, p, k, tangents);
}

/* The square of the scaled error's rms norm. */
ALWAYS_INLINE double error2(double h, double tol, const State *y, const State *y1, const Stages *k)
{
    double ex = 0, ev = 0;
#pragma GCC unroll 7
    for (int j = 0; j < 7; j++) {
        ex += E[j] * k->v[j];
        ev += E[j] * k->a[j];
    }
    ex /= 1 + fmax(fabs(y->x), fabs(y1->x));
    ev /= 1 + fmax(fabs(y->v), fabs(y1->v));
    const double scale = h / tol;
    return 0.5 * scale * scale * (ex * ex + ev * ev);
}

/* When the force first exceeds the breakaway force f0 after t, or t1. At most 0.05 s is looked ahead at once: that is
   as much as is known of a force that is only a function of time. */
static double breakaway(double t, double t1, double f0)
{
    double lo = t, hi = t;
    do {
        lo = hi;
        hi = fmin(lo + 0.05, t1);
        if (fabs(force(hi)) > f0) {
            double root = hi;
            for (int i = 0; i < 50; i++) { /* Newton, kept inside the bracket */
                const double u = force(root), gap = f0 - fabs(u);
                if (gap > 0) lo = root; else hi = root;
                double next = root + gap / copysign(force_rate(root), u * force_rate(root));
                if (!(next >= lo && next <= hi)) next = 0.5 * (lo + hi);
                const double moved = fabs(next - root);
                root = next;
                if (moved < 1e-14) break;
            }
            return root;
        }
    } while (hi < t1);
    return t1;
}

/* From 0 to t1; out = x, v, then dx and dv by the four parameters. Returns the number of mode changes. */
ALWAYS_INLINE int solve(const Law *p, double t1, double tol, double *out, int *steps, const int tangents)
{
    const double f0 = p->F_Coulomb + p->F_Stribeck, locate = 0.1 * sqrt(tol);
    const v4 none = {0};
    State y = {0, 0, {0}, {0}}, y1;
    Stages k = {.v = {0}};
    double t = 0, sign = 0, h = 0.01, first = h;
    int events = 0, taken = 0, fresh = 1;
    while (t < t1) {
        if (sign == 0) { /* stuck */
            t = breakaway(t, t1, f0);
            if (t >= t1) break;
            /* It starts with acceleration 0, so that the instant of breakaway, whatever its derivative, moves nothing. */
            sign = copysign(1.0, force(t));
            events++;
            fresh = 1;
            h = first;
        }
        if (fresh) stage(0, force(t), y.v, y.dv, sign, p, &k, tangents);
        const int last = t + h >= t1;
        if (last) h = t1 - t;
        step(t, h, &y, sign, p, &k, &y1, tangents);
        taken++;
        const double error = error2(h, tol, &y, &y1, &k);
        const double factor = error > 0 ? fmin(10.0, fmax(0.2, 0.9 * exp(-0.1 * log(error)))) : 10.0;
        if (error > 1) {
            h *= factor;
            fresh = 0;
            continue;
        }
        if (fresh && !last) first = h; /* the next start from rest resembles this one */
        if (sign * y1.v <= 0 && sign * y.v > 0) { /* the speed came to 0 inside the step */
            double length = h * stop_guess(h, y.v, k.a[0], y1.v, k.a[6]), shift;
            for (int i = 0;; i++) { /* take the step again, to the event; one Newton step remains */
                step(t, length, &y, sign, p, &k, &y1, tangents);
                taken++;
                shift = -y1.v / k.a[6];
                if (fabs(shift) < locate || i == 5) break;
                length += shift;
            }
            t += length + shift;
            const double u = force(t), before = k.a[6];
            sign = fabs(u) > f0 ? copysign(1.0, u) : 0;
            const double after = sign == 0 ? 0 : u - sign * f0;
            y.x = y1.x + 0.5 * shift * y1.v;
            y.v = 0;
            if (tangents) {
                y.dx = y1.dx + shift * y1.dv;
                y.dv = after == 0 ? none : after / before * y1.dv; /* the jump of the derivative where the field jumps */
            }
            events++;
            fresh = 1;
            h = first;
            continue;
        }
        y = y1;
        k.v[0] = k.v[6];
        k.a[0] = k.a[6];
        if (tangents) {
            k.dv[0] = k.dv[6];
            k.da[0] = k.da[6];
        }
        fresh = 0;
        t = last ? t1 : t + h;
        h = fmin(h * factor, 0.1);
    }
    out[0] = y.x;
    out[1] = y.v;
    if (tangents)
        for (int i = 0; i < 4; i++) {
            out[2 + i] = y.dx[i];
            out[6 + i] = y.dv[i];
        }
    *steps = taken;
    return events;
}

int p1_forward(const double *p, double t1, double tol, double *out, int *steps) { return solve((const Law *)p, t1, tol, out, steps, 0); }
int p1_jacobian(const double *p, double t1, double tol, double *out, int *steps) { return solve((const Law *)p, t1, tol, out, steps, 1); }

/* Seconds a call, over `calls` calls; each with a law that differs a little, so that none can be left out. */
double p1_time(int tangents, const double *p, double t1, double tol, int calls)
{
    struct timespec begin, end;
    double q[4] = {p[0], p[1], p[2], p[3]}, out[10];
    volatile double keep = 0;
    int steps;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < calls; i++) {
        q[1] = p[1] + 1e-10 * i;
        if (tangents) p1_jacobian(q, t1, tol, out, &steps); else p1_forward(q, t1, tol, out, &steps);
        keep += out[0];
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec)) / calls;
}
