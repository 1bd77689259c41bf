# SPDX-License-Identifier: Apache-2.0
"""Resolves a list of requirements by pip, and describes the resulting packages.

pip downloads the files, so sizes and hashes are those of real files. argv[1] is JSON:

    "requirements"    texts
    "indexes"         URLs; for each name, the first index that has it is used
    "ties"            {name: [URLs]}: only these indexes are used for the name
    "urls"            URLs of wheels that requirements name directly
    "seconds"         time limit for one answer of an index
    "require_hashes"  must the index give the hash of each file?
    "max_bytes"       the largest size of a source
    "build"           may packages be built from source?
    "fills"           packages of the profile that satisfy a dependency are not downloaded
    "built"           [{"file", "hash", "package"}]: wheels that were built already

The value of the last expression is the answer: {"packages": [{"name", "version", "hash",
"index", "size", "url"}]}; or {"source": ...}, with the same members and "file": this source has
to be built before resolving can continue. With "build", standard input is a socket that passes
descriptors: the file for a source, and the files of the built wheels.
"""

import gc
import inspect
import json
import re
import traceback
import urllib.parse

FILES = "/tmp/packages"
FOUND = "/tmp/found"
STOPPED = 9


def run_pip(asked):
    """Runs pip with changes, in a process of its own. For each name it uses one index, the first
    that has the name, even if other indexes have newer versions. It reports where its files come
    from. It never runs a source, which it would do to learn the dependencies: it stops at the
    first source, if possible before the download. With "fills" it sees the packages of the
    profile."""
    from pip._internal.cli.main import main
    from pip._internal.cli.req_command import RequirementCommand
    from pip._internal.distributions.sdist import SourceDistribution
    from pip._internal.models.search_scope import SearchScope
    from pip._internal.resolution.resolvelib.factory import Factory
    from pip._vendor.packaging.utils import canonicalize_name

    index_of, wheels = {}, {}
    # Since pip 24.1 a URL in a requirement does not pass through the first of these functions.
    maker = next(name for name in ("_make_base_candidate_from_link", "_make_candidate_from_link")
                 if hasattr(Factory, name))
    make = getattr(Factory, maker)
    resolver_of = RequirementCommand.make_resolver.__func__

    def end(status, **what):
        with open(FOUND, "w") as f:
            json.dump(what, f)
        sys.stdout.flush()
        os._exit(status)

    def page_of(url, name):
        return "%s/%s/" % (url.rstrip("/"), name)

    def has(url, name):
        try:
            open_url(page_of(url, name), asked["seconds"]).close()
        except OSError as e:
            if getattr(e, "code", None) in (404, 410):
                return False
            print("ERROR: the index %s does not say whether it has %s: %s" % (url, name, e))
            end(1)
        return True

    def pages(self, project):
        name = canonicalize_name(project)
        if name not in index_of:
            urls = asked["ties"].get(name, asked["indexes"])
            index_of[name] = next((url for url in urls if len(urls) == 1 or has(url, name)), None)
        return [page_of(index_of[name], name)] if index_of[name] else []

    def describe(link, name):
        index = link.comes_from and name and index_of.get(canonicalize_name(name))
        hashes = getattr(link, "_hashes", None) or {link.hash_name: link.hash}
        return {"url": link.url_without_fragment, "index": index or None,
                "hashes": {kind: value for kind, value in hashes.items() if kind}}

    def make_of_wheel(self, link, *arguments, **named):
        given = inspect.signature(make).bind(self, link, *arguments, **named).arguments
        name, version = given["name"], given["version"]
        if link.is_wheel:
            wheels[link.filename] = describe(link, name)
            return make(self, link, *arguments, **named)
        end(STOPPED, name=name, version=version and str(version), **describe(link, name))

    def prepare_nothing(self, *args, **kwargs):
        end(STOPPED, version=None, **describe(self.req.link, None))

    def make_resolver(cls, *args, **kwargs):
        return resolver_of(cls, *args, **{**kwargs, "ignore_installed": not asked["fills"]})

    RequirementCommand.make_resolver = classmethod(make_resolver)
    SearchScope.get_index_urls_locations = pages
    setattr(Factory, maker, make_of_wheel)
    SourceDistribution.prepare_distribution_metadata = prepare_nothing
    end(main(asked["arguments"]), wheels=wheels)


def fork_pip(asked):
    """A process of pip, and the file of its output. It is forked: a new interpreter would have to
    import again what this one has. It is short, so looking for garbage would cost more than that
    frees."""
    output, to = os.pipe()
    sys.stdout.flush()
    if pid := os.fork():
        os.close(to)
        return pid, open(output, encoding="utf-8", errors="replace")
    try:
        gc.disable()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for fd, standard in ((nothing, 0), (to, 1), (to, 2)):
            os.dup2(fd, standard)
        os.closerange(3, 65536)
        sys.stdin = open(0, closefd=False)
        sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", errors="replace", closefd=False)
        run_pip(asked)
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
    finally:
        os._exit(1)


