/* SPDX-License-Identifier: Apache-2.0 */
/* What a script finds, and what is told of its end: scripts run in real workers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker/host.h"

static struct host host;

static int
start(void **state)
{
	static const char *const modules[] = { "json", "asyncio", "random",
					       "no_such_module", NULL };
	static const char *const paths[] = { "/usr/share/zoneinfo", "/no/such/path",
					     NULL };
	struct host_options options = { .modules = modules,
					.paths = paths,
					.memory_counted = true };
	int r = host_start(&options, &host);

	(void)state;
	if (r == -EPERM) {
		fprintf(stderr, "user namespaces cannot be made here\n");
		host_stop(&host);
		exit(77);
	}
	if (r < 0)
		fprintf(stderr, "%s: %s\n", host.failed,
			strerror(host.error ? (int)host.error : -r));
	return r;
}

static int
stop(void **state)
{
	(void)state;
	host_stop(&host);
	return 0;
}

#define NO_LINE 0

struct a_script {
	const char *name, *script;
	const char *out;		/* exactly */
	const char *err; /* is somewhere in it; NULL: nothing was written */
	const char *repr, *json, *type, *message;
	int exit_code;
	unsigned int line;
	const char *input;
	const char *args[3];
};

/* What a row does not say is empty. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

static const struct a_script ends[] = {
	{ "empty", "", "" },
	{ "a comment", "# nothing\n", "" },
	{ "print", "print('hello')\n", "hello\n" },
	{ "no newline at the end", "print(1, end='')", "1" },
	{ "sys.exit", "import sys\nsys.exit()\n", "" },
	{ "sys.exit(None)", "import sys\nsys.exit(None)\n", "" },
	{ "sys.exit(3)", "import sys\nprint(1)\nsys.exit(3)\n", "1\n", .exit_code = 3 },
	{ "sys.exit(True)", "import sys\nsys.exit(True)\n", "", .exit_code = 1 },
	{ "sys.exit(256)", "import sys\nsys.exit(256)\n", "" },
	{ "sys.exit(-1)", "import sys\nsys.exit(-1)\n", "", .exit_code = 255 },
	{ "sys.exit(2**70)", "import sys\nsys.exit(2**70)\n", "", .exit_code = 255 },
	{ "sys.exit('text')", "import sys\nsys.exit('the text')\n", "", "the text\n", .exit_code = 1 },
	{ "raise SystemExit", "raise SystemExit(4)\n", "", .exit_code = 4 },
	{ "raises", "def f():\n    return 1 / 0\nf()\n", "", "line 3, in <module>\n    f()\n",
	  .type = "ZeroDivisionError", .message = "division by zero", .exit_code = 1, .line = 2 },
	{ "lines end by line breaks only", "x = '\f\x1c\u2028'\n1/0\n", "", "line 2, in <module>\n    1/0\n",
	  .type = "ZeroDivisionError", .message = "division by zero", .exit_code = 1, .line = 2 },
	{ "lines end by any line break", "x = 1\r\ny = 2\r1/0", "", "line 3, in <module>\n    1/0\n",
	  .type = "ZeroDivisionError", .message = "division by zero", .exit_code = 1, .line = 3 },
	{ "its own exception", "class E(Exception): pass\nraise E('a', 1)\n", "", "\nE: ('a', 1)\n",
	  .type = "E", .message = "('a', 1)", .exit_code = 1, .line = 2 },
	{ "a library's exception", "import json\njson.loads('{')\n", "", "json/decoder.py",
	  .type = "json.decoder.JSONDecodeError", .exit_code = 1, .line = 2,
	  .message = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)" },
	{ "KeyboardInterrupt", "raise KeyboardInterrupt\n", "", "KeyboardInterrupt",
	  .type = "KeyboardInterrupt", .message = "", .exit_code = 130, .line = 1 },
	{ "syntax error", "x = 1\nif x\n  pass\n", "", "  File \"script.py\", line 2\n    if x\n        ^\nSyntaxError: expected ':'\n",
	  .type = "SyntaxError", .message = "expected ':' (script.py, line 2)", .exit_code = 1, .line = 2 },
	{ "nothing runs before a syntax error", "print(1)\n)\n", "", "unmatched ')'",
	  .type = "SyntaxError", .message = "unmatched ')' (script.py, line 2)", .exit_code = 1, .line = 2 },
	{ "a syntax error that the compiler finds", "print(1)\nreturn 2\n", "", "'return' outside function",
	  .type = "SyntaxError", .message = "'return' outside function (script.py, line 2)", .exit_code = 1, .line = 2 },
	{ "a late syntax error in the last expression", "print(1)\n(yield)\n", "", "'yield' outside function",
	  .type = "SyntaxError", .message = "'yield' outside function (script.py, line 2)", .exit_code = 1, .line = 2 },
	{ "chained exceptions", "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('v') from e\n", "",
	  "The above exception was the direct cause of the following exception:",
	  .type = "ValueError", .message = "v", .exit_code = 1, .line = 4 },
	{ "exception group", "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n", "",
	  "  | ExceptionGroup: g (2 sub-exceptions)\n", .type = "ExceptionGroup", .message = "g (2 sub-exceptions)",
	  .exit_code = 1, .line = 1 },
	{ "an exception that cannot be told", "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n", "",
	  "<exception str() failed>", .type = "E", .message = "<exception str() failed>", .exit_code = 1, .line = 3 },
	{ "its own excepthook", "import sys\nsys.excepthook = lambda t, v, tb: print('hook', t.__name__)\n1/0\n",
	  "hook ZeroDivisionError\n", .type = "ZeroDivisionError", .message = "division by zero", .exit_code = 1, .line = 3 },
	{ "an excepthook that raises", "import sys\ndef h(t, v, tb): raise TypeError('in hook')\nsys.excepthook = h\n1/0\n",
	  "", "Error in sys.excepthook:", .type = "ZeroDivisionError", .message = "division by zero", .exit_code = 1, .line = 4 },
	{ "recursion", "def f(): f()\nf()\n", "", "RecursionError", .type = "RecursionError",
	  .message = "maximum recursion depth exceeded", .exit_code = 1, .line = 1 },
	{ "threads are waited for", "import threading\n"
	  "threading.Thread(target=lambda: (threading.main_thread().join(), print('late'))).start()\nprint('early')\n", "early\nlate\n" },
	{ "daemon threads are not", "import threading, time\n"
	  "threading.Thread(target=lambda: time.sleep(60), daemon=True).start()\nprint(1)\n", "1\n" },
	{ "a thread that raises", "import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start()\nt.join()\nprint('on')\n",
	  "on\n", "    t = threading.Thread(target=lambda: 1/0)\n" },
	{ "atexit", "import atexit\natexit.register(print, 'bye')\nprint('x')\n", "x\nbye\n" },
	{ "atexit after an exception", "import atexit\natexit.register(print, 'bye')\n1/0\n", "bye\n", "ZeroDivisionError",
	  .type = "ZeroDivisionError", .message = "division by zero", .exit_code = 1, .line = 3 },
	{ "__del__ at the end", "class C:\n    def __del__(self): print('gone')\nc = C()\nprint('x')\n", "x\ngone\n" },
	{ "__del__ in a cycle", "class C:\n    def __del__(self): print('gone')\nc = C()\nc.c = c\n", "gone\n" },
	{ "__del__ that raises", "class C:\n    def __del__(self): 1/0\nc = C()\ndel c\nprint('on')\n", "on\n",
	  "    def __del__(self): 1/0\n" },
	{ "unflushed output", "import sys\nsys.stdout.write('kept')\n", "kept" , .repr = "4", .json = "4" },
	{ "a closed stdout", "import sys\nsys.stdout.close()\n", "" },
	{ "stdout is gone", "import os, sys\nos.close(1)\nprint('x')\n", "", "Bad file descriptor",
	  .type = "OSError", .message = "[Errno 9] Bad file descriptor", .exit_code = 120, .line = 3 },
	{ "no stdout at all", "import sys\nsys.stdout = sys.stderr = None\n", "" },
	{ "its child comes to the end too", "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nprint('parent' if pid else 'child')\n",
	  "child\nparent\n" },
	{ "a poisoned interpreter", "import builtins, json, sys, traceback\nbuiltins.len = builtins.isinstance = builtins.str = None\n"
	  "json.dumps = traceback.format_exception = None\nsys.setrecursionlimit(50)\n7\n", "", .repr = "7" },
	{ "a trace function", "import sys\nsys.settrace(lambda *a: 1/0)\nprint('x')\n", "x\n" },
};

static const struct a_script values[] = {
	{ "a number", "6 * 7\n", "", .repr = "42", .json = "42" },
	{ "a text", "'\\u00fc \\U0001F600'\n", "", .repr = "'\303\274 \360\237\230\200'", .json = "\"\303\274 \360\237\230\200\"" },
	{ "None", "None\n", "" },
	{ "an assignment", "x = 5\n", "" },
	{ "print", "print(1)\n", "1\n" },
	{ "a dict", "{'a': [1, 2.5, None, True], 'b': (1,)}\n", "",
	  .repr = "{'a': [1, 2.5, None, True], 'b': (1,)}", .json = "{\"a\": [1, 2.5, null, true], \"b\": [1]}" },
	{ "keys that are no text", "{1: 2}\n", "", .repr = "{1: 2}", .json = "{\"1\": 2}" },
	{ "not a number", "float('nan')\n", "", .repr = "nan" },
	{ "a large integer", "2 ** 100\n", "", .repr = "1267650600228229401496703205376", .json = "\"1267650600228229401496703205376\"" },
	{ "a set", "{1}\n", "", .repr = "{1}", .json = "[1]" },
	{ "bytes", "b'a\\0'\n", "", .repr = "b'a\\x00'", .json = "\"a\\u0000\"" },
	{ "an enum", "import enum\nclass E(enum.IntEnum):\n    A = 3\nE.A\n", "", .repr = "<E.A: 3>", .json = "3" },
	/* Not as a docstring, which Python 3.13 refuses. */
	{ "a lone surrogate", "pass\n'\\ud800'\n", "", .repr = "'\\ud800'" },
	{ "a repr that raises", "class C:\n    def __repr__(self): 1/0\nC()\n", "", .repr = "<C object; its repr() raised ZeroDivisionError: division by zero>" },
	{ "a repr that exits", "class C:\n    def __repr__(self): raise SystemExit(9)\nC()\n", "", .repr = "<C object; its repr() raised SystemExit: 9>" },
	{ "a repr that is no text", "class C:\n    def __repr__(self): return 1\nC()\n", "", .repr = "<C object; its repr() raised TypeError: __repr__ returned non-string (type int)>" },
	{ "a repr with NUL", "class C:\n    def __repr__(self): return 'a\\0b'\nC()\n", "", .repr = "a\\x00b" },
	{ "a list that holds itself", "x = []\nx.append(x)\nx\n", "", .repr = "[[...]]", .json = "[\"[[...]]\"]" },
	{ "an exception is a value too", "ValueError('x')\n", "", .repr = "ValueError('x')" },
	{ "await", "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5\nawait f()\n", "", .repr = "5", .json = "5" },
	{ "await in the middle", "import asyncio\nx = await asyncio.sleep(0, 'r')\nprint(x)\n", "r\n" },
	{ "a loop is there after await", "import asyncio\nawait asyncio.sleep(0)\nasyncio.get_running_loop().is_running()\n", "",
	  .repr = "True", .json = "true" },
	{ "async for", "async def g():\n    yield 1\n    yield 2\n[x async for x in g()]\n", "", .repr = "[1, 2]", .json = "[1, 2]" },
	{ "await that raises", "async def f():\n    1/0\nawait f()\n", "", "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\n",
	  .type = "ZeroDivisionError", .message = "division by zero", .exit_code = 1, .line = 2 },
	{ "a future statement holds to the end", "from __future__ import annotations\n(lambda: None).__code__.co_flags & 0x1000000 != 0\n", "",
	  .repr = "True", .json = "true" },
	{ "a docstring", "'about it'\n", "", .repr = "'about it'", .json = "\"about it\"" },
	{ "a docstring is one", "'about it'\nimport json\nprint(__doc__)\n", "about it\n" },
	{ "a docstring alone is one", "'about it'\n", "", .repr = "'about it'", .json = "\"about it\"" },
	{ "no trace is left of it", "import threading, sys\nsorted(k for k in globals() if k[:1] != '_')\n", "",
	  .repr = "['sys', 'threading']", .json = "[\"sys\", \"threading\"]" },
	{ "a semicolon", "x = 2; x + 1\n", "", .repr = "3", .json = "3" },
	{ "a call alone", "len('abc')\n", "", .repr = "3", .json = "3" },
	{ "a call alone, and a comment", "len('abc')  # (all of it)\n", "", .repr = "3", .json = "3" },
	{ "a call alone that names something", "max((n := 4), 3)\n", "", .repr = "4", .json = "4" },
	{ "a call alone in a loop", "__import__('asyncio').get_running_loop().is_running(*[x async for x in ().__iter__()])\n", "",
	  "TypeError: 'async for' requires", .type = "TypeError", .exit_code = 1, .line = 1,
	  .message = "'async for' requires an object with __aiter__ method, got tuple_iterator" },
	{ "a call alone that raises", "int('x')\n", "", "Traceback (most recent call last):\n  File \"script.py\", line 1, in <module>\n    int('x')\n",
	  .type = "ValueError", .message = "invalid literal for int() with base 10: 'x'", .exit_code = 1, .line = 1 },
	{ "a call that is a statement's", "del(__doc__)\n", "" },
	{ "a call that is assigned to", "print(1) = (2)\n", "", "line 1\n    print(1) = (2)\n    ^^^^^^^^\nSyntaxError: cannot assign",
	  .type = "SyntaxError", .message = "cannot assign to function call here. Maybe you meant '==' instead of '='? (script.py, line 1)", .exit_code = 1, .line = 1 },
	{ "two calls", "print(1); print(2)\n", "1\n2\n" },
	{ "a call behind a space", " print(1)\n", "1\n" },
	{ "a deep expression", "0" "+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1\n", "",
	  .repr = "40", .json = "40" },
};

