/* What the floors p1.c and records.c share: a law with its four parameters, and a first guess of where a speed ends. */

#include <math.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef double v4 __attribute__((vector_size(32))); /* one entry a parameter: F_Coulomb, F_prop, F_Stribeck, fexp */

typedef struct { double F_Coulomb, F_prop, F_Stribeck, fexp; } Law;
typedef struct { double x, v; v4 dx, dv; } State;

/* Where in a step of length h the speed is 0: the root of the cubic through speeds and accelerations at both ends, as a
   share of h. */
ALWAYS_INLINE double stop_guess(double h, double v0, double a0, double v1, double a1)
{
    const double c1 = h * a0, c2 = 3 * (v1 - v0) - h * (2 * a0 + a1), c3 = h * (a0 + a1) - 2 * (v1 - v0);
    double lo = 0, hi = 1, s = v0 / (v0 - v1);
    for (int i = 0; i < 8; i++) {
        const double value = v0 + s * (c1 + s * (c2 + s * c3)), slope = c1 + s * (2 * c2 + s * 3 * c3);
        if ((value > 0) == (v0 > 0)) lo = s; else hi = s;
        double next = s - value / slope;
        if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
        const double moved = fabs(next - s);
        s = next;
        if (moved < 1e-9) break;
    }
    return s;
}
