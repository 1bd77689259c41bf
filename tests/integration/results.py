#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a script shows and what it leaves: figures, pictures, tables, display(), files in
/workspace, and the files that a call puts there.

A suite of tests/integration/run."""

import base64
import contextlib
import hashlib
import json
import os
import re
import struct
import subprocess
import tempfile
import urllib.parse
import zlib

from harness import SOMEBODY, Skip, equal, main, proto_version, test
from mcpclient import Client, Outcome, RpcError
from waits import until

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROBE = "import importlib.util\nimportlib.util.find_spec(%r) is not None"
SCHEME = "mcp-python://"
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def need(client, *packages):
    for package in packages:
        if client.run(PROBE % package).result["repr"] != "True":
            raise Skip("%s is not installed" % package, missing=True)


def blocks(o, kind):
    return [c for c in o.raw["content"] if c["type"] == kind]


def decode_png(data):
    """The size of a PNG and its pixels' bytes, or an error: signature, chunks, their sums."""
    equal(data[:8], b"\x89PNG\r\n\x1a\n", "signature")
    at, size, packed = 8, None, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        equal(struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0],
              zlib.crc32(kind + body), "sum of %r" % kind)
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    return size, zlib.decompress(packed)


def images(o):
    found = []
    for block in blocks(o, "image"):
        equal(block["mimeType"], "image/png")
        found.append(decode_png(base64.b64decode(block["data"], validate=True))[0])
    return found


def shown(o):
    return [(d["index"], d["mime_type"]) for d in o.structured["displays"]]


def well(o):
    assert o.status == "ok", repr(o)
    return o


def read(client, uri):
    return client.ask("resources/read", {"uri": uri})["contents"][0]


def refused_to_read(client, uri):
    try:
        read(client, uri)
    except RpcError as e:
        assert e.code in (-32002, -32602), e
        return
    raise AssertionError("%s can be read" % uri)


# ---- shown ----


@test
def figures_come_back(ctx):
    """Left open, shown, and shown again after a change; none twice."""
    with ctx.client() as client:
        need(client, "matplotlib")
        o = well(client.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(4, 3), dpi=50)\n"
                            "plt.plot([1, 2, 3])\nNone", ctx.seconds(120)))
        equal(images(o), [(200, 150)], "left open")
        d = o.structured["displays"][0]
        equal((d["index"], d["mime_type"], d["width"], d["height"]), (0, "image/png", 200, 150))
        equal(d["bytes"], len(base64.b64decode(blocks(o, "image")[0]["data"])))
        assert "200 x 150" in o.text, o.text
        o = well(client.run("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nplt.close()\n"
                            "f = plt.figure(figsize=(2, 2), dpi=50)\nplt.show()\nplt.show()\nf",
                            ctx.seconds(120)))
        equal(images(o), [(640, 480), (100, 100)], "shown")
        equal(o.stderr, "", "stderr")
        o = well(client.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 2), dpi=50)\n"
                            "plt.show()\nplt.plot([1])", ctx.seconds(120)))
        equal(images(o), [(100, 100)] * 2, "shown, then changed")


@test
def figures_of_a_script_that_fails(ctx):
    with ctx.client() as client:
        need(client, "matplotlib")
        o = client.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 2), dpi=50)\n1/0",
                       ctx.seconds(120))
        equal((o.status, images(o)), ("error", [(100, 100)]))
        o = client.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 2), dpi=50)\n"
                       "plt.show()\nwhile True: print('x' * 65536)", ctx.seconds(120),
                       timeout_seconds=100, cpu_seconds=100)
        equal(o.status, "output_limit", repr(o))
        equal(images(o), [(100, 100)], "before it was stopped")


@test
def without_sys_modules_a_script_ends(ctx):
    """Where figures of matplotlib are looked for."""
    with ctx.client() as client:
        o = well(client.run("import sys\nsys.modules = None\nprint('the end')\n'value'"))
        equal((o.stdout, o.stderr, o.result["repr"]), ("the end\n", "", "'value'"))


@test
def matplotlib_is_not_imported_for_nothing(ctx):
    with ctx.client() as client:
        o = well(client.run("import sys, os\nprint('matplotlib' in sys.modules, 'MPLBACKEND' in "
                            "os.environ, 'pandas' in sys.modules)"))
        equal(o.stdout, "False False False\n")
        equal(o.structured["displays"], [])
        equal(o.structured["files"], [])
        equal(o.structured["omitted"], None)


@test
def pictures_come_back(ctx):
    with ctx.client() as client:
        need(client, "PIL")
        o = well(client.run("from PIL import Image\nImage.new('RGB', (7, 5), 'red')"))
        equal(images(o), [(7, 5)], "result")
        assert o.result["repr"].startswith("<PIL.Image.Image"), o.result
        o = well(client.run("from PIL import Image\ndisplay(Image.new('L', (3, 2)), "
                            "Image.new('1', (9, 9)))\nprint('x')"))
        equal((images(o), o.stdout), ([(3, 2), (9, 9)], "x\n"))


@test
def data_frames_come_back(ctx):
    with ctx.client() as client:
        need(client, "pandas")
        o = well(client.run("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None]})",
                            ctx.seconds(120)))
        equal(shown(o), [(0, "application/json")])
        equal(o.structured["displays"][0]["json"],
              {"columns": ["a", "b"], "row_count": 2,
               "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": None}]})
        assert "0  1     x" in o.result["repr"], o.result
        o = well(client.run("import pandas as pd\ndf = pd.DataFrame({'n': range(100000)})\n"
                            "display(df)", ctx.seconds(120)))
        equal(shown(o), [(0, "text/plain"), (0, "application/json")])
        rows = o.structured["displays"][1]["json"]
        equal((rows["row_count"], len(rows["rows"]), rows["rows"][19]), (100000, 20, {"n": 19}))
        assert "[100000 rows x 1 columns]" in o.text, o.text


RICH = """
class Rich:
    def __init__(self, **forms):
        self.forms = forms
    def __repr__(self):
        return "rich"
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {k.replace("_", "/"): v for k, v in self.forms.items()}, {}
class Svg:
    def _repr_svg_(self): return "<svg xmlns='http://www.w3.org/2000/svg'/>"
class Html:
    def _repr_html_(self): return "<b>bold</b>"
    def _repr_markdown_(self): return "**bold**"
class Json:
    def _repr_json_(self): return {"deep": [1, 2]}
"""