static const struct a_script surroundings[] = {
	{ "__main__", "import sys\nprint(__name__, sorted(k for k in globals() if k != 'sys'), sys.modules['__main__'].__dict__ is globals())\n",
	  "__main__ ['__annotations__', '__builtins__', '__cached__', '__doc__', '__file__', '__loader__', '__name__', '__package__', '__spec__'] True\n" },
	{ "annotations", "x: int = 1\nprint(__annotations__)\n", "{'x': <class 'int'>}\n" },
	{ "argv", "import sys\nprint(sys.argv, sys.executable, __file__)\n", "['script.py', 'a b', '\303\274'] /usr/bin/python3 /workspace/script.py\n",
	  .args = { "a b", "\303\274" } },
	{ "environment", "import os\nprint(sorted(os.environ.items()))\nprint(open('/proc/self/environ').read().count('='))\n",
	  "[('COLUMNS', '160'), ('HOME', '/home/python'), ('LANG', 'C.UTF-8'), ('LOGNAME', 'python'), ('PATH', '/usr/local/bin:/usr/bin:/bin'), ('PYTHONDONTWRITEBYTECODE', '1'), ('USER', 'python')]\n7\n" },
	{ "a child's environment", "import subprocess\nprint(subprocess.run(['env'], capture_output=True, text=True).stdout.count('\\n'))\n", "7\n" },
	{ "places", "import os, tempfile\nprint(os.getcwd(), os.listdir(), os.path.expanduser('~'), tempfile.gettempdir())\n", "/workspace ['script.py'] /home/python /tmp\n" },
	{ "may write", "import os, tempfile\nfor d in ('.', '/tmp', '/dev/shm', os.path.expanduser('~'), '/var/tmp'):\n    open(d + '/f', 'w').write('x')\nprint('ok')\n", "ok\n",
	  .err = "(/tmp/f, /home/python/f: not in /workspace, so lost with the script)\n" },
	{ "identity", "import getpass, grp, os, pwd, socket\nprint(os.getuid(), os.getgid(), os.getgroups(), pwd.getpwuid(1000).pw_name, grp.getgrgid(1000).gr_name, getpass.getuser(), socket.gethostname(), os.getpid() > 1)\n",
	  "1000 1000 [] python python python python True\n" },
	{ "UTF-8", "import locale, sys\nprint(sys.stdout.encoding, sys.getfilesystemencoding(), locale.getpreferredencoding(), locale.setlocale(locale.LC_ALL, ''))\n",
	  "utf-8 utf-8 utf-8 C.UTF-8\n" },
	{ "flags are a host's", "import sys\nprint(sys.flags.isolated, sys.flags.safe_path, sys.flags.no_site, sys.path[0] == '')\n", "0 False 0 True\n" },
	{ "signals are default", "import signal\nn = signal.valid_signals()\nprint(sorted(s.name for s in n if isinstance(s, signal.Signals) and signal.getsignal(s) == signal.SIG_IGN), signal.pthread_sigmask(signal.SIG_BLOCK, []))\n",
	  "['SIGPIPE', 'SIGXFSZ'] set()\n" },
	{ "only the signals of crashes have a handler", "handled = [l.split()[1] for l in open('/proc/self/status') if l.startswith(('SigCgt', 'SigBlk'))]\nimport signal\nours = ('SIGINT', 'SIGILL', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV')\nprint(int(handled[0], 16), int(handled[1], 16) == sum(1 << getattr(signal, s) - 1 for s in ours) | 1 << signal.SIGRTMAX - 2, repr(open('/proc/self/timers').read()))\n",
	  "0 True ''\n" },
	{ "umask", "import os\nprint(oct(os.umask(0)))\n", "0o22\n" },
	{ "no standard input", "import sys\nprint(repr(sys.stdin.read()))\n", "''\n" },
	{ "standard input", "import sys\nprint(sys.stdin.read().upper(), input)\n", "ONE\nTWO <built-in function input>\n", .input = "one\ntwo" },
	{ "input()", "print(input() + input())\n", "onetwo\n", .input = "one\ntwo\n" },
	{ "lines as they come", "import os\nprint('a')\nos.write(1, b'b\\n')\nprint('c')\n", "a\nb\nc\n" },
	{ "standard streams are pipes", "import sys\nprint(*(s.seekable() for s in (sys.stdin, sys.stdout, sys.stderr)), sys.stdout.isatty(), sys.stdout is sys.__stdout__, sys.stdout.name, sys.stdout.fileno(), sys.stderr.errors)\n",
	  "False False False False True <stdout> 1 backslashreplace\n" },
	{ "inspect", "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))\n", "def f():\n    return 1\n\n" },
	{ "pickle", "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))) is C)\n", "True\n" },
	{ "subprocess", "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(6*7)'], capture_output=True, text=True).stdout)\n", "42\n\n" },
	{ "a shell", "import os\nprint(os.popen('echo a b | tr a-z A-Z | awk \"{print \\\\$2}\"').read())\n", "B\n\n" },
	{ "multiprocessing by fork", "from multiprocessing import get_context\ndef f(x): return x * x\nif __name__ == '__main__':\n    with get_context('fork').Pool(2) as p: print(p.map(f, [1, 2, 3]))\n", "[1, 4, 9]\n" },
	{ "multiprocessing by spawn", "from multiprocessing import get_context\ndef f(x): return x * x\nif __name__ == '__main__':\n    with get_context('spawn').Pool(2) as p: print(p.map(f, [1, 2, 3]))\n", "[1, 4, 9]\n" },
	{ "multiprocessing by forkserver", "from multiprocessing import get_context\ndef f(x): return x * x\nif __name__ == '__main__':\n    with get_context('forkserver').Pool(2) as p: print(p.map(f, [1, 2, 3]))\n", "[1, 4, 9]\n" },
	{ "shared memory", "from multiprocessing import shared_memory\ns = shared_memory.SharedMemory(create=True, size=64)\ns.buf[0] = 7\nprint(s.buf[0])\ns.close()\ns.unlink()\n", "7\n" },
#ifndef WITH_SANITIZERS
	/* AddressSanitizer's allocator stays locked in a child if another thread has it at the
	 * fork: seen once in 350 runs. */
	{ "concurrent.futures", "from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\nif __name__ == '__main__':\n    for P in (ThreadPoolExecutor, ProcessPoolExecutor):\n        with P(2) as p: print(list(p.map(abs, [-1, -2])))\n", "[1, 2]\n[1, 2]\n" },
#endif
	{ "asyncio", "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', 'x', stdout=-1)\n    return (await p.communicate())[0]\nprint(asyncio.run(f()))\n", "b'x\\n'\n" },
	{ "loopback", "import socket\nfor a in ('127.0.0.1', '::1'):\n    s = socket.create_server((a, 0), family=socket.AF_INET6 if ':' in a else socket.AF_INET)\n    c = socket.create_connection(s.getsockname()[:2])\n    c.sendall(b'x')\n    print(s.accept()[0].recv(1))\n", "b'x'\nb'x'\n" },
	{ "sqlite3", "import sqlite3\nc = sqlite3.connect('f.db')\nc.execute('create table t(x)')\nc.execute('insert into t values(3)')\nc.commit()\nprint(c.execute('select * from t').fetchall())\n", "[(3,)]\n" },
	{ "zoneinfo", "import datetime, zoneinfo\nprint(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Vienna')).utcoffset())\n", "2:00:00\n" },
	{ "ssl", "import ssl\nprint(ssl.create_default_context().check_hostname)\n", "True\n" },
	{ "memfd", "import os\nprint(os.memfd_create('x') > 2)\n", "True\n" },
	{ "looking into itself", "import os\nprint(len(os.listdir('/proc/self/fd')) > 3, open('/proc/self/maps').read(4) != '', '1' in os.listdir('/proc'))\n", "True True False\n" },
	{ "the C library's functions that the worker has its own of", "import ctypes\nclass Info(ctypes.Structure): _fields_ = [('file', ctypes.c_char_p), ('base', ctypes.c_void_p), ('name', ctypes.c_char_p), ('at', ctypes.c_void_p)]\nL = ctypes.CDLL(None)\ndef of_libc(name):\n    i = Info()\n    assert L.dladdr(ctypes.cast(getattr(L, name), ctypes.c_void_p), ctypes.byref(i))\n    return b'libc.so' in i.file\nprint(*map(of_libc, ('getpid', 'mmap', 'mmap64', 'fsync', 'fdatasync', 'chmod', 'fchmod', 'fchmodat', 'nice', 'setpriority', 'sched_setaffinity', 'sched_setscheduler', 'sched_setparam')))\n",
	  "True False False False False False False False False False False False False\n" },
#ifdef WITH_PYTHON_PROGRAM
	{ "the machine code of python3", "import subprocess, sys\nlook = '''import ctypes\nL = ctypes.CDLL(None)\nfound = [ctypes.string_at(getattr(L, n), 140).hex() for n in ('_PyEval_EvalFrameDefault', 'PyDict_GetItem', 'PyObject_GetAttr')]\n'''\nexec(look)\nprint(subprocess.run([sys.executable, '-c', look + 'print(found)'], capture_output=True, text=True).stdout == str(found) + '\\n')\n",
	  "True\n" },
	{ "names that are the worker's own", "import ctypes\nL = ctypes.CDLL(None)\nprint(*(hasattr(L, n) for n in ('Py_GetVersion', 'frame_send', 'zygote_main', 'MD5Init', 'SHA256Init')))\n",
	  "True False False False False\n" },
#endif
#ifndef WITH_SANITIZERS
	{ "large blocks, as in any C program", "import ctypes\nL = ctypes.CDLL(None)\nL.malloc.restype = L.sbrk.restype = ctypes.c_void_p\nL.free.argtypes = [ctypes.c_void_p]\nfor _ in range(2):\n    p = L.malloc(ctypes.c_size_t(8 << 20))\n    print('in the heap' if p < L.sbrk(0) else 'a mapping')\n    L.free(p)\n",
	  "a mapping\nin the heap\n" },
#endif
	{ "orphans are not its children", "import os\nr, w = os.pipe()\nif os.fork() == 0:\n    first = os.getpid()\n    if os.fork() == 0:\n        while os.getppid() == first: os.sched_yield()\n        os.write(w, b'%d' % os.getppid())\n    os._exit(0)\nos.wait()\nprint(os.read(r, 9))\ntry: os.wait()\nexcept ChildProcessError: print('none')\n", "b'1'\nnone\n" },
};

