"""Pickles in which one object of a class has one field more than its class has: what the next release of a library may save.

A pickle is followed symbolically, so that the class of each object whose state is set is known; nothing of it is executed. The field is put in front of
the opcode that sets the state."""

import pickletools
import struct

FIELD = "field_of_tomorrow"
NUMBER = b"K\x07"
VALUES = {  # opcodes that push a value
    "none": b"N", "number": NUMBER, "true": b"\x88", "text": b"X" + struct.pack("<I", 3) + b"new", "tuple": NUMBER + b"K\x08\x86", "list": b"]" + NUMBER + b"a",
    "dict": b"}" + NUMBER + b"N" + b"s", "object": b"ccollections\nOrderedDict\n)R",
}


class Site:
    """An object of a class, and where its state is set. `tuple_at`: the state is a tuple, which an opcode at that place makes; else it is a dict."""

    def __init__(self, name, build_at, tuple_at=None):
        self.name, self.build_at, self.tuple_at = name, build_at, tuple_at


def sites(pickle):
    """Every object whose state is set from a dict, or from a tuple of any length."""
    found, stack, memo, marks = [], [], {}, []

    def pop_to_mark():
        at = marks.pop()
        items = stack[at:]
        del stack[at:]
        return items

    for op, arg, pos in pickletools.genops(pickle):
        name = op.name
        if name == "MARK":
            marks.append(len(stack))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[int(arg)] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[int(arg)])
        elif name == "GLOBAL":
            stack.append(("class", arg.replace(" ", ".")))
        elif name == "STACK_GLOBAL":
            symbol, module = stack.pop(), stack.pop()
            stack.append(("class", f"{module[1]}.{symbol[1]}"))
        elif name in ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"):
            stack.append(("text", arg))
        elif name in ("NEWOBJ", "REDUCE"):
            stack.pop()
            stack.append(("object", stack.pop()[1]))
        elif name == "TUPLE":
            pop_to_mark()
            stack.append(("tuple", pos))
        elif name in ("LIST", "DICT"):
            pop_to_mark()
            stack.append((name.lower(), pos))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            del stack[-int(name[-1]):]
            stack.append(("pair", pos))
        elif name in ("SETITEMS", "APPENDS", "ADDITEMS"):
            pop_to_mark()
        elif name == "SETITEM":
            del stack[-2:]
        elif name == "APPEND":
            stack.pop()
        elif name == "EMPTY_DICT":
            stack.append(("dict", pos))
        elif name == "BINPERSID":
            stack[-1] = ("object", "storage")
        elif name == "BUILD":
            kind, where = stack.pop()
            if kind in ("dict", "tuple"):
                found.append(Site(stack[-1][1], pos, where if kind == "tuple" else None))
        elif name not in ("PROTO", "FRAME", "STOP"):
            for _ in op.stack_before:
                stack.pop()
            stack.extend(("value", None) for _ in op.stack_after)
    return found


def without_frames(pickle):
    """A field more makes a frame longer than it says, and no reader needs frames."""
    at = [pos for op, _, pos in pickletools.genops(pickle) if op.name == "FRAME"]
    for pos in reversed(at):
        pickle = pickle[:pos] + pickle[pos + 9:]
    return pickle


def with_field(pickle, site, value):
    """The pickle with one field more: of that name in a dict, behind the others in a tuple."""
    if site.tuple_at is not None:
        return pickle[:site.tuple_at] + VALUES[value] + pickle[site.tuple_at:]
    key = b"X" + struct.pack("<I", len(FIELD)) + FIELD.encode()
    return pickle[:site.build_at] + key + VALUES[value] + b"s" + pickle[site.build_at:]


def mutations(pickle):
    """(class, which of its objects, kind of value, pickle): the first object and the last of every class, each with some of the values."""
    pickle = without_frames(pickle)
    by_class = {}
    for site in sites(pickle):
        by_class.setdefault(site.name, []).append(site)
    for i, (name, objects) in enumerate(sorted(by_class.items())):
        for which, site in (("first", objects[0]), ("last", objects[-1]))[:min(len(objects), 2)]:
            for j, value in enumerate(VALUES):
                if (i + j + (which == "last")) % 2 == 0:
                    yield name, which, value, with_field(pickle, site, value)
