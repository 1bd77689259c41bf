# SPDX-License-Identifier: Apache-2.0
"""Displays objects that are more than text: figures, pictures, tables, markup.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. An object is
displayed in up to three forms: one to look at (the first that it has of PNG, JPEG, SVG and
HTML), one to read (Markdown or plain text) and one for programs (JSON). The methods that return
these forms are the script's. If a method raises an exception or returns something else, a
sentence takes the place of the form; its time counts as the script's. This file imports no
library that the script has not imported, except PIL, which scales a picture down that is too
large to be shown.
"""

import binascii
import builtins
import io
import os
import struct
import sys
import warnings

PNG, JPEG, SVG, HTML, MARKDOWN, PLAIN, JSON = range(7)  # enum display_kind
OTHER = -1  # a picture in another format, which is sent as PNG
# The program sets OBJECTS_MAX; BYTES_MAX, the bound for all forms of all objects; SIDE_MAX, the
# pixels of a shown picture's longer side; FILE_MAX and FILES_MAX, the bytes of a file, and of all
# files, whose content outlives the script.
TEXT_MAX = 64 << 10  # the longest form to read
MARKUP_MAX = 1 << 20
ROWS_MAX = 20  # the most rows of a data frame in JSON
MIME = {"image/png": PNG, "image/jpeg": JPEG, "image/svg+xml": SVG, "text/html": HTML,
        "text/markdown": MARKDOWN, "application/json": JSON, "text/plain": PLAIN}
METHODS = (("_repr_png_", PNG), ("_repr_jpeg_", JPEG), ("_repr_svg_", SVG),
           ("_repr_html_", HTML), ("_repr_markdown_", MARKDOWN), ("_repr_json_", JSON))
NAMES = ("PNG", "JPEG", "SVG", "HTML", "Markdown", "text", "JSON")
ENDS = {PNG: "png", JPEG: "jpg", SVG: "svg", HTML: "html"}
PICTURES = (OTHER, PNG, JPEG)
WORKSPACE = "/workspace"
ROOM_MIN = 16 << 10  # the least room for a smaller picture and a sentence about it
SCALINGS_MAX = 8
WARNINGS_MOST = 3  # of those of a figure that begin alike
OTHER_SIGNATURES = (b"GIF8", b"RIFF", b"II*\0", b"MM\0*")
SIGNATURE = {PNG: b"\x89PNG\r\n\x1a\n", JPEG: b"\xff\xd8\xff"}
ORDINARY = frozenset((int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set,
                      frozenset, range, type, type(None), type(len), type(lambda: 0)))
# These read a class without calling code of the script.
ancestors = type.__dict__["__mro__"].__get__
own_names = type.__dict__["__dict__"].__get__


class Shown:
    """The objects that this run has displayed so far."""

    objects = bytes = undisplayed = 0
    whole = 0  # the bytes of the files with whole pictures and markup
    figures = {}  # {id: (figure, its last picture)}
    pictures = {}  # {picture_in() of it: the number of the first object that shows it}
    held = None  # since clear_output(): forms that are sent at the end, if they are not cleared
    encoded = (None, None)  # the last picture of PIL that has encoded itself, and its bytes


# ---- the forms of an object ----------------------------------------------------------


def class_has(kind, name):
    """Does the class itself have this attribute? Asking the object would be wrong: some objects
    have any attribute."""
    for ancestor in ancestors(kind):
        if name in own_names(ancestor):
            return own_names(ancestor)[name] is not None
    return False


def ask(value, name, notes):
    try:
        return getattr(value, name)()
    except NotImplementedError:
        return None
    except BaseException as e:
        notes.append("%s() raised %s" % (name, type(e).__name__))
        return None


def as_picture(got, form):
    if isinstance(got, str):
        got = binascii.a2b_base64(str.encode(got, "ascii"))
    data = bytes(memoryview(got))
    return data if form == OTHER or data.startswith(SIGNATURE[form]) else None


def as_text(got, most):
    """Markup as bytes; None: it is longer than most, because a part of it would be broken.
    Without most it may have any length (see fit_markup)."""
    if not isinstance(got, str):
        return None
    data, cut = plain(got, most or 6 * str.__len__(got))
    return None if cut else data