/* What ends without a word: the status of wait(2). */
static const struct {
	const char *name, *script, *out;
	int status;
} silent[] = {
	{ "os._exit", "import os\nprint(1)\nos._exit(7)\n", "1\n", 7 << 8 },
	{ "SIGKILL to itself", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "", SIGKILL },
	{ "SIGTERM to itself", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n", "", SIGTERM },
	{ "abort", "import os\nos.abort()\n", "", SIGABRT },
	{ "a segmentation fault", "import ctypes\nctypes.string_at(0)\n", "", SIGSEGV },
	{ "exec", "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo sh; exit 5'])\n", "sh\n", 5 << 8 },
	{ "every descriptor is closed", "import os\nprint('x', flush=True)\nos.closerange(0, 4096)\n", "x\n", 0 },
	{ "killing all it can see", "import os, signal\nif os.fork() == 0: signal.pause()\nos.kill(-1, signal.SIGKILL)\nprint('alone', os.waitstatus_to_exitcode(os.wait()[1]), flush=True)\nos._exit(0)\n", "alone -9\n", 0 },
	{ "killing init", "import os, signal\nfor s in (9, 15, 19):\n    try: os.kill(1, s)\n    except PermissionError: pass\nos._exit(3)\n", "", 3 << 8 },
};

static void
check_text(const struct a_script *s, const char *field, bool has, struct msg_str text,
	   const char *expected)
{
	if (has != (expected != NULL))
		fail_msg("%s: %s is %s%.*s", s->name, field, has ? "" : "absent",
			 (int)text.len, text.at ? text.at : "");
	if (has &&
	    (text.len != strlen(expected) || memcmp(text.at, expected, text.len) != 0))
		fail_msg("%s: %s is %.*s", s->name, field, (int)text.len, text.at);
}

static void
check_script(const struct a_script *s)
{
	struct host_run run = { .script = s->script, .input = s->input,
				.args = s->args[0] ? s->args : NULL };
	struct host_result r;

	host_run(&host, &run, &r);
	if (r.end != HOST_DONE)
		fail_msg("%s: end %d, status 0x%x, err %s", s->name, r.end, r.status,
			 r.err);
	if (strcmp(r.out, s->out) != 0)
		fail_msg("%s: wrote %s\nand %s", s->name, r.out, r.err);
	if (s->err ? !strstr(r.err, s->err) : r.err_len > 0)
		fail_msg("%s: standard error is %s", s->name, r.err);
	if (strstr(r.err, "mcp-python"))
		fail_msg("%s: a trace of the worker in %s", s->name, r.err);
	if (r.done->exit_code != (uint32_t)s->exit_code ||
	    r.done->raised != (s->type != NULL))
		fail_msg("%s: exit code %u, raised %d, %s", s->name, r.done->exit_code,
			 r.done->raised, r.err);
	check_text(s, "repr", r.done->has_value_repr, r.done->value_repr, s->repr);
	check_text(s, "json", r.done->has_value_json, r.done->value_json, s->json);
	check_text(s, "type", r.done->has_error_type, r.done->error_type, s->type);
	check_text(s, "message", r.done->has_error_message, r.done->error_message,
		   s->message);
	if (r.done->error_line != s->line ||
	    r.done->has_error_line != (s->line != NO_LINE))
		fail_msg("%s: line %u", s->name, r.done->error_line);
	if (s->type &&
	    (!r.done->has_error_traceback || r.done->error_traceback.len == 0))
		fail_msg("%s: no traceback", s->name);
	host_result_done(&r);
}

#define CHECK_ALL(table) \
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) \
		check_script(&table[i])

