# SPDX-License-Identifier: Apache-2.0
"""Lists the variables of a session without running a cell: names, types, sizes and short reprs.

Frozen into the program like worker/bootstrap.py, and run in the same namespace, in a copy of the
state that ends afterwards. Attributes and methods of a value may be the script's own code.
"""

VARIABLES_MAX, VARIABLE_NAME_MAX, VARIABLE_REPR_MAX = 500, 200, 200
LARGE = 100_000	# bytes that a line names
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)


def size_of(value):
    """The bytes of the value itself, without the objects that it refers to."""
    for module, name, method in (("pandas", "DataFrame", "memory_usage"),
                                 ("pandas", "Series", "memory_usage"),
                                 ("polars", "DataFrame", "estimated_size"),
                                 ("polars", "Series", "estimated_size")):
        if from_module(value, module, name):
            size = getattr(value, method)()
            return int(size.sum() if hasattr(size, "sum") else size)
    size = getattr(value, "nbytes", None)
    return size if type(size) is int and size >= 0 else sys.getsizeof(value)


def shape_of(value):
    """The dimensions of the value; None: it has none."""
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple) or len(shape) > 64:
        return None
    shape = [int(n) for n in shape]
    return shape if all(0 <= n < 1 << 63 for n in shape) else None


def variable(name, value):
    """The description of a variable, with the properties that its value has."""
    told = {"name": plain(name, VARIABLE_NAME_MAX)[0].decode(),
            "type": plain(type_name(type(value)), VARIABLE_NAME_MAX)[0].decode()}
    for key, ask in (("shape", shape_of), ("bytes", size_of)):
        try:
            found = None if isinstance(value, type) and key == "shape" else ask(value)
            if found is not None:
                told[key] = found
        except Exception:
            pass
    if "shape" not in told:
        for kind in SIZED:
            if isinstance(value, kind):
                told["length"] = kind.__len__(value)
    told["repr"] = value_repr(value, VARIABLE_REPR_MAX)[0].decode()
    return told


def variable_line(told):
    """The description as a line for people: bytes where they matter, and of a module its name."""
    size = told.get("shape", told.get("length", ""))
    line = "%s: %s%s" % (told["name"], told["type"], " %s" % size if size != "" else "")
    if told.get("bytes", 0) >= LARGE:
        line += ", %d bytes" % told["bytes"]
    if told["type"] == "module":
        return line + " " + (told["repr"] + "''").split("'")[1]
    return line + " = " + " ".join(told["repr"].split())


def inspect_names(value_max):
    """Lists the variables, as many as there is room for. Returns the same as run_cell(), with
    the list as the value."""
    told, lines, room, cut = [], [], value_max, False
    for name, value in sorted(((n, v) for n, v in list(main_module.__dict__.items())
                               if type(n) is str and not n.startswith("_")),
                              key=lambda pair: pair[0]):
        one = variable(name, value)
        data, line = encode_json(one).encode(), variable_line(one).encode()
        room -= max(len(data), len(line)) + 2
        if room < 0 or len(told) == VARIABLES_MAX:
            cut = True
            break
        told.append(data)
        lines.append(line)
    result = [b"\n".join(lines), b"[%b]" % b",".join(told), cut, True] + [None] * 4
    flush_output()
    return (0, False, *result, None)
