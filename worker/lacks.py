# SPDX-License-Identifier: Apache-2.0
"""What a script or a cell lacks, and what it left where nobody finds it: notes in the traceback.

A lack shows itself in many forms: a library raises an error of its own, or says what to install. So
all errors that have led to the one that was raised are looked at, and words of its message. What
depends on the configuration (how packages are installed, which hosts are reached) is said by the
service, which finds these notes in the traceback (tools/packages/missing.c).

Frozen into the program like worker/bootstrap.py, and run in the same namespace.
"""

import builtins
import linecache
import os
import re
import sys
import weakref
from errno import EROFS
from stat import S_ISCHR

ERRORS_MOST = 20  # of a chain
MESSAGE_MOST = 4000
# Packages that libraries need for a part of what they do, and their modules, if those have another
# name. Libraries name either.
OPTIONAL = dict.fromkeys(
    "accelerate aiohttp altair bottleneck brotli cartopy cryptography dask datasets distributed duckdb "
    "email_validator fastparquet folium fsspec gcsfs gensim geopandas graphviz great_tables h2 h5py html5lib "
    "httpx imageio ipywidgets jax jinja2 joblib kaleido keras librosa lxml lz4 matplotlib msgpack nbformat "
    "networkx nltk numba numexpr numpy openpyxl orjson pandas patsy pdfplumber plotly polars psutil psycopg2 "
    "pyarrow pydantic pydot pygraphviz pymysql pypdf pyproj pyreadstat pytest pyxlsb reportlab requests s3fs "
    "scipy seaborn sentencepiece shapely soundfile spacy sqlalchemy statsmodels sympy tables tabulate tensorboard "
    "tensorflow tkinter toml tomli torch tqdm transformers xarray xlrd xlsxwriter zstandard".split())
OPTIONAL.update({
    "beautifulsoup4": "bs4", "bs4": "bs4", "cython": "Cython", "ipython": "IPython", "netcdf4": "netCDF4",
    "odfpy": "odf", "opencv-python": "cv2", "cv2": "cv2", "pillow": "PIL", "pil": "PIL", "pymupdf": "fitz",
    "python-calamine": "python_calamine", "python-docx": "docx", "python-multipart": "multipart",
    "python-pptx": "pptx", "python-snappy": "snappy", "pyyaml": "yaml", "scikit-image": "skimage",
    "scikit-learn": "sklearn", "vl-convert-python": "vl_convert", "imageio-ffmpeg": "imageio_ffmpeg",
    "email-validator": "email_validator", "xlsxwriter": "xlsxwriter"})
WORDS = re.compile(r"[A-Za-z][\w.-]*\w")
ASKS = re.compile(r"install|\bpackages?\b|No module named", re.I)
INSTALLS = re.compile(r"\b(?:pip3?|uv|conda|mamba|micromamba|pipx|easy_install|ensurepip)\b.*\b(?:install|add|sync)\b|"
                      r"\bensurepip\b", re.S)
# Where other services and people's own machines have the files of a conversation.
PLACES_ELSEWHERE = ("/mnt/", "/home/", "/root/", "/Users/", "/data/", "/content/", "/kaggle/",
                    "/files/", "/sandbox/", "/workspaces/")
# A line that is more likely a command of the shell than Python.
COMMAND = re.compile(r"\s*([a-z][\w.+-]*)\s+(?:--?\w|[\w./~\"'$]).*$", re.S)
COMMANDS = frozenset("apt apt-get brew cargo curl docker git make node npm npx pip python python3 sudo wget".split())
RUN_AS_MODULES = ("pytest", "unittest", "black", "coverage", "flake8", "isort", "mypy", "pylint", "ruff", "tox")
HOME = "/run/home"  # where the home of worker/mounts.c leads to
# What libraries leave in /tmp and below the home.
SCRATCH = re.compile(r"\.|tmp[a-z0-9_]{8}(?![a-z0-9])|(?:pymp|matplotlib|joblib|pytest-of|pip|numba|torchinductor)[-_]|"
                     r"__pycache__$")
