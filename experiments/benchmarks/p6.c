/* P6: a block with a LuGre bristle under a sampled force, one linearly implicit step of order 2 a
   sample (ROS2: Verwer, Spee, Blom, Hundsdorfer, SIAM J. Sci. Comput. 20(4), 1999). Written for
   this problem alone. Parameters: F_Coulomb, F_prop, F_Stribeck, fexp, sigma_0, sigma_1. */
#include <math.h>

static const double GAMMA = 0.29289321881345254; /* 1 - 1/sqrt(2) */

typedef struct {
  double v, f;         /* rates of speed and of the force in the bristle */
  double vv, vf, fv, ff; /* their slopes by both */
} Rates;

static Rates rates(const double *p, double w, double v, double f, double u) {
  double speed = fabs(v), s = v < 0 ? -1.0 : 1.0;
  double e = p[2] * exp(-p[3] * speed), g = p[0] + e, dg = -p[3] * e * s;
  double damping = p[5] * exp(-(v * w) * (v * w)), dd = -2 * v * w * w * damping;
  Rates r;
  r.f = p[4] * (v - speed * f / g);
  r.fv = p[4] * (1 - s * f / g + speed * f * dg / (g * g));
  r.ff = -p[4] * speed / g;
  double c = damping / p[4];
  r.v = u - f - c * r.f - p[1] * v;
  r.vv = -(dd / p[4]) * r.f - c * r.fv - p[1];
  r.vf = -1 - c * r.ff;
  return r;
}

/* How fast the damping fades, over 1 m/s: what `LuGre(v_d=None)` takes. */
static double fading(const double *p) {
  double most = p[0] + p[2];
  double by_law = most > 2 * p[0] ? 1 / (4 * p[0]) : p[2] / (most * most);
  return fmax(p[3], p[5] * by_law / 2.3316439815971242);
}

void forward(const double *p, const double *u, int n, double h, double *y) {
  double x = 0, v = 0, f = 0, w = fading(p), a = GAMMA * h;
  y[0] = y[1] = 0;
  for (int i = 0; i < n; i++) {
    double drift = a * (u[i + 1] - u[i]) / h;
    Rates r = rates(p, w, v, f, u[i]);
    double m11 = 1 - a * r.vv, m12 = -a * r.vf, m21 = -a * r.fv, m22 = 1 - a * r.ff;
    double inverse = 1 / (m11 * m22 - m12 * m21);
    double bv = r.v + drift, bf = r.f;
    double kv = (m22 * bv - m12 * bf) * inverse, kf = (m11 * bf - m21 * bv) * inverse;
    double kx = v + a * kv;
    Rates q = rates(p, w, v + h * kv, f + h * kf, u[i + 1]);
    bv = q.v - drift - 2 * kv;
    bf = q.f - 2 * kf;
    double lv = (m22 * bv - m12 * bf) * inverse, lf = (m11 * bf - m21 * bv) * inverse;
    double lx = v + h * kv - 2 * kx + a * lv;
    x += h * (1.5 * kx + 0.5 * lx);
    v += h * (1.5 * kv + 0.5 * lv);
    f += h * (1.5 * kf + 0.5 * lf);
    y[2 * i + 2] = x;
    y[2 * i + 3] = v;
  }
}
