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
import sys

PNG, JPEG, SVG, HTML, MARKDOWN, PLAIN, JSON = range(7)  # enum display_kind
# The program sets OBJECTS_MAX, and BYTES_MAX, the bound for all forms of all objects.
TEXT_MAX = 64 << 10  # the longest form to read
MARKUP_MAX = 1 << 20
ROWS_MAX = 20  # the most rows of a data frame in JSON
MIME = {"image/png": PNG, "image/jpeg": JPEG, "image/svg+xml": SVG, "text/html": HTML,
        "text/markdown": MARKDOWN, "application/json": JSON, "text/plain": PLAIN}
METHODS = (("_repr_png_", PNG), ("_repr_jpeg_", JPEG), ("_repr_svg_", SVG),
           ("_repr_html_", HTML), ("_repr_markdown_", MARKDOWN), ("_repr_json_", JSON))
NAMES = ("PNG", "JPEG", "SVG", "HTML", "Markdown", "text", "JSON")
ENDS = {PNG: "png", JPEG: "jpg", SVG: "svg", HTML: "html"}
WORKSPACE = "/workspace"
ROOM_MIN = 16 << 10  # the least room for a smaller picture and a sentence about it
SCALINGS_MAX = 8
SIGNATURE = {PNG: b"\x89PNG\r\n\x1a\n", JPEG: b"\xff\xd8\xff"}
ORDINARY = frozenset((int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set,
                      frozenset, range, type, type(None), type(len), type(lambda: 0)))
# These read a class without calling code of the script.
ancestors = type.__dict__["__mro__"].__get__
own_names = type.__dict__["__dict__"].__get__


class Shown:
    """The objects that this run has displayed so far."""

    objects = bytes = undisplayed = 0
    figures = {}  # {id: (figure, its last picture)}


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
    return data if data.startswith(SIGNATURE[form]) else None


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
        if form in SIGNATURE:
            data = as_picture(got, form)
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
    return forms


def take_bundle(forms, got, notes):
    if isinstance(got, dict):
        for mime, form in MIME.items():
            if dict.__contains__(got, mime):
                take(forms, form, dict.__getitem__(got, mime), notes)


def picture_of(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def table_rows(frame):
    """A data frame as JSON text, with as many rows as there is room for."""
    rows = min(len(frame), ROWS_MAX)
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
    elif PLAIN in forms and not (PNG in chosen or JPEG in chosen):
        chosen[PLAIN] = forms[PLAIN]
    if JSON in forms:
        chosen[JSON] = forms[JSON]
    return chosen


def keep_whole(number, form, data):
    """Writes a picture or markup to a file of the script. Returns its name; None: there is no
    room."""
    for i in range(100):
        name = "display-%d%s.%s" % (number, "-%d" % i if i else "", ENDS[form])
        try:
            with open(os.path.join(WORKSPACE, name), "xb") as to:
                to.write(data)
            return name
        except FileExistsError:
            pass
        except OSError:
            return None
    return None


def make_smaller(data, form, most):
    """The picture with fewer pixels, in at most this many bytes, and a clause about the change.
    None: it cannot be made smaller."""
    try:
        from PIL import Image
        whole = Image.open(io.BytesIO(data))
        picture = whole.convert("RGBA") if whole.mode == "P" else whole
        scale = 1.0
        for _ in range(SCALINGS_MAX):
            scale *= min(0.7, (most / len(data)) ** 0.5)
            size = tuple(max(1, int(side * scale)) for side in whole.size)
            out = io.BytesIO()
            picture.resize(size).save(out, format=NAMES[form])
            data = out.getvalue()
            if len(data) <= most:
                return data, "shown with %d x %d pixels instead of %d x %d" % (size + whole.size)
    except Exception:
        pass
    return None


def say(number, form, data, what):
    """A sentence about a form that is too large. The whole form goes to a file of the script."""
    name = keep_whole(number, form, data)
    return ("%s of %d bytes is %s%s" % (
        "a picture" if form in SIGNATURE else NAMES[form], len(data), what,
        "; the whole one is %s/%s" % (WORKSPACE, name) if name else "")).encode()


def fit_picture(forms, form, room):
    """Replaces a picture that is too large by a smaller one."""
    # Half of the room stays free for the next picture.
    smaller, said = make_smaller(forms[form], form, room // 2) or (None, "too large to be shown")
    return {**({form: smaller} if smaller else {}),
            PLAIN: say(Shown.objects, form, forms[form], said)}


def fit_markup(forms, form):
    """Leaves markup out that is too large. The form to read says in which file it is."""
    said = say(Shown.objects, form, forms[form], "too large to be shown")
    forms = {other: data for other, data in forms.items() if other != form}
    read = MARKDOWN if MARKDOWN in forms else PLAIN
    text = forms.get(read)
    forms[read] = said + b"\n\n" + text if text else said
    return forms


def fit(forms, room):
    """The forms, with a smaller one, or none, in place of a form to look at that is too large."""
    form = min(forms)
    large = total(forms) > room
    if form > HTML or room < ROOM_MIN:
        return forms
    if form in SIGNATURE:
        return fit_picture(forms, form, room) if large else forms
    return fit_markup(forms, form) if large or len(forms[form]) > MARKUP_MAX else forms


def total(forms):
    return sum(len(data) for data in forms.values())


def put(forms):
    """Sends these forms of one object; none of them, if a bound is reached."""
    if Shown.objects < OBJECTS_MAX:
        forms = fit(forms, BYTES_MAX - Shown.bytes)
    size = total(forms)
    if Shown.objects >= OBJECTS_MAX or Shown.bytes + size > BYTES_MAX:
        Shown.undisplayed += 1
        return
    number = Shown.objects
    Shown.objects += 1
    Shown.bytes += size
    for form, data in forms.items():
        send_display(number, form, data)


def about_notes(value, notes):
    return plain("<%s object: %s>" % (type(value).__name__, "; ".join(notes[:8])), 2048)[0]


def show_object(value, is_result):
    """Displays an object. is_result: its repr is reported as the value, so it is not displayed
    too."""
    notes = []
    if from_module(value, "matplotlib.figure", "Figure"):
        show_figure(value)
        return
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


def show_figure(figure):
    """Displays a figure, unless it looks the same as when it was last displayed."""
    try:
        picture = picture_of(figure)
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
    """Displays the value of the last expression, if it is more than text."""
    try:
        if type(value) not in ORDINARY:
            show_object(value, True)
    except BaseException:
        pass


def show_open_figures():
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return
    try:
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


PATCHES = {"matplotlib.backend_bases": patch_managers,
           "plotly.basedatatypes": patch_plotly, "plotly.io._renderers": patch_plotly_show,
           "altair.vegalite.v4.api": patch_altair, "altair.vegalite.v5.api": patch_altair,
           "altair.vegalite.v6.api": patch_altair, "bokeh.io.showing": patch_bokeh,
           "IPython.core.display_functions": patch_ipython, "IPython.core.display": patch_ipython}


def prepare_display():
    """Called in the zygote, before modules are imported."""
    builtins.display = display
    sys.meta_path.insert(0, PatchingFinder())
    sys.meta_path.append(StandInFinder())