static void
the_end_is_told(void **state)
{
	(void)state;
	CHECK_ALL(ends);
}

static void
the_last_expression_is_the_result(void **state)
{
	(void)state;
	CHECK_ALL(values);
}

static void
it_is_as_on_a_host(void **state)
{
	(void)state;
	CHECK_ALL(surroundings);
}

static void
a_silent_end_is_told_by_init(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		struct host_run run = { .script = silent[i].script };
		struct host_result r;

		host_run(&host, &run, &r);
		if (r.end != HOST_EXITED || (int)r.status != silent[i].status)
			fail_msg("%s: end %d, status 0x%x, %s", silent[i].name, r.end,
				 r.status, r.err);
		assert_string_equal(r.out, silent[i].out);
		host_result_done(&r);
	}
}

static void
the_zygote_tells_what_is_missing(void **state)
{
	(void)state;
	assert_true(strncmp(host.python, "3.", 2) == 0);
	assert_int_equal(host.n_missing, 2);
	assert_string_equal(host.missing, "/no/such/path");
}

/* ---- text that is no script ---- */

static const struct {
	const char *name;
	const char *script;
	size_t len;
	const char *message;
	unsigned int line;
} refused[] = {
#define BYTES(text) text, sizeof(text) - 1
	{ "NUL", BYTES("print(1)\nx = '\0'\n"),
	  "source holds a NUL byte at offset 14, line 2 (script.py, line 2)", 2 },
	{ "NUL in a comment", BYTES("print(1)#\0"),
	  "source holds a NUL byte at offset 9, line 1 (script.py, line 1)", 1 },
	{ "Latin-1", BYTES("print(1)\n\ns = '\xfc'\n"),
	  "source is not valid UTF-8: byte 0xfc at offset 15, line 3 (invalid start "
	  "byte) (script.py, line 3)",
	  3 },
	{ "cut short", BYTES("print(1) # \xe2\x82"),
	  "source is not valid UTF-8: byte 0xe2 at offset 11, line 1 (unexpected end "
	  "of data) (script.py, line 1)",
	  1 },
	{ "a surrogate", BYTES("'\xed\xa0\x80'\n"),
	  "source is not valid UTF-8: byte 0xed at offset 1, line 1 (invalid "
	  "continuation byte) (script.py, line 1)",
	  1 },
	{ "another encoding",
	  BYTES("#!/usr/bin/python\n# -*- coding: latin-1 -*-\nprint(1)\n"),
	  "encoding latin-1 is declared, but scripts are UTF-8 (script.py, line 2)",
	  2 },
	{ "what comes first", BYTES("\0\xff"),
	  "source holds a NUL byte at offset 0, line 1 (script.py, line 1)", 1 },
	{ "what comes first, the other way", BYTES("\xff\0"),
	  "source is not valid UTF-8: byte 0xff at offset 0, line 1 (invalid start "
	  "byte) (script.py, line 1)",
	  1 },
};