LOOKED_MOST = 500  # entries of folders
NAMES_MOST = 8  # of files
QUOTED = re.compile(r"'([^']+)'")
NOT_FOUND = re.compile(r"(?:Column|Columns) not found: ([^']+)")  # of a group of pandas
NATIVE_INPUT = input
NO_INPUT = "no user answers input() here: write the value into the code%s"
IN_SCRIPT, IN_CELL = ", or give it in the argument stdin", ", or use run_script, which has an argument stdin"
NO_DIRECTORY = re.compile(r"Cannot save file into a non-existent directory: '([^'\n]{1,500})'")
SAID_MOST = 1500  # the last characters of what a program has written
USUAL_NAMES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "sns": "seaborn", "nx": "networkx",
               "sm": "statsmodels.api", "px": "plotly.express", "go": "plotly.graph_objects", "tf": "tensorflow"}
NEW_SYNTAX = (
    ((3, 12), re.compile(r"f-string"), "before 3.12 the braces of an f-string hold no backslash, and not its own quotes"),
    ((3, 12), re.compile(r"^\s*(?:(?:async )?(?:def|class)\s+\w+\[|type\s+\w+(?:\[.*\])?\s*=)", re.M),
     "type parameters, and type statements, came with 3.12"))
REFUSED = re.compile(r"(?:[\w.]+\.)?(\w+)\(\) got an unexpected keyword argument")
OF_PANDAS_2 = re.compile(r"Invalid frequency: |time data .* does not match format '(?:mixed|ISO8601)'")
# Functions of pandas that go on with errors='coerce', what that makes of other values, and what an error says if
# it is about a value.
COERCED = {"to_datetime": "NaT of what is no date", "to_timedelta": "NaT of what is no duration",
           "to_numeric": "NaN of what is no number"}
TARGETS = (("datetime", "to_datetime"), ("timedelta", "to_timedelta"), ("int", "to_numeric"), ("float", "to_numeric"))
ONE_VALUE = re.compile(r"position \d|[Ss]tring|match format|unconverted data|[Oo]ut of bounds|[Cc]ould not convert|unit abbr|"
                       r"invalid literal")
UNPICKLED = re.compile(r"[Cc]an(?:'t|not) (?:pickle|get local object)")
BETWEEN_PROCESSES = ("multiprocessing.reduction", "multiprocessing.queues", "multiprocessing.pool",
                     "multiprocessing.connection", "concurrent.futures.process")
LABELS_MOST, LABELS_READ, LABELS_BYTES = 20, 2000, 600  # of a table
# An opening line of inline metadata, and a whole block.
OPENED = re.compile(r"^# /// script\r?$", re.M)
METADATA = "# /// script"  # what a text has that may have such a line
BLOCK = re.compile(r"# /// script\r?\n(?:#(?: .*)?\n)*# ///\r?(?:\n|$)")


# How files begin that are no text in UTF-8.
CONTENTS = ((b"\x1f\x8b", "the file is compressed by gzip: gzip.open(), or compression='gzip'"),
            (b"PK\3\4", "the file is a ZIP archive, as an .xlsx or .docx is: zipfile, or pandas.read_excel()"),
            (b"%PDF-", "the file is a PDF"), (b"\x89PNG", "the file is a picture"),
            (b"\xff\xfe", "the text is UTF-16: give encoding='utf-16'"),
            (b"\xfe\xff", "the text is UTF-16: give encoding='utf-16'"))


class Told:
    installs = weakref.WeakSet()  # results of subprocess, which a session keeps for later cells
    elsewhere = {}  # what files_elsewhere() has found last


def has_input():
    """Is there a stdin, or a user who is asked (prompt.c puts another input() there)?"""
    if builtins.input is not NATIVE_INPUT:
        return True
    try:
        return not S_ISCHR(os.fstat(0).st_mode)  # /dev/null
    except OSError:
        return True


def note_lacks(error, has_stdin):
    """Adds at most one note about a lack to the error that has ended a script or a cell."""
    try:
        if isinstance(error, SystemExit):
            return tell_arguments(error)
        chain = errors_behind(error)
        for find in FINDERS:
            for one in chain:
                note = find(one, error, has_stdin)
                if note:
                    error.add_note(note)
                    return
    except Exception:  # an error's attributes and message are the script's own code
        pass


def errors_behind(error):
    """The error, and those that have led to it, also if a library does not show them."""
    chain = []
    while error is not None and len(chain) < ERRORS_MOST and not any(e is error for e in chain):
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def is_from(error, module):
    """Was the error raised in code of this module, or below it?"""
    tb = error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_globals.get("__name__") == module:
            return True
        tb = tb.tb_next
    return False


