# SPDX-License-Identifier: Apache-2.0
"""Converts values that have no JSON form: numbers and tables of libraries, dates, and objects whose
class can list their contents. Any other value is replaced by its repr.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. It imports no
module: if a value's class belongs to a module, that module is loaded already. It calls the
script's own methods, in the script's own process. If such a method raises an exception or
returns too much, the repr takes the value's place.
"""

import binascii
import sys


INTEGER_MAX = (1 << 53) - 1  # the largest that all programs read exactly


class TooMuch(Exception):
    pass


def with_unique_columns(frame):
    """The data frame; if columns have the same name, they are numbered: v, v.1, v.2."""
    if frame.columns.is_unique:
        return frame
    names, seen = [], {}
    for column in frame.columns:
        name = str(column)
        while name in seen:
            seen[str(column)] += 1
            name = "%s.%d" % (column, seen[str(column)])
        seen[name] = 0
        names.append(name)
    return frame.set_axis(names, axis=1)


class Converter:
    """Converts a value to one with a JSON form: the form that programs expect, or its repr."""

    def __init__(self, most):
        self.left = most  # bytes of JSON text; each value takes at least one
        self.around = []  # ids of the containers of the value

    def convert(self, value, depth=0):
        self.left -= 1
        if self.left < 0:
            raise TooMuch
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            value = value if -INTEGER_MAX <= value <= INTEGER_MAX else value_repr(value, 4096)[0].decode()
            self.left -= len(value) if type(value) is str else 0
            return value
        if isinstance(value, float):
            return float(value) if value - value == 0 else self.odd_number(value)
        if depth < 100:
            try:
                return self.convert_object(value, depth + 1)
            except (NotImplementedError, TooMuch):
                if self.left < 0:
                    raise TooMuch from None
            except Exception:  # of the script's own method
                pass
        text = value_repr(value, min(self.left, 4096))[0].decode()
        self.left -= len(text)
        return text

    def odd_number(self, value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"

    def convert_object(self, value, depth):
        if id(value) in self.around:
            raise NotImplementedError
        self.around.append(id(value))
        try:
            for convert in (self.of_container, self.of_scalar, self.of_library, self.of_class):
                found, value_of = convert(value)
                if found:
                    return self.finish(value_of, depth)
        finally:
            self.around.pop()
        raise NotImplementedError

    def finish(self, value, depth):
        """Converts the items, too."""
        kind = type(value)
        if kind is dict:
            done = {}
            for key, item in value.items():
                key = self.key(key)
                done[key if key not in done else value_repr(key, 100)[0].decode()] = \
                    self.convert(item, depth)
            return done
        if kind is list:
            return [self.convert(item, depth) for item in value]
        return self.convert(value, depth)

    def key(self, key):
        if isinstance(key, str):
            return str.__str__(key)
        if key is None or isinstance(key, (bool, int, float)):
            return encode_json(self.convert(key)).strip('"')
        found, plain_key = self.of_scalar(key)
        if found and type(plain_key) in (str, int, float):
            return self.key(plain_key)
        return value_repr(key, 200)[0].decode()

    def of_container(self, value):
        if isinstance(value, dict):
            return True, dict(dict.items(value))
        if isinstance(value, (list, tuple, set, frozenset)):
            return True, list(value)
        if isinstance(value, (bytes, bytearray)):
            try:
                return True, bytes(value).decode()
            except UnicodeDecodeError:
                return True, binascii.b2a_base64(value, newline=False).decode()
        return False, None

    def of_scalar(self, value):
        if from_module(value, "enum", "Enum"):
            return True, value.value
        for module, name in (("datetime", "date"), ("datetime", "time")):
            if from_module(value, module, name):
                return True, value.isoformat()
        if from_module(value, "datetime", "timedelta"):
            part = (".%06d" % value.microseconds).rstrip("0").rstrip(".")
            return True, "P%dDT%d%sS" % (value.days, value.seconds, part)
        for module, name in (("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID"),
                             ("pathlib", "PurePath")):
            if from_module(value, module, name):
                return True, str(value)
        if isinstance(value, (int, str)):
            return True, int(value) if isinstance(value, int) else str.__str__(value)
        return False, None

    def of_library(self, value):
        """Values of numpy and pandas; tables become rows."""
        if from_module(value, "numpy", "generic"):
            return True, value.item()
        if from_module(value, "numpy", "ndarray"):
            if value.size > self.left:
                raise self.too_much()
            return True, value.tolist()
        if from_module(value, "pandas", "DataFrame"):
            if value.size > self.left:
                raise self.too_much()
            return True, with_unique_columns(value).to_dict("records")
        if from_module(value, "pandas", "Series"):
            if value.size > self.left:
                raise self.too_much()
            return True, value.to_dict()
        if from_module(value, "pandas", "Index"):
            return True, value.tolist()
        return False, None

    def too_much(self):
        self.left = -1
        return TooMuch

    def of_class(self, value):
        kind = type(value)
        if isinstance(value, type):
            return False, None
        if hasattr(kind, "__dataclass_fields__"):
            return True, {name: getattr(value, name) for name in kind.__dataclass_fields__}
        names = ("model_dump", "to_dict", "_asdict")
        if from_module(value, "pydantic", "BaseModel"):
            names += ("dict",)  # before its version 2
        for name in names:
            if callable(getattr(kind, name, None)):
                got = getattr(value, name)()
                if isinstance(got, (dict, list)):
                    return True, got
        return False, None


def from_module(value, module, name):
    """Is the value an instance of the module's class of this name? The module may be missing."""
    found = sys.modules.get(module)
    found = getattr(found, name, None) if found is not None else None
    return isinstance(found, type) and isinstance(value, found)