static void
what_is_no_text_is_refused_with_its_position(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct host_run run = { .script = refused[i].script,
					.script_len = refused[i].len };
		struct host_result r;

		host_run(&host, &run, &r);
		assert_int_equal(r.end, HOST_DONE);
		assert_int_equal(r.done->exit_code, 1);
		assert_true(r.done->raised);
		assert_int_equal(r.out_len, 0);
		assert_int_equal(r.done->error_type.len, strlen("SyntaxError"));
		if (r.done->error_message.len != strlen(refused[i].message) ||
		    memcmp(r.done->error_message.at, refused[i].message,
			   r.done->error_message.len) != 0)
			fail_msg("%s: %.*s", refused[i].name,
				 (int)r.done->error_message.len,
				 r.done->error_message.at);
		assert_int_equal(r.done->error_line, refused[i].line);
		host_result_done(&r);
	}
}

static void
other_spellings_of_utf8_are_read(void **state)
{
	static const char *const scripts[] = {
		"\xef\xbb\xbfprint('\xc3\xbc')\n",
		"# coding: utf-8\nprint('\xc3\xbc')\n",
		("#!/usr/bin/python3\n# vim: set fileencoding=UTF_8 "
		 ":\nprint('\xc3\xbc')\n"),
		"x = 1\nprint('\xc3\xbc')\n# coding: latin-1\n",
		"print('\xc3\xbc')\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct host_run run = { .script = scripts[i] };
		struct host_result r;

		host_run(&host, &run, &r);
		assert_string_equal(r.out, "\xc3\xbc\n");
		host_result_done(&r);
	}
}

