#!/usr/bin/env python3
"""Checks every #include of every tracked C and C++ file against the tables below, which say which folders may include
which.

  check_includes.py [FILE...]    all tracked files, or these
  check_includes.py --self-test  checks the checker

Our own code is included in quotes, by its path from the root ("hlo/ir/module.h"); <collet/...> crosses the ABI
boundary and is the only way to it; everything else stands in angle brackets. A source file includes its own header
first."""
import os
import re
import subprocess
import sys

# The folders that each folder may include. The row with the longest prefix of a file's path applies; a folder may
# always include itself.
BASE = ["hlo/base"]
IR = BASE + ["hlo/ir"]
OPS = IR + ["hlo/ops"]
WAYS = ["hlo/program", "hlo/text", "hlo/proto", "hlo/stablehlo", "hlo/verify", "hlo/eval", "hlo/formats"]
PASSES = OPS + WAYS + ["hlo/passes"]
EVERY = PASSES + ["hlo/patterns", "hlo/estimate"]
HLO = EVERY + ["hlo/quantize", "hlo/testing"]
# The folders of code generation; each stage may include those before it.
GEN = "sdk/codegen/"
CODEGEN = {
    GEN + "base": [],
    GEN + "routines": [GEN + "base"],
    GEN + "launch": [GEN + "base", GEN + "routines"],
    **{GEN + folder: [GEN + before for before in seen.split()] for folder, seen in {
        "graph": "base",
        "kernel": "base graph",
        "lower": "base routines launch graph kernel",
        "fusion": "base routines launch graph kernel lower",
        "schedule": "base routines launch graph kernel lower",
        "matmul": "base routines launch graph kernel lower schedule",
        "memory": "base launch",
        "compile": "base routines launch graph kernel lower fusion schedule matmul memory",
        "source": "base routines launch graph kernel lower schedule matmul compile",
        "llvm": "base routines launch graph kernel lower schedule matmul compile",
    }.items()},
    GEN + "include": [],
    GEN + "testing": ["sdk/codegen"],
}
ARROWS = {
    "sdk/include": [],
    "sdk/cmake": [],
    **CODEGEN,
    "sdk/runtime": EVERY,
    "sdk/pjrt": PASSES + ["sdk/runtime"],
    "sdk/tool": HLO + ["sdk/runtime", "conformance"],
    "hlo/base": [],
    "hlo/ir": BASE,
    "hlo/ops": IR,
    **{way: OPS for way in WAYS},
    "hlo/proto": OPS + ["hlo/text"],
    "hlo/stablehlo": OPS + ["hlo/text"],
    "hlo/formats": OPS + ["hlo/text", "hlo/proto", "hlo/stablehlo", "hlo/verify"],
    "hlo/passes": OPS + WAYS,
    "hlo/patterns": PASSES,
    "hlo/estimate": PASSES,
    "hlo/quantize": PASSES,
    "hlo/testing": EVERY,
    "reference_backends": [],
    "reference_backends/interpreter": PASSES,
    "templates": [],
    "conformance": HLO,
    "conformance/mutants": HLO + ["conformance", "sdk/runtime/testing"],
    "docs": [],
}
# Additional folders that tests may include: a test of hlo/ may read text, run passes and use hlo/testing, and so may
# one of the runtime; a test of a reference backend may run single kernels. Expected values of the functions in public
# headers are in sdk/include/tests. Tests of folders that must not depend on hlo/ have no such row.
TEST_ARROWS = {
    "hlo": HLO + ["sdk/include/tests"],
    "sdk/codegen": ["sdk/codegen/testing", "sdk/include/tests"],
    "reference_backends": ["sdk/codegen"],
    "sdk/runtime": HLO,
    "sdk/pjrt": HLO + ["sdk/runtime"],
    "sdk/tool": HLO + ["sdk/runtime", "conformance"],
}
# Top-level folders with code of this project.
OURS = ("hlo", "sdk", "reference_backends", "conformance", "templates", "docs")
# Installed headers; those of the code generator are C++.
PUBLIC = ("sdk/include/", "sdk/codegen/include/")
# Backends as vendors write them, with headers of other versions of the interface: projects of their own.
FROZEN = ("sdk/runtime/testing/abi/1.0", "sdk/runtime/testing/abi/1.1")
FROZEN_USERS = ("sdk/runtime/testing/abi/future.c", "sdk/runtime/testing/abi/queued.cc")
# Libraries that only some folders may include.
GUARDED = {
    "llvm": ("sdk/codegen/llvm", "reference_backends/gpu/emulator"),
    "llvm-c": ("sdk/codegen/llvm",),
    "lld": ("sdk/codegen/llvm",),
    "cuda": ("reference_backends/gpu",),
    "google": ("hlo/proto",),
}
# Public headers that only some folders may include: those of the code generator.
GUARDED_HEADERS = {"collet/codegen": ("sdk/codegen", "reference_backends", "templates")}
POSIX = {"dlfcn.h"}  # headers that public C++ headers may include in addition
C_STANDARD = {"assert", "ctype", "errno", "fenv", "float", "inttypes", "limits", "math", "setjmp", "signal", "stdalign",
              "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string", "time"}
