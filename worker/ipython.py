# SPDX-License-Identifier: Apache-2.0
"""IPython.display for scripts that were written for notebooks.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. If IPython is
installed, its display(), which would print a repr, is replaced by the worker's. Otherwise a
stand-in for IPython has display() and the classes that show markup, text and pictures, and its
get_ipython() returns None, as outside of a notebook. The stand-in is made when it is imported.
"""

import base64
import importlib.machinery
import sys
import types


def read_source(data, url, filename):
    if url is not None:
        raise ValueError("a picture or a text by its url cannot be shown: there is no network here")
    if filename is None:
        return data
    with open(filename, "rb") as file:
        return file.read()


class DisplayObject:
    method = None

    def __init__(self, data=None, url=None, filename=None, metadata=None, **options):
        self.data, self.metadata = read_source(data, url, filename), metadata or {}

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


def text_object(name, method):
    """Makes a class whose objects have one form, a text."""
    def form(self):
        data = self.data
        return data.decode() if isinstance(data, bytes) else data

    form.__name__ = method
    return type(name, (DisplayObject,), {method: form, "__module__": "IPython.core.display"})


class Image(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, format=None, **options):
        if isinstance(data, str) and filename is None and url is None:
            filename, data = data, None
        super().__init__(data, url, filename, **options)

    def _repr_png_(self):
        return self.data if self.data.startswith(b"\x89PNG") else None

    def _repr_jpeg_(self):
        return self.data if self.data.startswith(b"\xff\xd8\xff") else None

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self._repr_png_() or self._repr_jpeg_():
            return None
        return {"image/x-other": self.data}


class JsonObject(DisplayObject):  # the name JSON is taken: rich.py has it
    def _repr_json_(self):
        return self.data


class Pretty(DisplayObject):
    def __repr__(self):
        return str(self.data)


def nothing(*arguments, **options):
    """Does nothing: in place of functions that need a notebook."""


def stand_in(module):
    """Fills the stand-in for IPython or IPython.display."""
    module.get_ipython = lambda: None
    module.version_info, module.__version__ = (0, 0, 0), "0"
    if module.__name__ == "IPython":
        module.__path__ = []
        return
    module.display = builtins_display
    module.DisplayObject, module.Image, module.JSON, module.Pretty = \
        DisplayObject, Image, JsonObject, Pretty
    JsonObject.__name__ = JsonObject.__qualname__ = "JSON"
    for name, method in (("HTML", "_repr_html_"), ("Markdown", "_repr_markdown_"),
                         ("SVG", "_repr_svg_"), ("Latex", "_repr_latex_"),
                         ("Math", "_repr_latex_"), ("Code", "_repr_markdown_"),
                         ("Javascript", "_repr_javascript_")):
        setattr(module, name, text_object(name, method))
    module.clear_output, module.DisplayHandle = clear_output, DisplayHandle
    for name in ("set_matplotlib_formats", "update_display"):
        setattr(module, name, nothing)


def builtins_display(*objects, **options):
    """IPython's display(). Its options are for notebooks, and ignored."""
    if options.get("display_id"):
        return DisplayHandle(*objects)
    return display(*objects, raw=bool(options.get("raw", False)))


def patch_ipython(module):
    for name, own in (("display", builtins_display), ("clear_output", clear_output)):
        if hasattr(module, name):
            setattr(module, name, own)


class StandInFinder:
    """The last finder on sys.meta_path, so an installed IPython comes first."""

    def find_spec(self, name, path=None, target=None):
        if name in ("IPython", "IPython.display", "IPython.core.display"):
            return importlib.machinery.ModuleSpec(name, self, is_package=name == "IPython")
        return None

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        stand_in(module)
