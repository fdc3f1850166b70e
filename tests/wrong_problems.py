"""Problem files with one mistake each, and the words that must be said of it."""

from problems.conftest import PROBLEM

MACHINE = PROBLEM[PROBLEM.index("[machine.mass]") : PROBLEM.index("[fit]")]
RECORD = PROBLEM[PROBLEM.index("[records.run]") : PROBLEM.index("[machine.mass]")]
TITLE = 'title = "A block"'

# What is replaced by what, and words that the sentence must have.
WRONG: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "no TOML": (TITLE, "title = A block", ("not TOML", "line 2")),
    "a quote is missing": ('"mass.s" =', '"mass.s =', ("not TOML",)),
    "a table twice": ("[uncertainty]", "[fit]", ("not TOML",)),
    "no title": (TITLE, "", ("title is missing", "title = ...")),
    "an empty title": (TITLE, 'title = " "', ("title", "at least 1 character")),
    "a title that is a number": (TITLE, "title = 3", ("title", "string", "3")),
    "an unknown table": (
        "[uncertainty]",
        "[uncertainties]",
        ("uncertainties", "no key", "'uncertainty'"),
    ),
    "an unknown key of fit": ("free = [", "fre = [", ("fit.fre", "'free'", "The keys here are")),
    "an unknown key of a record": (
        'time = "t"',
        'time = "t"\ntrimm = [0, 1]',
        ("records.run.trimm", "'trim'"),
    ),
    "an unknown key of a column": (
        'unit = "mm"',
        'units = "mm"',
        ('records.run.outputs."mass.s".units', "'unit'"),
    ),
    "free is a text": (
        'free = ["mass.m", "friction.f_pos.F_Coulomb"]',
        'free = "mass.m"',
        ("fit.free", "list", "'mass.m'"),
    ),
    "free holds a number": ('free = ["mass.m",', "free = [1,", ("fit.free.0", "string", "1")),
    "a path that is not there": (
        '"mass.m",',
        '"mas.m",',
        ("fit.free", "'mas.m'", "Did you mean 'mass.m'"),
    ),
    "a small letter for a capital one": (
        '"friction.f_pos.F_Coulomb"]',
        '"friction.f_pos.f_coulomb"]',
        ("fit.free", "Did you mean 'friction.f_pos.F_Coulomb'"),
    ),
    "bounds of what is not there": (
        "[uncertainty]",
        'bounds = { "mass.k" = [1, 2] }\n[uncertainty]',
        ("fit.bounds", "'mass.k'"),
    ),
    "bounds of one number": (
        "[uncertainty]",
        'bounds = { "mass.m" = [1] }\n[uncertainty]',
        ('fit.bounds."mass.m"',),
    ),
    "bounds of texts": (
        "[uncertainty]",
        'bounds = { "mass.m" = ["a", "b"] }\n[uncertainty]',
        ('fit.bounds."mass.m".0', "number", "'a'"),
    ),
    "tied to what is not there": (
        "[uncertainty]",
        'tied = { "friction.f_pos.F_prop" = "friction.f_pos.F_prp" }\n[uncertainty]',
        ("fit is not valid", "'friction.f_pos.F_prp'", "Did you mean"),
    ),
    "what is not there is tied": (
        "[uncertainty]",
        'tied = { "friction.f_pos.F_prp" = "friction.f_pos.F_prop" }\n[uncertainty]',
        ("fit.tied", "'friction.f_pos.F_prp'", "Did you mean"),
    ),
    "tied and free": (
        "[uncertainty]",
        'tied = { "mass.m" = "2 * friction.f_pos.F_Coulomb" }\n[uncertainty]',
        ("fit is not valid", "is in `free` and in `tied`"),
    ),
    "tied by code": (
        "[uncertainty]",
        'tied = { "friction.peak" = "max(1, 2) * mass.m" }\n[uncertainty]',
        ("fit is not valid", "'factor * path'"),
    ),
    "a log scale of what is not fitted": (
        "[uncertainty]",
        'log_scale = ["friction.peak"]\n[uncertainty]',
        ("fit is not valid", "`log_scale` names 'friction.peak', which is not fitted"),
    ),
    "derived by code": (
        "[uncertainty]",
        '[derived]\nx = "open(1)"\n[uncertainty]',
        ("derived.x is not valid", "+ - * / **", "'open(1)' is none of these"),
    ),
    "derived from what is not there": (
        "[uncertainty]",
        '[derived]\nx = "mass.q / mass.m"\n[uncertainty]',
        ("derived.x", "'mass.q'", "does not have"),
    ),
    "a common quantity that there is not": (
        "[uncertainty]",
        '[derived]\nx = "friction: breakway"\n[uncertainty]',
        ("derived.x", "Did you mean 'friction: breakaway'"),
    ),
    "derived of a record that there is not": (
        "[uncertainty]",
        '[derived]\nx = { value = "mass.m", record = "ran" }\n[uncertainty]',
        ("derived.x", "'ran'", "Did you mean 'run'"),
    ),
    "own of what is not there": (
        "[uncertainty]",
        'own = ["mass.q"]\n[uncertainty]',
        ("fit.own", "'mass.q'"),
    ),
    "no starts": (
        "[uncertainty]",
        "starts = 0\n[uncertainty]",
        ("fit.starts", "greater than or equal to 1", "0"),
    ),
    "half a start": (
        "[uncertainty]",
        "starts = 1.5\n[uncertainty]",
        ("fit.starts", "whole number", "1.5"),
    ),
    "a truth for a number": (
        "[uncertainty]",
        "seed = true\n[uncertainty]",
        ("fit.seed", "whole number", "True"),
    ),
    "a truth for a mass": (
        "m = 1.2",
        "m = true",
        ("machine.mass.m", "must not contain true or false", "True"),
    ),
    "a key of many parts": (TITLE, f"{'a.' * 60}a = 1", ("line 2", "more than 50 parts")),
    "a spread below 0": (
        "[uncertainty]",
        "spread = -1\n[uncertainty]",
        ("fit.spread", "greater than or equal to 0", "-1"),
    ),
    "a spread of nan": (
        "[uncertainty]",
        "spread = nan\n[uncertainty]",
        ("fit.spread", "finite", "nan"),
    ),
    "a level of 95": (
        "[uncertainty]",
        "level = 95\n[uncertainty]",
        ("fit.level", "less than 1", "95"),
    ),
    "a seed that is a text": (
        "[uncertainty]",
        'seed = "x"\n[uncertainty]',
        ("fit.seed", "whole number", "'x'"),
    ),
    "an objective that is not there": (
        'kind = "InverseDynamics"',
        'kind = "Inverse"',
        ("fit.objective.kind", "Did you mean 'InverseDynamics'"),
    ),
    "an objective without a kind": (
        'kind = "InverseDynamics", ',
        "",
        ("fit.objective", "`kind`", "FreeRun"),
    ),
    "an argument that is not there": (
        "cutoff = 20.0",
        "cutof = 20.0",
        ("fit.objective.cutof", "no argument of InverseDynamics", "'cutoff'"),
    ),
    "a cutoff below 0": ("cutoff = 20.0", "cutoff = -2.0", ("fit.objective", "> 0", "-2.0")),
    "a cutoff that is a text": ("cutoff = 20.0", 'cutoff = "fast"', ("fit.objective", "'fast'")),
    "a start that is a number": ("[uncertainty]", "start = 3\n[uncertainty]", ("fit.start", "3")),
    "a loss that is not there": (
        "[uncertainty]",
        'loss = "Tukey"\n[uncertainty]',
        ("fit.loss", "Squares, Huber", "'Tukey'"),
    ),
    "a prior without its mean": (
        "[uncertainty]",
        'priors = [{ kind = "Normal", path = "mass.m", sd = 1 }]\n[uncertainty]',
        ("fit.priors.0", "'mean'"),
    ),
    "a prior of width 0": (
        "[uncertainty]",
        'priors = [{ kind = "Normal", path = "mass.m", mean = 1.0, sd = 0.0 }]\n[uncertainty]',
        ("fit.priors.0", "> 0"),
    ),
    "an instrument with a gain of 0": (
        "[uncertainty]",
        'instruments."inputs.drive" = { gain = 0.0 }\n[uncertainty]',
        ('fit.instruments."inputs.drive"', "> 0"),
    ),
    "an instrument with a colour": (
        "[uncertainty]",
        'instruments."inputs.drive" = { colour = 1.0 }\n[uncertainty]',
        ('instruments."inputs.drive".colour', "no argument"),
    ),
    "errors that are not there": (
        'errors = "HAC"',
        'errors = "Bootstrap"',
        ("uncertainty.errors", "BlockBootstrap", "'Bootstrap'"),
    ),
    "a jackknife of one": (
        'errors = "HAC"',
        'errors = { kind = "Jackknife", repeats = 1 }',
        ("uncertainty.errors", ">= 2", "1"),
    ),
    "draws below 0": ('errors = "HAC"', "draws = -5", ("uncertainty.draws", "-5")),
    "a record to fit that is not there": (
        "[uncertainty]",
        'records = ["walk"]\n[uncertainty]',
        ("fit.records", "'walk'", "There are: run"),
    ),
    "a record to validate that is not there": (
        "[validation]",
        '[validation]\nrecords = ["rum"]',
        ("validation.records", "Did you mean 'run'"),
    ),
    "validated by what was fitted": (
        "[validation]",
        '[validation]\nrecords = ["run"]',
        ("has no record to fit",),
    ),
    "fitted and validated": (
        '[uncertainty]\nerrors = "HAC"\n\n[validation]',
        'records = ["run"]\n[uncertainty]\n[validation]\nrecords = ["run"]',
        ("validation.records", "'run'", "which is fitted"),
    ),
    "a score that is not there": (
        'kind = "FreeRun"',
        'kind = "Freerun"',
        ("validation.scores.0.kind", "Did you mean 'FreeRun'"),
    ),
    "no machine": (MACHINE, "", ("no [machine]",)),
    "no data": (RECORD, "", ("nothing measured", "[sweep]")),
    "a law beside records": ("[fit]", '[law]\nf_pos = "Coulomb"\n[fit]', ("[law] beside records",)),
    "a part without a kind": ('kind = "Mass"\n', "", ("machine.mass", "`kind`", "Mass")),
    "a part that is not there": (
        'kind = "Mass"',
        'kind = "Masse"',
        ("machine.mass.kind", "Did you mean 'Mass'"),
    ),
    "a part that is a number": (
        "[machine.drive]\n",
        "[machine]\nother = 3\n[machine.drive]\n",
        ("machine.other", "table", "3"),
    ),
    "an argument that a part does not have": (
        "m = 1.2",
        "mass = 1.2",
        ("machine.mass.mass", "no argument of Mass", "m, s, v, L"),
    ),
    "a number that a bristle leaves to its law": (
        "peak = 1.0",
        'peak = 1.0\nbristle = { kind = "LuGre", sigma_0 = 1e5, sigma_1 = 3.0, sigma_2 = 0.4 }',
        ("machine.friction.bristle", "no sigma_2, got 0.4", "`F_prop` of the contact's law"),
    ),
    "an argument that a part needs": ("m = 1.2", "", ("machine.mass", "'m'", "Add m")),
    "a mass of 0": ("m = 1.2", "m = 0.0", ("machine.mass", "> 0", "0")),
    "a mass of nan": ("m = 1.2", "m = nan", ("machine.mass", "nan")),
    "a mass that is a text": ("m = 1.2", 'm = "heavy"', ("machine.mass", "'heavy'")),
    "a law that is not there": (
        'kind = "Coulomb"',
        'kind = "Columb"',
        ("machine.friction.f_pos.kind", "Did you mean 'Coulomb'"),
    ),
    "a signal for a law": (
        'kind = "Coulomb"',
        'kind = "Sine"',
        ("f_pos.kind must be one of Coulomb, Stribeck, Table, TemperatureDependent, got 'Sine'",),
    ),
    "an object for a number": (
        "m = 1.2",
        'm = { kind = "Sine" }',
        ("machine.mass.m must not be a table with a `kind`",),
    ),
    "a friction below 0": (
        "F_Coulomb = 0.8",
        "F_Coulomb = -0.8",
        ("machine.friction.f_pos", ">= 0", "-0.8"),
    ),
    "a peak below 1": ("peak = 1.0", "peak = 0.9", ("machine.friction", ">= 1", "0.9")),
    "a body that is not there": (
        'body = "mass"\nf_pos',
        'body = "block"\nf_pos',
        ("machine", "'block'"),
    ),
    "a table of one column": (
        '{ kind = "Coulomb", F_Coulomb = 0.8 }',
        "[[0], [1]]",
        ("machine.friction",),
    ),
    "a start on its bound": ("F_Coulomb = 0.8", "F_Coulomb = 0.0", ("F_Coulomb",)),
    "a record without a file": ('file = "run.csv"\n', "", ("records.run", "`file`, or `python`")),
    "a file that is not there": (
        'file = "run.csv"',
        'file = "walk.csv"',
        ("records.run.file", "'walk.csv'", "beside the problem"),
    ),
    "a public record that is not there": (
        'file = "run.csv"',
        'public = "emp"\nfile = "x.mat"',
        ("records.run.public", "Did you mean 'emps'"),
    ),
    "a column that is not there": (
        'column = "s"',
        'column = "q"',
        ("records.run", "no column 'q'"),
    ),
    "a time that is not there": ('time = "t"', 'time = "time"', ("records.run", "'time'")),
    "a unit that is not there": ('unit = "mm"', 'unit = "furlong"', ("records.run", "furlong")),
    "a unit of another kind": ('unit = "mm"', 'unit = "N"', ("records.run", "N")),
    "a sign of 2": ('unit = "mm"', 'unit = "mm", sign = 2', ("sign", "2")),
    "a trim the wrong way round": (
        'time = "t"',
        'time = "t"\ntrim = [3, 1]',
        ("records.run.trim", "before end"),
    ),
    "a trim that leaves nothing": (
        'time = "t"',
        'time = "t"\ntrim = [9, 10]',
        ("records.run.trim",),
    ),
    "a trim of three": ('time = "t"', 'time = "t"\ntrim = [0, 1, 2]', ("records.run.trim",)),
    "decimated by 0": (
        'time = "t"',
        'time = "t"\ndecimate = 0',
        ("records.run.decimate", "greater than 0"),
    ),
    "decimated to nothing": (
        'time = "t"',
        'time = "t"\ndecimate = 1000',
        ("records.run.decimate",),
    ),
    "an input that no part takes": ("inputs.drive =", "inputs.motor =", ("'motor'",)),
    "an output that no part has": ('outputs."mass.s"', 'outputs."mass.x"', ("mass.x",)),
    "code that is not asked for": (
        RECORD,
        '[records.run]\npython = "own:record"\n',
        ("records.run.python", "runs only with permission", "--allow-code"),
    ),
    "code from another folder": (
        "[machine.drive]\n",
        '[machine]\npython = "../evil:run"\n[machine.drive]\n',
        ("machine",),
    ),
    "a number of 400 digits": ("m = 1.2", "m = 1" + 400 * "0", ("machine.mass",)),
    "a number of 5000 digits": ("m = 1.2", "m = 1" + 5000 * "0", ("not TOML that can be read",)),
    "a title with a bell": (TITLE, 'title = "A\\u0007"', ("title", "control characters")),
    "a seed below 0": ("[uncertainty]", "seed = -1\n[uncertainty]", ("fit.seed", "-1")),
    "a profile of what is not fitted": (
        'errors = "HAC"',
        'profiles = ["mass.q"]',
        ("uncertainty.profiles", "'mass.q'", "Fitted are"),
    ),
    "a structure that changes nothing": (
        "[fit]",
        '[structures.same]\nfree = ["mass.m", "friction.f_pos.F_Coulomb"]\n[fit]',
        ("structures.same", "does not change the machine", "leave it out"),
    ),
    "a structure without a part that there is not": (
        "[fit]",
        '[structures.bare.machine.frictoin]\nkind = "none"\n[fit]',
        ("structures.bare.machine.frictoin", "does not have", "Did you mean 'friction'?"),
    ),
    "a structure with nothing that can be fitted": (
        "[fit]",
        "[structures.none]\nfree = []\n[fit]",
        ("structures.none", "no free parameters"),
    ),
    "nothing that can be fitted": (
        'free = ["mass.m", "friction.f_pos.F_Coulomb"]',
        "free = []",
        ("fit", "no free parameters"),
    ),
    "a prior on what is not fitted": (
        "[uncertainty]",
        (
            'priors = [{ kind = "Normal", path = "friction.peak", mean = 1.0, sd = 0.1'
            " }]\n[uncertainty]"
        ),
        ("fit", "`priors` names 'friction.peak'", "Free are"),
    ),
    "starts for other records than there are": (
        'free = ["mass.m", "friction.f_pos.F_Coulomb"]',
        'free = ["mass.m"]\nown = { "friction.f_pos.F_Coulomb" = [] }',
        ("fit", "`own` must give a start for each of the 1 records", "got 0"),
    ),
    "a score that needs longer records": (
        'scores = [{ kind = "FreeRun", measured_start = true }]',
        (
            'records = ["run2"]\nscores = [{ kind = "Windows", length = 100.0'
            ' }]\n[records.run2]\nfile = "run.csv"\ntime = "t"\ninputs.drive = { column = "F", unit'
            ' = "N" }\noutputs."mass.s" = { column = "s", unit = "mm" }\n'
        ),
        ("validation.scores.0", "`Windows.length`"),
    ),
    "errors by repeats of one record": (
        'errors = "HAC"',
        'errors = "Jackknife"',
        ("uncertainty", "leaves out whole records", "there is one"),
    ),
    "errors that cannot resample priors": (
        '[uncertainty]\nerrors = "HAC"',
        (
            'priors = [{ kind = "Normal", path = "mass.m", mean = 2.0, sd = 0.1'
            ' }]\n[uncertainty]\nerrors = "BlockBootstrap"'
        ),
        ("uncertainty", "cannot resample priors"),
    ),
    **{
        f"{key} beside structures": (
            "[uncertainty]",
            f"{key} = {value}\n[structures.free]\nfree = ['mass.m']\n[uncertainty]",
            (f"fit.{key} is not used with [structures]", "Leave it out"),
        )
        for key, value in {"level": 0.5, "loss": "'Huber'", "starts": 4, "rounds": 0}.items()
    },
    "a structure that changes nothing beside a prior": (
        "[uncertainty]",
        (
            'priors = [{ kind = "Normal", path = "mass.m", mean = 2.0, sd = 0.1 }]\n'
            "[structures.same.machine]\n[uncertainty]"
        ),
        ("structures.same", "does not change the machine", "leave it out"),
    ),
    "a structure that cannot be": (
        "[fit]",
        '[structures.b.machine.mass]\nkind = "Mass"\nm = -1\n[fit]',
        ("structures.b.machine.mass", "> 0"),
    ),
}