@test
def objects_choose_their_forms(ctx):
    with ctx.client() as client:
        o = well(client.run(RICH + "display(Svg(), Html(), Json(), 42, 'text')\n"
                            "Rich(text_html='<i>r</i>', text_plain='plain')"))
        equal(shown(o), [(0, "image/svg+xml"), (0, "text/plain"), (1, "text/html"),
                         (1, "text/markdown"), (2, "text/plain"), (2, "application/json"),
                         (3, "text/plain"), (4, "text/plain"), (5, "text/html")])
        embedded = [b["resource"] for b in blocks(o, "resource")]
        equal([(e["mimeType"], e["text"]) for e in embedded],
              [("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
               ("text/html", "<b>bold</b>"), ("text/html", "<i>r</i>")])
        equal(len({e["uri"] for e in embedded}), 3, "addresses")
        assert "**bold**\n" in o.text and "42\n'text'\n" in o.text, o.text
        equal(len(blocks(o, "text")), 1)
        equal(o.structured["displays"][5]["json"], {"deep": [1, 2]})
        equal(o.result["repr"], "rich")
        o = well(client.run("display({'text/html': '<p>', 'x/y': 1}, raw=True)\ndisplay()"))
        equal(shown(o), [(0, "text/html")])


@test
def every_revision_has_them(ctx):
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"):
        with ctx.client(revision) as client:
            o = client.run(RICH + "open('f.txt', 'w').write('x')\ndisplay(Html())")
            equal(len(blocks(o, "resource")), 1, revision)
            assert ("f.txt" if revision < "2025-06-18" else ", 1 file]") in o.text, o.text
            if revision in ("2024-11-05", "2025-03-26"):
                assert SCHEME in o.text, o.text
            else:
                equal(blocks(o, "resource_link")[0]["name"], "f.txt", revision)


HOSTILE = """
class Raises:
    def _repr_png_(self): raise RuntimeError("x")
class Exits:
    def _repr_html_(self): raise SystemExit(3)
class Garbage:
    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n" + b"y" * 100
class Number:
    def _repr_png_(self): return 7
class Surrogate:
    def _repr_html_(self): return "\\ud800\\0<b>"
class Recursive:
    def _repr_json_(self):
        x = []
        x.append(x)
        return x
class Everything:
    def __getattr__(self, name): raise ValueError(name)
class NoRepr:
    def _repr_svg_(self): return None
    def __repr__(self): raise ValueError("r")
class Meta(type):
    def __getattribute__(cls, name): raise ValueError(name)
class Worst(metaclass=Meta):
    def _repr_mimebundle_(self): return self
class Lying(dict):
    def __contains__(self, key): return True
    def get(self, key): raise ValueError
class Bundle:
    def _repr_mimebundle_(self): return Lying({"text/html": "ok"})
class Newline:
    def _repr_json_(self): return {"a\\n": "b\\r\\n"}
"""


@test
def hostile_objects_are_told_of(ctx):
    names = ("Raises", "Exits", "Garbage", "Number", "Surrogate", "Recursive", "Everything",
             "NoRepr", "Bundle", "Newline")
    with ctx.client() as client:
        for name in names:
            for form in ("display(%s())\nprint('after')", "print('after')\n%s()"):
                o = well(client.run(HOSTILE + form % name))
                equal((o.stdout, o.exit_code), ("after\n", 0), name)
                equal(images(o), [], name)
        o = well(client.run(HOSTILE + "display(Raises(), Exits(), Number())"))
        for want in ("Raises object: _repr_png_() raised RuntimeError",
                     "Exits object: _repr_html_() raised SystemExit", "Number object: "):
            assert want in o.text, o.text
        # Garbage that begins like a picture is no picture: left out, and said.
        o = well(client.run(HOSTILE + "display(Garbage())"))
        assert "a picture of 108 bytes is not a valid PNG, and is not shown" in o.text, o.text
        o = well(client.run(HOSTILE + "try:\n    display(Worst())\nexcept ValueError: pass\n"
                            "print('on')\nWorst()"))
        equal(o.stdout, "on\n")
        o = client.run("class Loop:\n    def _repr_html_(self):\n        while True: pass\n"
                       "print('before', flush=True)\nLoop()", timeout_seconds=1)
        equal((o.status, o.stdout), ("timeout", "before\n"))
        ctx.healthy(client)


@test
def the_socket_of_a_worker_is_no_way_in(ctx):
    """The script may write what it likes to the supervisor; it harms itself alone."""
    with ctx.client() as client:
        o = client.run("import os\nos.write(63, b'\\x01\\x0e\\0\\0\\0\\x05hello')\n"
                       "import time\ntime.sleep(5)")
        equal(o.status, "worker_protocol_error")
        o = client.run("import os\nos.close(63)\ndisplay(1)\nprint('x')")
        equal((o.status, o.stdout), ("ok", "x\n"))
        ctx.healthy(client)


FORGED = """
import os, struct
def left(path):
    path = path.encode()
    body = b"\\x82\\xa4path" + bytes([0xa0 + len(path)]) + path + b"\\xa4size\\x05"
    os.write(63, struct.pack(">BBI", %d, 15, len(body)) + body)	# LEFT
""" % proto_version()


@test
def paths_that_a_worker_makes_up_are_refused(ctx):
    """A client may save what was left by its path, and shows it in its terminal."""
    with ctx.client() as client:
        o = client.run(FORGED + "left('a/b')")
        equal((o.status, [f["path"] for f in o.structured["files"]]), ("ok", ["a/b"]))
        for path in ("../x", "/abs", "a/../../x", "a//b", "./a", "a/", "a\\n[ok]", "\\x1b[2J",
                     "\\x9b31m", "\\u202egpj.exe", "a\\u200bb", "\\ufeffa", "a\\u2028b"):
            o = client.run(FORGED + "left('%s')" % path)
            equal(o.status, "worker_protocol_error", path)
        ctx.healthy(client)


@test
def shows_are_capped(ctx):
    with ctx.client() as client:
        o = well(client.run(RICH + "for i in range(30): display(Html())"))
        equal(len(blocks(o, "resource")), 20)
        equal(o.structured["omitted"], {"displays": 10, "files": 0})
        assert "10 more not shown" in o.text, o.text
        # A picture of one colour, made large by what follows its end.
        o = well(client.run("import zlib, struct\n"
                            "def chunk(k, b): return struct.pack('>I', len(b)) + k + b + "
                            "struct.pack('>I', zlib.crc32(k + b))\n"
                            "png = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', "
                            "1, 1, 8, 0, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(b'\\0\\0'))\n"
                            "end = chunk(b'IEND', b'')\n"
                            "class P:\n    def __init__(self, n): self.n = n\n    def _repr_png_(self):\n        return png + "
                            "chunk(b'teXt', b'k\\0' + bytes([self.n]) * 1500000) + end\n"
                            "display(P(0), P(1), P(2))\nprint('\\x01' * (1 << 20))"))
        assert images(o) in ([(1, 1)] * 2, [(1, 1)] * 3), images(o)
        assert "the whole one is /workspace/display-2.png" in o.text, o.text
        equal([f["path"] for f in o.structured["files"]], ["display-2.png"])
        assert o.line_bytes < 10 << 20, o.line_bytes
        # Markup of characters that take six times their room.
        o = well(client.run("class H:\n    def _repr_html_(self): return '\\x01' * 1000000\n"
                            "display(*[H() for i in range(4)])"))
        assert o.structured["omitted"]["displays"] >= 3, o.structured["omitted"]


def cell(client, code, **arguments):
    """The whole result of run_repl."""
    return client.ask("tools/call", {"name": "run_repl", "arguments": {"code": code, **arguments}})


@test
def what_was_shown_can_be_read(ctx):
    """Pictures and markup, of scripts and of cells, as they were shown."""
    code = RICH + ("display(Rich(image_png=%r, text_plain='t'), Svg(), Html(), 'text', Json())" % PNG)
    with ctx.client() as client:
        o = well(client.run(code))
        for got in (o.raw, cell(client, code)):
            shows = got["structuredContent"]["displays"]
            looked_at = [d for d in shows if d["mime_type"] in ("image/png", "image/svg+xml", "text/html")]
            equal([d["uri"].partition("#")[2] for d in looked_at],
                  ["display-0.png", "display-1.svg", "display-2.html"])
            equal([d for d in shows if "uri" in d], looked_at)
            text = "".join(b["text"] for b in got["content"] if b["type"] == "text")
            resources = {b["resource"]["uri"]: b["resource"]["text"]
                         for b in got["content"] if b["type"] == "resource"}
            for d in looked_at:
                kept = read(client, d["uri"])
                equal(kept["mimeType"], d["mime_type"])
                data = base64.b64decode(kept["blob"]) if "blob" in kept else kept["text"].encode()
                equal(len(data), d["bytes"])
                equal(data, PNG if d["mime_type"] == "image/png" else resources[d["uri"]].encode())
                assert d["uri"] in text or d["uri"] in resources, (d, text)


NOISE = """import io, os
from PIL import Image
picture = Image.frombytes('%s', (300, 200), os.urandom(300 * 200 * %d))
"""


@test(private=True)
def a_picture_that_is_too_large_is_scaled(ctx):
    """The whole one is among the files. What is shown still has its shape."""
    with ctx.private("[results]\ndisplay_kb = 100\n") as service, ctx.client(path=service.socket) as client:
        need(client, "PIL")
        for mode, channels in (("RGB", 3), ("RGBA", 4)):
            o = well(client.run(NOISE % (mode, channels) + "picture"))
            [(width, height)] = images(o)
            assert 30 < width < 200 and abs(width / height - 1.5) < 0.1, (width, height)
            assert sum(d["bytes"] for d in o.structured["displays"]) <= 100 << 10, o.structured["displays"]
            assert "shown with %d x %d pixels instead of 300 x 200" % (width, height) in o.text, o.text
            [file] = o.structured["files"]
            equal(file["path"], "display-0.png")
            assert file["size"] > 150000 and "/workspace/display-0.png" in o.text, o.text
            whole = base64.b64decode(read(client, file["uri"])["blob"])
            equal((decode_png(whole)[0], hashlib.sha256(whole).hexdigest()), ((300, 200), file["sha256"]))
            equal(o.structured["omitted"], None)
        # Several, a JPEG, and a name that is taken.
        o = well(client.run(NOISE % ("RGB", 3) + "open('display-0.png', 'w').write('mine')\n"
                            "out = io.BytesIO()\npicture.save(out, format='JPEG', quality=100)\n"
                            "display(picture)\ndisplay({'image/jpeg': out.getvalue()}, raw=True)"))
        equal([b["mimeType"] for b in blocks(o, "image")], ["image/png", "image/jpeg"])
        files = {f["path"]: f for f in o.structured["files"]}
        equal(sorted(files), ["display-0-1.png", "display-0.png", "display-1.jpg"])
        equal(read(client, files["display-0.png"]["uri"])["text"], "mine")
        # A figure of matplotlib.
        if client.run(PROBE % "matplotlib").result["repr"] == "True":
            o = well(client.run("import numpy, matplotlib.pyplot as plt\nplt.figure(figsize=(20, 20))\n"
                                "plt.imshow(numpy.random.rand(1500, 1500))\nplt.show()", timeout_seconds=60))
            equal([len(images(o)), [f["path"] for f in o.structured["files"]]], [1, ["display-0.jpg"]])
        # What only looks like a picture cannot be scaled, and is not lost.
        o = well(client.run("display({'image/png': b'\\x89PNG\\r\\n\\x1a\\n' + bytes(200000)}, raw=True)"))
        assert images(o) == [] and "is too large to be shown; the whole one is" in o.text, o.text
        equal([f["path"] for f in o.structured["files"]], ["display-0.png"])


@test
def a_picture_that_was_shown_is_not_held(ctx):
    with ctx.client() as client:
        o = client.run("import weakref\nfrom PIL import Image\npicture = Image.new('RGB', (2000, 2000))\n"
                       "there = weakref.ref(picture)\ndisplay(picture)\ndel picture\nprint(there())")
        equal(o.stdout, "None\n")


@test
def pictures_are_shown_in_the_readers_size(ctx):
    """At most 1568 pixels a side, the whole one a file that outlives the script; other formats as PNG."""
    with ctx.client() as client:
        need(client, "PIL")
        o = well(client.run("from PIL import Image\nImage.new('RGB', (9000, 3000), 'white')", timeout_seconds=60))
        equal(images(o), [(1568, 523)])
        assert "shown with 1568 x 523 pixels instead of 9000 x 3000; the whole one is /workspace/display-0.png" in o.text
        [file] = o.structured["files"]
        equal(decode_png(base64.b64decode(read(client, file["uri"])["blob"]))[0], (9000, 3000))
        # A picture of PIL is scaled as it is: what it was encoded to is not decoded again.
        o = well(client.run("from PIL import Image\nImage.open = None\nImage.new('RGB', (3000, 1500), 'red')"))
        equal(images(o), [(1568, 784)])
        o = well(client.run("from PIL import Image\nImage.new('RGB', (1568, 1568), 'white')"))
        equal((images(o), o.structured["files"]), ([(1568, 1568)], []))
        # What would not outlive the script is made smaller for its file.
        o = well(client.run("import os\nfrom PIL import Image\nImage.frombytes('RGB', (2000, 1500), "
                            "os.urandom(9000000))", timeout_seconds=60))
        [(width, height)] = images(o)
        assert width <= 1568 and abs(width / height - 4 / 3) < 0.01, (width, height)
        assert re.search(r"instead of 2000 x 1500; /workspace/display-0.jpg has \d+ x \d+ pixels", o.text), o.text
        [file] = o.structured["files"]
        assert file["uri"] and file["size"] <= 4 << 20, file
        # JPEG stays JPEG; other formats, and what is no picture at all.
        o = well(client.run(
            "import io\nfrom PIL import Image\nimport IPython.display as d\ndef put(f, size=(50, 40), **more):\n"
            "    out = io.BytesIO()\n    Image.new('RGB', size, 'red').save(out, f, **more)\n    return out.getvalue()\n"
            "more = {'save_all': True, 'append_images': [Image.new('RGB', (50, 40), c) for c in ('blue', 'green')]}\n"
            "display({'image/jpeg': put('JPEG', (2000, 10))}, raw=True)\ndisplay(d.Image(data=put('GIF', **more)))\n"
            "display({'image/tiff': put('TIFF')}, raw=True)\ndisplay(d.Image(put('WEBP')))\n"
            "display({'image/png': b'\\x89PNG\\r\\n\\x1a\\n' + b'y' * 100}, raw=True)\n"
            "display({'image/x-y': b'nothing'}, raw=True)"))
        equal([b["mimeType"] for b in blocks(o, "image")], ["image/jpeg"] + 3 * ["image/png"])
        for want in ("GIF, shown as PNG (the first of 3 pictures); the whole one is /workspace/display-1.gif",
                     "TIFF, shown as PNG; ", "WEBP, shown as PNG; ", "is not a valid PNG, and is not shown",
                     "is in a format that cannot be shown; the whole one is /workspace/display-5.bin"):
            assert want in o.text, (want, o.text)
    with ctx.private("[results]\npicture_pixels = 100\n") as service, ctx.client(path=service.socket) as client:
        equal(images(well(client.run("from PIL import Image\nImage.new('RGB', (101, 50), 'white')"))), [(100, 50)])


@test
def numbers_are_exact(ctx):
    """Integers that JavaScript rounds are text in JSON; what cannot be shown says why."""
    with ctx.client() as client:
        o = well(client.run("{'id': 1915883588174806058, 'n': [2 ** 53 - 1, 2 ** 53, -2 ** 53]}"))
        equal((o.result["json"], o.result["json_exact"]),
              ({"id": "1915883588174806058", "n": [2 ** 53 - 1, str(2 ** 53), str(-2 ** 53)]}, False))
        o = well(client.run("9007199254740991"))
        equal((o.result["json"], o.result.get("json_exact", True)), (9007199254740991, True))
        o = well(client.run("2 ** 20000"))
        assert "Exceeds the limit (4300 digits)" in o.result["repr"], repr(o)
        need(client, "numpy")
        o = well(client.run("import numpy\nnumpy.array([2 ** 62, 1])"))
        equal(o.result["json"], [str(2 ** 62), 1])


@test
def columns_of_one_name_are_shown(ctx):
    with ctx.client() as client:
        need(client, "pandas")
        frame = ("import pandas as pd\na = pd.DataFrame({'v': [1, 2], 'v.1': [5, 6]})\n"
                 "f = pd.concat([a, a, pd.DataFrame({'v': [3, 4]})], axis=1)\n")
        row = {"v": 1, "v.1": 5, "v.2": 1, "v.1.1": 5, "v.3": 3}
        o = well(client.run(frame + "f"))
        assert "raised" not in o.text, o.text
        equal(o.structured["displays"][0]["json"]["rows"][0], row)
        o = well(client.run(frame + "{'f': f}"))
        equal((o.result["json"]["f"][0], o.stderr), (row, ""))
        # All columns of a table that is wider than an old terminal.
        o = well(client.run("pd = __import__('pandas')\npd.DataFrame([range(12)] * 3, columns=['column%d' % i for i in range(12)])"))
        assert "column6" in o.result["repr"] and "..." not in o.result["repr"], o.result


@test
def markup_that_is_too_large_is_a_file(ctx):
    """It is not cut. The text says where it is, and what else the object has is shown."""
    script = ("class Page:\n"
              "    def __init__(self, size): self.size = size\n"
              "    def _repr_html_(self): return '<p>' + '\u00e9' * (self.size // 2)\n"
              "    def __repr__(self): return 'a page'\n")
    with ctx.client() as client:
        o = well(client.run(script + "display(Page(3 << 20))\nPage(2 << 20)", timeout_seconds=60))
        equal(shown(o), [(0, "text/plain"), (1, "text/plain")])
        equal(o.structured["omitted"], None)
        equal([(f["path"], f["size"]) for f in o.structured["files"]],
              [("display-0.html", 3 + (3 << 20)), ("display-1.html", 3 + (2 << 20))])
        for file in o.structured["files"]:
            assert "HTML of %d bytes is too large to be shown; the whole one is /workspace/%s" % (
                file["size"], file["path"]) in o.text, o.text
            whole = read(client, file["uri"])["text"].encode()
            equal((len(whole), hashlib.sha256(whole).hexdigest()), (file["size"], file["sha256"]))
        assert "\n\na page" in o.text, o.text
        # Within the bound it is shown, as long as there is room for all. What is Markdown stays so.
        o = well(client.run("for i in range(5):\n"
                            "    display({'image/svg+xml': '<svg>' + ' ' * (900 << 10) + '</svg>',"
                            " 'text/markdown': '*m*'}, raw=True)", timeout_seconds=60))
        equal(shown(o), [(i, t) for i in range(4) for t in ("image/svg+xml", "text/markdown")] + [(4, "text/markdown")])
        equal([f["path"] for f in o.structured["files"]], ["display-4.svg"])
        assert "SVG of %d bytes is too large" % (11 + (900 << 10)) in o.text and "*m*" in o.text, o.text


@test
def processes_of_the_script_show_nothing(ctx):
    with ctx.client() as client:
        o = well(client.run("import os\nif os.fork() == 0:\n    display(1)\n    os._exit(0)\n"
                            "os.wait()\ndisplay(2)"))
        equal(shown(o), [(0, "text/plain")])


@test
def answers_fit_their_schema(ctx):
    if jsonschema is None:
        raise Skip("python3-jsonschema is not installed", missing=True)
    with ctx.client() as client:
        tools = client.ask("tools/list")["tools"]
        schema = next(t for t in tools if t["name"] == "run_script")["outputSchema"]
        for script in ("1", RICH + "display(Json(), Svg())\nopen('a', 'w')", "1/0",
                       "for i in range(150): open(str(i), 'w')"):
            jsonschema.validate(client.run(script).structured, schema)
        jsonschema.validate(client.run("1", files=[{}]).structured, schema)


# ---- left ----


@test
def files_are_listed(ctx):
    content = {"a.csv": b"x,y\n1,2\n", "sub/dir/b.bin": bytes(range(256)), "empty": b"",
               "caf\u00e9 %41.txt": b"accent"}
    script = "import os\nos.makedirs('sub/dir')\nfor path, data in %r.items():\n" \
             "    with open(path, 'wb') as f: f.write(data)\n" % content
    with ctx.client() as client:
        o = well(client.run(script))
        files = o.structured["files"]
        equal([f["path"] for f in files], sorted(content, key=str.encode))
        for f in files:
            data = content[f["path"]]
            equal((f["size"], f["sha256"]), (len(data), hashlib.sha256(data).hexdigest()))
            equal(f["uri"], SCHEME + o.id + "/" + urllib.parse.quote(f["path"], safe="/~"))
            got = read(client, f["uri"])
            equal(got["uri"], f["uri"])
            equal(got["text"].encode() if "text" in got else base64.b64decode(got["blob"]), data)
            equal("blob" in got, f["path"] == "sub/dir/b.bin")
        equal({f["path"]: f["mime_type"] for f in files}["a.csv"], "text/csv")
        equal({b["uri"] for b in blocks(o, "resource_link")}, {f["uri"] for f in files})
        listed, cursor = [], None
        while True:
            page = client.ask("resources/list", {"cursor": cursor} if cursor else {})
            listed += [r["uri"] for r in page["resources"]]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        assert {f["uri"] for f in files} <= set(listed), listed


@test
def files_are_their_tenants_alone(ctx):
    if os.getuid() != 0:
        raise Skip("needs root")
    with ctx.client() as a, ctx.client(uid=SOMEBODY) as b:
        uri = well(a.run("open('mine.txt', 'w').write('secret')")).structured["files"][0]["uri"]
        equal(read(a, uri)["text"], "secret")
        refused_to_read(b, uri)
        assert uri not in json.dumps(b.ask("resources/list")), "listed to another"
        for wrong in (uri + "x", uri[:-1], uri + "?", SCHEME, SCHEME + "x/../mine.txt", "file:///etc/passwd"):
            refused_to_read(a, wrong)


@test
def links_are_not_followed(ctx):
    with ctx.client() as client:
        o = well(client.run(
            "import os, socket\nos.symlink('/etc/passwd', 'link')\nos.symlink('/etc', 'etc')\n"
            "os.symlink('.', 'self')\nos.mkfifo('fifo')\nsocket.socket(socket.AF_UNIX).bind('sock')\n"
            "os.mkdir('closed')\nopen('closed/f', 'w')\nos.chmod('closed', 0)\n"
            "open('unreadable', 'w').write('1')\nos.chmod('unreadable', 0)\n"
            "open('real', 'w').write('r')"))
        equal([(f["path"], f["sha256"] is None) for f in o.structured["files"]],
              [("real", False), ("unreadable", True)])
        assert "root:" not in o.everything(), "content of /etc/passwd"


@test
def hostile_names_are_escaped(ctx):
    with ctx.client() as client:
        o = well(client.run("import os\nfor n in (b'\\xff\\xfe', b'line\\nfeed', b'\\x1b[31m', b'..x', "
                            "b'\\xc2\\x9b31m', b'\\xe2\\x80\\xaegpj.exe', b'a\\xe2\\x80\\x8bb', "
                            "b'a' * 255): open(n, 'w').close()\nos.mkdir(b'deep')\nos.chdir('deep')\n"
                            "for i in range(60):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\n"
                            "open('bottom', 'w')"))
        equal(sorted(f["path"] for f in o.structured["files"]),
              sorted(["\\xff\\xfe", "line\\x0afeed", "\\x1b[31m", "..x", "a" * 255,
                      "\\u009b31m", "\\u202egpj.exe", "a\\u200bb"]))
        for f in o.structured["files"]:
            assert "text" in read(client, f["uri"]), f


@test
def lists_of_files_are_bounded(ctx):
    with ctx.client() as client:
        o = well(client.run("for i in range(250): open('%03d' % i, 'w').write('x' * 20000)"))
        equal(len(o.structured["files"]), 100)
        equal(o.structured["omitted"], {"displays": 0, "files": 150})
        links = blocks(o, "resource_link")
        equal([b["name"] for b in links], ["%03d" % i for i in range(10)])
        assert ("/workspace: 90 more files (010, 011, 012, 013, 014, 015, 016, 017, 018, 019, 020, 021, ...), "
                "with uris %s/NAME\n(150 more files in /workspace have no uri: at most 100 of a call have one; put them into one archive)\n"
                % links[0]["uri"].rpartition("/")[0]) in o.text, o.text
        assert all("uri" in f for f in o.structured["files"]), "two megabytes of eight"
        o = well(client.run("for i in range(20): open('%02d' % i, 'w').write('x' * 1000000)"))
        equal(sum("uri" in f for f in o.structured["files"]), (8 << 20) // 1000000)
        o = well(client.run("open('large', 'wb').write(bytes(4096 * 1024 + 1))\n"
                            "open('kept', 'wb').write(bytes(4096 * 1024))\n"
                            "open('hole', 'wb').truncate(200 << 20)"))
        files = {f["path"]: f for f in o.structured["files"]}
        assert "uri" not in files["large"] and "uri" in files["kept"], files
        equal((files["large"]["kept"], files["kept"].get("kept")), (False, None))
        assert "/workspace/large (4194305 bytes) has no uri: files of at most 4 MiB are: split it or compress it\n" in o.text, o.text
        equal(files["large"]["sha256"], hashlib.sha256(bytes(4096 * 1024 + 1)).hexdigest())
        equal((files["hole"]["size"], files["hole"]["sha256"]), (200 << 20, None))


@test
def files_of_a_script_that_ends_badly(ctx):
    with ctx.client() as client:
        for end in ("1/0", "import os\nos._exit(3)", "import os\nos.abort()", "import sys\nsys.exit(2)"):
            o = client.run("with open('kept.txt', 'w') as f: f.write('kept')\n" + end)
            assert o.status in ("error", "crashed"), repr(o)
            equal(read(client, o.structured["files"][0]["uri"])["text"], "kept", end)


BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
EAT = "kept = []\nwhile True: kept.append(b'x' * (20 << 20))"


@test
def files_of_a_script_that_is_stopped(ctx):
    with ctx.client(timeout=120) as client:
        for end, statuses, limits in (
                ("import time\ntime.sleep(600)", ("timeout",), {"timeout_seconds": 1}),
                ("while True: pass", ("cpu_limit",), {"cpu_seconds": 1}),
                ("while True: print('x' * 65536)", ("output_limit", "timeout", "cpu_limit"), {}),
                (BOMB, ("pids_limit", "timeout", "cpu_limit"), {"timeout_seconds": 2, "pids": 20}),
                (EAT, ("memory_limit",), {"memory_mb": 256})):
            o = client.run("import os\nos.mkdir('d')\nwith open('d/kept.txt', 'w') as f: "
                           "f.write('kept')\n" + end, **limits)
            assert o.status in statuses, repr(o)
            if o.status == "memory_limit" and not o.structured["files"]:
                # The kernel's, which ends all processes of a worker at once.
                equal(o.structured["omitted"], {"displays": 0, "files": None})
                assert "what files it left is not known" in o.text, o.text
                continue
            equal([(f["path"], f["size"], f["mime_type"], f["sha256"])
                   for f in o.structured["files"]],
                  [("d/kept.txt", 4, "text/plain", hashlib.sha256(b"kept").hexdigest())], end)
            equal(o.structured["omitted"], None)
            equal(read(client, o.structured["files"][0]["uri"])["text"], "kept", end)


@test(private=True)
def a_full_disk_hides_no_end(ctx):
    """Where nothing counts memory, init shares a page with the script in the worker's own file
    system."""
    fill = ("import os, time\nopen('small.txt', 'w').write('x')\nbig = open('big', 'wb', 0)\n"
            "for n in (1 << 20, 4096, 1):\n  try:\n    while True: big.write(bytes(n))\n"
            "  except OSError: pass\nprint('full', flush=True)\n")
    ends = (("os._exit(3)", "error", 3), ("os.kill(os.getpid(), 9)", "killed", 137),
            ("while True: os.write(2, bytes(65536))", "output_limit", 137))
    with ctx.private("[profile basic]\ndisk_bytes = 64M\n") as service, ctx.client(path=service.socket) as client:
        for end, status, code in ends:
            o = client.run(fill + end, ctx.seconds(60), timeout_seconds=60)
            equal((o.status, o.exit_code, o.stdout), (status, code, "full\n"), "%s: %r" % (end, o))
            assert "small.txt" in [f["path"] for f in o.structured["files"]], o.structured


@test
def what_a_stopped_script_told_of_files_is_void(ctx):
    with ctx.client(timeout=120) as client:
        deaf = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        o = client.run(FORGED + deaf + "left('made/up')\nopen('real', 'w').close()\n"
                       "while True: pass", timeout_seconds=1)
        assert o.status in ("timeout", "cpu_limit"), repr(o)
        equal([f["path"] for f in o.structured["files"]], ["real"])
        # Half a message is in the way of those that would follow.
        o = client.run(FORGED + deaf + "os.write(63, bytes((%d, 15)))\nopen('real', 'w').close()\n"
                       "time.sleep(600)" % proto_version(), timeout_seconds=1)
        equal((o.status, o.structured["files"], o.structured["omitted"]),
              ("timeout", [], {"displays": 0, "files": None}))
        # Nor does it help to ask init for it, where a script can reach it at all: with a
        # Landlock that knows of signals it cannot.
        o = client.run("import os, time\nopen('real', 'w').close()\nos.kill(1, 15)\n"
                       "time.sleep(600)")
        assert o.status == "killed" or "PermissionError" in o.stderr, repr(o)
        equal([f["path"] for f in o.structured["files"]], ["real"])
        ctx.healthy(client)


# ---- put there ----


DOT_PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
           "rkJggg==")
FAKE_IPYTHON = [
    {"path": "IPython/__init__.py", "text": ""}, {"path": "IPython/core/__init__.py", "text": ""},
    {"path": "IPython/core/display_functions.py", "text": "def display(*objects, **more): print(objects)\n"},
    {"path": "IPython/display.py", "text": "from IPython.core.display_functions import display\n"
     "class HTML:\n    def __init__(self, data): self.data = data\n"
     "    def _repr_html_(self): return self.data\n"}]


@test
def what_is_written_for_ipython_shows(ctx):
    """With a stand-in where IPython is not installed, and with its own classes where it is."""
    shown = "from IPython.display import display, HTML\ndisplay(HTML('<b>x</b>'))\nprint('after')"
    with ctx.client() as client:
        for files in ([], FAKE_IPYTHON):
            o = well(client.run(shown, files=files))
            equal(o.stdout, "after\n")
            equal(o.structured["displays"][0]["mime_type"], "text/html", o.structured)
        o = well(client.run("from IPython.display import *\nfrom IPython import get_ipython\n"
                            "from IPython.display import Markdown, Image, SVG, JSON, Pretty, clear_output\n"
                            "clear_output(wait=True)\nopen('p.png', 'wb').write(%r)\n"
                            "import IPython.display\nIPython.display.display(Markdown('*m*'), Image('p.png'))\n"
                            "[get_ipython(), Pretty('said').data]" % base64.b64decode(DOT_PNG)))
        equal(o.result["json"], [None, "said"])
        equal({d["mime_type"] for d in o.structured["displays"]} - {"text/plain"},
              {"text/markdown", "image/png"})
        o = client.run("import IPython\nfrom IPython.display import Image\nprint(IPython.__version__)\n"
                       "Image(url='http://a.example/b.png')")
        if o.stdout == "0\n":	# the stand-in
            assert o.status == "error" and "no network here" in o.stderr, o
        equal(client.run("import IPython.nothing").error["type"], "ModuleNotFoundError")


# What the libraries have where they show, as far as the worker changes it. Their own ways ask for a
# notebook or open a browser.
FAIL = "raise RuntimeError('no notebook, no browser')"
FAKE_PLOTS = [{"path": path, "text": text} for path, text in (
    ("plotly/__init__.py", ""),
    ("plotly/basedatatypes.py",
     "class BaseFigure:\n"
     "    def _repr_mimebundle_(self, *a, **k): %s\n"
     "    def _repr_html_(self): %s\n"
     "    def to_html(self, include_plotlyjs, full_html): return '<div>%%s %%s</div>' %% (include_plotlyjs, full_html)\n"
     "    def show(self):\n        import plotly.io\n        return plotly.io.show(self)\n" % (FAIL, FAIL)),
    ("plotly/graph_objects.py", "from plotly.basedatatypes import BaseFigure\n"
     "class Figure(BaseFigure):\n    def __init__(self, *a): pass\n"),
    ("plotly/io/__init__.py", "from plotly.io._renderers import show\n"),
    ("plotly/io/_renderers.py", "def show(fig, renderer=None, **k): %s\n" % FAIL),
    ("altair/__init__.py", "from altair.vegalite.v5.api import Chart\n"),
    ("altair/vegalite/__init__.py", ""), ("altair/vegalite/v5/__init__.py", ""),
    ("altair/vegalite/v5/api.py",
     "class TopLevelMixin:\n"
     "    def _repr_mimebundle_(self, *a, **k): return {'text/html': '<div id=vis>'}\n"
     "    def show(self): %s\nclass Chart(TopLevelMixin): pass\n" % FAIL),
    ("bokeh/__init__.py", ""), ("bokeh/resources.py", "CDN = 'cdn'\n"),
    ("bokeh/embed.py", "def file_html(models, resources, title): return '<html>%s' % resources\n"),
    ("bokeh/io/__init__.py", "from bokeh.io.showing import show\n"),
    ("bokeh/io/showing.py", "def show(obj, **k): %s\n" % FAIL),
    ("bokeh/plotting.py", "from bokeh.io import show\nclass figure: pass\n"))]
PLOTS = (("import plotly.graph_objects as go\nfig = go.Figure(%s)\n",
          ("fig", "fig.show()", "import plotly.io as pio\npio.show(fig)", "pio = __import__('plotly.io').io\npio.show({})",
           "display(fig)"), "[{'type': 'bar', 'y': [2, 3, 1]}]"),
         ("import warnings\nwarnings.simplefilter('ignore')\nimport altair\nchart = altair.Chart(%s)\n"
          "if hasattr(chart, 'mark_bar'): chart = chart.mark_bar().encode(x='a:Q')\n",
          ("chart", "chart.show()", "display(chart)"), "__import__('pandas').DataFrame({'a': [1, 2]})"),
         ("from bokeh.plotting import figure, show\n%.0s", ("show(figure())",), ""))


@test
def plots_of_other_libraries_show(ctx):
    """As the last value, by display() and by show(): as HTML, once, and with nothing on stderr. With
    what the libraries are like there, and with them where they are installed."""
    def shows(client, code, **more):
        o = well(client.run(code, ctx.seconds(60), **more))
        looked_at = [d for d in o.structured["displays"] if d["mime_type"] == "text/html"]
        equal((len(looked_at), o.stdout, o.stderr), (1, "", ""), code)
        assert "raised" not in o.text and "</" not in o.text, o.text
        # Markup of any length costs a model: it is a link.
        if looked_at[0]["bytes"] > 500:
            link, = blocks(o, "resource_link")
            equal((link["uri"], link["mimeType"]), (looked_at[0]["uri"], "text/html"))
        return o

    with ctx.client() as client:
        for setup, ways, argument in PLOTS:
            for way in ways:
                o = shows(client, setup % "" + way, files=FAKE_PLOTS)
                if "plotly" in setup:
                    assert "<div>cdn False</div>" in str(o.raw["content"]), o.raw
            module = re.search(r"(plotly|altair|bokeh)", setup)[1]
            if client.run(PROBE % module).result["repr"] == "True":
                for way in ways:
                    shows(client, setup % argument + way)


# Setup, expression, its JSON, and whether that says all.
JSON_FORMS = (
    ("", "[1, 2.5, 'x', None, True, (1, 2)]", [1, 2.5, "x", None, True, [1, 2]], True),
    ("", "{1, 2}", [1, 2], False), ("", "{'a': {3}}", {"a": [3]}, False),
    ("", "{1: 'a', None: 'b', (1, 2): 'c', True: 'd'}",
     {"1": "d", "null": "b", "(1, 2)": "c"}, False),
    ("", "[b'text', b'\\xff\\x00']", ["text", "/wA="], False),
    ("", "[float('nan'), float('inf'), -float('inf'), 1.5]",
     ["NaN", "Infinity", "-Infinity", 1.5], False),
    ("", "[1j, 2]", ["1j", 2], False),
    ("from datetime import *", "[date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), time(6, 7),"
     " timedelta(days=1, seconds=86399, microseconds=123450), {date(2026, 1, 2): 1}]",
     ["2026-01-02", "2026-01-02T03:04:05", "06:07:00", "P1DT86399.12345S", {"2026-01-02": 1}], False),
    ("from decimal import Decimal\nfrom fractions import Fraction\nfrom uuid import UUID\n"
     "from pathlib import Path", "[Decimal('1.50'), Fraction(1, 3), UUID(int=1), Path('/a/b')]",
     ["1.50", "1/3", "00000000-0000-0000-0000-000000000001", "/a/b"], False),
    ("from enum import Enum\nclass Colour(Enum):\n    RED = 'red'\n    TWO = 2",
     "[Colour.RED, {Colour.TWO: Colour.RED}]", ["red", {"2": "red"}], False),
    ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    tags: set",
     "[P(1, {'a'})]", [{"x": 1, "tags": ["a"]}], False),
    ("class M:\n    def model_dump(self): return {'name': 'm', 'at': {1}}", "M()",
     {"name": "m", "at": [1]}, False),
    ("class D:\n    def to_dict(self): return {'d': 1}", "{'one': D()}", {"one": {"d": 1}}, False),
    ("class B:\n    def to_dict(self): raise ValueError\n    def __repr__(self): return '<b>'",
     "[B()]", ["<b>"], False),
    ("class O:\n    def __repr__(self): return '<o>'", "{'a': 1, 'b': O()}",
     {"a": 1, "b": "<o>"}, False),
    ("a = []\na.append(a)", "len(str({'a': {1}, 'b': a})) > 0", True, True),
)
NUMPY_FORMS = (
    ("", "{'n': 3, 'max': np.array([1, 5]).max()}", {"n": 3, "max": 5}),
    ("", "np.array([[1, 2], [3, 4]])", [[1, 2], [3, 4]]),
    ("", "[np.float32(0.5), np.bool_(True), np.nan, np.datetime64('2026-01-02')]",
     [0.5, True, "NaN", "2026-01-02"]),
    ("import pandas as pd", "{'s': pd.Series([1, 2], index=['a', 'b'])}",
     {"s": {"a": 1, "b": 2}}),
    ("import pandas as pd", "[pd.DataFrame({'a': [1, 2]}), pd.Timestamp('2026-01-02')]",
     [[{"a": 1}, {"a": 2}], "2026-01-02T00:00:00"]),
)