/* ---- bounds ---- */

static void
results_are_bounded(void **state)
{
	static const struct {
		const char *script;
		bool has_json, cut;
		size_t least, most;
	} rows[] = {
		{ "'x' * 1022\n", true, false, 1024, 1024 }, /* with its quotes */
		{ "'x' * 1023\n", false, true, 900, 1024 },
		{ "'x' * 10**8\n", false, true, 500, 1024 },
		{ "list(range(10**7))\n", false, true, 50, 1024 },
		{ "[[1] * 100] * 10**6\n", false, true, 50, 1024 },
		{ "{i: 'v' for i in range(10**5)}\n", false, true, 50, 1024 },
		{ "'\\u20ac' * 400\n", false, true, 1000, 1024 },
		{ "b'x' * 10**7\n", false, true, 500, 1024 },
		{ "10 ** 4000\n", false, true, 50, 1024 },
		{ "class C:\n    def __repr__(self): return 'y' * 10**6\nC()\n", false,
		  true, 1024, 1024 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct host_run run = { .script = rows[i].script, .value_max = 1024 };
		struct host_result r;

		host_run(&host, &run, &r);
		assert_int_equal(r.end, HOST_DONE);
		assert_int_equal(r.done->exit_code, 0);
		if (r.done->value_repr.len < rows[i].least ||
		    r.done->value_repr.len > rows[i].most ||
		    r.done->value_cut != rows[i].cut ||
		    r.done->has_value_json != rows[i].has_json)
			fail_msg("%s: %zu bytes, cut %d, json %d", rows[i].script,
				 r.done->value_repr.len, r.done->value_cut,
				 r.done->has_value_json);
		host_result_done(&r);
	}
}

static void
errors_are_bounded(void **state)
{
	struct host_run run = { .script = "raise ValueError('z' * 10**6)\n",
				.value_max = 1024 };
	struct host_result r;

	(void)state;
	host_run(&host, &run, &r);
	assert_int_equal(r.end, HOST_DONE);
	assert_int_equal(r.done->error_message.len, 1024);
	assert_int_equal(r.done->error_traceback.len, 1024);
	assert_true(r.err_len > 1000000);
	host_result_done(&r);
}

static void
memory_that_runs_out_is_an_error(void **state)
{
	struct host_run run = { .script = "x = bytearray(200 << 20)\n",
				.data_bytes = 100 << 20 };
	struct host_result r;

	(void)state;
	host_run(&host, &run, &r);
	assert_int_equal(r.end, HOST_DONE);
	assert_memory_equal(r.done->error_type.at, "MemoryError", 11);
	host_result_done(&r);
	run.script = "x = bytearray(80 << 20)\nprint(len(x))\n";
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "83886080\n");
	host_result_done(&r);
}

