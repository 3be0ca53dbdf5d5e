#!/usr/bin/env python3
"""check_layout.py --compiler CC [--renew] [--released DIR] INCLUDE_DIR TABLE

Compares the public C headers with TABLE: offset and size of each member of each struct, values of enumerators, numbers of ops and
element types, and the types of functions. A change of what stands in the table breaks the ABI; what is new is allowed where
docs/compatibility.md says so, and is put into the table by --renew, which refuses to change what is there. DIR has the headers that backends use, as the last release had
them: while they state the same minor version, nothing may be new in them."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HEADERS = ["types.h", "attributes.h", "program.h", "backend.h", "tables.h", "processes.h", "collet.h", "transfers.h", "calling.h"]
STRUCT = re.compile(r"^struct (\w+) \{(.*?)^\};", re.M | re.S)
ENUM = re.compile(r"^enum \{(.*?)^\};", re.M | re.S)
FUNCTION = re.compile(r"^COLLET_(?:API|EXPORT) (.*?);", re.M | re.S)
FUNCTION_TYPE = re.compile(r"^typedef ([^;{]*\(\*\w+\)[^;]*);", re.M | re.S)
# Lists that are kept in files of their own: the line of C that prints each entry.
LISTS = {
    "types.def": '#define COLLET_TYPE(NAME, text, value, bits, kind, since) '
                 'printf("type %s: %d, %s, %d bits, since %d\\n", #NAME, value, text, bits, since);',
    "ops.def": '#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) '
               'printf("op %s: %d, %s, %d to %d operands, %s, since %d\\n", #NAME, id, text, min, max, #Record, since);',
    "attributes.def": '#define COLLET_ENUM_VALUE(Enum, PREFIX, NAME, value, text) '
                      'printf("enumerator COLLET_%s_%s: %d\\n", #PREFIX, #NAME, value);',
}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def plain(text):
    return re.sub(r"\s+", " ", text).replace("( ", "(").replace(" )", ")").strip()


def members(body):
    """Yields (name, type of a function or None) of each member of a struct."""
    for declaration in body.split(";"):
        declaration = plain(declaration)
        if not declaration:
            continue
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        if pointer:
            yield pointer[1], declaration
            continue
        for part in declaration.split(","):
            name = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", part)
            if not name:
                sys.exit(f"check_layout: cannot read the member '{declaration}'")
            yield name[1], None


def program(folder):
    """The C program that prints the table."""
    headers = [name for name in HEADERS if os.path.exists(os.path.join(folder, name))]
    out = ["#include <stdio.h>"] + [f"#include <collet/{name}>" for name in headers]
    body = []
    for name in headers:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = without_comments(file.read())
        for struct, inside in STRUCT.findall(text):
            grows = "grows" if re.match(r"\s*uint32_t struct_size;", inside) or struct.endswith("_attrs") else "fixed"
            body.append(f'printf("struct {struct}: {grows}, %zu bytes\\n", sizeof(struct {struct}));')
            for member, function in members(inside):
                place = f"offsetof(struct {struct}, {member}), sizeof(((struct {struct}*)0)->{member})"
                body.append(f'printf("member {struct}.{member}: offset %zu, %zu bytes{"; " + function if function else ""}\\n", {place});')
        for inside in ENUM.findall(text):
            inside = re.sub(r"^\s*#.*(\\\n.*)*", "", inside, flags=re.M)
            for one in re.findall(r"\b(COLLET_\w+)\s*=", inside):
                if not one.endswith("_LIMIT"):
                    body.append(f'printf("enumerator {one}: %lld\\n", (long long){one});')
        for function in FUNCTION.findall(text):
            function = plain(function)
            body.append(f'puts("function {re.search(r"(collet_[a-z0-9_]+)[(]", function)[1]}: {function}");')
        for function in FUNCTION_TYPE.findall(text):
            function = plain(function)
            body.append(f'puts("function type {re.search(r"[(][*]([a-z0-9_]+)[)]", function)[1]}: {function}");')
    for name, macro in LISTS.items():
        body += [macro, f"#include <collet/{name}>"]
    return "\n".join(out + ["int main(void) {"] + body + ["return 0; }", ""])


def table_of(include, compiler):
    """The table of the headers HEADERS that are in the folder `include`."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program(os.path.join(include, "collet")))
        done = subprocess.run([compiler, "-std=c11", "-Wno-unused", "-I", include, source, "-o", binary], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"check_layout: the headers do not compile:\n{done.stdout}")
        return subprocess.run([binary], check=True, text=True, stdout=subprocess.PIPE).stdout