@test
def values_keep_their_json(ctx):
    """What a program would expect of common types; what is left is its repr, in its place."""
    with ctx.client() as client:
        forms = list(JSON_FORMS)
        if client.run("import numpy, pandas", ctx.seconds(60)).status == "ok":
            forms += [("import numpy as np\n" + setup, value, wanted, False)
                      for setup, value, wanted in NUMPY_FORMS]
        if client.run("import pydantic", ctx.seconds(60)).status == "ok":
            forms.append(("from pydantic import BaseModel\nclass M(BaseModel):\n    name: str\n    at: set",
                          "[M(name='m', at={1})]", [{"name": "m", "at": [1]}], False))
        for setup, value, wanted, exact in forms:
            o = well(client.run("%s\n%s" % (setup, value), ctx.seconds(60)))
            equal(o.result.get("json"), wanted, value)
            equal(o.result.get("json_exact", True), exact, value)
        # Alone it would say no more than its repr, and a table is shown.
        for value in ("object()", "1j", "print", "int"):
            assert "json" not in well(client.run(value)).result, value
        # It has an end, whatever the objects say of themselves.
        for value in ("class E:\n    def to_dict(self): return {'e': E()}\nE()",
                      "class W:\n    def to_dict(self): return {str(i): W() for i in range(9)}\nW()",
                      "a = []\na.append(a)\n[a, {1}]",
                      "{'x' * i: {i} for i in range(2000)}"):
            o = well(client.run(value, ctx.seconds(60)))
            assert len(json.dumps(o.result)) < 1 << 20, value


