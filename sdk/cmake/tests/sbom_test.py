# SPDX-License-Identifier: Apache-2.0
"""Tests of sbom.py with a package database, a linker's maps and a compiler's dependencies of its own."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import sbom  # noqa: E402

LLD_MAP = """             VMA              LMA     Size Align Out     In      Symbol
               0                0       10     1         /usr/lib/crt1.o:(.text)
              10               10       10     1         archive/libhlo_ir.a(module.cc.o):(.text)
              20               20       10     1         {build}/archive/libours.a(x.cc.o):(.text)
              30               30       10     1         /usr/lib/gcc/x/../libz.a(inflate.o):(.text)
"""
GNU_MAP = """Archive member included to satisfy reference by file (symbol)

/usr/lib/libzstd.a(zstd.o)    main.o (ZSTD_compress)
"""
DEPENDENCIES = """a.o: #deps 2, deps mtime 1 (VALID)
    /usr/include/zlib.h
    ../source/own.h
"""
OWNERS = {"/usr/lib/crt1.o": "libc6-dev", "/usr/lib/gcc/libz.a": "zlib1g-dev", "/usr/lib/libzstd.a": "libzstd-dev",
          "/usr/include/zlib.h": "zlib1g-dev", "/lib/libgmp.so.10.4": "libgmp10"}


class SbomTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.build, self.installed, self.output = (self.folder / name for name in ("build", "installed", "out"))
        (self.build / "link_maps").mkdir(parents=True)
        (self.build / "link_maps/tool.map").write_text(LLD_MAP.format(build=self.build))
        (self.build / "link_maps/library.map").write_text(GNU_MAP)
        (self.build / "shipped.txt").write_text("tool=bin/tool\nlibrary=lib/library.so\n")
        (self.build / "bundled.txt").write_text("/usr/lib/libgmp.so.10.4=lib/own/libgmp.so.10\n")
        (self.installed / "lib").mkdir(parents=True)
        (self.installed / "lib/library.so").write_text("")
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        self.program("ninja", f"cat <<'END'\n{DEPENDENCIES}END\n")
        self.program("readelf", "echo ' 0x1 (NEEDED) Shared library: [libc.so.6]'; echo ' 0x1 (NEEDED) Shared library: [library.so]'")
        lines = "".join(f"installed\t{name}\t1-{name}\t{name}-source\t1\thttps://{name}.example\n" for name in sorted(set(OWNERS.values())))
        owners = "\n".join(f"{path}) echo '{name}:amd64: {path}';;" for path, name in OWNERS.items())
        self.program("dpkg-query", f'if [ "$1" = -W ]; then cat <<"END"\n{lines}END\nexit\nfi\nshift\n'
                     f'for path; do case $path in\n{owners}\n*) echo "no path found" >&2;; esac; done')
        for name in set(OWNERS.values()):
            (self.folder / "doc" / name).mkdir(parents=True)
            (self.folder / "doc" / name / "copyright").write_text(f"Licence of {name}: /usr/share/common-licenses/GPL-3.\n")
        (self.folder / "common").mkdir()
        (self.folder / "common/GPL-3").write_text("GPL\n")
        for name, value in (("DOC", self.folder / "doc"), ("COMMON", self.folder / "common")):
            self.addCleanup(setattr, sbom, name, getattr(sbom, name))
            setattr(sbom, name, value)
        for name, value in (("PATH", f"{self.programs}:{os.environ['PATH']}"), ("SOURCE_DATE_EPOCH", "1700000000")):
            self.addCleanup(os.environ.__setitem__ if name in os.environ else os.environ.pop, name, os.environ.get(name))
            os.environ[name] = value

    def program(self, name, body):
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def make(self):
        argv, sys.argv = sys.argv, ["sbom.py", "--build", str(self.build), "--installed", str(self.installed), "--output", str(self.output),
                                    "--version", "1.2.3", "--ninja", str(self.programs / "ninja"), "--readelf", str(self.programs / "readelf")]
        try:
            sbom.main()
        finally:
            sys.argv = argv
        return json.loads((self.output / "sbom.spdx.json").read_text())

    def test_what_is_taken_is_named(self):
        made = self.make()
        self.assertEqual(made["spdxVersion"], "SPDX-2.3")
        self.assertEqual(made["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        self.assertEqual([p["name"] for p in made["packages"]], ["collet", "libc6-dev", "libgmp10", "libzstd-dev", "zlib1g-dev"])
        self.assertEqual(made["packages"][0]["comment"], "The system must have: libc.so.6")
        relationships = {(r["relationshipType"], r["relatedSpdxElement"], r.get("comment")) for r in made["relationships"]}
        for expected in (("STATIC_LINK", "SPDXRef-zlib1g-dev", "members of its archives are linked in: bin/tool"),
                         ("STATIC_LINK", "SPDXRef-zlib1g-dev", "its headers are compiled in: all programs and libraries"),
                         ("STATIC_LINK", "SPDXRef-libzstd-dev", "members of its archives are linked in: lib/library.so"),
                         ("STATIC_LINK", "SPDXRef-libc6-dev", "members of its archives are linked in: bin/tool"),
                         ("CONTAINS", "SPDXRef-libgmp10", "shipped as it is: lib/own/libgmp.so.10")):
            self.assertIn(expected, relationships)
        ids = {p["SPDXID"] for p in made["packages"]} | {"SPDXRef-DOCUMENT"}
        self.assertLessEqual({r["relatedSpdxElement"] for r in made["relationships"]}, ids)
        licences = {licence["licenseId"] for licence in made["hasExtractedLicensingInfos"]}
        self.assertEqual(licences, {p["licenseDeclared"] for p in made["packages"][1:]})
        self.assertEqual(sorted(path.name for path in (self.output / "licenses").iterdir()),
                         ["GPL-3.txt", "libc6-dev-source.txt", "libgmp10-source.txt", "libzstd-dev-source.txt", "zlib1g-dev-source.txt"])

    def test_packages_of_one_source_share_a_text_unless_theirs_differ(self):
        licences = sbom.Licences()
        packages = [sbom.Package(name, "1", "common-source", "1", "") for name in ("zlib1g-dev", "libgmp10", "libzstd-dev")]
        (self.folder / "doc/libgmp10/copyright").write_text((self.folder / "doc/zlib1g-dev/copyright").read_text())
        self.assertEqual([licences.add(package) for package in packages], ["common-source", "common-source", "libzstd-dev"])

    def test_the_same_build_gives_the_same_text(self):
        self.make()
        first = (self.output / "sbom.spdx.json").read_bytes()
        self.make()
        self.assertEqual((self.output / "sbom.spdx.json").read_bytes(), first)

    def test_what_has_no_licence_is_refused(self):
        (self.build / "link_maps/library.map").write_text("/opt/own/libsecret.a(x.o)  main.o\n")
        with self.assertRaisesRegex(SystemExit, "of no package of Debian.*\n.*libsecret.a"):
            self.make()
        (self.build / "link_maps/library.map").unlink()
        with self.assertRaisesRegex(SystemExit, "the build has no link maps"):
            self.make()

    def test_a_build_that_is_not_up_to_date_is_refused(self):
        self.program("ninja", "echo 'a.o: #deps 1, deps mtime 1 (STALE)'")
        with self.assertRaisesRegex(SystemExit, "is not up to date: build it first"):
            self.make()

    def test_a_package_without_its_copyright_is_refused(self):
        (self.folder / "doc/libgmp10/copyright").unlink()
        with self.assertRaisesRegex(SystemExit, "libgmp10 has no"):
            self.make()

    def test_paths_of_the_build_are_refused(self):
        folder = self.installed / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "notes.txt").write_text(f"{self.folder}/build/protobuf/x.cc")  # no library
        (folder / "a.so").write_bytes(b"\x7fELF" + f"{self.folder}/other/x.cc".encode())
        sbom.check_paths(self.installed, self.folder)
        (folder / "b.so").write_bytes(b"\x7fELF\0" + f"{self.folder}/build/protobuf/x.cc".encode() + b"\0")
        with self.assertRaises(SystemExit) as caught:
            sbom.check_paths(self.installed, self.folder)
        self.assertIn("lib/b.so names a file of the build, ", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
