#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes, from the public headers, the module by which Python calls the library.

generate.py INCLUDE --module FILE   writes the module _c.py: constants, enums, structs, functions
generate.py INCLUDE --check FILE    writes a C program that compiles only if the sizes, offsets and
                                    values of the module are those that the compiler sees

The headers are regular (scripts/reference.awk reads them for people), so a small reader is enough.
It refuses what it does not understand.
"""
import argparse
import ctypes
import pathlib
import re
import sys
from typing import Dict, List, NamedTuple, Optional, Tuple

# C types to (name in ctypes, kind of the same size for the C program).
SIMPLE = {
    "int": "c_int", "unsigned": "c_uint", "double": "c_double", "size_t": "c_size_t",
    "uint32_t": "c_uint32", "uint64_t": "c_uint64", "int64_t": "c_int64",
    "unsigned long long": "c_ulonglong", "char": "c_char", "uint8_t": "c_uint8",
}


class Field(NamedTuple):
    name: str
    type: str
    length: str  # "" or that of an array


class Headers:
    """The declarations, in an order in which nothing is used before it is declared."""

    def __init__(self, include: pathlib.Path) -> None:
        self.include = include
        self.seen: List[str] = []
        self.constants: Dict[str, str] = {}
        self.lists: Dict[str, List[List[str]]] = {}
        self.inits: Dict[str, str] = {}
        self.enums: Dict[str, List[Tuple[str, str]]] = {}
        self.structs: Dict[str, List[Field]] = {}
        self.tags: Dict[str, str] = {}  # name of a struct here: as C has it
        self.handles: List[str] = []
        self.aliases: Dict[str, str] = {}
        self.callbacks: Dict[str, Tuple[str, List[Field]]] = {}
        self.functions: Dict[str, Tuple[str, List[Field]]] = {}
        self.of_insight: List[str] = []  # functions of the library for tools
        for name in ["tutti"] + sorted(p.stem for p in (include / "tutti").glob("*.h")):
            self.read(name)

    def read(self, name: str) -> None:
        if name in self.seen:
            return
        self.seen.append(name)
        text = (self.include / "tutti" / f"{name}.h").read_text()
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
        text = re.sub(r"#ifdef __cplusplus\n(?:(?!#endif|#else).)*#else\n(.*?)#endif", r"\1", text, flags=re.S)
        text = re.sub(r"#ifdef __cplusplus\n.*?#endif", "", text, flags=re.S)
        text = re.sub(r"#if defined\(__GNUC__\).*?#endif", "", text, flags=re.S)
        for other in re.findall(r'#include "tutti/(\w+)\.h"', text):
            self.read(other)
        text = self.expand_lists(text)
        for line in re.findall(r"^#define (.*)$", text, flags=re.M):
            self.take_macro(line)
        code = re.sub(r"^#.*$", "", text, flags=re.M)
        code = re.sub(r"[^;]*TUTTI_DEPRECATED[^;]*;", "", code)  # Python has no use for old names.
        code = re.sub(r"TUTTI_API |TUTTI_CHECKED |TUTTI_PRINTF\([^)]*\)", "", code)
        for declaration in self.split(code):
            self.take(declaration, f"{name}.h")

    def expand_lists(self, text: str) -> str:
        """Write out lists and the enums that are made of them."""
        for name, rows in re.findall(r"^#define (\w+_MAP)\(X\)(.*)$", text, flags=re.M):
            self.lists[name] = [[part.strip() for part in row.split(",")]
                                for row in re.findall(r"X\(([^()]*)\)", rows)]
        text = re.sub(r"^#define \w+_MAP\(X\).*$", "", text, flags=re.M)

        def write_out(match: "re.Match[str]") -> str:
            prefix, rows = match.group(1), self.lists[match.group(2)]
            return "".join(f"{prefix}{row[0]} = {row[1]}," for row in rows)

        return re.sub(r"#define X\([^)]*\) *(\w+)##name = \(value\),\s*(\w+)\(X\)\s*#undef X",
                      write_out, text)

    def take_macro(self, line: str) -> None:
        name, _, value = line.partition(" ")
        value = value.strip()
        if name.endswith("_INIT"):
            self.inits[name] = value
        elif re.fullmatch(r"\(?-?\d+\)?", value):
            self.constants[name] = value.strip("()")

    @staticmethod
    def split(code: str) -> List[str]:
        out, depth, begin = [], 0, 0
        for at, char in enumerate(code):
            depth += {"{": 1, "}": -1}.get(char, 0)
            if char == ";" and depth == 0:
                out.append(" ".join(code[begin:at].split()))
                begin = at + 1
        return [text for text in out if text]

    def take(self, text: str, where: str) -> None:
        enum = re.fullmatch(r"(?:typedef )?enum ?(\w*) ?\{(.*)\} ?(\w*)", text)
        struct = re.fullmatch(r"(typedef )?struct (\w+) ?\{(.*)\} ?(\w*)", text)
        handle = re.fullmatch(r"typedef struct \w+ \*(\w+)", text)
        alias = re.fullmatch(r"typedef (\w+) (\w+)", text)
        callback = re.fullmatch(r"typedef (.*?)\(\*(\w+)\)\((.*)\)", text)
        function = re.fullmatch(r"(.*?)(\w+)\((.*)\)", text)
        if enum:
            self.take_enum(enum.group(3) or enum.group(1), enum.group(2))
        elif struct:
            name = struct.group(4) or struct.group(2)
            self.tags[name] = name if struct.group(1) else f"struct {name}"
            self.structs[name] = [field for part in struct.group(3).split(";") if part.strip()
                                  for field in self.fields(part)]
        elif handle:
            self.handles.append(handle.group(1))
        elif alias:
            self.aliases[alias.group(2)] = alias.group(1)
        elif callback:
            self.callbacks[callback.group(2)] = (callback.group(1).strip(),
                                                 self.arguments(callback.group(3)))
        elif function:
            self.functions[function.group(2)] = (function.group(1).strip(),
                                                 self.arguments(function.group(3)))
            if where == "insight.h":
                self.of_insight.append(function.group(2))
        else:
            sys.exit(f"generate.py: {where}: this is not understood: {text}")

    def take_enum(self, name: str, body: str) -> None:
        rows = []
        for row in body.split(","):
            if row.strip():
                key, _, value = row.partition("=")
                rows.append((key.strip(), value.strip(" ()")))
        if name:
            self.enums[name] = rows
        else:
            self.constants.update(rows)

    @staticmethod
    def fields(text: str) -> List[Field]:
        """The fields of a declaration like `const char *a, *b[4]`."""
        base = re.match(r"\s*((?:const |struct )*(?:unsigned(?: long long)?|\w+)\b)", text)
        assert base, text
        out = []
        for part in text[base.end():].split(","):
            found = re.fullmatch(r"\s*([*\s]*(?:const \*?)?)\s*(\w+)(?:\[(\w*)\])?\s*", part)
            if not found:
                sys.exit(f"generate.py: this declaration is not understood: {text}")
            stars = found.group(1).replace(" ", "").replace("const", " const ").strip()
            out.append(Field(found.group(2), f"{base.group(1)} {stars}".strip(),
                             found.group(3) or ""))
        return out

    def arguments(self, text: str) -> List[Field]:
        if text.strip() in ("void", ""):
            return []
        return [self.fields(part)[0] for part in text.split(",")]

    # -- Types -----------------------------------------------------------------------

    def python_type(self, text: str, is_result: bool = False) -> str:
        words = text.replace("struct ", "")
        plain = " ".join(words.replace("const", "").replace("*", "").split())
        stars = words.count("*")
        if stars == 0:
            if plain in self.enums:
                return "c_int"
            if plain in self.handles:
                return "c_void_p"
            if plain in self.structs or plain in self.callbacks:
                return plain
            return SIMPLE[self.aliases.get(plain, plain)]
        if plain == "void":
            return "c_void_p" if stars == 1 else "POINTER(c_void_p)"
        if plain == "char":
            # What free() is to free stays an address.
            if stars == 1:
                return "c_char_p"
            return "POINTER(c_char_p)" if text.startswith("const") else "POINTER(c_void_p)"
        if stars == 2:
            return "POINTER(c_void_p)"
        return f"POINTER({self.python_type(plain)})"


def initial(headers: Headers, name: str) -> Optional[List[str]]:
    """The values of NAME_INIT after the first, which is the size; None: there is none."""
    stem = re.sub(r"^tutti_", "", name).upper()
    text = headers.inits.get(f"TUTTI_{stem}_INIT")
    if text is None:
        return None
    text = re.sub(r"sizeof\([^)]*\)", "SIZE", text)
    values = [value.strip() for value in text.strip("{} ").split(",") if value.strip()]
    known = {key: value for rows in headers.enums.values() for key, value in rows}
    return [{"NULL": "None", '""': 'b""'}.get(value, known.get(value, value)) for value in values[1:]]


def write_module(headers: Headers) -> str:
    out = ['"""The C interface of Tutti. Made of its headers by bindings/python/generate.py."""',
           "from ctypes import *  # noqa: F401,F403", "from enum import IntEnum", "",
           "from ._library import insight, lib", ""]
    out += [f"{name} = {value}" for name, value in headers.constants.items()]
    for name, rows in headers.enums.items():
        out += ["", "", f"class {name}(IntEnum):"]
        out += [f"    {key} = {value}" for key, value in rows]
    out += [""]
    for name, (result, arguments) in headers.callbacks.items():
        types = ", ".join(["None" if result == "void" else headers.python_type(result)] +
                          [headers.python_type(a.type) for a in arguments])
        out += ["", f"{name} = CFUNCTYPE({types})"]
    for name, fields in headers.structs.items():
        out += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
        for field in fields:
            kind = headers.python_type(field.type)
            length = f" * {field.length}" if field.length else ""
            out += [f'        ("{field.name}", {kind}{length}),']
        out += ["    ]"]
        values = initial(headers, name)
        if values is not None:
            out += ["", "    @classmethod", f'    def new(cls) -> "{name}":',
                    f"        return cls({', '.join(['sizeof(cls)'] + values)})"]
    out += [""]
    of_insight = []
    for name, (result, arguments) in headers.functions.items():
        kind = "None" if result == "void" else headers.python_type(result)
        types = ", ".join(headers.python_type(a.type) for a in arguments)
        if name in headers.of_insight:
            of_insight += [f'    "{name}": ({kind}, [{types}]),']
        else:
            out += ["", f"{name} = lib.{name}", f"{name}.restype = {kind}",
                    f"{name}.argtypes = [{types}]"]
    # By PEP 562: a rank does not load that library.
    out += ["", "_OF_INSIGHT = {"] + of_insight + [
        "}", "", "",
        "def __getattr__(name):", "    if name not in _OF_INSIGHT:",
        '        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")',
        "    function = getattr(insight(), name)",
        "    function.restype, function.argtypes = _OF_INSIGHT[name]",
        "    globals()[name] = function", "    return function"]
    return "\n".join(out) + "\n"


def load(headers: Headers) -> Dict[str, object]:
    """The module's structs, without the library."""
    space: Dict[str, object] = {}
    text = write_module(headers).replace("from ._library import insight, lib", "")
    exec(text[:text.index("\ntutti_", text.rindex("class ")) if headers.functions else None], space)
    return space