@test
def files_are_put_there(ctx):
    files = [{"path": "in.csv", "text": "a,b\n\u00e9,2\n"},
             {"path": "deep/er/raw.bin", "base64": base64.b64encode(bytes(range(256)) * 1000).decode()},
             {"path": "deep/empty", "text": ""}, {"path": "nul", "text": "a\0b"},
             {"path": "/workspace/named/whole.txt", "text": "as models know it"},
             {"path": "/mnt/data/named/else.txt", "text": "as others know it"}]
    with ctx.client() as client:
        o = well(client.run("import os\nprint(open('in.csv').read(), end='')\n"
                            "print(open('deep/er/raw.bin', 'rb').read() == bytes(range(256)) * 1000)\n"
                            "print(os.stat('in.csv').st_uid == os.getuid(), os.path.getsize('deep/empty'))\n"
                            "print(open('named/whole.txt').read(), open('/mnt/data/named/else.txt').read())\n"
                            "print(open('/workspace/named/else.txt').read())\n"
                            "open('in.csv', 'a').write('more')\nos.remove('nul')\nos.remove('deep/empty')",
                            files=files))
        equal(o.stdout, "a,b\n\u00e9,2\nTrue\nTrue 0\nas models know it as others know it\nas others know it\n")
        equal([f["path"] for f in o.structured["files"]], ["deep/er/raw.bin", "in.csv", "named/else.txt", "named/whole.txt"])
        equal([b["name"] for b in blocks(o, "resource_link")], ["in.csv"], "the other is as it was sent")
        equal(client.run("import os\nos.listdir()", files=[]).result["json"], ["script.py"],
              "nothing stays")


