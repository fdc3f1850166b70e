/* The functions of FMI, 2.0 if FMI is 2 and 3.0 if it is 3, around those of the machine. The types
   are those of the standard, as far as the functions use them. */
#include <stdbool.h>
#include <string.h>
#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif
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
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef const char *fmi2String;
typedef struct {
  void (*logger)(void *, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
  void *(*allocateMemory)(size_t, size_t);
  void (*freeMemory)(void *);
  void (*stepFinished)(void *, fmi2Status);
  void *componentEnvironment;
} fmi2CallbackFunctions;
typedef struct {
  int newDiscreteStatesNeeded, terminateSimulation, nominalsOfContinuousStatesChanged;
  int valuesOfContinuousStatesChanged, nextEventTimeDefined;
  double nextEventTime;
} fmi2EventInfo;
typedef int truth;
typedef void (*logger)(void *, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
#define LOG(i, reason) i->log(i->environment, i->name, fmi2Error, "logStatusError", "%s", reason)
#else
#define FX(name) JOIN(fmi3, name)
#define SIZE(n) , size_t n
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef const char *fmi3String;
typedef void (*fmi3LogMessageCallback)(void *, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3IntermediateUpdateCallback)(void *, double, bool, bool, bool, bool, bool *,
                                               double *);
typedef bool truth;
typedef fmi3LogMessageCallback logger;
#define LOG(i, reason) i->log(i->environment, fmi3Error, "logStatusError", reason)
#endif
typedef FX(Status) status;
typedef FX(String) text;
typedef const unsigned *refs;
#define FUNCTION(name) EXPORT status FX(name)
#define OK FX(OK)

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
  return FX(Error);
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
static status get(void *c, unsigned first, double *x, size_t n) {
  return memcpy(x, refresh(c)->x + first, n * sizeof *x), OK;
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
    const unsigned k = r[i] - FX_TIME - 1;
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
    if (keep(c, y, k) != OK) return FX(Error);
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
static status reset(values *m, bool is_cosimulation) {
  memset(m, 0, sizeof *m);
  memcpy(m->x, fx_first, FX_STATE * sizeof *m->x);
  m->is_cosimulation = is_cosimulation;
  m->is_starting = true;
  return OK;
}
static instance *create(text name, text token, bool is_cosimulation, void *environment, logger f) {
  instance *i = strcmp(token, FX_TOKEN) ? NULL : calloc(1, sizeof *i);
  if (!i) return NULL;
  reset(&i->now, is_cosimulation);
  i->environment = environment, i->log = f;
  strncat(i->name, name, sizeof i->name - 1);
  return i;
}
EXPORT const char *FX(GetVersion)(void) { return FMI == 2 ? "2.0" : "3.0"; }
EXPORT void FX(FreeInstance)(void *c) { free(c); }
FUNCTION(SetDebugLogging)(void *c, truth on, size_t n, const text names[]) { return OK; }
FUNCTION(ExitInitializationMode)(void *c) { return refresh(c)->is_starting = false, OK; }
FUNCTION(Terminate)(void *c) { return OK; }
FUNCTION(Reset)(void *c) { return reset(NOW, NOW->is_cosimulation); }
FUNCTION(EnterEventMode)(void *c) { return OK; }
FUNCTION(EnterContinuousTimeMode)(void *c) { return OK; }
FUNCTION(SetTime)(void *c, double t) { return put(c, FX_TIME, &t, 1); }
FUNCTION(SetContinuousStates)(void *c, const double x[], size_t n) { return put(c, FX_STATE, x, n); }
FUNCTION(GetContinuousStates)(void *c, double x[], size_t n) { return get(c, FX_STATE, x, n); }
FUNCTION(GetContinuousStateDerivatives)(void *c, double x[], size_t n) {
  return get(c, FX_RATE, x, n);
}
FUNCTION(GetEventIndicators)(void *c, double x[], size_t n) { return get(c, FX_MARGIN, x, n); }
FUNCTION(GetNominalsOfContinuousStates)(void *c, double x[], size_t n) {
  return memcpy(x, fx_nominals, n * sizeof *x), OK;
}
FUNCTION(CompletedIntegratorStep)(void *c, truth is_final, truth *event, truth *stop) {
  return *event = *stop = 0, OK;
}
FUNCTION(GetFMUState)(void *c, void **s) {
  if (!*s) *s = malloc(sizeof(values));
  return *s ? memcpy(*s, NOW, sizeof(values)), OK : FX(Error);
}
FUNCTION(SetFMUState)(void *c, void *s) { return memcpy(NOW, s, sizeof(values)), OK; }
FUNCTION(FreeFMUState)(void *c, void **s) { return free(*s), *s = NULL, OK; }
/* Functions that the model does not offer return an error for all arguments. */
#define NOT(name) FUNCTION(name)() { return FX(Error); }
#if FMI == 2
EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT void *fmi2Instantiate(text name, fmi2Type type, text token, text folder,
                             const fmi2CallbackFunctions *f, int is_visible, int logs) {
  return create(name, token, type == fmi2CoSimulation, f->componentEnvironment, f->logger);
}
FUNCTION(SetupExperiment)(void *c, int b, double tolerance, double t, int has_stop, double stop) {
  return put(c, FX_TIME, &t, 1);
}
FUNCTION(EnterInitializationMode)(void *c) { return OK; }
FUNCTION(NewDiscreteStates)(void *c, fmi2EventInfo *e) {
  memset(e, 0, sizeof *e);
  return update(c, &e->valuesOfContinuousStatesChanged, &e->nextEventTimeDefined,
                &e->nextEventTime);
}
FUNCTION(SetRealInputDerivatives)(void *c, refs r, size_t n, const int order[], const double x[]) {
  for (size_t i = 0; i < n; i++) {
    const bool is_input = r[i] >= FX_INPUT && r[i] < FX_INPUT + FX_INPUTS;
    if (!is_input || order[i] != 1) return fail(c, "Only first derivatives of inputs are set.");
    put(c, r[i] + FX_INPUTS, x + i, 1);
  }
  return OK;
}
FUNCTION(DoStep)(void *c, double t, double h, int is_final) { return walk(c, t, t + h); }
NOT(SetInteger) NOT(GetBoolean) NOT(SetBoolean) NOT(GetString) NOT(SetString) NOT(CancelStep)
NOT(GetRealOutputDerivatives) NOT(GetStatus) NOT(GetRealStatus) NOT(GetIntegerStatus)
NOT(GetBooleanStatus) NOT(GetStringStatus) NOT(SerializedFMUstateSize) NOT(SerializeFMUstate)
NOT(DeSerializeFMUstate)
#else
EXPORT void *fmi3InstantiateModelExchange(text name, text token, text folder, bool is_visible,
                                          bool logs, void *environment, logger f) {
  return create(name, token, false, environment, f);
}
EXPORT void *fmi3InstantiateCoSimulation(text name, text token, text folder, bool is_visible,
                                         bool logs, bool events, bool returns, refs r, size_t n,
                                         void *environment, logger f,
                                         fmi3IntermediateUpdateCallback g) {
  return create(name, token, true, environment, f);
}
FUNCTION(EnterInitializationMode)(void *c, bool b, double tolerance, double t, bool has_stop,
                                  double stop) {
  return put(c, FX_TIME, &t, 1);
}
FUNCTION(UpdateDiscreteStates)(void *c, bool *again, bool *stop, bool *nominals, bool *is_moved,
                               bool *has_next, double *next) {
  return *again = *stop = *nominals = false, update(c, is_moved, has_next, next);
}
FUNCTION(GetNumberOfEventIndicators)(void *c, size_t *n) { return *n = FX_MARGINS, OK; }
FUNCTION(GetNumberOfContinuousStates)(void *c, size_t *n) { return *n = FX_STATES, OK; }
FUNCTION(EnterStepMode)(void *c) { return OK; }
FUNCTION(EvaluateDiscreteStates)(void *c) { return OK; }
FUNCTION(DoStep)(void *c, double t, double h, bool is_final, bool *event, bool *stop, bool *early,
                 double *last) {
  const status s = walk(c, t, t + h);
  return *event = *stop = *early = false, *last = NOW->x[FX_TIME], s;
}
EXPORT void *fmi3InstantiateScheduledExecution() { return NULL; }
NOT(GetFloat32) NOT(SetFloat32) NOT(GetInt8) NOT(SetInt8) NOT(GetUInt8) NOT(SetUInt8)
NOT(GetInt16) NOT(SetInt16) NOT(GetUInt16) NOT(SetUInt16) NOT(SetInt32) NOT(GetUInt32)
NOT(SetUInt32) NOT(GetInt64) NOT(SetInt64) NOT(GetUInt64) NOT(SetUInt64) NOT(GetBoolean)
NOT(SetBoolean) NOT(GetString) NOT(SetString) NOT(GetBinary) NOT(SetBinary) NOT(GetClock)
NOT(SetClock) NOT(GetNumberOfVariableDependencies) NOT(GetVariableDependencies)
NOT(SerializedFMUStateSize) NOT(SerializeFMUState) NOT(DeserializeFMUState)
NOT(GetAdjointDerivative) NOT(EnterConfigurationMode) NOT(ExitConfigurationMode)
NOT(GetIntervalDecimal) NOT(GetIntervalFraction) NOT(GetShiftDecimal) NOT(GetShiftFraction)
NOT(SetIntervalDecimal) NOT(SetIntervalFraction) NOT(SetShiftDecimal) NOT(SetShiftFraction)
NOT(GetOutputDerivatives) NOT(ActivateModelPartition)
#endif