def write_check(headers: Headers) -> str:
    space = load(headers)
    out = ["/* Made by bindings/python/generate.py: what its module takes for granted. */",
           "#include <stddef.h>", "#include <tutti/tutti.h>"]
    out += [f"#include <tutti/{name}.h>" for name in headers.seen if name != "tutti"]
    out += ["#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a)"]
    out += [f"SAME({name}, {value});" for name, value in headers.constants.items()]
    for name, rows in headers.enums.items():
        out += [f"SAME({key}, {value});" for key, value in rows]
        out += [f"SAME(sizeof({'enum ' + name}), sizeof(int));"]
    for name, fields in headers.structs.items():
        kind = space[name]
        tag = headers.tags[name]
        out += [f"SAME(sizeof({tag}), {ctypes.sizeof(kind)});"]  # type: ignore[arg-type]
        for field in fields:
            out += [f"SAME(offsetof({tag}, {field.name}), {getattr(kind, field.name).offset});"]
    used = {a.type for _, arguments in headers.functions.values() for a in arguments}
    used |= {result for result, _ in headers.functions.values()} - {"void"}
    for text in sorted(used):
        kind = eval(headers.python_type(text), space)  # pylint: disable=eval-used
        out += [f"SAME(sizeof({text}), {ctypes.sizeof(kind)});"]
    for name, (result, arguments) in headers.functions.items():
        types = ", ".join(a.type for a in arguments) or "void"
        out += [f"_Static_assert(__builtin_types_compatible_p(__typeof__(&{name}), "
                f"__typeof__({result} (*)({types}))), \"{name}\");"]
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("--module", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    args = parser.parse_args()
    headers = Headers(args.include)
    if args.module:
        args.module.write_text(write_module(headers))
    if args.check:
        args.check.write_text(write_check(headers))


if __name__ == "__main__":
    main()