static void
processes_are_counted_without_init(void **state)
{
	static const char script[] = "import os, time\nn = 1\ntry:\n    while n < 50:\n"
				     "        if os.fork() == 0:\n            "
				     "time.sleep(60)\n        n += 1\n"
				     "except BlockingIOError: print(n)\nos._exit(0)\n";
	struct host_run run = { .script = script, .processes = 5 };
	struct host_result r;

	(void)state;
	host_run(&host, &run, &r);
	assert_string_equal(r.out, "5\n");
	host_result_done(&r);
}

static void
processor_time_ends(void **state)
{
	struct host_run run = { .script = "while True: pass\n", .cpu_seconds = 1 };
	struct host_result r;

	(void)state;
	host_run(&host, &run, &r);
	assert_int_equal(r.end, HOST_EXITED);
	assert_int_equal(r.status, SIGXCPU);
	host_result_done(&r);
	run.script = "import signal\nsignal.signal(signal.SIGXCPU, "
		     "signal.SIG_IGN)\nwhile True: pass\n";
	host_run(&host, &run, &r);
	assert_int_equal(r.end, HOST_EXITED);
	assert_int_equal(r.status, SIGKILL);
	host_result_done(&r);
}

/* ---- siblings ---- */

static void
siblings_share_no_randomness(void **state)
{
	static const char script[] = "import random, secrets, tempfile, uuid\n"
				     "print(random.random(), secrets.token_hex(), "
				     "uuid.uuid4(), tempfile.mktemp())\n";
	struct host_run run = { .script = script };
	struct host_result a, b;

	(void)state;
	host_run(&host, &run, &a);
	host_run(&host, &run, &b);
	assert_true(a.out_len > 100);
	for (char *x = strtok(a.out, " \n"); x; x = strtok(NULL, " \n"))
		assert_null(strstr(b.out, x));
	host_result_done(&a);
	host_result_done(&b);
}

