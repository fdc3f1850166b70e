/* The functions of FMI, 2.0 if FMI is 2 and 3.0 if it is 3, around those of the machine. The types
   are those of the standard, as far as the functions use them. */
#include <stdbool.h>
#include <string.h>
#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif
typedef int status; // what each function of FMI returns: OK or ERROR
enum { OK, ERROR = 3 };
typedef const char *text;
typedef const unsigned *refs;
#define JOIN(a, b) a##b
#if FMI == 2
#define FX(name) JOIN(fmi2, name)
#define SIZE(n)
#define GetFloat64 GetReal
#define SetFloat64 SetReal
#define GetInt32 GetInteger
#define GetContinuousStateDerivatives GetDerivatives
#define GetFMUState GetFMUstate
#define SetFMUState SetFMUstate
#define FreeFMUState FreeFMUstate
#define LOG(i, reason) i->log(i->environment, i->name, ERROR, "logStatusError", "%s", reason)
typedef int truth;
typedef void (*logger)(void *, text, status, text, text, ...);
typedef struct {
  logger log;
  void (*others[3])(void), *environment;
} callbacks;
typedef struct {
  truth again, stop, has_new_nominals, is_moved, has_next;
  double next;
} events;
#else
#define FX(name) JOIN(fmi3, name)
#define SIZE(n) , size_t n
#define LOG(i, reason) i->log(i->environment, ERROR, "logStatusError", reason)
typedef bool truth;
typedef void (*logger)(void *, status, text, text);
#endif
#define FUNCTION(name) EXPORT status FX(name)

/* x: all real values in the order of their references: numbers, inputs, slopes of inputs, states,
   then rates, outputs and margins, which follow from these, and time. y and seen: state and mode
   after the events at this time, which co-simulation shows and does not keep. */
typedef struct {
  double x[FX_TIME + 1], y[FX_STATES + 1];
  int32_t mode[FX_MODES + 2], seen[FX_MODES + 2], events, failure;
  bool is_fresh, is_starting, is_cosimulation;
} values;
typedef struct {
  values now;
  void *environment;
  logger log;
  char name[80];
} instance;
#define NOW (&((instance *)c)->now)
#define MOMENT(m) m->x, m->x + FX_INPUT, m->x[FX_TIME], m->x + FX_STATE, m->mode
#define SEEN(m) m->x, m->x + FX_INPUT, m->x[FX_TIME], m->y, m->seen