def take(forms, form, got, notes):
    """Adds the result of a method to forms, if it is valid for the form."""
    if isinstance(got, tuple) and len(got) == 2:  # and metadata
        got = got[0]
    if got is None or form in forms:
        return
    data = None
    try:
        if form in PICTURES:
            data = as_picture(got, form)
            if data is None and as_picture(got, OTHER).startswith(OTHER_SIGNATURES):
                return take(forms, OTHER, got, notes)  # IPython takes a GIF for a PNG
        elif form == JSON:
            data = value_json(got, VALUE_MAX)[0]
        elif form == PLAIN and isinstance(got, str):
            data = plain(got, TEXT_MAX)[0]
        else:
            data = as_text(got, TEXT_MAX if form == MARKDOWN else None)
    except BaseException:
        pass
    if data:
        forms[form] = data
    else:
        notes.append("its form as %s is not valid, or too long" % NAMES[form])


def own_forms(value, notes):
    """The forms by the usual methods of notebooks (_repr_html_ and others)."""
    kind, forms = type(value), {}
    if class_has(kind, "_repr_mimebundle_"):
        got = ask(value, "_repr_mimebundle_", notes)
        if isinstance(got, tuple) and got:
            got = got[0]
        take_bundle(forms, got, notes)
    for name, form in METHODS:
        # Only the best of the forms to look at.
        if form not in forms and not (form <= HTML and forms and min(forms) <= HTML):
            if class_has(kind, name):
                take(forms, form, ask(value, name, notes), notes)
    if from_module(value, "PIL.Image", "Image"):
        Shown.encoded = value, forms.get(PNG, b"")
    return forms


def take_bundle(forms, got, notes):
    if isinstance(got, dict):
        for mime, form in MIME.items():
            if dict.__contains__(got, mime):
                take(forms, form, dict.__getitem__(got, mime), notes)
        if PNG not in forms and JPEG not in forms:
            for mime, picture in dict.items(got):
                if isinstance(mime, str) and mime.startswith("image/") and mime not in MIME:
                    take(forms, OTHER, picture, notes)


def picture_of(figure):
    """Draws a figure. What it warns of is told in each cell, and without a place, which is here; of
    warnings that begin alike, such as one for each glyph that a font lacks, the first ones."""
    out = io.BytesIO()
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as found:
        figure.savefig(out, format="png")
    alike = {}
    for text in dict.fromkeys("%s: %s\n" % (one.category.__name__, one.message) for one in found):
        alike.setdefault(tuple(text.split(None, 2)[:2]), []).append(text)
    for texts in alike.values():
        left = len(texts) - WARNINGS_MOST
        to_stderr("".join(texts[:WARNINGS_MOST]) + ("(%d more like these)\n" % left if left > 0 else ""))
    return out.getvalue()


def table_rows(frame):
    """A data frame as JSON text, with as many rows as there is room for."""
    rows = min(len(frame), ROWS_MAX)
    frame = with_unique_columns(frame)
    while True:
        records = frame.head(rows).to_json(orient="records", date_format="iso",
                                           default_handler=str)
        if len(records) <= TEXT_MAX:
            columns = encode_json([str(c)[:200] for c in frame.columns[:1000]])
            return '{"columns":%s,"row_count":%d,"rows":%s}' % (columns, len(frame), records)
        if rows == 0:
            return None
        rows //= 2


def forms_of(value, notes):
    """The forms of an object beside its repr: {form: bytes}."""
    forms = {}
    try:
        if isinstance(value, type):
            return forms
        if from_module(value, "matplotlib.figure", "Figure"):
            forms[PNG] = picture_of(value)
        elif from_module(value, "pandas", "DataFrame"):
            rows = table_rows(value)
            if rows:
                forms[JSON] = rows.encode("utf-8", "backslashreplace")
        else:
            forms = own_forms(value, notes)
    except BaseException as e:
        notes.append("showing it raised %s" % type(e).__name__)
    return forms


# ---- showing -------------------------------------------------------------------------


def choose(forms):
    """Chooses one form to look at, one to read, one for programs."""
    chosen = {form: forms[form] for form in sorted(forms) if form <= HTML}
    chosen = dict(list(chosen.items())[:1])
    if MARKDOWN in forms:
        chosen[MARKDOWN] = forms[MARKDOWN]
    elif PLAIN in forms and not chosen.keys() & set(PICTURES):
        chosen[PLAIN] = forms[PLAIN]
    if JSON in forms:
        chosen[JSON] = forms[JSON]
    return chosen


def keep_whole(number, end, data):
    """Writes a picture or markup to a file of the script. Returns its name; None: there is no
    room."""
    for i in range(100):
        name = "display-%d%s.%s" % (number, "-%d" % i if i else "", end)
        try:
            with open(os.path.join(WORKSPACE, name), "xb") as to:
                to.write(data)
            Shown.whole += len(data)
            return "%s/%s" % (WORKSPACE, name)
        except FileExistsError:
            pass
        except OSError:
            return None
    return None


