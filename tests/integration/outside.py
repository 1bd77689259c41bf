# SPDX-License-Identifier: Apache-2.0
"""What scripts reach through the proxy in tests: a name server, and origins of several kinds,
all on loopback. Threads of the test program; each counts and remembers what it saw."""

import contextlib
import http.server
import socket
import socketserver
import ssl
import struct
import subprocess
import threading


class Names:
    """A name server that knows a table: name -> addresses, or a function that gives them.
    None is never answered; a name that is not there does not exist."""

    def __init__(self, table):
        self.table, self.asked, self.lock = dict(table), [], threading.Condition()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            answer = self.answer(query)
            if answer:
                self.socket.sendto(answer, peer)

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
            at += query[at] + 1
        name, kind = ".".join(labels), struct.unpack("!H", query[at + 1:at + 3])[0]
        with self.lock:
            self.asked.append((name, kind))
            self.lock.notify_all()
            known = name in self.table
            addresses = self.table.get(name, ())
            if callable(addresses):
                addresses = addresses(kind)
        if addresses is None:
            return None
        data = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            if kind == (28 if family == socket.AF_INET6 else 1):
                packed = socket.inet_pton(family, address)
                data.append(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed)
        flags = 0x8580 if known else 0x8583
        return (query[:2] + struct.pack("!HHHHH", flags, 1, len(data), 0, 0) +
                query[12:at + 5] + b"".join(data))

    def wait(self, name, seconds):
        """Until somebody has asked for it."""
        with self.lock:
            assert self.lock.wait_for(lambda: any(n == name for n, _ in self.asked), seconds), \
                "nobody has asked for " + name

    def times(self, name, kind=1):
        with self.lock:
            return self.asked.count((name, kind))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            parts.append(self.rfile.read(size))
            self.rfile.readline()
            if not size:
                return b"".join(parts)

    def respond(self):
        self.server.note(self.command, self.path, dict(self.headers.items()))
        given = self.server.files.get(self.path)
        status, content = (200, given) if given is not None else (
            (404, b"not here") if self.path.startswith("/missing") else
            (200, b"%s %s " % (self.command.encode(), self.path.encode()) + self.body()))
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else
                         "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = respond


class Origin(http.server.ThreadingHTTPServer):
    """Answers with what it was asked, or with a file of files."""
    daemon_threads = True

    def __init__(self, address="127.0.0.1", port=0, tls=None):
        self.seen, self.files, self.lock = [], {}, threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), Handler)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def note(self, *what):
        with self.lock:
            self.seen.append(what)

    def paths(self):
        with self.lock:
            return [path for _, path, _ in self.seen]


class Strange(socketserver.ThreadingTCPServer):
    """Hands each connection to a function; set is when one has ended."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, talk):
        self.ended = threading.Semaphore(0)
        self.accepted = threading.Semaphore(0)
        outer = self

        class One(socketserver.BaseRequestHandler):
            def handle(self):
                outer.accepted.release()
                with contextlib.suppress(OSError):
                    talk(self.request)
                outer.ended.release()

        super().__init__(("127.0.0.1", 0), One)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


def silent(connection):
    while connection.recv(65536):
        pass


def stubborn(connection):
    """Says nothing, and never ends by itself."""
    threading.Event().wait()


def endless(connection):
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(bytes(65536))


def echo(connection):
    """Until the other side has ended; then says goodbye."""
    while True:
        data = connection.recv(65536)
        if not data:
            connection.sendall(b"bye")
            return
        connection.sendall(data)


def make_tls(directory, name):
    """A server's context with a certificate of its own, and the certificate's text."""
    key, certificate = directory + "/key.pem", directory + "/cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=DNS:" + name], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with open(certificate, encoding="ascii") as file:
        return context, file.read()