static status fail(instance *i, text reason) {
  if (i->log) LOG(i, reason);
  return ERROR;
}
static status keep(void *c, const double *y, const int32_t *k) {
  values *m = NOW;
  memcpy(m->x + FX_STATE, y, FX_STATES * sizeof *y);
  memcpy(m->mode, k, FX_MODES * sizeof *k);
  m->events += k[FX_MODES];
  m->failure = k[FX_MODES + 1];
  m->is_fresh = false;
  return m->failure ? fail(c, fx_failures[m->failure]) : OK;
}
static values *refresh(void *c) {
  values *m = NOW;
  if (m->is_fresh) return m;
  if (m->is_starting) {
    fx_start(m->x, m->x + FX_INPUT, m->x[FX_TIME], m->y, m->seen);
    keep(c, m->y, m->seen);
  }
  memcpy(m->y, m->x + FX_STATE, FX_STATES * sizeof *m->y);
  memcpy(m->seen, m->mode, FX_MODES * sizeof *m->seen);
  if (m->is_cosimulation) fx_event(MOMENT(m), m->y, m->seen);
  fx_now(SEEN(m), m->x + FX_RATE);
  m->is_fresh = true;
  return m;
}
static status put(void *c, unsigned first, const double *x, size_t n) {
  NOW->is_fresh = false;
  return memcpy(NOW->x + first, x, n * sizeof *x), OK;
}
FUNCTION(GetFloat64)(void *c, refs r, size_t n, double x[] SIZE(m)) {
  for (size_t i = 0; i < n; i++) {
    if (r[i] > FX_TIME) return fail(c, "A value reference is not that of a real variable.");
    const bool is_state = r[i] >= FX_STATE && r[i] < FX_RATE;
    x[i] = is_state ? refresh(c)->y[r[i] - FX_STATE] : refresh(c)->x[r[i]];
  }
  return OK;
}
FUNCTION(SetFloat64)(void *c, refs r, size_t n, const double x[] SIZE(m)) {
  for (size_t i = 0; i < n; i++) {
    if (r[i] >= FX_RATE) return fail(c, "A variable that cannot be set was set.");
    put(c, r[i], x + i, 1);
  }
  return OK;
}
FUNCTION(GetInt32)(void *c, refs r, size_t n, int32_t x[] SIZE(m)) {
  for (size_t i = 0; i < n; i++) {
    const unsigned k = r[i] - FX_MODE;
    if (k > FX_MODES) return fail(c, "A value reference is not that of a mode.");
    x[i] = k == FX_MODES ? NOW->events : refresh(c)->seen[k];
  }
  return OK;
}
static status update(void *c, truth *is_moved, truth *has_next, double *next) {
  double y[FX_STATES + 1];
  int32_t k[FX_MODES + 2];
  fx_event(MOMENT(NOW), y, k);
  *is_moved = memcmp(y, NOW->x + FX_STATE, FX_STATES * sizeof *y) != 0;
  *next = y[FX_STATES];
  *has_next = *next < fx_far;
  return keep(c, y, k);
}
static status walk(void *c, double t, double end) {
  values *m = NOW;
  double y[FX_STATES + 1], *u = m->x + FX_INPUT;
  int32_t k[FX_MODES + 2];
  const double n = ceil((end - t) / fx_step_size * (1 - 1e-9)), h = (end - t) / n;
  for (double s = 0; s < n; s++) {
    const double to = s + 1 < n ? t + (s + 1) * h : end;
    m->x[FX_TIME] = t + s * h;
    fx_step(MOMENT(m), to, y, k);
    if (keep(c, y, k) != OK) return ERROR;
    for (int i = 0; i < FX_INPUTS; i++) u[i] += h * u[FX_INPUTS + i];
    m->x[FX_TIME] = to;
  }
  return OK;
}
FUNCTION(GetDirectionalDerivative)(void *c, refs unknown, size_t n, refs known, size_t n_known,
                                   const double seed[] SIZE(n_seed), double x[] SIZE(n_x)) {
  double d[FX_RATE + 1] = {0}, o[FX_MARGIN - FX_RATE + 1];
  const values *m = refresh(c);
  if (m->is_starting) return fail(c, "Derivatives are those within a mode, after the start.");
  for (size_t i = 0; i < n_known; i++) {
    if (known[i] >= FX_RATE) return fail(c, "A known is not a parameter, an input or a state.");
    d[known[i]] = seed[i];
  }
  fx_tangent(SEEN(m), d, d + FX_INPUT, d + FX_STATE, o);
  for (size_t i = 0; i < n; i++) {
    const unsigned r = unknown[i];
    if (r < FX_STATE || r >= FX_MARGIN) return fail(c, "An unknown is not a rate or an output.");
    x[i] = r < FX_RATE ? d[r] : o[r - FX_RATE];
  }
  return OK;
}
FUNCTION(Reset)(void *c) {
  *NOW = (values){.is_cosimulation = NOW->is_cosimulation, .is_starting = true};
  return put(c, 0, fx_first, FX_STATE);
}
static instance *create(text name, text token, bool is_cosimulation, void *environment, logger f) {
  instance *i = strcmp(token, FX_TOKEN) ? NULL : calloc(1, sizeof *i);
  if (!i) return NULL;
  i->now.is_cosimulation = is_cosimulation;
  i->environment = environment, i->log = f;
  strncat(i->name, name, sizeof i->name - 1);
  return FX(Reset)(i), i;
}
/* GET: functions that return n real values from a place on. DONE: functions that have no effect.
   NOT: functions that the model does not offer and that return an error. */
#define GET(name, place) \
  FUNCTION(name)(void *c, double x[], size_t n) { return memcpy(x, place, n * sizeof *x), OK; }