EXTENSIONS = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".def")
INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\s*([<"])([^>"]*)[>"]')


def folder_of(path, table):
    """Returns the longest prefix of path that has a row in table, or None."""
    parts = os.path.dirname(path).split("/")
    for n in range(len(parts), 0, -1):
        if "/".join(parts[:n]) in table:
            return "/".join(parts[:n])
    return None


def inside(path, folders):
    return any(path.startswith(folder + "/") for folder in folders)


def is_test(path):
    return bool(re.search(r"(_test|_fuzz|_benchmark)\.(c|cc|h)$", path)) or "/tests/" in path


def allowed(path):
    """Returns the folders that the file may include, or None if there is no row for it."""
    own = folder_of(path, ARROWS)
    if own is None:
        return None
    folders = [own] + ARROWS[own]
    if is_test(path):
        test_folder = folder_of(path, TEST_ARROWS)
        folders += TEST_ARROWS.get(test_folder, [])
    return folders


def includes(text):
    """Yields (line number, bracket, name) of each #include outside comments."""
    in_comment = False
    for number, line in enumerate(text.splitlines(), 1):
        if in_comment:
            end = line.find("*/")
            if end < 0:
                continue
            line, in_comment = line[end + 2:], False
        line = re.sub(r"/\*.*?\*/", "", line)
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]
        start = line.find("/*")
        if start >= 0 and "//" not in line[:start]:
            in_comment = True


def check(path, text, exists):
    """Returns the errors of one file. `exists` tells whether a path from the root is a file."""
    complaints = []
    if inside(path, FROZEN) or path in FROZEN_USERS:
        return complaints
    folders = allowed(path)
    if folders is None:
        if path.split("/")[0] in OURS:
            complaints.append((1, "this folder has no row in .ci/check_includes.py: say what it may include"))
        return complaints
    root = next((folder for folder in PUBLIC if path.startswith(folder + "collet/")), None)
    public, template = root is not None, path.startswith("templates/")
    found = list(includes(text))
    for number, bracket, name in found:
        top = name.split("/")[0]
        if bracket == '"':
            if template and not inside(name, OURS):
                continue  # a separate project, whose files are in its own folder
            if public and "/" not in name:
                if not exists(os.path.join(os.path.dirname(path), name)):
                    complaints.append((number, f'"{name}" does not exist'))
                # In the installation, public headers are in one folder, so they include each other by relative names.
                continue
            if name.startswith("collet/"):
                complaints.append((number, f'"{name}" crosses the ABI boundary: write <{name}>'))
            elif name.startswith(".") or not inside(name, OURS):
                complaints.append((number, f'"{name}" is not a path from the root: ours is written so, the rest in <>'))
            elif name.startswith("sdk/include/") and not name.startswith("sdk/include/tests/"):
                complaints.append((number, f'"{name}" goes round the ABI boundary: write <{name[len("sdk/include/"):]}>'))
            elif not inside(name, folders):
                complaints.append((number, f'"{name}": there is no arrow from {folder_of(path, ARROWS)} to {os.path.dirname(name)}'))
            elif not exists(name) and name.endswith((".h", ".hpp")):
                complaints.append((number, f'"{name}" does not exist'))
            continue
        if top in OURS and "/" in name:
            complaints.append((number, f'<{name}> is our own code: write "{name}"'))
        elif top in GUARDED and not inside(path, GUARDED[top]):
            complaints.append((number, f"<{name}>: only {', '.join(GUARDED[top])} may know this library"))
        elif public and top != "collet":
            standard_c = name.endswith(".h") and name[:-2] in C_STANDARD
            cxx = path.endswith(".hpp") or root == "sdk/codegen/include/"
            standard_cxx = cxx and "." not in name and "/" not in name
            posix = cxx and name in POSIX
            if not standard_c and not standard_cxx and not posix:
                complaints.append((number, f"<{name}>: a public header includes standard headers and <collet/...> only"))
        elif public and not any(exists(folder + name) for folder in PUBLIC):
            complaints.append((number, f"<{name}> does not exist"))
        elif os.path.dirname(name) in GUARDED_HEADERS and not inside(path, GUARDED_HEADERS[os.path.dirname(name)]):
            complaints.append((number, f"<{name}>: only {', '.join(GUARDED_HEADERS[os.path.dirname(name)])} may include it"))
    stem, extension = os.path.splitext(path)
    if extension in (".c", ".cc") and not template:
        own = stem + ".h"
        if exists(own) and (not found or found[0][2] != own):
            complaints.append((found[0][0] if found else 1, f'its own header comes first: "{own}"'))
    return complaints