def line_at(one):
    """The line of code at which the error was raised, or that could not be compiled."""
    if isinstance(one, SyntaxError):
        return one.text or linecache.getline(str(one.filename), one.lineno) if type(one.lineno) is int else ""
    tb = one.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return linecache.getline(tb.tb_frame.f_code.co_filename, tb.tb_lineno) if tb else ""


def lacks_user(one, error, has_stdin):
    if type(one) is EOFError and not has_stdin and (
            one.args == ("EOF when reading a line",) or is_from(one, "getpass")):
        return NO_INPUT % (IN_CELL if Session.parent else IN_SCRIPT)
    if type(one).__name__ == "BdbQuit":
        return "no user can type into a debugger: print what you want to know"


def lacks_notebook(one, error, has_stdin):
    if type(one) is not NameError or type(one.name) is not str:
        return None
    if HISTORY.fullmatch(one.name):
        return NOT_KEPT
    if one.name == "get_ipython":
        return ("write the command itself into the cell, such as %time or !ls; IPython.display is "
                "there")


def no_program(name):
    if name in RUN_AS_MODULES and not is_there(name):
        return "this needs the module %s, which is not installed" % name
    return "there is no program %s here; %s" % (name, (
        "python -m %s runs the module of that name" % name if name.isidentifier() and is_there(name)
        else "ls /usr/bin lists those that are there"))


def lacks_mark(one, error, has_stdin):
    """A line that is a command of the shell."""
    import keyword
    import shutil

    if type(one) not in (SyntaxError, NameError):
        return None
    line = line_at(one)
    found = COMMAND.match(line or "")
    if not found or keyword.iskeyword(found[1]) or keyword.issoftkeyword(found[1]) \
            or hasattr(builtins, found[1]) or getattr(one, "name", None) not in (None, found[1]):
        return None
    if found[1] in COMMANDS or shutil.which(found[1]):
        return "a command of the shell begins with !, such as !%s" % line.strip()[:80]
    if found[1] in RUN_AS_MODULES and is_there(found[1]):
        return "a command of the shell begins with !, such as !python -m %s" % line.strip()[:80]


def lacks_display(one, error, has_stdin):
    if type(one).__name__ == "TclError" and "display" in str(one) \
            or isinstance(one, ImportError) and "headless" in str(one):
        return ("there is no display here: draw with matplotlib (without matplotlib.use), PIL or plotly; "
                "the answer has the figures")


def no_folder(path):
    if path.startswith("/"):
        return ("there is no folder %s here: the files of a call are in /workspace, which is the current "
                "directory at the beginning" % path)
    return "os.makedirs(%r, exist_ok=True) makes the folder" % path


def lacks_file(one, error, has_stdin):
    """A file that may be one of an earlier call, or have another name."""
    path = one.filename if type(one) is FileNotFoundError else None
    if type(path) is not str or not path or is_from(one, "subprocess"):
        return None
    path = os.path.realpath(os.path.join(WORKSPACE, path))
    if not path.startswith(WORKSPACE + "/"):
        return None
    if not os.path.isdir(os.path.dirname(path)):
        return no_folder(os.path.dirname(path)[len(WORKSPACE) + 1:])
    names = sorted(name for name in os.listdir(os.path.dirname(path)) if name[0] != "." and name != "script.py")
    if names:
        return "beside it there are %s%s" % (", ".join(names[:NAMES_MOST]), ", ..." * (len(names) > NAMES_MOST))
    if not Session.parent:
        return ("/workspace is empty when a script begins: hand its files in by files, those of an "
                "earlier answer by their uri, or use run_repl")


def table_labels(tb):
    """The labels among which a function of pandas has looked, by the locals of its frames: an index,
    else the columns of a table. None: it is none of pandas."""
    pandas, found = sys.modules.get("pandas"), None
    while tb is not None:
        frame, tb = tb.tb_frame, tb.tb_next
        if not str(frame.f_globals.get("__name__")).startswith("pandas."):
            continue
        for name in "self", "obj", "left":
            one = frame.f_locals.get(name)
            if name == "self" and str(type(one).__module__).startswith("pandas.core.groupby"):
                one = vars(one).get("obj")  # it may be half made
            if isinstance(one, pandas.Index) or found is None and isinstance(one, pandas.DataFrame):
                found = one
    return found if found is None or isinstance(found, pandas.Index) else found.columns