#define DONE(name) FUNCTION(name)() { return OK; }
#define NOT(name) FUNCTION(name)() { return ERROR; }
#define NOT_BOTH(type) NOT(Get##type) NOT(Set##type)
EXPORT text FX(GetVersion)(void) { return FMI == 2 ? "2.0" : "3.0"; }
EXPORT void FX(FreeInstance)(void *c) { free(c); }
FUNCTION(ExitInitializationMode)(void *c) { return refresh(c)->is_starting = false, OK; }
FUNCTION(SetTime)(void *c, double t) { return put(c, FX_TIME, &t, 1); }
FUNCTION(SetContinuousStates)(void *c, const double *x, size_t n) { return put(c, FX_STATE, x, n); }
GET(GetContinuousStates, refresh(c)->x + FX_STATE)
GET(GetContinuousStateDerivatives, refresh(c)->x + FX_RATE)
GET(GetEventIndicators, refresh(c)->x + FX_MARGIN)
GET(GetNominalsOfContinuousStates, fx_nominals)
FUNCTION(CompletedIntegratorStep)(void *c, truth is_final, truth *event, truth *stop) {
  return *event = *stop = 0, OK;
}
FUNCTION(GetFMUState)(void *c, void **s) {
  if (!*s) *s = malloc(sizeof(values));
  return *s ? memcpy(*s, NOW, sizeof(values)), OK : ERROR;
}
FUNCTION(SetFMUState)(void *c, void *s) { return memcpy(NOW, s, sizeof(values)), OK; }
FUNCTION(FreeFMUState)(void *c, void **s) { return free(*s), *s = NULL, OK; }
DONE(SetDebugLogging) DONE(Terminate) DONE(EnterEventMode) DONE(EnterContinuousTimeMode)
NOT_BOTH(Boolean) NOT_BOTH(String)
#if FMI == 2
EXPORT text fmi2GetTypesPlatform(void) { return "default"; }
EXPORT void *fmi2Instantiate(text name, int is_cosimulation, text token, text folder,
                             const callbacks *f, truth is_visible, truth logs) {
  return create(name, token, is_cosimulation, f->environment, f->log);
}
FUNCTION(SetupExperiment)(void *c, truth b, double tolerance, double t, truth has_end, double end) {
  return put(c, FX_TIME, &t, 1);
}
FUNCTION(NewDiscreteStates)(void *c, events *e) {
  memset(e, 0, sizeof *e);
  return update(c, &e->is_moved, &e->has_next, &e->next);
}
FUNCTION(SetRealInputDerivatives)(void *c, refs r, size_t n, const int order[], const double x[]) {
  for (size_t i = 0; i < n; i++) {
    const bool is_input = r[i] >= FX_INPUT && r[i] < FX_SLOPE;
    if (!is_input || order[i] != 1) return fail(c, "Only first derivatives of inputs are set.");
    put(c, r[i] + FX_INPUTS, x + i, 1);
  }
  return OK;
}
FUNCTION(DoStep)(void *c, double t, double h, truth is_final) { return walk(c, t, t + h); }
DONE(EnterInitializationMode)
NOT(SetInteger) NOT(CancelStep) NOT(GetRealOutputDerivatives) NOT(GetStatus) NOT(GetRealStatus)
NOT(GetIntegerStatus) NOT(GetBooleanStatus) NOT(GetStringStatus) NOT(SerializedFMUstateSize)
NOT(SerializeFMUstate) NOT(DeSerializeFMUstate)
#else
EXPORT void *fmi3InstantiateModelExchange(text name, text token, text folder, truth is_visible,
                                          truth logs, void *environment, logger f) {
  return create(name, token, false, environment, f);
}
EXPORT void *fmi3InstantiateCoSimulation(text name, text token, text folder, truth is_visible,
                                         truth logs, truth events, truth returns, refs r, size_t n,
                                         void *environment, logger f, void (*g)(void)) {
  return create(name, token, true, environment, f);
}
EXPORT void *fmi3InstantiateScheduledExecution() { return NULL; }
FUNCTION(EnterInitializationMode)(void *c, truth b, double tolerance, double t, truth has_end,
                                  double end) {
  return put(c, FX_TIME, &t, 1);
}
FUNCTION(UpdateDiscreteStates)(void *c, truth *again, truth *stop, truth *nominals, truth *is_moved,
                               truth *has_next, double *next) {
  return *again = *stop = *nominals = false, update(c, is_moved, has_next, next);
}
FUNCTION(GetNumberOfEventIndicators)(void *c, size_t *n) { return *n = FX_MARGINS, OK; }
FUNCTION(GetNumberOfContinuousStates)(void *c, size_t *n) { return *n = FX_STATES, OK; }
FUNCTION(DoStep)(void *c, double t, double h, truth is_final, truth *event, truth *stop,
                 truth *early, double *last) {
  const status s = walk(c, t, t + h);
  return *event = *stop = *early = false, *last = NOW->x[FX_TIME], s;
}
DONE(EnterStepMode) DONE(EvaluateDiscreteStates)
NOT_BOTH(Float32) NOT_BOTH(Int8) NOT_BOTH(UInt8) NOT_BOTH(Int16) NOT_BOTH(UInt16) NOT_BOTH(UInt32)
NOT_BOTH(Int64) NOT_BOTH(UInt64) NOT_BOTH(Binary) NOT_BOTH(Clock) NOT_BOTH(IntervalDecimal)
NOT_BOTH(IntervalFraction) NOT_BOTH(ShiftDecimal) NOT_BOTH(ShiftFraction) NOT(SetInt32)
NOT(GetNumberOfVariableDependencies) NOT(GetVariableDependencies) NOT(SerializedFMUStateSize)
NOT(SerializeFMUState) NOT(DeserializeFMUState) NOT(GetAdjointDerivative)
NOT(EnterConfigurationMode) NOT(ExitConfigurationMode) NOT(GetOutputDerivatives)
NOT(ActivateModelPartition)
#endif