class Resolver:
    def __init__(self, requirements, indexes, ties, urls, seconds, require_hashes, max_bytes, build,
                 built, fills):
        self.requirements, self.indexes, self.ties = requirements, indexes, ties
        self.seconds = seconds
        self.direct = {file_of(url): url for url in urls}
        self.require_hashes, self.max_bytes = require_hashes, max_bytes
        self.build, self.fills = build, fills
        self.built = {wheel["file"]: wheel["package"] for wheel in built}

    def ask_pip(self):
        """Runs pip. Returns its exit status, and the files that it found."""
        # With --prefer-binary a source is used only if no wheel fits.
        kinds = ["--prefer-binary"] if self.build else ["--only-binary", ":all:"]
        if self.built:
            kinds += ["--find-links", BUILT]
        # Requirements are passed neither in a file, in which a line may have options, nor as
        # arguments of a program, whose size is bounded.
        arguments = [
            "--isolated", "--no-input", "--no-color", "--disable-pip-version-check",
            "--no-cache-dir", "--proxy", PROXY, "--timeout", str(self.seconds), "--retries", "1",
            "download", "--progress-bar", "off", *kinds, "--index-url", self.indexes[0],
            "--dest", FILES, "--", *map(one_line, self.requirements)]
        errors = ""
        pid, output = fork_pip({"arguments": arguments, "indexes": self.indexes, "ties": self.ties,
                                "seconds": self.seconds, "fills": self.fills})
        with output:
            for line in output:
                if line.startswith("ERROR: "):
                    errors += line
                else:
                    print(line, end="", flush=True)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status not in (0, STOPPED):
            if "from versions: none" in errors:
                self.find_unreachable()
            print(errors, end="", flush=True)
            sys.exit(status if status > 0 else 1)
        with open(FOUND, encoding="utf-8") as f:
            return status, json.load(f)

    def find_unreachable(self):
        """Ends if an index cannot be reached. pip says of it that it has no version."""
        for url in dict.fromkeys(sum(self.ties.values(), self.indexes)):
            try:
                open_url(url, self.seconds).close()
            except OSError as e:
                if getattr(e, "code", 502) in (502, 503, 504):
                    fail("the index %s cannot be reached: %s" % (url, e))

    def describe(self, name, version, file, sha256, size, link):
        index = link["index"] or self.direct.get(file)
        if not index:
            fail("no index has", file)
        if self.require_hashes and link["index"] and sha256 != "sha256:%s" % (
                link["hashes"].get("sha256")):
            fail("the index does not say the SHA-256 of", file)
        return {"name": re.sub(r"[-_.]+", "-", name).lower(), "version": version, "hash": sha256,
                "size": size, "index": index, "url": link["url"]}

    def look(self, file, link):
        if file in self.built:
            return self.built[file]
        if not link:
            fail("no index has", file)
        name, version = file.split("-")[:2]
        path = os.path.join(FILES, file)
        with open(path, "rb") as f:
            sha256 = digest_of(f)
        return self.describe(name, version, file, sha256, os.path.getsize(path), link)

    def download(self, url, to):
        """Downloads a URL into an empty file, at most max_bytes."""
        size = 0
        try:
            with open_url(url, self.seconds) as page:
                while block := page.read(1 << 16):
                    size += len(block)
                    if size > self.max_bytes:
                        fail("%s is larger than max_bytes" % file_of(url))
                    to.write(block)
        except OSError as e:
            fail("%s could not be downloaded: %s" % (file_of(url), e))
        to.flush()

    def fetch_source(self, fd, link):
        url, file = link["url"], file_of(link["url"])
        if not self.build or not link["version"]:
            fail("%s is no wheel, and nothing is built of what a URL names" % url)
        with open(fd, "w+b") as to:
            self.download(url, to)
            to.seek(0)
            sha256 = digest_of(to)
            size = to.tell()
            for kind, value in link["hashes"].items():
                to.seek(0)
                if digest_of(to, kind) != "%s:%s" % (kind, value):
                    fail("%s is another file than the index says, by its %s" % (file, kind))
        return {"file": file,
                **self.describe(link["name"], link["version"], file, sha256, size, link)}


def file_of(url):
    return os.path.basename(urllib.parse.unquote(urllib.parse.urlsplit(url).path))


def main(built, build, **more):
    resolver = Resolver(built=built, build=build, **more)
    fds = handed(1 + len(built)) if build else []
    take_built(built, fds[1:])
    status, found = resolver.ask_pip()
    if status == STOPPED:
        return {"source": resolver.fetch_source(fds[0] if build else -1, found)}
    return {"packages": [resolver.look(file, found["wheels"].get(file))
                         for file in sorted(os.listdir(FILES))]}


main(**json.loads(sys.argv[1]))