def lacks_label(one, error, has_stdin):
    """A column that a table does not have, or another label."""
    import difflib

    if type(one) is not KeyError or "pandas" not in sys.modules:
        return None
    labels = table_labels(one.__traceback__)
    if labels is None:
        return None
    there = list(labels[:LABELS_READ])
    near = []
    message = str(one)[:MESSAGE_MOST]
    for word in (NOT_FOUND.findall(message) or QUOTED.findall(message))[:3]:
        plain = {str(label).strip().lower(): label for label in reversed(there)}
        near += [plain[name] for name in difflib.get_close_matches(word.strip().lower(), plain, 1)]
    text = ", ".join(map(repr, there[:LABELS_MOST]))[:LABELS_BYTES]
    return "%sthe %s: %s%s" % (
        "did you mean %s? " % ", ".join(map(repr, near)) if near else "",
        "labels are" if labels.name is None else "labels of %.100r are" % (labels.name,), text,
        ", ... (%d)" % len(labels) if len(labels) > LABELS_MOST else "")


def command_text(command):
    return command if isinstance(command, str) else " ".join(map(str, command))


def lacks_program(one, error, has_stdin):
    import shutil

    kind = type(one)
    if kind is FileNotFoundError and type(one.filename) is str and "/" not in one.filename \
            and is_from(one, "subprocess"):
        return no_program(one.filename)
    if kind.__name__ == "CalledProcessError":
        command = command_text(one.cmd)
        if INSTALLS.search(command):
            return "pip cannot install packages here"
        name = command.split()[0] if one.returncode == 127 else ""
        if name and "/" not in name and shutil.which(name) is None:
            return no_program(name)
    if kind is TypeError and is_from(one, "subprocess") and "NoneType" in str(one):
        return "a program is None here: shutil.which() gives None for a program that is not there"


def lacks_folder(one, error, has_stdin):
    path = one.filename if isinstance(one, OSError) else None
    if type(path) is str and type(one) is FileNotFoundError and path.startswith(PLACES_ELSEWHERE):
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            return no_folder(folder)
        if not os.listdir(folder) and os.path.realpath(folder) != WORKSPACE:
            return ("%s is empty here: the files of a call are in /workspace, which is the current directory "
                    "at the beginning" % folder)
    if type(path) is str and one.errno == EROFS:
        return "only /workspace can be written to (and /tmp, %s): what a call leaves for later is in /workspace" % (
            os.environ.get("HOME", "/dev/shm"))
    if type(one) is OSError and one.errno is None:  # of pandas
        found = NO_DIRECTORY.search(str(one))
        return found and no_folder(found[1])


def lacks_output(one, error, has_stdin):
    """What a program has written, if nobody has seen it: why it has failed."""
    said = getattr(one, "stderr", None) or getattr(one, "output", None)
    if type(one).__name__ == "CalledProcessError" and type(said) in (str, bytes):
        said = (said if type(said) is str else said.decode("utf-8", "replace")).strip()
        if said:
            return "its output:\n%s%s" % ("..." * (len(said) > SAID_MOST), said[-SAID_MOST:])


def lacks_encoding(one, error, has_stdin):
    """What bytes are that are not the text for which they were taken."""
    if type(one) is not UnicodeDecodeError:
        return None
    data, encoding = one.object, one.encoding.lower().replace("-", "")
    if encoding not in ("utf8", "ascii"):
        return None
    for begin, said in CONTENTS:
        if data.startswith(begin):
            return said
    if encoding == "ascii" and "\ufffd" not in data[one.start:one.start + 4].decode("utf-8", "replace")[:1]:
        return "the text is not ASCII, but may be UTF-8: give encoding='utf-8'"
    around = data[max(one.start - 20, 0):one.start + 20]
    try:
        found, text = "cp1252", around.decode("cp1252")
    except UnicodeDecodeError:
        found, text = "latin-1", around.decode("latin-1")
    return ("the text is not %s; with encoding='%s' it has %r here, and errors='replace' reads on"
            % (one.encoding.upper(), found, text))


def lacks_font(one, error, has_stdin):
    if type(one) is OSError and is_from(one, "PIL.ImageFont") and is_there("matplotlib"):
        return ("there is no such font here; from matplotlib.font_manager import findfont gives one: "
                "ImageFont.truetype(findfont('DejaVu Sans'), SIZE)")