def entries(text):
    out = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, facts = line.partition(": ")
            out[name] = facts
    return out


def version_of(include):
    with open(os.path.join(include, "collet", "types.h"), encoding="utf-8") as file:
        text = file.read()
    return ".".join(re.search(rf"#define COLLET_ABI_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR"))


def new_since(released, include, compiler):
    """Yields what `now` has beyond the released headers, in structs and lists of those headers or beside them."""
    old = entries(table_of(released, compiler))
    with tempfile.TemporaryDirectory() as folder:
        # Today's versions of the headers that were released; others (collet.h) are no part of a backend.
        os.mkdir(os.path.join(folder, "collet"))
        for name in os.listdir(os.path.join(include, "collet")):
            if name not in HEADERS or os.path.exists(os.path.join(released, "collet", name)):
                shutil.copy(os.path.join(include, "collet", name), os.path.join(folder, "collet", name))
        now = entries(table_of(folder, compiler))
    for name, facts in now.items():
        if old.get(name) != facts:
            yield f"{name}: {facts}"


def is_growth(name, old, new):
    """A struct with struct_size may become larger, by members behind those that it had."""
    if not name.startswith("struct ") or not old.startswith("grows") or not new.startswith("grows"):
        return False
    before, after = (int(re.search(r"(\d+) bytes", facts)[1]) for facts in (old, new))
    return after > before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--renew", action="store_true", help="put what is new into the table")
    parser.add_argument("--released", metavar="DIR", help="headers of the last release; see above")
    parser.add_argument("include_dir")
    parser.add_argument("table")
    args = parser.parse_args()
    if args.released and version_of(args.released) == version_of(args.include_dir):
        late = list(new_since(args.released, args.include_dir, args.compiler))
        for line in late:
            print(f"check_layout: {line}")
        if late:
            print(f"check_layout: interface {version_of(args.released)} is released without these: raise "
                  "COLLET_ABI_MINOR (docs/compatibility.md)")
            return 1
    text = table_of(args.include_dir, args.compiler)
    now = entries(text)
    old = {}
    if os.path.exists(args.table):
        with open(args.table, encoding="utf-8") as file:
            old = entries(file.read())
    elif not args.renew:
        sys.exit(f"check_layout: there is no table {args.table}; make it by --renew")
    broken, new = [], []
    sizes = {name[len("struct "):]: int(re.search(r"(\d+) bytes", facts)[1]) for name, facts in old.items()
             if name.startswith("struct ")}
    for name, facts in old.items():
        if name not in now:
            broken.append(f"{name} is gone; it was: {facts}")
        elif now[name] != facts:
            if is_growth(name, facts, now[name]):
                new.append(f"{name}: {facts} -> {now[name]}")
            else:
                broken.append(f"{name} has changed: {facts} -> {now[name]}")
    for name, facts in now.items():
        if name in old:
            continue
        owner = re.match(r"member (\w+)\.", name)
        if owner and owner[1] in sizes:
            fixed = old[f"struct {owner[1]}"].startswith("fixed")
            inside = int(re.search(r"offset (\d+)", facts)[1]) < sizes[owner[1]]
            if fixed or inside:
                broken.append(f"{name} is new in a struct that {'never changes size' if fixed else 'has other members there'}")
                continue
        new.append(f"{name} is new: {facts}")
    for line in broken:
        print(f"check_layout: {line}")
    if broken:
        print(f"check_layout: {len(broken)} changes break backends that were built before; see docs/compatibility.md")
        return 1
    if args.renew:
        with open(args.table, "w", encoding="utf-8") as file:
            file.write("# What backends and programs that were built before rely on: made by check_layout.py --renew, which see.\n" + text)
        print(f"check_layout: {len(now)} entries, {len(new)} new")
        return 0
    for line in new:
        print(f"check_layout: {line}")
    if new:
        print(f"check_layout: {len(new)} additions are not in {args.table}; if they follow docs/compatibility.md, run\n"
              f"  python3 sdk/include/tests/check_layout.py --compiler {args.compiler} --renew {args.include_dir} {args.table}")
        return 1
    print(f"check_layout: {len(now)} entries, none changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
