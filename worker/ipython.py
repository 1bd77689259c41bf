# SPDX-License-Identifier: Apache-2.0
"""IPython.display for scripts that were written for notebooks.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. Where IPython is
installed its own display() would print a repr: it becomes ours. Where it is not, a stand-in has
display() and the classes that show markup, text and pictures; get_ipython() says that this is no
notebook. Nothing is made before it is imported.
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
    """A class whose data is text of one form."""
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


class JsonObject(DisplayObject):  # rich.py has another JSON in these names
    def _repr_json_(self):
        return self.data


class Pretty(DisplayObject):
    def __repr__(self):
        return str(self.data)


def nothing(*arguments, **options):
    """What only a notebook could do."""


def stand_in(module):
    """Fills IPython or IPython.display."""
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
    for name in ("clear_output", "set_matplotlib_formats", "update_display"):
        setattr(module, name, nothing)


def builtins_display(*objects, **options):
    """As IPython's: its options are for notebooks."""
    display(*objects, raw=bool(options.get("raw", False)))


def patch_ipython(module):
    if hasattr(module, "display"):
        module.display = builtins_display


class StandInFinder:
    """The last that is asked: whatever is installed comes first."""

    def find_spec(self, name, path=None, target=None):
        if name in ("IPython", "IPython.display", "IPython.core.display"):
            return importlib.machinery.ModuleSpec(name, self, is_package=name == "IPython")
        return None

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        stand_in(module)