def lacks_names(one, error, has_stdin):
    """A name that an import would bring, or another session has."""
    if type(one) is not NameError or one is not error or type(one.name) is not str:
        return None
    module = USUAL_NAMES.get(one.name, one.name if one.name in sys.stdlib_module_names else None)
    if module and is_there(module.partition(".")[0]):
        return "import %s%s is missing" % (module, " as " + one.name if module != one.name else "")
    if one.__traceback__ is None or SUGGESTION.search(native_text(one).rstrip("\n")):
        return None
    if FILE == "<cell 1>":
        return "this session is new: to go on in another, send its session"


def version_of(name):
    """What is installed of the package that has this module; Python, for its own modules."""
    top = name.partition(".")[0]
    version = getattr(sys.modules.get(top), "__version__", None)
    if top in sys.stdlib_module_names:
        return None if top in ("builtins", "__main__") else "Python here is %d.%d" % sys.version_info[:2]
    return "%s here is %.40s" % (top, version) if type(version) is str else None


def called(one):
    """The module of a function that did not take an argument: that in which it was raised, or that of the
    function that the line calls."""
    tb, names = one.__traceback__, {}
    while tb is not None:
        frame, tb = tb.tb_frame, tb.tb_next
    if frame.f_code.co_filename != FILE:
        return frame.f_globals.get("__name__")
    names.update(frame.f_globals)
    names.update(frame.f_locals)
    found = REFUSED.match(str(one))
    found = re.search(r"(\w+)(?:\.\w+)*\.%s\s*\(" % found[1], line_at(one)) if found else None
    owner = names.get(found[1]) if found else None
    return getattr(owner, "__name__", None) if type(owner) is type(sys) else type(owner).__module__


def lacks_version(one, error, has_stdin):
    """What other versions have: of Python, or of a library."""
    if one is not error:
        return None
    if isinstance(one, SyntaxError):
        for since, words, said in NEW_SYNTAX:
            if sys.version_info < since and words.search("%s\n%s" % (one.msg, line_at(one))):
                return "Python here is %d.%d: %s" % (*sys.version_info[:2], said)
        return None
    if isinstance(one, ImportError):
        wrong = isinstance(one, (ModuleNotFoundError, ImportNotAllowed))
        return version_of(one.name) if type(one.name) is str and not wrong else None
    if type(one) is AttributeError and one.obj is not None:
        kind = type(one.obj)
        said = version_of(one.obj.__name__ if kind is type(sys) else (one.obj if kind is type else kind).__module__)
        if type_name(kind) == "pandas.core.frame.DataFrame":
            said += "; the columns are: %s" % ", ".join(map(repr, one.obj.columns[:LABELS_MOST]))[:LABELS_BYTES]
        return said
    if type(one) is TypeError and REFUSED.match(str(one)):
        return version_of(called(one) or "")
    if type(one) is ValueError and OF_PANDAS_2.match(str(one)):
        return version_of("pandas")


def lacks_value(one, error, has_stdin):
    """A value that pandas cannot convert, among others."""
    if not isinstance(one, ValueError) or "pandas" not in sys.modules or not ONE_VALUE.search(str(one)[:MESSAGE_MOST]):
        return None
    tb = one.__traceback__
    while tb is not None:
        frame, tb = tb.tb_frame, tb.tb_next
        name, values = frame.f_code.co_name, frame.f_locals
        if not str(frame.f_globals.get("__name__")).startswith("pandas.core.") or str(values.get("errors")) != "raise":
            continue
        if name == "astype":
            kind = str(values.get("dtype")).lower()
            name = next((function for word, function in TARGETS if word in kind), None)
        if name in COERCED:
            return "pandas.%s(..., errors='coerce') makes %s" % (name, COERCED[name])


def lacks_pickle(one, error, has_stdin):
    """What cannot be sent to another process."""
    if isinstance(one, Exception) and UNPICKLED.match(str(one)[:MESSAGE_MOST]) \
            and any(is_from(one, module) for module in BETWEEN_PROCESSES):
        return ("what goes to another process is pickled: functions that def makes at the top level, no lambda, and "
                "plain data; concurrent.futures.ThreadPoolExecutor takes anything")


def is_there(module):
    import importlib.util

    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except Exception:
        return True