def pixels_of(data, form):
    """The width and height that a PNG or a JPEG names; None: they are not found."""
    if form == PNG:
        return struct.unpack(">II", data[16:24]) if data[12:16] == b"IHDR" else None
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in (0xC4, 0xC8, 0xCC):
            return struct.unpack(">HH", data[at + 5:at + 9])[::-1]
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    return None


def is_wide(data, form):
    """Has a picture more pixels a side than may be shown? Unknown pixels count as too many."""
    pixels = pixels_of(data, form)
    return pixels is None or max(pixels) > SIDE_MAX


def open_picture(data):
    """The picture of these bytes. One that has just encoded itself is not decoded again."""
    if Shown.encoded[1] is data:
        return Shown.encoded[0]
    from PIL import Image
    return Image.open(io.BytesIO(data))


def encode_picture(picture, form, most, side):
    """The bytes of a picture, at most so many, with at most so many pixels a side; and its size.
    None: it cannot be made small enough."""
    whole = picture.size
    if form == JPEG:
        picture = picture.convert("RGB") if picture.mode not in ("RGB", "L") else picture
    elif picture.mode not in ("RGB", "RGBA", "L", "LA", "1", "I;16"):
        picture = picture.convert("RGBA")
    scale = min(1.0, side / max(whole))
    for _ in range(SCALINGS_MAX):
        size = tuple(max(1, round(pixels * scale)) for pixels in whole)
        out = io.BytesIO()
        scaled = picture if size == whole else picture.resize(size, reducing_gap=2.0)
        scaled.save(out, format=NAMES[form], quality=90)
        if len(out.getvalue()) <= most:
            return out.getvalue(), size
        scale *= min(0.7, (most / len(out.getvalue())) ** 0.5)
    return None


def keep_picture(data, picture, end):
    """Writes the whole picture to a file. One that would not outlive the script is made smaller.
    Returns a clause about the file; empty: there is no room."""
    room = min(FILE_MAX, FILES_MAX - Shown.whole)
    if len(data) <= room:
        name = keep_whole(Shown.objects, end, data)
        return "; the whole one is %s" % name if name else ""
    kept = picture and encode_picture(picture, JPEG, room, max(picture.size))
    name = kept and keep_whole(Shown.objects, "jpg", kept[0])
    return "; %s has %d x %d pixels" % (name, *kept[1]) if name else ""


