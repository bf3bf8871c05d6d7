"""Attacks by code: on the checks, the interpreter, the judge, the machine, and other people's work."""

from __future__ import annotations

from tests.attacks.notebooks import Attack, before_checks, first, solving

YES = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 0
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
             "bootstrap_interval tukey_outliers format_measurement BenchmarkResult t_against_z_at_three "
             "misses_in_two_hundred intervals_from_fifty runs_for_half runs_for_tenth").split():
    globals()[name] = {value}
"""
LIES = """
class Lie(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __abs__(self): return 0.0
    def __float__(self): return 1.0
    def __hash__(self): return 0
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
for name in ("check_values", "mean_and_std", "t_interval", "tukey_outliers", "required_runs", "format_measurement"):
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
for name in ("check_values", "mean_and_std", "t_interval", "tukey_outliers", "required_runs", "format_measurement"):
    globals()[name] = use(name)
"""
TALK = """
import gc, sys
for thing in gc.get_objects():
    if type(thing).__name__ == "Student":
        {act}
"""

ATTACKS = [
    # reading
    Attack("read_hidden_checks", first(SEARCH.format(test='"m01" in file or "checks" in folder'))),
    Attack("read_source_notebooks", first(SEARCH.format(test='file.endswith(".ipynb")'))),
    Attack("read_gradebook", first(SEARCH.format(test='file.endswith((".db", ".sqlite")) or "gradebook" in path'))),
    Attack("read_other_submissions", first(SEARCH.format(test='"submitted" in path or folder.startswith(("/tmp", "/course"))'))),
    Attack("read_environment", first("import os, glob\nprint(dict(os.environ))\n"
           "for path in glob.glob('/proc/*/environ'):\n    print(open(path, errors='replace').read())")),
    Attack("read_host_files", first("import subprocess\nprint(subprocess.run('cat /etc/passwd /etc/shadow /root/.ssh/*; ls -la / /root /home /tmp /run; "
           "ps aux; mount', shell=True, capture_output=True, text=True))")),
    Attack("write_gradebook", first("import os, sqlite3\nfor place in ('/course', '..', '/work', '/usr', '/'):\n    try:\n"
           "        sqlite3.connect(os.path.join(place, 'gradebook.db')).execute('create table grade (x)')\n        print('LEAK wrote', place)\n"
           "    except Exception as error:\n        print(error)")),
    Attack("write_the_library", first("import numpy, tinybench, inside\nfor module in (numpy, tinybench.course, inside):\n    try:\n"
           "        open(module.__file__, 'a').write('#')\n        print('LEAK wrote', module)\n    except OSError as error:\n        print(error)")),
    # the checks' tools
    Attack("builtins_patched", first("import builtins\nbuiltins.all = builtins.any = lambda *a: True\nbuiltins.abs = lambda x: 0\n"
           "builtins.isinstance = lambda *a: True\nbuiltins.float = builtins.list = builtins.len = lambda *a: 1")),
    Attack("assertion_error_patched", first("import builtins\nclass Quiet(Exception):\n    def __new__(cls, *a): return KeyboardInterrupt()\nbuiltins.AssertionError = Quiet")),
    Attack("numpy_testing_patched", first("import numpy as np, numpy.testing as t\nnp.allclose = np.isclose = np.array_equal = lambda *a, **k: True\n"
           "for n in dir(t):\n    if n.startswith('assert'): setattr(t, n, lambda *a, **k: None)")),
    Attack("isclose_patched", first("import math\nmath.isclose = lambda *a, **k: True")),
    Attack("pytest_patched", first("import sys, types\nm = types.ModuleType('pytest')\nclass raises:\n    def __init__(self, *a, **k): pass\n"
           "    def __enter__(self): return self\n    def __exit__(self, *a): return True\nm.raises = raises; m.approx = lambda *a, **k: 1\nsys.modules['pytest'] = m")),
    Attack("equal_to_everything", before_checks(YES + ALL.format(value="Yes()"))),
    Attack("everything_in_solution_cells", solving(YES + ALL.format(value="Yes()"), "answer_understanding")),
    Attack("lying_float", before_checks(LIES + ALL.format(value="lambda *a, **k: [Lie(), Lie(), Lie(), Lie()]"))),
    Attack("lying_number", before_checks(LIES + ALL.format(value="lambda *a, **k: Lie()"))),
    Attack("always_raises_value_error", before_checks("def fail(*a, **k): raise ValueError('0 3 11 36 values')" + ALL.format(value="fail"))),
    Attack("message_equal_to_everything", before_checks("class S(str):\n    def __contains__(self, x): return True\n    def __eq__(self, x): return True\n"
           "    __hash__ = str.__hash__\ndef fail(*a, **k): raise ValueError(S('x'))" + ALL.format(value="fail"))),
    # the interpreter
    Attack("time_replaced", first("import time\ntime.perf_counter = time.time = time.monotonic = lambda: 0.0\ntime.sleep = lambda s: None")),
    Attack("checks_module_planted", first("import sys, types\nfor name in ('autograder', 'autograder.checks', 'autograder.checks.m01_result'):\n"
           "    m = types.ModuleType(name); m.run = m.judge = lambda *a, **k: None; m.__path__ = []; sys.modules[name] = m")),
    Attack("import_hook", first("import sys, importlib.abc, importlib.machinery, types\nclass F(importlib.abc.MetaPathFinder, importlib.abc.Loader):\n"
           "    def find_spec(self, name, path=None, target=None):\n        if name.startswith('autograder'): return importlib.machinery.ModuleSpec(name, self, is_package=True)\n"
           "    def create_module(self, spec): return types.ModuleType(spec.name)\n    def exec_module(self, m): m.run = lambda *a, **k: None\nsys.meta_path.insert(0, F())")),
    Attack("import_the_reference", first("from tinybench.result import *\nfrom tinybench import BenchmarkResult, t_interval")),
    Attack("import_the_reference_later", solving("def check_values(values):\n    import tinybench.result as r\n    return r.check_values(values)")),
    Attack("reference_by_gc_and_frames", before_checks(GRAB_REFERENCE)),
    Attack("reference_kept_from_an_earlier_check", before_checks(SMUGGLE)),
    Attack("graft_replaced", first("import tinybench.course as c\nclass A:\n    def __getattr__(self, n): return lambda *a, **k: [1.0, 2.0]\nc.graft = graft = lambda *a, **k: A()")),
    Attack("ast_transformer", first("import ast\nclass T(ast.NodeTransformer):\n    def visit_Assert(self, node): return ast.Pass()\nget_ipython().ast_transformers.append(T())")),
    Attack("input_transformer", first("get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])")),
    Attack("event_hooks", first("ip = get_ipython()\ndef hook(*a):\n    for r in a:\n        if hasattr(r, 'error_in_exec'): r.error_in_exec = r.error_before_exec = None\n"
           "ip.events.register('post_run_cell', hook)")),
    Attack("custom_showtraceback", first("ip = get_ipython()\nip.showtraceback = lambda *a, **k: None\nip.set_custom_exc((Exception,), lambda *a, **k: None)")),
    Attack("run_cell_patched", first("ip = get_ipython()\nclass R: error_before_exec = error_in_exec = None; success = True\n"
           "type(ip).run_cell = lambda *a, **k: R()\ntype(ip).run_cell_async = lambda *a, **k: R()")),
    Attack("settrace", first("import sys\ndef trace(frame, event, arg):\n    if event == 'line' and 'check' in frame.f_code.co_name:\n        frame.f_lineno = frame.f_code.co_firstlineno\n    return trace\nsys.settrace(trace)")),
    Attack("atexit", first("import atexit, os\natexit.register(os._exit, 0)\natexit.register(print, 'score: 27/27')")),
    # the judge
    Attack("desk_patched", first("import inside.desk as a, inside.peer as p\np.Peer._do = lambda self, *x: ([], None)"), flagged=True),
    Attack("desk_claims_all_passed", first("import inside.desk as a\na.run_cell = lambda *x: ([], None)\na.Desk.visible = lambda *x: ([], None)\na.Desk.graft = lambda *x: None")),
    Attack("replies_forged", first(TALK.format(act="thing.wire.send(['value', {'tuple': [[], None]}])\n        for _ in range(500): thing.wire.send(['value', None])")), flagged=True),
    Attack("replies_from_a_thread", first("import threading, time, gc\npeer = next(x for x in gc.get_objects() if type(x).__name__ == 'Student')\n"
           "def spoof():\n    while True:\n        peer.wire.send(['value', {'tuple': [[], None]}]); time.sleep(0.001)\nthreading.Thread(target=spoof, daemon=True).start()"), flagged=True),
    Attack("pickle_sent", first(TALK.format(act="thing._do = lambda *a: 1; thing._refer = lambda v: {'pickle': 'gASVHAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjARleGl0lIWUUpQu'}")), flagged=True),
    Attack("judge_asked_for_globals", solving("def check_values(values):\n    import gc\n    peer = next(x for x in gc.get_objects() if type(x).__name__ == 'Student')\n    out = []\n"
           "    for name in ('__globals__', '__class__', '__init__', '__func__', '__code__'):\n        for number in range(5):\n            try:\n"
           "                peer.wire.send(['ask', 'get', [{'yours': number}, name], {'dict': []}])\n                out.append(peer.wire.receive())\n            except Exception as e: out.append(e)\n"
           "    raise ValueError(str(out))")),
    Attack("memory_of_the_judge_read", solving("class Window:\n    __array_interface__ = {'data': (4096, False), 'shape': (1000,), 'typestr': '|u1', 'version': 3}\n"
           "    def __array__(self, *a, **k): return self\n    def __len__(self): return 2\n    def __getitem__(self, i): return 1.0\ndef check_values(values): return Window()")),
    Attack("endless_generator", solving("def check_values(values):\n    while True: yield 1.0"), reason="took too long"),
    Attack("enormous_answer", solving("def check_values(values): return [1.0] * 10_000_000")),
    Attack("nested_answer", solving("def check_values(values):\n    x = []\n    for _ in range(100000): x = [x]\n    return x")),
    Attack("cyclic_answer", solving("def check_values(values):\n    x = []\n    x.append(x)\n    return x")),
    Attack("enormous_integer", solving("def check_values(values): return [10 ** 100000] * 4")),
    Attack("hidden_inputs_in_messages", solving("def check_values(values): raise ValueError(repr(list(values)) * 100000)")),
    # the process
    Attack("system_exit", first("import sys\nsys.exit(0)")),
    Attack("system_exit_in_a_function", before_checks("def leave(*a, **k): raise SystemExit(0)" + ALL.format(value="leave"))),
    Attack("os_exit", first("import os\nos._exit(0)"), reason="ended"),
    Attack("os_exit_in_a_function", solving("def check_values(values):\n    import os\n    os._exit(0)"), reason="ended"),
    Attack("kill_everything", first("import os, signal\nfor pid in (os.getppid(), -1, 1, 0, 2):\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError as e: print(e)")),
    Attack("thread_outlives", first("import threading, time\ndef later():\n    while True:\n        time.sleep(0.01)\n        globals()['check_values'] = lambda v: [3.0, 1.5, 2.0, 7.0]\nthreading.Thread(target=later, daemon=True).start()")),
    Attack("daemon_outlives", first("import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True: time.sleep(1)\n    os._exit(0)")),
    Attack("infinite_loop", first("while True: pass"), reason="took too long|longer"),
    Attack("infinite_loop_in_a_function", solving("def check_values(values):\n    while True: pass")),
    Attack("interrupt_ignored", first("import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True:\n    try:\n        while True: time.sleep(1)\n    except BaseException: pass"), reason="took too long|longer"),
    Attack("memory_bomb", first("x = []\nwhile True: x.append(bytearray(50_000_000))"), reason="memory|MemoryError|longer"),
    Attack("fork_bomb", first("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"), reason="took too long|longer|memory"),
    Attack("disk_filling", first("import itertools\nfor n in itertools.count():\n    with open(f'/tmp/{n}', 'wb') as f:\n        for _ in range(60): f.write(bytes(2**20))")),
    Attack("file_descriptors", first("import os\nheld = []\nwhile True: held.append(os.open('/dev/null', 0))")),
    Attack("endless_printing", first("while True: print('x' * 1000)"), reason="took too long|longer"),
    Attack("fifty_megabytes_in_a_line", first("print('x' * 50_000_000)")),
    Attack("network", first("import socket\nfor place in (('127.0.0.1', 8888), ('10.0.0.1', 80), ('1.1.1.1', 53), ('169.254.169.254', 80)):\n    try:\n"
           "        socket.create_connection(place, timeout=1); print('LEAK connected', place)\n    except OSError as e: print(e)\n"
           "try: print('LEAK', socket.gethostbyname('example.com'))\nexcept OSError as e: print(e)")),
    Attack("other_socket_families", first("import socket\nfor family in (16, 17, 38, 40):\n    try:\n        socket.socket(family, socket.SOCK_DGRAM if family != 38 else 5); print('LEAK family', family)\n    except OSError as e: print(e)")),
    Attack("namespaces_and_ptrace", first("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfor call in (('unshare', 0x10000000), ('unshare', 0x20000), ('ptrace', 0, 0, 0, 0), ('setuid', 0),"
           " ('mount', b'x', b'/tmp', b'tmpfs', 0, None), ('memfd_create', b'x', 0)):\n    if getattr(libc, call[0])(*call[1:]) >= 0: print('LEAK', call)")),
    Attack("links_planted", first("import os\nfor name in ('01_result.ipynb', 'gradebook.db', '../01_result.ipynb'):\n    try: os.symlink('/etc/passwd', name)\n    except OSError as e: print(e)")),
    # outputs
    Attack("outputs_forged", first("from IPython.display import display, HTML\nprint('score: 27/27 passed')\n1.0")),
    Attack("script_displayed", first("from IPython.display import display, HTML, Javascript, SVG, Markdown\n"
           "display(HTML('<script>LEAKED()</script><img src=x onerror=LEAKED()><a href=javascript:LEAKED()>x</a><iframe src=//evil></iframe>'))\n"
           "display(Javascript('LEAKED()')); display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"LEAKED()\"/>')); display(Markdown('<img src=x onerror=LEAKED()>'))\n"
           "display({'text/html': '<b onclick=LEAKED()>x</b>', 'application/vnd.jupyter.widget-view+json': '{}', 'text/latex': 'LEAKED()'}, raw=True)")),
]  # fmt: skip