def self_test():
    files = {"hlo/ir/module.h", "hlo/ir/shape.h", "hlo/base/status.h", "hlo/passes/dce.h", "hlo/text/parser.h",
             "sdk/runtime/backend/loader.h", "sdk/codegen/llvm/kernel/emit.h", "sdk/include/collet/types.h", "hlo/testing/golden.h",
             "sdk/include/tests/writer.h"}
    cases = [
        ("hlo/ir/module.cc", '#include "hlo/ir/module.h"\n#include <vector>\n#include "hlo/base/status.h"', ""),
        ("hlo/ir/module.cc", '#include <vector>\n#include "hlo/ir/module.h"', "own header comes first"),
        ("hlo/ir/a.cc", '#include "hlo/passes/dce.h"', "no arrow"),
        ("hlo/ir/a.cc", '/* #include "hlo/passes/dce.h"\n#include "hlo/passes/dce.h" */', ""),
        ("hlo/ir/a_test.cc", '#include "hlo/passes/dce.h"\n#include "hlo/testing/golden.h"', ""),
        ("hlo/ir/a.cc", '#include "module.h"', "not a path from the root"),
        ("hlo/ir/a.cc", '#include "../base/status.h"', "not a path from the root"),
        ("hlo/ir/a.cc", "#include <hlo/base/status.h>", "our own code"),
        ("hlo/ir/a.cc", '#include "collet/types.h"', "crosses the ABI boundary"),
        ("hlo/ir/a.cc", '#include "sdk/include/collet/types.h"', "goes round the ABI boundary"),
        ("hlo/ir/a.cc", '#include "hlo/ir/gone.h"', "does not exist"),
        ("hlo/ir/a.cc", "#include <llvm/IR/Module.h>", "may know this library"),
        ("sdk/codegen/llvm/a.cc", '#include <llvm/IR/Module.h>\n#include <collet/types.h>', ""),
        ("sdk/codegen/lower/a.cc", '#include <llvm/IR/Module.h>', "may know this library"),
        ("sdk/codegen/lower/a.cc", '#include "sdk/codegen/llvm/kernel/emit.h"', "no arrow"),
        ("sdk/codegen/lower/a_test.cc", '#include "hlo/ir/module.h"', "no arrow"),
        ("reference_backends/cpu/a.cc", '#include "sdk/codegen/llvm/kernel/emit.h"', "no arrow"),
        ("reference_backends/cpu/a.cc", '#include <collet/codegen/compile.h>', ""),
        ("sdk/runtime/a.cc", '#include <collet/codegen/compile.h>', "may include it"),
        ("sdk/codegen/include/collet/codegen/a.h", '#include <collet/types.h>\n\n#include <vector>', ""),
        ("sdk/codegen/include/collet/codegen/a.h", '#include <llvm/IR/Module.h>', "may know this library"),
        ("reference_backends/cpu/a.cc", '#include "hlo/ir/module.h"', "no arrow"),
        ("reference_backends/interpreter/a.cc", '#include "hlo/ir/module.h"', ""),
        ("conformance/runner/a.cc", '#include "sdk/runtime/backend/loader.h"', "no arrow"),
        ("conformance/runner/a.cc", '#include <collet/collet.h>\n#include "hlo/ir/module.h"', ""),
        ("sdk/runtime/a.cc", '#include "hlo/passes/dce.h"', ""),
        ("sdk/include/tests/a_test.cc", '#include "sdk/include/tests/writer.h"', ""),
        ("sdk/include/collet/backend.h", "#include <stdint.h>\n#include <collet/types.h>", ""),
        ("sdk/include/collet/backend.h", '#include "types.h"', ""),
        ("sdk/include/collet/backend.h", '#include "gone.h"', "does not exist"),
        ("sdk/include/collet/backend.h", '#include "hlo/ir/module.h"', "no arrow"),
        ("sdk/include/collet/backend.h", "#include <vector>", "standard headers"),
        ("sdk/include/collet/backend.h", "#include <unistd.h>", "standard headers"),
        ("sdk/include/collet/backend.hpp", "#include <vector>", ""),
        ("hlo/cellar/a.cc", "", "no row"),
        ("templates/kernels/backend.cc", '#include "kernels.h"\n#include <collet/backend.h>', ""),
        ("templates/kernels/backend.cc", '#include "hlo/ir/module.h"', "no arrow"),
    ]
    bad = 0
    for path, text, expected in cases:
        complaints = "; ".join(message for _, message in check(path, text, files.__contains__))
        if (expected not in complaints) if expected else complaints:
            print(f"self-test: {path}: {text!r}\n  expected: {expected or 'nothing'}\n  got: {complaints or 'nothing'}")
            bad += 1
    print(f"check_includes: {len(cases)} cases, {bad} wrong")
    return 1 if bad else 0


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:2] and sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    files = [os.path.relpath(os.path.abspath(name), root) for name in sys.argv[1:]] or subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
        check=True, text=True, stdout=subprocess.PIPE).stdout.split("\0")
    files = [name for name in files if name.endswith(EXTENSIONS) and os.path.isfile(os.path.join(root, name))]
    bad = 0
    for name in sorted(files):
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
            text = file.read()
        for number, message in check(name, text, lambda p: os.path.isfile(os.path.join(root, p))):
            print(f"{name}:{number}: {message}")
            bad += 1
    print(f"check_includes: {len(files)} files, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