def fit_picture(forms, form, room):
    """Replaces a picture that is too large, or in another format, by a PNG or JPEG that fits. The
    form to read says where the whole one is."""
    data, picture, shown, end = forms[form], None, None, ENDS.get(form, "bin")
    said = "too large to be shown"
    if len(data) <= room and form != OTHER and not pixels_of(data, form):
        said = "not a valid %s, and is not shown" % NAMES[form]
    try:
        picture = open_picture(data)
        if form == OTHER:
            end, frames = picture.format.lower(), getattr(picture, "n_frames", 1)
            said = "%s, shown as PNG%s" % (picture.format, " (the first of %d pictures)" % frames
                                           if frames > 1 else "")
        # Half of the room stays free for the next picture.
        shown, size = encode_picture(picture, PNG if form == OTHER else form, room // 2, SIDE_MAX)
        if size != picture.size:
            clause = "shown with %d x %d pixels instead of %d x %d" % (size + picture.size)
            said = "%s, and %s" % (said, clause) if form == OTHER else clause
    except Exception as e:
        if form == OTHER:
            said = "in a format that cannot be shown%s" % (
                ": PIL is not installed" if isinstance(e, ImportError) else "")
    try:
        whole = keep_picture(data, picture, end)
    except Exception:
        whole = ""
    text = "a picture of %d bytes is %s%s" % (len(data), said, whole)
    return {**({PNG if form == OTHER else form: shown} if shown else {}), PLAIN: text.encode()}


def fit_markup(forms, form):
    """Leaves markup out that is too large. The form to read says in which file it is."""
    name = keep_whole(Shown.objects, ENDS[form], forms[form])
    said = ("%s of %d bytes is too large to be shown%s" % (
        NAMES[form], len(forms[form]), "; the whole one is " + name if name else "")).encode()
    forms = {other: data for other, data in forms.items() if other != form}
    read = MARKDOWN if MARKDOWN in forms else PLAIN
    text = forms.get(read)
    forms[read] = said + b"\n\n" + text if text else said
    return forms


def fit(forms, room):
    """The forms, with a smaller one, or none, in place of a form to look at that is too large."""
    form = min(forms)
    large = total(forms) > room
    if form > HTML or (room < ROOM_MIN and form != OTHER):
        return forms
    if form in PICTURES:
        wide = form == OTHER or is_wide(forms[form], form)
        return fit_picture(forms, form, room) if large or wide else forms
    return fit_markup(forms, form) if large or len(forms[form]) > MARKUP_MAX else forms


def flush_streams():
    """Before an object is sent, so that what was printed before it comes before it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # it may be closed, or anything that the script has put there


def total(forms):
    return sum(len(data) for data in forms.values())


def picture_in(forms):
    """What distinguishes the picture of these forms from others; None: they have none."""
    for form in PICTURES:
        if form in forms:
            return form, len(forms[form]), hash(forms[form])
    return None


def without_known_picture(forms, picture):
    """The forms; if this cell has shown the same picture already, a sentence in its place."""
    if picture not in Shown.pictures:
        return forms
    said = "the same picture as display-%d" % Shown.pictures[picture]
    return {**{form: data for form, data in forms.items() if form != picture[0]},
            PLAIN: said.encode()}


def put(forms):
    """Sends these forms of one object; none of them, if a bound is reached."""
    if Shown.held is not None and len(Shown.held) < OBJECTS_MAX:
        Shown.held.append(forms)
        return
    picture = picture_in(forms)
    forms = without_known_picture(forms, picture)
    if Shown.objects < OBJECTS_MAX:
        forms = fit(forms, BYTES_MAX - Shown.bytes)
    size = total(forms)
    if Shown.objects >= OBJECTS_MAX or Shown.bytes + size > BYTES_MAX:
        Shown.undisplayed += 1
        return
    number = Shown.objects
    Shown.objects += 1
    if picture:
        Shown.pictures.setdefault(picture, number)
    Shown.bytes += size
    flush_streams()
    for form, data in forms.items():
        send_display(number, form, data)


def put_held():
    held, Shown.held = Shown.held, None
    try:
        for forms in held or ():
            put(forms)
    except BaseException:  # a script may be interrupted here, too
        pass


def clear_output(wait=False):
    """IPython's clear_output(): of a loop that draws again and again, the last state is read. What was
    sent before the first call stays."""
    Shown.held, Shown.figures = [], {}
    sys.stdout.write("\033[2J")


class DisplayHandle:
    """What display() returns for display_id: the object can be replaced until the end."""

    def __init__(self, *objects):
        Shown.held = Shown.held or []
        self.held, self.display_id = [], str(id(self))
        display(*objects)
        self.held = Shown.held[-len(objects):] if objects else []

    def update(self, value, **options):
        held = Shown.held if Shown.held is not None else []
        at = next((i for i, forms in enumerate(held) for own in self.held if forms is own), len(held))
        before = len(held)
        Shown.figures = {}
        display(value)
        self.held = held[before:]
        del held[before:]
        held[at:at + 1] = self.held

    def display(self, value, **options):
        display(value)


def about_notes(value, notes):
    return plain("<%s object: %s>" % (type(value).__name__, "; ".join(notes[:8])), 2048)[0]


def displays_itself(value, notes):
    """Has the object displayed itself, by a method for that?"""
    if isinstance(value, type) or not class_has(type(value), "_ipython_display_"):
        return False
    try:
        value._ipython_display_()
        return True
    except NotImplementedError:
        return False
    except BaseException as e:
        notes.append("_ipython_display_() raised %s" % type(e).__name__)
        return False


def show_object(value, is_result):
    """Displays an object. is_result: its repr is reported as the value, so it is not displayed
    too. True: the object has displayed itself, and has no further form, as in IPython."""
    notes = []
    if from_module(value, "matplotlib.figure", "Figure"):
        show_figure(value)
        return
    if displays_itself(value, notes):
        return True
    forms = forms_of(value, notes)
    if is_result:
        forms.pop(PLAIN, None)
    elif PLAIN not in forms:
        forms[PLAIN] = value_repr(value, TEXT_MAX)[0]
    forms = choose(forms)
    if notes:
        forms.pop(MARKDOWN, None)
        forms[PLAIN] = about_notes(value, notes)
    if forms:
        put(forms)
    Shown.encoded = None, None  # the script may delete the picture, and its memory is needed


def show_figure(figure):
    """Displays a figure, unless it looks the same as when it was last displayed. It is drawn again only
    if something of it has changed: plt.show() and the end of a cell display all open figures."""
    try:
        if id(figure) in Shown.figures and not figure.stale:
            return
        picture = picture_of(figure)
        figure.stale = False  # savefig() leaves it stale
    except BaseException as e:
        put({PLAIN: about_notes(figure, ["showing it raised %s" % type(e).__name__])})
        return
    if Shown.figures.get(id(figure), (None, None))[1] == picture:
        return
    Shown.figures[id(figure)] = figure, picture
    put({PNG: picture})


def display(*objects, raw=False):
    """Shows objects beside the output: pictures as pictures, tables as tables. With raw they
    are dictionaries from media types to data."""
    for value in objects:
        if not raw:
            show_object(value, False)
            continue
        if not isinstance(value, dict):
            raise TypeError("display(raw=True) takes dictionaries, not %s"
                            % type(value).__name__)
        forms, notes = {}, []
        take_bundle(forms, value, notes)
        forms = choose(forms)
        if notes or not forms:
            forms[PLAIN] = about_notes(value, notes or ["it has no known media type"])
        put(forms)


display.__module__ = "builtins"


def show_result(value):
    """Displays the value of the last expression, if it is more than text. True: it has displayed
    itself."""
    try:
        return type(value) not in ORDINARY and show_object(value, True)
    except BaseException:
        return False


def show_open_figures():
    try:
        helpers = sys.modules["matplotlib._pylab_helpers"]
        for manager in helpers.Gcf.get_all_fig_managers():
            show_figure(manager.canvas.figure)
    except BaseException:
        pass


# ---- libraries for plots ---------------------------------------------------------------


class PatchingLoader:
    """Loads a module with its own loader, then changes it."""

    def __init__(self, loader, patch):
        self.loader, self.patch = loader, patch

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.patch(module)

    def __getattr__(self, name):  # what the own loader can do: pkgutil and runpy use it
        return getattr(vars(self).get("loader"), name)


class PatchingFinder:
    """Finds the modules that have to be changed: matplotlib must draw into memory, and
    plt.show(), its equivalents in other libraries, and IPython's display() must display."""

    def find_spec(self, name, path=None, target=None):
        if name == "matplotlib":
            os.environ.setdefault("MPLBACKEND", "agg")
        patch = PATCHES.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    spec.loader = PatchingLoader(spec.loader, patch)
                    return spec
        return None


def patch_managers(module):
    def show(self):
        show_figure(self.canvas.figure)

    show.__qualname__ = "FigureManagerBase.show"
    show.__module__ = module.__name__
    module.FigureManagerBase.show = show


def patch_plotly(module):
    """Makes a figure return HTML. Otherwise it would import IPython and nbformat, to choose
    between kinds of notebooks."""
    def _repr_html_(self):
        return self.to_html(include_plotlyjs="cdn", full_html=False)

    module.BaseFigure._repr_html_ = _repr_html_
    module.BaseFigure._repr_mimebundle_ = module.BaseFigure._ipython_display_ = None


def patch_plotly_show(module):
    def show(fig, *arguments, **options):
        if isinstance(fig, dict):
            import plotly.graph_objects
            fig = plotly.graph_objects.Figure(fig)
        display(fig)

    module.show = show


def patch_altair(module):
    """Makes show() display the chart: altair would open a browser."""
    def show(self, *arguments, **options):
        display(self)

    module.TopLevelMixin.show = show


def patch_bokeh(module):
    """Makes show() display the model: bokeh would open a browser, and its form for notebooks is
    a table of properties."""
    def show(obj, *arguments, **options):
        from bokeh.embed import file_html
        from bokeh.resources import CDN
        display({"text/html": file_html(obj, CDN, ""), "text/plain": repr(obj)}, raw=True)

    module.show = show


def patch_notebook_bars(module):
    """Makes the bars of notebooks those of a terminal, if there are no widgets to draw them."""
    if getattr(module, "IProgress", None) is None:
        from tqdm.std import tqdm, trange
        module.tqdm = module.tqdm_notebook = tqdm
        module.trange = module.tnrange = trange


PATCHES = {"tqdm.notebook": patch_notebook_bars, "matplotlib.backend_bases": patch_managers,
           "inspect": patch_inspect, "multiprocessing.spawn": patch_spawn,
           "_pytest.config": patch_pytest,
           "plotly.basedatatypes": patch_plotly, "plotly.io._renderers": patch_plotly_show,
           "altair.vegalite.v4.api": patch_altair, "altair.vegalite.v5.api": patch_altair,
           "altair.vegalite.v6.api": patch_altair, "bokeh.io.showing": patch_bokeh,
           "IPython.core.display_functions": patch_ipython, "IPython.core.display": patch_ipython}


def prepare_display():
    """Called in the zygote, before modules are imported."""
    builtins.display = display
    sys.meta_path.insert(0, PatchingFinder())
    sys.meta_path.append(StandInFinder())