@contextlib.contextmanager
def cells(client):
    """A function that runs cells of one session, which begins with the first of them."""
    handle = []

    def run(code, **arguments):
        if handle:
            arguments["session"] = handle[0]
        o = Outcome(client.ask("tools/call", {"name": "run_repl", "arguments": {"code": code, **arguments}}), 0, True)
        handle[:] = [o.structured["session"]]
        return o
    yield run
    if handle:
        client.ask("tools/call", {"name": "run_repl", "arguments": {"session": handle[0], "close": True}})


@test
def warnings_of_figures_name_no_worker(ctx):
    """In each cell once, and without a place: the figure is drawn after the script."""
    code = ("import warnings\nimport matplotlib.pyplot as plt\nfig = plt.figure()\ndraw = fig.savefig\ndef savefig(*a, **k):\n"
            "    for _ in range(2): warnings.warn('a glyph is missing', stacklevel=2)\n    draw(*a, **k)\nfig.savefig = savefig\nNone")
    with ctx.client() as client, cells(client) as cell:
        first = client.run(code, ctx.seconds(60), timeout_seconds=60)
        if first.status != "ok":
            raise Skip("matplotlib is not installed", missing=True)
        for o in (first, cell(code, timeout_seconds=60), cell(code)):
            equal((o.stderr, len(o.structured["displays"])), ("UserWarning: a glyph is missing\n", 1), repr(o))
        o = cell("warnings.simplefilter('ignore')\n" + code)
        equal(o.stderr, "", "as the script wants it")


