# SPDX-License-Identifier: Apache-2.0
"""The texts and values of earlier cells, under the names of IPython: In, Out, __, ___, _3, _i and
_i3.

Frozen into the program like worker/bootstrap.py, and run in the same namespace. _ is the last
value, of any size. Of the other values, only plain ones are kept: numbers, text, dates,
containers of them, arrays and tables. The size of such a value is known, it keeps no other
object alive, and the sum of all sizes is bounded. All values are measured again after each cell,
because they may grow.
"""

CELLS_MAX = 100  # the number of kept cells, which are the newest
SOURCES_MAX = 1 << 20  # bytes
VALUES_MAX = 4 << 20
ITEMS_MAX = 2000  # in all values; measuring them takes about a millisecond
SINGLE = frozenset((type(None), bool, int, float, complex, str, bytes, bytearray, range))
SINGLE_OF = frozenset((
    ("datetime", "date"), ("datetime", "time"), ("datetime", "datetime"), ("datetime", "timedelta"),
    ("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID"),
    ("pathlib", "PosixPath"), ("pandas._libs.tslibs.timestamps", "Timestamp"),
    ("pandas._libs.tslibs.timedeltas", "Timedelta")))
TABLES = ("pandas.core.frame.DataFrame", "pandas.core.series.Series")
DATES = ("pandas.core.arrays.datetimes.DatetimeArray",
         "pandas.core.arrays.timedeltas.TimedeltaArray")
getsizeof = sys.getsizeof


class Kept(dict):
    """The type of In and Out. A number below zero counts from the end, as in a list."""

    def __missing__(self, number):
        if type(number) is int and -len(self) <= number < 0:
            return self[list(self)[number]]
        error = KeyError(number)
        error.add_note(NOT_KEPT)
        raise error


class History:
    sources, values = Kept(), Kept()
    shown = [0, 0, 0]  # the numbers of the last cells that had a value


NOT_KEPT = ("In and Out have the last %d cells. Out leaves out what is large (%d MiB in all) and what "
            "is no plain value, array or table. _ is the last value; give a value a name to use it "
            "later" % (CELLS_MAX, VALUES_MAX >> 20))


class Measure:
    """Adds up the bytes that values keep alive. Raises TooMuch if there are too many, or if the
    number is not known."""

    def __init__(self, bytes_left, items_left):
        self.bytes, self.items = bytes_left, items_left

    def take(self, size):
        self.bytes -= size
        self.items -= 1
        if self.bytes < 0 or self.items < 0:
            raise TooMuch

    def value(self, value):
        todo, seen = [value], set()
        while todo:
            item = todo.pop()
            if id(item) not in seen:
                seen.add(id(item))
                todo += self.one(item)

    def one(self, item):
        """Counts the item itself. Returns the items in it."""
        kind = type(item)
        if kind in SINGLE or (kind.__module__, kind.__qualname__) in SINGLE_OF:
            self.take(getsizeof(item))
            return ()
        if kind in (list, tuple, set, frozenset, dict):
            self.take(getsizeof(item))
            if len(item) > self.items:
                raise TooMuch
            return [*item, *item.values()] if kind is dict else item
        if from_module(item, "numpy", "generic") and kind.__name__ != "void":
            self.take(getsizeof(item))
            return ()
        if type_name(kind) == "numpy.ndarray":  # others may have more than their elements
            return self.array(item)
        if type_name(kind) in TABLES:
            self.take(200)
            return [*item._mgr.arrays, *item._mgr.axes]
        if from_module(item, "pandas", "Index"):
            return self.index(item)
        if type_name(kind) in DATES:
            return self.array(item._ndarray)
        raise TooMuch

    def array(self, array):
        """Counts an array. The memory of a view belongs to the array below it."""
        while type(array.base) is type(array):
            array = array.base
        if type(array.base) is bytes:
            return (array.base,)
        self.take(200 + array.nbytes)
        if not array.flags.owndata or array.size > self.items and array.dtype.hasobject:
            raise TooMuch
        return array.ravel().tolist() if array.dtype.hasobject else ()

    def index(self, index):
        if from_module(index, "pandas", "RangeIndex"):
            self.take(200)
            return (index.name,)
        if from_module(index, "pandas", "MultiIndex"):
            self.take(200)
            return [*index.levels, *map(sys.modules["numpy"].asarray, index.codes), *index.names]
        return index._data, index.name


def trim_values():
    """Drops values that cannot be measured, and the oldest ones until the rest is within the
    bounds."""
    values, all_of_them = History.values, Measure(VALUES_MAX, ITEMS_MAX)
    for place, number in enumerate(reversed(list(values))):
        one = Measure(all_of_them.bytes, all_of_them.items)
        try:
            if place >= CELLS_MAX:
                raise TooMuch
            one.value(values[number])
            all_of_them = one
        except BaseException:  # TooMuch, an error of a library, or of a class of the script
            forget(values, number, "_%s")
    name_last((("__", History.shown[1]), ("___", History.shown[2])), values)


def drop_foreign_texts():
    """Drops what a cell has put into In itself, as "In [1]: x = 5" does, which was copied with its
    prompt: later cells count on texts."""
    sources = History.sources
    own = {number: text for number, text in sources.items() if type(number) is int and type(text) is str}
    if len(own) < len(sources):
        sources.clear()
        sources.update(own)


def trim_sources():
    sources = History.sources
    size = sum(map(len, sources.values()))
    for number in list(sources):
        if len(sources) <= CELLS_MAX and size <= SOURCES_MAX:
            break
        size -= len(sources[number])
        forget(sources, number, "_i%s")


def forget(kept, number, name):
    kept.pop(number, None)
    if type(number) is int:  # a cell may have put other keys into Out
        builtins.__dict__.pop(name % number, None)


def forget_values():
    for number in list(History.values):
        forget(History.values, number, "_%s")


def name_last(pairs, kept):
    """Sets names in the module builtins. pairs: a name, and the number of the cell whose value or
    text it stands for."""
    for name, number in pairs:
        if number in kept:
            builtins.__dict__[name] = kept[number]
        else:
            builtins.__dict__.pop(name, None)


def remember_text(number, text):
    """Called before a cell runs, as in IPython, because the cell may use its own text."""
    sources = History.sources
    drop_foreign_texts()
    builtins.__dict__.update(In=sources, Out=History.values)
    name_last(zip(("_i", "_ii", "_iii"), list(sources)[:-4:-1]), sources)
    sources[number] = builtins.__dict__["_i%d" % number] = text
    trim_sources()


def remember_value(number, value):
    History.values[number] = builtins.__dict__["_%d" % number] = value
    release(setattr, builtins, "_", value)
    History.shown = [number, *History.shown[:2]]
