# SPDX-License-Identifier: Apache-2.0
"""A private package index: wheels written by hand, served by nginx on a loopback port as
PEP 503 (HTML) or PEP 691 (JSON) has it."""

import base64
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import zipfile

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
CONFIG = """daemon off;
worker_processes 1;
pid %(dir)s/nginx.pid;
error_log %(dir)s/error.log;
worker_rlimit_nofile 1024;
events { worker_connections 256; }
http {
    access_log %(dir)s/access.log;
    client_body_temp_path %(dir)s/t1; proxy_temp_path %(dir)s/t2; fastcgi_temp_path %(dir)s/t3;
    uwsgi_temp_path %(dir)s/t4; scgi_temp_path %(dir)s/t5;
    types { text/html html; application/octet-stream whl; }
    server {
        listen 127.0.0.1:%(port)d;
        root %(dir)s/root;
        location /simple/ { index index.html; }
        location /json/ { default_type application/vnd.pypi.simple.v1+json; index index.json; }
        location /garbage/ { default_type text/html; index garbage; }
    }
}
"""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def wheel(name, version, files, requires=(), tag="py3-none-any", extra_members=(), python=None):
    """The bytes of a wheel and its file name. files: {path: text or bytes};
    extra_members: (path, bytes) that RECORD does not tell of, hostile ones."""
    info = "%s-%s.dist-info" % (name, version)
    metadata = "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version)
    metadata += "".join("Requires-Dist: %s\n" % r for r in requires)
    if python:
        metadata += "Requires-Python: %s\n" % python
    members = {path: data.encode() if isinstance(data, str) else data
               for path, data in files.items()}
    members[info + "/METADATA"] = metadata.encode()
    members[info + "/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: %s\n"
                                "Tag: %s\n" % ("true" if "none" in tag else "false", tag)).encode()
    record = "".join("%s,sha256=%s,%d\n" % (
        '"%s"' % path if "," in path else path,
        base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(),
        len(data)) for path, data in members.items())
    members[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        # without the time of day: what is made again is the same
        for path, data in [*members.items(), *extra_members]:
            z.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return "%s-%s-%s.whl" % (name, version, tag), out.getvalue()


class Index:
    """with Index() as index: index.add(...); index.url is for [packages] index."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="index-")
        os.chmod(self.dir, 0o755)
        self.root = os.path.join(self.dir, "root")
        self.files = {}     # project -> [(file name, link attributes, hash or None)]
        self.lock = threading.Lock()
        self.nginx = None
        for part in ("simple", "json", "files", "garbage"):
            os.makedirs(os.path.join(self.root, part))

    def __enter__(self):
        # It listens before nginx runs, so nobody has to wait for it; nor for its log.
        open(os.path.join(self.dir, "access.log"), "w").close()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
            path = os.path.join(self.dir, "nginx.conf")
            with open(path, "w") as f:
                f.write(CONFIG % {"dir": self.dir, "port": self.port})
            os.set_inheritable(listening.fileno(), True)
            self.nginx = subprocess.Popen(
                [NGINX, "-c", path, "-p", self.dir], pass_fds=[listening.fileno()],
                env=dict(os.environ, NGINX="%d;" % listening.fileno()),
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.host = "http://127.0.0.1:%d" % self.port
        self.url = self.host + "/simple"
        return self

    def errors(self):
        try:
            with open(os.path.join(self.dir, "error.log")) as f:
                return f.read()[-2000:]
        except OSError:
            return ""

    def __exit__(self, *exc):
        self.nginx.send_signal(signal.SIGTERM)
        try:
            self.nginx.wait(10)
        except subprocess.TimeoutExpired:	# it was just starting, and lost the signal
            self.nginx.kill()
            self.nginx.wait()
        shutil.rmtree(self.dir)

    def requests(self):
        """Lines of requests so far, such as "GET /simple/a/ HTTP/1.1"."""
        with open(os.path.join(self.dir, "access.log")) as f:
            # Who reads while nginx writes may see a part of a line.
            return [line.split('"')[1] for line in f if line.endswith("\n")]

    def add(self, name, version, files=None, requires=(), yanked=None, hashed=True,
            served=None, **more):
        """Adds a wheel; served: the bytes that are sent instead of it."""
        filename, data = wheel(name, version, files if files is not None else
                               {"%s/__init__.py" % name: "VERSION = %r\n" % version},
                               requires, **more)
        self.put(name, filename, served if served is not None else data,
                 digest(data) if hashed else None, yanked)
        return digest(data)

    def put(self, name, filename, data, sha256, yanked=None):
        project = name.lower().replace("_", "-")
        self.write("files/" + filename, data)
        with self.lock:     # tests add while others are served
            files = self.files.setdefault(project, [])
            files.append((filename, sha256, yanked))
            self.write_pages(project, files)

    def write_pages(self, project, files):
        links, entries = [], []
        for filename, sha256, yanked in files:
            links.append('<a href="/files/%s%s"%s>%s</a><br>\n' % (
                filename, "#sha256=" + sha256 if sha256 else "",
                ' data-yanked="%s"' % yanked if yanked else "", filename))
            entries.append({"filename": filename, "url": "/files/" + filename,
                            "hashes": {"sha256": sha256} if sha256 else {},
                            "yanked": yanked or False})
        page = "<!DOCTYPE html><html><body>\n%s</body></html>\n" % "".join(links)
        self.write("simple/%s/index.html" % project, page.encode())
        self.write("json/%s/index.json" % project, json.dumps(
            {"meta": {"api-version": "1.0"}, "name": project, "files": entries}).encode())

    def write(self, path, data):
        """There at once, as a whole."""
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "wb") as f:
            f.write(data)
        os.rename(path + ".new", path)