@test
def a_figure_is_drawn_once(ctx):
    """plt.show() and the end of a cell display all open figures: those that have not changed are not drawn again."""
    code = ("import matplotlib.pyplot as plt\nfrom matplotlib.figure import Figure\nimport warnings\ndrawn, savefig = [], Figure.savefig\n"
            "def save(self, *a, **k):\n    drawn.append(self.number)\n    savefig(self, *a, **k)\n"
            "    for i in range(9): warnings.warn('Glyph %d' % i)\nFigure.savefig = save\n"
            "for i in range(4): plt.figure(); plt.plot([i, 1]); plt.show()\nplt.figure(2); plt.title('changed'); plt.show()\nprint(drawn)")
    with ctx.client() as client, cells(client) as cell:
        first = client.run(code, ctx.seconds(60), timeout_seconds=60)
        if first.status != "ok":
            raise Skip("matplotlib is not installed", missing=True)
        for o in first, cell(code, timeout_seconds=60):
            equal((o.stdout, len(o.structured["displays"])), ("[1, 2, 3, 4, 2]\n", 5), repr(o))
            equal((o.stderr.count("Glyph"), o.stderr.count("(6 more like these)")), (15, 5), o.stderr)


@test
def what_was_sent_is_no_link(ctx):
    """Unless it was changed; also within the tick of the clock in which it was written. Programs have it in the list."""
    def left(o):
        assert {"a", "d/b"} <= {f["path"] for f in well(o).structured["files"]}, o.structured
        assert "d/" not in o.text.replace("d/b", ""), o.text
        return sorted(b["name"] for b in blocks(o, "resource_link"))

    files = [{"path": "a", "text": "1"}, {"path": "d/b", "text": "2"}]
    with ctx.client() as client, cells(client) as session:
        for run in (client.run, session):
            equal(left(run("import os\nsorted(os.listdir())", files=files)), [])
            for _ in range(5):
                equal(left(run("f = open('a', 'r+')\nf.write('x')\nf.close()", files=files)), ["a"])
            equal(left(run("os = __import__('os')\nos.remove('a')\nopen('a', 'w').write('1')", files=files)), ["a"])
            equal(left(run("open('d/b', 'a').write('x')\nopen('c', 'w').write('x')", files=files)), ["c", "d/b"])


@test
def what_matters_is_not_lost_among_many(ctx):
    """The report beside a folder of pieces, and beside pieces; the new before the old, the small before the large."""
    for where in ("parts/", ""):
        with ctx.client() as client:
            o = well(client.run("import os\nos.mkdir('parts')\nopen('report.csv', 'w').write('a')\n"
                                "for i in range(150): open(%r + 'piece-%%d.txt' %% i, 'w').write('x')\n"
                                "with open('huge.bin', 'wb') as f: f.truncate(5 << 20)\n"
                                "for name in ('old', 'new'): open(name, 'w').write(name)\n"
                                "os.utime('old', (1e9, 1e9))" % where))
            names = [b["name"] for b in blocks(o, "resource_link")]
            equal(names[:3], ["new", "report.csv", "old"], where)
            equal("report.csv" in [f["path"] for f in o.structured["files"]], True)
            equal(o.structured["omitted"], {"displays": 0, "files": 54})
            assert "/workspace/huge.bin (5242880 bytes) has no uri" in o.text, o.text


