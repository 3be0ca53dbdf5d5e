#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes libraries to link with, so that what is linked runs with an older glibc than this machine's.

    stubs.py --version 2.28 --output DIR --compiler g++ [--flag=FLAG]...

glibc keeps the older versions of its functions, but a linker takes the newest. The libraries made here have the names of glibc's and
one version of each symbol: the newest that is not newer than the version that is asked for. Functions that did not exist at all are
in functions.c; Scrt1.o is start.c. Linked with -B DIR -L DIR, programs and libraries need nothing newer; what cannot be had is an
undefined symbol.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import typing

HERE = pathlib.Path(__file__).resolve().parent
# The libraries whose functions moved into libc.so.6, by the names of those that did. A program has to name the library where older
# versions of glibc have them; newer ones keep an empty library of this name.
MOVED = (
    ("libdl.so.2", re.compile(r"dl(addr1?|close|error|info|mopen|open|sym|vsym)$")),
    ("librt.so.1", re.compile(r"(aio|lio|mq|shm|timer)_|clock_(getcpuclockid|getres|gettime|nanosleep|settime)$")),
    ("libpthread.so.0", re.compile(r"(__)?pthread_|sem_|thrd_|mtx_|cnd_|tss_|call_once$")),
)
OWN = ("libc.so.6", "libm.so.6")


class Symbol(typing.NamedTuple):
    kind: str
    size: int
    version: str
    address: str  # in the library
    is_weak: bool


def fail(message):
    sys.exit(f"stubs.py: {message}")


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    if done.returncode:
        fail(f"{shlex.join(map(str, command))}\n{done.stderr.strip()}")
    return done.stdout


def number(version):
    """Returns the numbers of GLIBC_2.2.5, or None if it is no public version."""
    match = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", version)
    return tuple(map(int, match[1].split("."))) if match else None


def symbols_of(path, limit):
    """Returns {name: (Symbol of the limit's version, whether there is a newer version)} of a library of glibc."""
    chosen, newer = {}, set()
    for line in run("readelf", "--dyn-syms", "-W", path).splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[6] in ("UND", "ABS") or "@" not in fields[7]:
            continue
        name, version = re.split("@+", fields[7])
        if not (numbers := number(version)):
            continue
        if numbers > limit:
            newer.add(name)
        elif name not in chosen or numbers > number(chosen[name].version):
            chosen[name] = Symbol(fields[3], int(fields[2], 0), version, fields[1], fields[4] == "WEAK")
    return {name: (symbol, name in newer) for name, symbol in chosen.items()}


def library_path(compiler, library):
    path = run(*compiler, f"-print-file-name={library}").strip()
    if "/" not in path:
        fail(f"{compiler[0]} finds no {library}")
    return path


def dynamic_linker(libc):
    """Returns the name of the dynamic linker, which has functions of its own."""
    if match := re.search(r"\(NEEDED\)[^\[]*\[(ld-[^\]]+)\]", run("readelf", "-d", libc)):
        return match[1]
    return fail(f"{libc} needs no dynamic linker: this is not glibc")


def assembly(symbols):
    """Yields what defines the symbols. Data with one address keep one address: a program that takes the place of a variable (a copy
    relocation) has to take that of all its names, such as environ and __environ."""
    sections = {"FUNC": (".text", "%function"), "IFUNC": (".text", "%function"), "OBJECT": (".bss", "%object"), "TLS": (".tbss", "%tls_object")}
    places = {}
    for name, symbol in sorted(symbols.items()):
        section, kind = sections.get(symbol.kind, sections["OBJECT"])
        places.setdefault((section, symbol.address), []).append((name, kind, symbol))
    for (section, _), names in places.items():
        flags = ',"awT",%nobits' if section == ".tbss" else ""
        yield f".section {section}{flags}\n.balign 32\n"
        for name, kind, symbol in names:
            yield f".{'weak' if symbol.is_weak else 'globl'} {name}\n.type {name},{kind}\n.size {name},{symbol.size}\n{name}:\n"
        yield f".skip {max(8, *(symbol.size for _, _, symbol in names))}\n"
    yield '.section .note.GNU-stack,"",%progbits\n'


def script(symbols):
    by_version = {}
    for name, symbol in symbols.items():
        by_version.setdefault(symbol.version, []).append(name)
    for version in sorted(by_version, key=number):
        yield f"{version} {{ {' '.join(f'{name};' for name in sorted(by_version[version]))} }};\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True, help="of glibc, such as 2.28")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder")
    parser.add_argument("--compiler", required=True, help="a C compiler")
    parser.add_argument("--flag", action="append", default=[], help="for the compiler")
    options = parser.parse_args()
    if not (limit := number(f"GLIBC_{options.version}")):
        fail(f"--version {options.version} is no version of glibc")
    out = options.output
    out.mkdir(parents=True, exist_ok=True)
    compiler = [options.compiler, *options.flag]
    linker = dynamic_linker(library_path(compiler, "libc.so.6"))
    libraries = {name: {} for name in (*OWN, linker)}
    for library in (*OWN, linker):
        for name, (symbol, newer) in symbols_of(library_path(compiler, library), limit).items():
            home = next((home for home, names in MOVED if newer and names.match(name)), library)
            libraries.setdefault(home, {})[name] = symbol
    if len(libraries["libc.so.6"]) < 1000:
        fail(f"{options.compiler}'s libc.so.6 has {len(libraries['libc.so.6'])} functions of {options.version}: this is not glibc")
    for library, symbols in libraries.items():
        source, versions = out / f"{library}.s", out / f"{library}.map"
        source.write_text("".join(assembly(symbols)))
        versions.write_text("".join(script(symbols)))
        run(*compiler, "-shared", "-nostdlib", f"-Wl,-soname,{library}", f"-Wl,--version-script,{versions}", source, "-o", out / library)
    run(*compiler, "-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-c", HERE / "functions.c", "-o", out / "functions.o")
    (out / "libcollet_old_glibc.a").unlink(missing_ok=True)
    run(run(*compiler, "-print-prog-name=ar").strip(), "rcs", out / "libcollet_old_glibc.a", out / "functions.o")
    run(*compiler, "-O2", "-fPIC", "-c", HERE / "start.c", "-o", out / "Scrt1.o")
    others = " ".join(f"-l:{library}" for library in libraries if library not in OWN)
    (out / "libc.so").write_text(f"GROUP ( -l:libc.so.6 AS_NEEDED ( {others} ) -l:libc_nonshared.a -lcollet_old_glibc )\n")
    (out / "libm.so").write_text("INPUT ( -l:libm.so.6 )\n")
    for name, library in (("libpthread.so", "libpthread.so.0"), ("libdl.so", "libdl.so.2"), ("librt.so", "librt.so.1")):
        if library in libraries:
            (out / name).write_text(f"INPUT ( AS_NEEDED ( -l:{library} ) )\n")


if __name__ == "__main__":
    main()