static void
a_worker_waits_as_long_as_it_takes(void **state)
{
	struct host_worker first, second;
	struct host_run run = { .script = "open('/tmp/f', 'x')\nprint('mine')\n" };
	struct host_result r;

	(void)state;
	assert_int_equal(host_spawn(&host, &first, NULL), 0);
	assert_int_equal(host_spawn(&host, &second, NULL), 0);
	host_finish(&second, &run, &r);
	assert_string_equal(r.out, "mine\n");
	host_result_done(&r);
	host_finish(&first, &run, &r);
	assert_string_equal(r.out, "mine\n");
	host_result_done(&r);
}

/* As host.h spells it: kinds are those of enum display_kind. */
static const struct {
	const char *script, *told;
} tellings[] = {
	{ "1", "" },
	{ "display()", "" },
	{ "display(1, 'x')", "[0 5 1][1 5 'x']" },
	{ "class H:\n def _repr_html_(self): return '<p>'\n"
	  " def __repr__(self): return 'h'\ndisplay(H())\nH()", "[0 3 <p>][0 5 h][1 3 <p>]" },
	{ "class B:\n def _repr_png_(self): 1/0\nB()",
	  "[0 5 <B object: _repr_png_() raised ZeroDivisionError>]" },
	{ "class J:\n def _repr_json_(self): return [1]\nJ()", "[0 6 [1]]" },
	{ "display({'text/html': 'a'}, raw=True)", "[0 3 a]" },
	{ "import os\nif os.fork() == 0:\n display(1)\n os._exit(0)\nos.wait()\ndisplay(2)",
	  "[0 5 2]" },
	{ "display(1)\n1/0", "[0 5 1]" },
	{ "import os\ndisplay(1)\nopen('f', 'w').close()\nos.abort()", "[0 5 1]{line 4}{restart}{f 0 }" },
	{ "open('f', 'w').write('text')", "{f 4 text}" },
	{ "import os\nos.symlink('/etc/passwd', 'l')\nos.chdir('/tmp')\n"
	  "open('f', 'w').write('text')", "" },
	{ "import os\nos.mkdir('d')\nopen('d/f', 'w').write('1')\nos.rmdir('/workspace/d') "
	  "if 0 else None", "{d/f 1 1}" },
};

static void
what_is_shown_and_left_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(tellings) / sizeof(tellings[0]); i++) {
		struct host_run run = { .script = tellings[i].script };
		struct host_result r;

		host_run(&host, &run, &r);
		if (strcmp(r.told, tellings[i].told) != 0)
			fail_msg("%s: told %s", tellings[i].script, r.told);
		host_result_done(&r);
	}
}

static void
shows_past_the_cap_are_counted(void **state)
{
	struct host_run run = { .script = "for i in range(23): display(i)" };
	struct host_result r;

	(void)state;
	host_run(&host, &run, &r);
	assert_int_equal(r.end, HOST_DONE);
	assert_true(r.done->has_undisplayed);
	assert_int_equal(r.done->undisplayed, 23 - 20);
	assert_non_null(strstr(r.told, "[19 5 19]"));
	assert_null(strstr(r.told, "[20 "));
	host_result_done(&r);
}

static void
a_file_is_there_before_the_script(void **state)
{
	struct host_run run = {
		.script = "import os\ns = os.stat('a/b/f')\n"
			  "print(open('a/b/f').read(), s.st_uid, oct(s.st_mode))\n"
			  "os.remove('a/b/f')",
		.file = "a/b/f", .file_text = "content",
	};
	struct host_result r;

	(void)state;
	host_run(&host, &run, &r);
	assert_int_equal(r.end, HOST_DONE);
	assert_string_equal(r.out, "content 1000 0o100644\n");
	assert_string_equal(r.told, "");
	host_result_done(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_zygote_tells_what_is_missing),
		cmocka_unit_test(the_end_is_told),
		cmocka_unit_test(the_last_expression_is_the_result),
		cmocka_unit_test(it_is_as_on_a_host),
		cmocka_unit_test(a_silent_end_is_told_by_init),
		cmocka_unit_test(what_is_no_text_is_refused_with_its_position),
		cmocka_unit_test(other_spellings_of_utf8_are_read),
		cmocka_unit_test(results_are_bounded),
		cmocka_unit_test(errors_are_bounded),
		cmocka_unit_test(memory_that_runs_out_is_an_error),
		cmocka_unit_test(processes_are_counted_without_init),
		cmocka_unit_test(processor_time_ends),
		cmocka_unit_test(siblings_share_no_randomness),
		cmocka_unit_test(a_worker_waits_as_long_as_it_takes),
		cmocka_unit_test(what_is_shown_and_left_is_told),
		cmocka_unit_test(shows_past_the_cap_are_counted),
		cmocka_unit_test(a_file_is_there_before_the_script),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