@test
def displays_stand_where_they_were_made(ctx):
    """Between the lines that were printed before and after, whoever printed them."""
    table = "   x\n0  1\n1  2\n"
    with ctx.client() as client, cells(client) as session:
        for run in (client.run, session):
            o = well(run("import sys, os\nprint('first')\ndisplay({'a': 1})\nprint('second', end='')\ndisplay('t')\n"
                         "print('third', file=sys.stderr)\nos.system('echo child')\ndisplay(2)\n"
                         "os.write(1, b'last\\n')"))
            assert "stdout and stderr:\nfirst\n{'a': 1}\nsecond\n't'\nthird\nchild\n2\nlast\nresult: 5\n" in o.text, o.text
            equal(o.stdout, "first\nsecondchild\nlast\n")
            equal(len(blocks(o, "text")), 1)
        o = well(session("import pandas as pd\nfor _ in range(3): print('the table:'); display(pd.DataFrame({'x': [1, 2]}))"))
        assert o.text.startswith("stdout:\n" + 3 * ("the table:\n" + table)), o.text
        o = well(session("display(1, 2)"))
        assert o.text.startswith("1\n2\n[ok"), o.text
        o = well(session("import matplotlib.pyplot as plt\nprint('a')\nplt.plot([1]); plt.show()\nprint('b')"))
        assert re.search(r"stdout:\na\nshown: %s\S+#display-0.png, 640 x 480\nb\n" % SCHEME, o.text), o.text
        o = well(session("sys.stdout.buffer.write(b'\\xff\\xfe\\xff\u00e9\\n'); display(1); print('after')".replace("\u00e9", "\\xc3\\xa9")))
        assert "after" in o.text and "\n1\n" in o.text, o.text
        # A display that nobody can wait for: the script reads its own output.
        o = well(session("r, w = os.pipe(); keep = os.dup(1); os.dup2(w, 1); os.write(1, b'x')\ndisplay(3)\nos.dup2(keep, 1)"))
        assert "3\n" in o.text, o.text


SPAWN = """\
import multiprocessing

def twice(n):
    return 2 * n

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(twice, [1, 2]))
"""


@test
def a_script_is_where_its_files_are(ctx):
    """The commonest idiom for paths finds input files and leaves files that are listed."""
    def left(o):
        return sorted(f["path"] for f in o.structured["files"])

    with ctx.client() as client:
        o = well(client.run("from pathlib import Path\nhere = Path(__file__).parent\n"
                            "(here / 'out.txt').write_text('x')\n"
                            "[str(here), (here / 'in.csv').exists(), open(__file__).read(11)]",
                            files=[{"path": "in.csv", "text": "a\n"}]))
        equal(o.result["json"], ["/workspace", True, "from pathli"])
        equal(left(o), ["in.csv", "out.txt"], "it is not a file that it left")
        equal(left(client.run("1")), [])
        equal(left(client.run("open('a', 'w').close()\nimport os; os._exit(3)")), ["a"])
        equal(left(client.run("open(__file__, 'a').write('# more, by itself')")), ["script.py"])
        equal(left(client.run("import os\nos.remove(__file__)")), [])
        o = well(client.run("print(open('script.py').read())",
                            files=[{"path": "script.py", "text": "theirs"}]))
        equal((o.stdout, left(o)), ("theirs\n", ["script.py"]))
        equal(well(client.run(SPAWN, ctx.seconds(60))).stdout, "[2, 4]\n")
        cell = client.ask("tools/call", {"name": "run_repl", "arguments": {
            "code": "import os\nos.listdir()"}}, ctx.seconds(60))["structuredContent"]
        equal(cell["result"]["json"], [], "a session has no script")


@test
def large_files_are_put_there(ctx):
    files = [{"path": "%d" % i, "base64": base64.b64encode(bytes([i]) * (4 << 20)).decode()}
             for i in range(2)]
    with ctx.client() as client:
        o = well(client.run("print([open(str(i), 'rb').read() == bytes([i]) * (4 << 20) for i in range(2)])",
                            ctx.seconds(60), files=files))
        equal(o.stdout, "[True, True]\n")
        o = client.run("1", files=files + [{"path": "x", "text": "y"}])
        assert o.refused and "8192 KiB" in o.text, repr(o)


@test
def wrong_files_are_refused_by_name(ctx):
    good = {"path": "a", "text": "x"}
    wrong = (
        ([{"path": "../x", "text": ""}], "item 0: path may not have . or .."),
        ([good, {"path": "b/../../x", "text": ""}], "item 1: path may not have . or .."),
        ([{"path": "./x", "text": ""}], "path may not have . or .."),
        ([{"path": "/etc/passwd", "text": ""}], "path is absolute"),
        ([{"path": "/workspace", "text": ""}], "path is absolute"),
        ([{"path": "/mnt/data/", "text": ""}], "path is absolute"),
        ([{"path": "/mnt/data/../../etc/x", "text": ""}], "path may not have . or .. in it"),
        ([{"path": "/workspace/../x", "text": ""}], "path may not have . or .. in it"),
        ([{"path": "/workspace//etc/x", "text": ""}], "path is absolute"),
        ([{"path": "", "text": ""}], "path is empty"),
        ([{"path": "a//b", "text": ""}], "path has an empty name"),
        ([{"path": "a/", "text": ""}], "path has an empty name"),
        ([{"path": "a\0b", "text": ""}], "NUL"),
        ([{"path": "a" * 256, "text": ""}], "255"),
        ([{"path": "a/" * 512 + "b", "text": ""}], "1024"),
        ([good, good], "item 1: path is that of another"),
        ([good, {"path": "a/b", "text": ""}], "path is that of another item, or above or below"),
        ([{"path": "a/b", "text": ""}, good], "above or below"),
        ([{"path": "a"}], "exactly one of text, base64 and uri"),
        ([{"path": "a", "text": "", "base64": ""}], "exactly one of text, base64 and uri"),
        ([{"path": "a", "text": 1}], "text must be a string"),
        ([{"path": "a", "base64": "a"}], "base64"), ([{"path": "a", "base64": "ab=="}], "base64"),
        ([{"path": "a", "base64": "YQ==\n"}], "base64"),
        ([{"path": "a", "text": "", "mode": 1}], "there are path, text, base64, uri and sha256"),
        ([7], "item 0"), ({}, "array"), ("x", "array"),
        ([{"path": "f%d" % i, "text": ""} for i in range(65)], "at most 64"),
        ([{"path": "a", "text": "x" * ((4 << 20) + 1)}], "4096 KiB"))
    with ctx.client() as client:
        for files, want in wrong:
            o = client.run("print('ran')", files=files)
            assert o.refused and o.is_error, "%.200r: %r" % (files, o)
            assert want in o.text and o.text.startswith("files"), "%.100r: %s" % (files, o.text)
        ctx.healthy(client)


@test
def files_go_from_call_to_call(ctx):
    with ctx.client() as client:
        first = well(client.run("open('out.bin', 'wb').write(bytes(range(256)))"))
        uri = first.structured["files"][0]["uri"]
        o = well(client.run("open('in/x', 'rb').read() == bytes(range(256))",
                            files=[{"path": "in/x", "uri": uri}]))
        equal(o.result["json"], True)
        for wrong in (uri + "x", "", "file:///etc/passwd"):
            o = client.run("1", files=[{"path": "x", "uri": wrong}])
            assert o.refused and "item 0: there is no file" in o.text, repr(o)
    if os.getuid() == 0:
        with ctx.client(uid=SOMEBODY) as other:
            o = other.run("1", files=[{"path": "x", "uri": uri}])
            assert o.refused and "there is no file" in o.text, repr(o)


@test(private=True)
def preloaded_matplotlib_shows(ctx):
    """As imported in the zygote, once for all."""
    with ctx.private("[profile data]\nmodules = matplotlib.pyplot\n") as s, \
            ctx.client(path=s.socket, timeout=120) as client:
        need(client, "matplotlib")
        for i in range(2):
            o = well(client.run("import sys\nwas = 'matplotlib.pyplot' in sys.modules\n"
                                "import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 2), dpi=50)\n"
                                "plt.show()\nplt.close()\nplt.figure(figsize=(1, 1), dpi=50)\nwas",
                                ctx.seconds(120), profile="data"))
            equal((images(o), o.result["json"]), ([(100, 100), (50, 50)], True))


@test(private=True)
def a_small_disk_is_not_filled(ctx):
    with ctx.private("[profile small]\ndisk_bytes = 1M\n") as s, ctx.client(path=s.socket) as client:
        o = client.run("1", files=[{"path": "a", "text": "x" * (600 << 10)}], profile="small")
        assert o.refused and "disk" in o.text, repr(o)
        o = well(client.run("len(open('a').read())", files=[{"path": "a", "text": "x" * 1000}],
                            profile="small"))
        equal(o.result["json"], 1000)


