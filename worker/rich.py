# SPDX-License-Identifier: Apache-2.0
"""What a script shows that is more than text: figures, pictures, tables, markup.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. An object is
shown in one form to look at (PNG, JPEG, SVG or HTML: the first it has), one to read
(Markdown or plain text) and one for programs (JSON). Its methods are the script's: they may
raise or return anything, which is told in place of the form; how long they take is the
script's own time. Nothing is imported for it that the script did not import itself, but for PIL, which
makes a picture smaller that is too large to be shown.
"""

import binascii
import builtins
import io
import os
import sys

PNG, JPEG, SVG, HTML, MARKDOWN, PLAIN, JSON = range(7)  # enum display_kind
# Given by the program: OBJECTS_MAX, and BYTES_MAX of all forms of all objects.
TEXT_MAX = 64 << 10  # of a form that is to be read
MARKUP_MAX = 1 << 20
ROWS_MAX = 20  # of a data frame as JSON
MIME = {"image/png": PNG, "image/jpeg": JPEG, "image/svg+xml": SVG, "text/html": HTML,
        "text/markdown": MARKDOWN, "application/json": JSON, "text/plain": PLAIN}
METHODS = (("_repr_png_", PNG), ("_repr_jpeg_", JPEG), ("_repr_svg_", SVG),
           ("_repr_html_", HTML), ("_repr_markdown_", MARKDOWN), ("_repr_json_", JSON))
NAMES = ("PNG", "JPEG", "SVG", "HTML", "Markdown", "text", "JSON")
ENDS = {PNG: "png", JPEG: "jpg", SVG: "svg", HTML: "html"}
WORKSPACE = "/workspace"
ROOM_MIN = 16 << 10  # for a smaller picture and a word about it
SCALINGS_MAX = 8
SIGNATURE = {PNG: b"\x89PNG\r\n\x1a\n", JPEG: b"\xff\xd8\xff"}
ORDINARY = frozenset((int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set,
                      frozenset, range, type, type(None), type(len), type(lambda: 0)))
# Looked at without calling anything of the script's.
ancestors = type.__dict__["__mro__"].__get__
own_names = type.__dict__["__dict__"].__get__


class Shown:
    """What this run has shown so far."""

    objects = bytes = undisplayed = 0
    figures = {}  # by id: the figure, and its last picture


# ---- the forms of an object ----------------------------------------------------------


def class_has(kind, name):
    """Whether the class says so itself: objects that answer to every name say nothing."""
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
    """Markup that is cut is broken markup: it is whole or not there. Markup to look at can be of
    any size (fit_markup)."""
    if not isinstance(got, str):
        return None
    data, cut = plain(got, most or 6 * str.__len__(got))
    return None if cut else data


def take(forms, form, got, notes):
    """Adds what a method returned for a form, when it is that."""
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
        notes.append("what it gave as %s is none, or too long" % NAMES[form])


def own_forms(value, notes):
    """By the methods that notebooks have made usual."""
    kind, forms = type(value), {}
    if class_has(kind, "_repr_mimebundle_"):
        got = ask(value, "_repr_mimebundle_", notes)
        if isinstance(got, tuple) and got:
            got = got[0]
        take_bundle(forms, got, notes)
    for name, form in METHODS:
        # Only the best of those that are looked at.
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
    """A data frame as JSON text: as many of its rows as are not too much."""
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
    """What an object is shown as, beside its repr: {form: bytes}."""
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
    """One form to look at, one to read, one for programs."""
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
    """Leaves a picture or markup among the script's files. Returns its name; None: there is no room."""
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
    """A picture again, of fewer pixels, in at most so many bytes; and what was done to it. None
    if it cannot be."""
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
    """What became of a form that is too large, whose whole the script's files get."""
    name = keep_whole(number, form, data)
    return ("%s of %d bytes is %s%s" % (
        "a picture" if form in SIGNATURE else NAMES[form], len(data), what,
        "; the whole one is %s/%s" % (WORKSPACE, name) if name else "")).encode()


def fit_picture(forms, form, room):
    """A smaller picture."""
    # The next one may be large, too.
    smaller, said = make_smaller(forms[form], form, room // 2) or (None, "too large to be shown")
    return {**({form: smaller} if smaller else {}),
            PLAIN: say(Shown.objects, form, forms[form], said)}


def fit_markup(forms, form):
    """The other forms alone. What is to be read says where the markup is."""
    said = say(Shown.objects, form, forms[form], "too large to be shown")
    forms = {other: data for other, data in forms.items() if other != form}
    read = MARKDOWN if MARKDOWN in forms else PLAIN
    text = forms.get(read)
    forms[read] = said + b"\n\n" + text if text else said
    return forms


def fit(forms, room):
    """These forms, if the one to look at is too large, with less in its place."""
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
    """Shows these forms of one object, or, past the caps, none of them."""
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
    """Of a result the repr is told anyway."""
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
    """Once for each way it looked."""
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
            forms[PLAIN] = about_notes(value, notes or ["no media type in it is known"])
        put(forms)


display.__module__ = "builtins"


def show_result(value):
    """The value of the trailing expression."""
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
    """Loads a module as its own loader does, and then changes it."""

    def __init__(self, loader, patch):
        self.loader, self.patch = loader, patch

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.patch(module)


class PatchingFinder:
    """Hooks imports. matplotlib must draw into memory; and plt.show() must display, as must what
    other libraries have in its place, and IPython's display()."""

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
    """A figure would ask for IPython and nbformat, to choose between notebooks."""
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
    """Its show() would open a browser."""
    def show(self, *arguments, **options):
        display(self)

    module.TopLevelMixin.show = show


def patch_bokeh(module):
    """Likewise; and what shows a model in a notebook is a table of its properties."""
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
    """In the zygote, before modules are imported."""
    builtins.display = display
    sys.meta_path.insert(0, PatchingFinder())
    sys.meta_path.append(StandInFinder())
