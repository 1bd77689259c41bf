"""Finds out which packages a list of requirements comes to, and says what they are.

Asks pip, which downloads them: size and hash are those of the files. argv[1] is JSON:
{"requirements": [texts], "indexes": [urls], "urls": [of wheels, which these name directly],
"seconds": for one answer of an index, "require_hashes": whether that has to say those of files,
"max_bytes": of a source, "build": whether packages may be built from source, "built": [{"file",
"hash", "package"}]: wheels that were}. The answer is the trailing expression: {"packages":
[{"name", "version", "hash", "index", "size"}]}, or {"source": the same and "file"}: what has to be
built before more can be said. Building, standard input is a socket that hands over the file for
that, and those of the wheels.
"""

import json
import re
import subprocess
import urllib.parse
import urllib.request

FILES = "/tmp/packages"
NEEDED = "/tmp/needed"
STOPPED = 9
PROXY = "http://127.0.0.1:3128"  # named, for an index may be on loopback too

# pip asks a source what it depends on by running it. Here nothing of it runs: pip stops at the
# first one that it comes to, before it has it, and in any case before it would run.
PIP = '''
import json, os, sys
from pip._internal.cli.main import main
from pip._internal.distributions.sdist import SourceDistribution
from pip._internal.resolution.resolvelib.factory import Factory

make = Factory._make_candidate_from_link
SourceDistribution.prepare_distribution_metadata

def stop(**what):
    with open(%r, "w") as f:
        json.dump(what, f)
    sys.stdout.flush()
    os._exit(%d)

def make_of_wheel(self, link, extras, template, name, version):
    if link.is_wheel:
        return make(self, link=link, extras=extras, template=template, name=name, version=version)
    stop(link=link.url_without_fragment, name=name, version=version and str(version),
         hash=link.hash_name and [link.hash_name, link.hash])

def prepare_nothing(self, *args, **kwargs):
    stop(link=self.req.link.url_without_fragment, version=None)

Factory._make_candidate_from_link = make_of_wheel
SourceDistribution.prepare_distribution_metadata = prepare_nothing
sys.exit(main(sys.argv[1:]))
''' % (NEEDED, STOPPED)


class Resolver:
    def __init__(self, requirements, indexes, urls, seconds, require_hashes, max_bytes, build,
                 built):
        self.requirements, self.indexes, self.seconds = requirements, indexes, seconds
        self.direct = {file_of(url): url for url in urls}
        self.require_hashes, self.max_bytes = require_hashes, max_bytes
        self.build = build
        self.built = {wheel["file"]: wheel["package"] for wheel in built}
        for variable in ("NO_PROXY", "no_proxy"):  # an index may be on loopback
            os.environ.pop(variable, None)
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": PROXY, "https": PROXY}))

    def ask_pip(self):
        with open("/tmp/requirements", "w", encoding="utf-8") as f:
            f.write("".join("%s\n" % r for r in self.requirements))
        # With --prefer-binary a source is come to where there is no wheel that does.
        kinds = ["--prefer-binary"] if self.build else ["--only-binary", ":all:"]
        if self.built:
            kinds += ["--find-links", BUILT]
        return subprocess.run(
            [sys.executable, "-c", PIP, "--isolated", "--no-input", "--no-color",
             "--disable-pip-version-check", "--no-cache-dir", "--proxy", PROXY,
             "--timeout", str(self.seconds), "--retries", "1", "download", "--progress-bar", "off",
             *kinds, "--index-url", self.indexes[0],
             *("--extra-index-url=" + url for url in self.indexes[1:]),
             "--dest", FILES, "--requirement", "/tmp/requirements"],
            stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT).returncode

    def index_of(self, name, file, sha256):
        """pip does not say which one it was, and whether that knew the hash: the first that has
        the file. sha256: that it has to know; "" for any."""
        for url in self.indexes:
            try:
                with self.opener.open("%s/%s/" % (url.rstrip("/"), name),
                                      timeout=self.seconds) as page:
                    text = page.read(16 << 20)
            except OSError:
                continue
            if file.encode() in text:
                if sha256.encode() in text:
                    return url
                fail("the index does not say the SHA-256 of", file)
        fail("no index has", file)

    def describe(self, name, version, file, sha256, size, url=None):
        known = sha256.removeprefix("sha256:") if self.require_hashes else ""
        return {"name": name, "version": version, "hash": sha256, "size": size,
                "index": url or self.index_of(name, file, known)}

    def look(self, file):
        if file in self.built:
            return self.built[file]
        name, version = file.split("-")[:2]
        path = os.path.join(FILES, file)
        with open(path, "rb") as f:
            sha256 = digest_of(f)
        return self.describe(re.sub(r"[-_.]+", "-", name).lower(), version, file, sha256,
                             os.path.getsize(path), self.direct.get(file))

    def download(self, url, to):
        """Into an empty file, as far as it may be."""
        size = 0
        try:
            with self.opener.open(url, timeout=self.seconds) as page:
                while block := page.read(1 << 16):
                    size += len(block)
                    if size > self.max_bytes:
                        fail("%s is larger than max_bytes" % file_of(url))
                    to.write(block)
        except OSError as e:
            fail("%s could not be downloaded: %s" % (file_of(url), e))
        to.flush()

    def fetch_source(self, fd):
        with open(NEEDED, encoding="utf-8") as f:
            needed = json.load(f)
        url, file = needed["link"], file_of(needed["link"])
        if not self.build or not needed["version"]:
            fail("%s is no wheel, and nothing is built of what a URL names" % url)
        with open(fd, "w+b") as to:
            self.download(url, to)
            to.seek(0)
            sha256 = digest_of(to)
            size = to.tell()
            to.seek(0)
            kind, value = needed["hash"] or ("sha256", sha256.removeprefix("sha256:"))
            if digest_of(to, kind) != "%s:%s" % (kind, value):
                fail("%s is another file than the index says, by its %s" % (file, kind))
        return {"file": file,
                **self.describe(needed["name"], needed["version"], file, sha256, size)}


def file_of(url):
    return os.path.basename(urllib.parse.unquote(urllib.parse.urlsplit(url).path))


def main(built, build, **more):
    resolver = Resolver(built=built, build=build, **more)
    fds = handed(1 + len(built)) if build else []
    take_built(built, fds[1:])
    status = resolver.ask_pip()
    if status == STOPPED:
        return {"source": resolver.fetch_source(fds[0] if build else -1)}
    if status:
        sys.exit(status if status > 0 else 1)
    return {"packages": [resolver.look(file) for file in sorted(os.listdir(FILES))]}


main(**json.loads(sys.argv[1]))