# ---- output that is spilled ----


def parts_of(o, stream):
    return [p for p in o.structured["spilled"] if p["stream"] == stream]


def joined(client, parts):
    """The text of parts, which follow each other."""
    text = ""
    for part in parts:
        equal(part["offset"], len(text.encode()), "offset")
        got = read(client, part["uri"])
        equal((got["mimeType"], len(got["text"].encode())), ("text/plain", part["size"]))
        assert part["size"] <= 4 << 20, part
        text += got["text"]
    return text


@test
def advice_is_found_at_both_ends_of_a_long_output(ctx):
    said, long = "print('curl: (6) Could not resolve host: x')\n", "print('y\\n' * 100000)\n"
    with ctx.client() as c:
        for script in (said + long, long + said):
            o = c.run(script + "raise SystemExit(1)", ctx.seconds(60))
            assert "Scripts have no network here" in o.text, o.text[-600:]


@test
def output_past_the_cap_is_spilled(ctx):
    """All of it, as it was written; other streams are left alone."""
    with ctx.client() as client:
        o = well(client.run("import sys\nfor i in range(60000):\n    print('%06d é' % i, 'x' * 90)\n"
                            "print('short', file=sys.stderr)", ctx.seconds(60), spill=True))
        assert o.truncated["stdout_dropped"] > 0, o.truncated
        parts = parts_of(o, "stdout")
        equal(parts, o.structured["spilled"], "of stdout alone")
        assert len(parts) > 1, parts
        equal(joined(client, parts), "".join("%06d é %s\n" % (i, "x" * 90) for i in range(60000)))
        links = [b["uri"] for b in blocks(o, "resource_link")]
        equal(links, [p["uri"] for p in parts], "links")
        assert all(uri in o.text for uri in links), o.text[-500:]
        # Each part ends with a line, and can be handed to the next script.
        o = well(client.run("open('out').read().count('\\n')", files=[
            {"path": "out", "uri": parts[-1]["uri"]}]))
        assert int(o.result["repr"]) > 1000, o.result


@test
def nothing_is_spilled_unasked(ctx):
    with ctx.client() as client:
        assert "spilled" not in client.run("print('x' * 3_000_000)").structured
        assert "spilled" not in client.run("print('x' * 30_000)", spill=True).structured
        o = client.run("1", spill=1)
        assert o.refused and "spill must be true or false" in o.text, repr(o)


@test
def binary_output_is_spilled_as_it_is(ctx):
    with ctx.client() as client:
        o = well(client.run("import sys\nsys.stderr.buffer.write(bytes(range(256)) * 8192)\nNone",
                            spill=True))
        part, = parts_of(o, "stderr")
        equal(base64.b64decode(read(client, part["uri"])["blob"]), bytes(range(256)) * 8192)


@test
def what_is_spilled_is_its_tenants_alone(ctx):
    if os.getuid():
        raise Skip("a second tenant needs root")
    with ctx.client() as client, ctx.client(uid=SOMEBODY) as other:
        o = well(client.run("print('x' * 2_000_000)", spill=True))
        for part in o.structured["spilled"]:
            refused_to_read(other, part["uri"])


@test(private=True)
def spilling_has_bounds(ctx):
    """Past the bound head and tail are kept, and the gap can be seen."""
    with ctx.private("[limits]\noutput_kb = 64\n[results]\nspill_bytes = 1M\n") as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        o = well(client.run("import sys\nfor i in range(200000): print('%06d' % i)", spill=True))
        head, tail = parts_of(o, "stdout")
        equal((head["offset"], head["size"], tail["size"]), (0, 1 << 18, 1 << 18))
        equal(tail["offset"] + tail["size"], 7 * 200000)
        assert read(client, tail["uri"])["text"].endswith("199999\n")
    with ctx.private("[limits]\noutput_kb = 64\n[results]\nkeep_bytes = 1M\n") as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        for _ in range(3):	# what was charged is given back
            o = well(client.run("import sys\nfor i in range(400000): print('%06d' % i)", spill=True))
            kept = sum(p["size"] for p in parts_of(o, "stdout"))
            assert (1 << 20) - (64 << 10) <= kept <= 1 << 20, kept
            assert len(parts_of(o, "stdout")) == 2, o.structured["spilled"]


@test(private=True)
def files_are_kept_as_long_as_configured(ctx):
    with ctx.private("[results]\nkeep_seconds = 1\n") as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        o = well(client.run("open('a', 'w').write('x')"))

        def is_gone():
            try:
                read(client, o.structured["files"][0]["uri"])
            except RpcError:
                return True
        until("the file is gone", is_gone)
        late = client.run("1", files=[{"path": "a", "uri": o.structured["files"][0]["uri"]}])
        assert late.refused and "kept for some minutes, and a session has its own in /workspace" in late.text, late.text


@test(private=True)
def results_have_the_configured_bounds(ctx):
    conf = ("[results]\ndisplays = 2\ndisplay_kb = 64\nfiles = 3\nfile_kb = 2048\nfiles_kb = 2048\n"
            "inputs = 1\ninput_kb = 1\ninputs_kb = 1\n")
    with ctx.private(conf) as service, \
            Client.connect(service.socket, "2025-11-25", timeout=ctx.seconds(60)) as client:
        o = well(client.run("for i in range(5): display(i)\nfor i in range(5): open('%d' % i, 'w')\nNone"))
        equal((len(o.structured["displays"]), len(o.structured["files"])), (2, 3))
        equal(o.structured["omitted"], {"displays": 3, "files": 2})
        assert "at most 2 objects and 64 KiB are" in o.text, o.text
        o = well(client.run("display({'text/html': 'x' * 70_000}, raw=True)\nNone"))
        equal((shown(o), [f["path"] for f in o.structured["files"]]), ([(0, "text/plain")], ["display-0.html"]))
        o = well(client.run("open('a', 'wb').write(b'x' * (2 << 20))"))
        equal(len(read(client, o.structured["files"][0]["uri"])["text"]), 2 << 20, "a large file")
        one = {"path": "a", "text": "x" * 1024}
        equal(well(client.run("len(open('a').read())", files=[one])).result["repr"], "1024")
        for files, text in (([one, {"path": "b", "text": ""}], "at most 1 are allowed"),
                            ([{"path": "a", "text": "x" * 1025}], "at most 1 KiB are allowed"),
                            ([{"path": "a", "base64": "AAAA" * 400}], "at most 1 KiB are allowed")):
            o = client.run("1", files=files)
            assert o.refused and text in o.text, repr(o)
            equal("mcp-python put FILE" in o.text, "KiB" in text, o.text)
        tool = client.ask("tools/list")["tools"][0]["inputSchema"]["properties"]["files"]
        assert "At most 1 KiB each, 1 KiB together" in tool["description"], tool


# ---- mcp-python run ----


def run_client(ctx, script, *options):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "script.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        ended = subprocess.run([os.path.join(ctx.options.build, "mcp-python"), "run", "--socket",
                                ctx.socket, *options, path], text=True, stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=ctx.seconds(120))
    return ended.returncode, ended.stdout, ended.stderr


@test
def the_command_says_what_came_back_and_saves_it(ctx):
    png = ("import base64, os\np = base64.b64decode('%s')\n"
           "display({'image/png': p}, raw=True)\nos.makedirs('d/e')\n"
           "open('d/e/text.txt', 'w').write('é')\nopen('bin', 'wb').write(bytes(range(256)))\n"
           "print('out')" % base64.b64encode(PNG).decode())
    with tempfile.TemporaryDirectory() as d:
        to = os.path.join(d, "made")
        code, out, err = run_client(ctx, png, "--save", to)
        equal((code, out), (0, "out\n"), err)
        for line in ("/picture-1.png (%d bytes)" % len(PNG), "/bin (256 bytes)",
                     "/d/e/text.txt (2 bytes)"):
            assert "saved " + to + line in err, err
        for name, want in (("picture-1.png", PNG), ("bin", bytes(range(256))),
                           ("d/e/text.txt", "é".encode())):
            with open(os.path.join(to, name), "rb") as f:
                equal(f.read(), want, name)
        code, out, err = run_client(ctx, png, "--save", to)
        equal((code, out), (74, "out\n"), err)
        assert "/bin: it exists; --force replaces it" in err, err
        os.symlink("/", os.path.join(to, "away"))
        code, _, err = run_client(ctx, "import os\nos.mkdir('away')\nopen('away/x', 'w')", "--save", to)
        equal(code, 74, err)
        assert not os.path.exists("/x") and "cannot save %s/away/x" % to in err, err
    code, out, err = run_client(ctx, png)
    equal((code, out), (0, "out\n"), err)
    for line in "shown: image/png, 1 x 1, %d bytes" % len(PNG), "left: bin (256 bytes)", "--save":
        assert line in err, err
    code, out, err = run_client(ctx, png, "--json")
    equal((code, err), (0, ""))

main(__doc__)