def lacks_module(one, error, has_stdin):
    """A module that is missing behind the error, or that its message asks for."""
    if type(one) is ModuleNotFoundError and type(one.name) is str:
        if one.name.startswith("google") and "google.colab" in line_at(one):
            return "this is not Colab: files are handed in by files, and what is left in /workspace is in the answer"
        if one is error:
            return None if one.name.lower() in OPTIONAL else like_module(one.name)
        name = one.name.partition(".")[0]
        message = str(error)[:MESSAGE_MOST]
        if "Missing optional dependency '%s'" % name in message:
            return None
        if (isinstance(error, ImportError) or ASKS.search(message)) and not is_there(name):
            return "this needs the module %s, which is not installed" % name
    elif one is error and type(one).__name__ != "ImportNotAllowed" and (isinstance(error, ImportError) or ASKS.search(str(error)[:MESSAGE_MOST])):
        for word in WORDS.findall(str(error)[:MESSAGE_MOST]):
            key = word.lower().replace("_", "-")
            key = key if key in OPTIONAL else word.lower()
            if key in OPTIONAL and not is_there(OPTIONAL[key] or key):
                return "this needs the module %s, which is not installed" % (OPTIONAL[key] or key)
    return None


def like_module(name):
    """A module that is there, and that the name may be a slip of the pen for."""
    import difflib
    import pkgutil

    package, _, last = name.rpartition(".")
    if package:
        names = [m.name for m in pkgutil.iter_modules(sys.modules[package].__path__)]
    else:
        names = {*sys.stdlib_module_names, *(m.name for m in pkgutil.iter_modules())}
    near = difflib.get_close_matches(last, [n for n in names if not n.startswith("_")], 1, 0.8)
    return "did you mean %s%s?" % (package and package + ".", near[0]) if near else None


FINDERS = (lacks_user, lacks_notebook, lacks_label, lacks_encoding, lacks_mark, lacks_program, lacks_folder, lacks_file,
           lacks_display, lacks_font, lacks_module, lacks_output, lacks_names, lacks_pickle, lacks_version, lacks_value)


def tell_arguments(error):
    """Says why a program that reads its arguments has ended: there are none."""
    if error.code == 2 and len(sys.argv) < 2 and is_from(error, "argparse"):
        to_stderr("(there are no arguments here: write parse_args(['--name', 'value']))\n")


def tell_installs(value):
    """Says that nothing was installed, if a result of subprocess shows a try whose output nobody may
    have seen. value: of the last line."""
    try:
        kind = sys.modules["subprocess"].CompletedProcess
        for one in (value, *main_module.__dict__.values()):
            if type(one) is kind and one.returncode and one not in Told.installs \
                    and INSTALLS.search(command_text(one.args)):
                Told.installs.add(one)
                to_stderr("(pip cannot install packages here)\n")
                return
    except Exception:  # the script may have replaced what this needs
        pass


def tell_unclosed(text):
    """Says that a block of inline metadata has no end. It counts as a comment."""
    opened = OPENED.search(text)
    if opened and not BLOCK.match(text, opened.start()):
        to_stderr("(line %d: the block # /// script has no end # ///, so it is ignored)\n"
                  % (text.count("\n", 0, opened.start()) + 1))


def files_elsewhere():
    """{path: what changes when it is written}, of the files that are neither in /workspace nor
    scratch of a library."""
    places, found, left = ["/tmp"], {}, LOOKED_MOST
    if os.path.realpath(os.environ.get("HOME", "")) == HOME:
        places.append(os.environ["HOME"])
    for place in places:
        with os.scandir(place) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return found
                if SCRATCH.match(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    places.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    at = entry.stat(follow_symlinks=False)
                    found[entry.path] = at.st_mtime_ns, at.st_size
    return found


def tell_elsewhere():
    """Says which files the script has left where nobody finds them, or the cell where only later
    cells do. Nothing, if the script has replaced what this needs."""
    if not Told.elsewhere and elsewhere_is_empty():
        return
    try:
        now = files_elsewhere()
        found = [path for path in now if Told.elsewhere.get(path) != now[path]]
        Told.elsewhere = now
    except Exception:
        return
    if found:
        to_stderr("(%s%s: not in /workspace, so %s)\n" % (
            ", ".join(found[:3]), ", and %d more" % (len(found) - 3) if len(found) > 3 else "",
            "only this session has %s, and no answer" % ("it" if len(found) == 1 else "them")
            if Session.parent else "lost with the script"))
