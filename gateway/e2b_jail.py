# SPDX-License-Identifier: Apache-2.0
"""What the dialect of E2B runs in the jail: one script for commands, and one for files.

A sandbox is a volume, which its commands and contexts share; /home/user leads there. Commands get
their input by lines that other scripts append to a file in HIDDEN.
"""

import json

HOME = "/home/user"
VOLUME = "/volume/data"
HIDDEN = VOLUME + "/.e2b"		# not listed

COMMAND = """
import base64, fcntl, json, os, queue, signal, struct, subprocess, sys, termios, threading, time
job = json.loads(%r)
given = {"HOME": job["home"], "USER": "user", "LOGNAME": "user", "PWD": job["cwd"], **job["envs"]}
size = job["pty"]
if size:
    given.setdefault("TERM", "xterm-256color")
    try:
        master, inner = os.openpty()
    except OSError:
        sys.exit("there are no terminals here: an operator can set `terminals = yes` for the profile")
def resize(size):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size["rows"], size["cols"], 0, 0))
def own_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if size:
    resize(size)
try:
    os.chdir(job["cwd"])
    child = subprocess.Popen(
        [job["cmd"], *job["args"]], env={**os.environ, **given}, start_new_session=True,
        stdin=inner if size else subprocess.PIPE if job["stdin"] else subprocess.DEVNULL,
        stdout=inner if size else None, stderr=inner if size else None,
        preexec_fn=own_terminal if size else None)
except OSError as e:
    sys.exit("%%s: %%s" %% (e.filename or job["cmd"], e.strerror))
def take(line):
    said = json.loads(line)
    if "signal" in said:
        os.killpg(child.pid, said["signal"])
    elif "size" in said:
        resize(said["size"])
    else:
        typed.put(None if "close" in said else base64.b64decode(said["data"]))
typed = queue.Queue()
def write():	# a command that does not read must not keep signals back
    while True:
        data = typed.get()
        try:
            if data is None:
                child.stdin.close()
            elif size:
                os.write(master, data)
            else:
                child.stdin.write(data)
                child.stdin.flush()
        except (OSError, ValueError):
            pass
def control():
    at = 0
    while True:
        time.sleep(0.03)
        try:
            with open(job["control"], "rb") as f:
                f.seek(at)
                new = f.read()
        except OSError:
            continue
        new = new[:new.rfind(b"\\n") + 1]
        at += len(new)
        for line in new.splitlines():
            try:
                take(line)
            except Exception:	# not a line of the gateway's
                pass
threading.Thread(target=control, daemon=True).start()
threading.Thread(target=write, daemon=True).start()
if size:
    os.close(inner)
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        while data:
            data = data[os.write(1, data):]
code = child.wait()
try:
    os.unlink(job["control"])
except OSError:
    pass
sys.stdout.flush()
os._exit(code if code >= 0 else 128 - code)
"""

FILES = """
import base64, datetime, errno, json, os, shutil, stat
job = json.loads(%r)
HOME, HIDDEN, PIECE = job["home"], job["hidden"], 512 << 10
def place(name):
    if name == "~" or name.startswith("~/"):
        name = HOME + name[1:]
    path = os.path.normpath(os.path.join(HOME, name))
    if job["do"] != "say" and (os.path.realpath(path) + "/").startswith(HIDDEN + "/"):
        raise OSError(errno.EPERM, "is for the gateway", path)
    return path
def entry(path):
    s = os.lstat(path)
    kind = "SYMLINK" if stat.S_ISLNK(s.st_mode) else \\
        "DIRECTORY" if stat.S_ISDIR(s.st_mode) else "FILE"
    found = {"name": os.path.basename(path), "type": "FILE_TYPE_" + kind, "path": path,
             "size": str(s.st_size), "mode": stat.S_IMODE(s.st_mode),
             "permissions": stat.filemode(s.st_mode), "owner": "user", "group": "user",
             "modifiedTime": datetime.datetime.fromtimestamp(
                 s.st_mtime, datetime.timezone.utc).isoformat().replace("+00:00", "Z")}
    if kind == "SYMLINK":
        found["symlinkTarget"] = os.readlink(path)
    return found
def listed(path, depth):
    found = []
    for name in sorted(os.listdir(path)):
        inner = os.path.join(path, name)
        if os.path.realpath(inner) == HIDDEN:
            continue
        found.append(entry(inner))
        if len(found) > job["most"]:
            raise OSError(errno.ENOBUFS, "more than %%d entries" %% job["most"])
        if depth > 1 and os.path.isdir(inner) and not os.path.islink(inner):
            found += listed(inner, depth - 1)
    return found
def parents(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
def list_(path, depth):
    return {"entries": listed(path, depth)}
def stat_(path):
    return {"entry": entry(path), "is_folder": os.path.isdir(path)}
def make(path):
    os.makedirs(path)
    return {"entry": entry(path)}
def move(path, destination):
    destination = place(destination)
    parents(destination)
    os.lstat(path)
    shutil.move(path, destination)
    return {"entry": entry(destination)}
def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    return {}
def read(path, at):
    with open(path, "rb") as f:
        f.seek(at)
        data = f.read(PIECE)
        return {"size": os.fstat(f.fileno()).st_size, "data": base64.b64encode(data).decode()}
def write(path, part, first, last):
    os.makedirs(HIDDEN, exist_ok=True)
    part = os.path.join(HIDDEN, part)
    with open(part, "wb" if first else "ab") as f, open("piece", "rb") as piece:
        shutil.copyfileobj(piece, f)
    if last:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        parents(path)
        shutil.move(part, path)
    return {"path": path}
def give_up(path, part):
    if os.path.lexists(os.path.join(HIDDEN, part)):
        os.unlink(os.path.join(HIDDEN, part))
    return {}
def say(path, line):
    os.makedirs(HIDDEN, exist_ok=True)
    with open(path, "a") as f:
        f.write(line + "\\n")
    return {}
def clear(path):
    for name in os.listdir(path):
        remove(os.path.join(path, name))
    return {}
DO = {"list": list_, "stat": stat_, "make": make, "move": move, "remove": remove, "read": read,
      "write": write, "say": say, "clear": clear,
      "give_up": give_up}
try:
    answer = DO[job["do"]](place(job["path"]), **job["with"])
except (OSError, shutil.Error) as e:
    answer = {"error": errno.errorcode.get(getattr(e, "errno", None), "EIO"),
              "message": "%%s: %%s" %% (getattr(e, "filename", None) or job["path"],
                                        getattr(e, "strerror", None) or e)}
print(json.dumps(answer))
"""


def command(**job):
    return COMMAND % json.dumps({"home": HOME, **job})


def files(do, path, most, given):
    return FILES % json.dumps({"do": do, "path": path, "with": given, "home": HOME,
                               "hidden": HIDDEN, "most": most})
