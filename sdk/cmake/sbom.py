#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says what is in an installation that does not come from this tree, by what the linker and the compiler really took.

Writes to the output folder sbom.spdx.json (SPDX 2.3) and licenses/SOURCE.txt for each source package of Debian of which something
is shipped. The build has COLLET_PORTABLE on; its folder has link_maps/, shipped.txt and bundled.txt of sdk/cmake.

Four ways are told apart: archives of which the linker took members, headers that were compiled in, shared libraries that
are shipped as they are, and shared libraries that the user's system must have. SOURCE_DATE_EPOCH is the time of creation.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import typing

ARCHIVE = re.compile(rb"(?:^|[\s:])(/[^\s:()]+\.a)\(")  # of a map of lld and of GNU ld: /usr/lib/libz.a(inflate.o)
OBJECT = re.compile(rb"(?:^|[\s:])(/[^\s:()]+/crt[^\s:()/]*\.o)\b")
COMMON = pathlib.Path("/usr/share/common-licenses")
DOC = pathlib.Path("/usr/share/doc")
OWN = "SPDXRef-collet"


def fail(message):
    sys.exit(f"sbom.py: {message}")


def run(*command):
    try:
        done = subprocess.run(command, text=True, capture_output=True)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if done.returncode:
        fail(f"{' '.join(command[:4])}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Package(typing.NamedTuple):
    """A package of Debian."""
    name: str
    version: str
    source: str
    source_version: str
    homepage: str
    root: str = ""  # the folder in which it is unpacked, if it is not installed


class Database:
    """Finds the package of Debian that a file belongs to: of those that are installed, or unpacked in the folder `root` (debian.py)."""

    def __init__(self, root=""):
        self.root, self.packages = root, {}
        self.query = ["dpkg-query", *([f"--admindir={root}/var/lib/dpkg"] if root else [])]
        for line in run(*self.query, "-W", "-f", "${db:Status-Status}\t${Package}\t${Version}\t${source:Package}\t${source:Version}\t"
                        "${Homepage}\n").splitlines():
            status, *fields = line.split("\t")
            if status == "installed":
                self.packages[fields[0]] = Package(*fields, root)

    def owners(self, paths):
        """Returns {path: Package}; a file that no package has is an error, for its licence would be missing."""
        spellings = {}
        for path in sorted(paths):
            real = os.path.realpath(path)
            for one in (path, os.path.normpath(path), real):
                one = one.removeprefix(self.root)
                spellings.setdefault(one, path)
                # /lib is a link to /usr/lib, and packages name their files by either.
                spellings.setdefault(one[4:] if one.startswith("/usr/lib") else "/usr" + one, path)
        found = {}
        names = list(spellings)
        for first in range(0, len(names), 500):
            done = subprocess.run([*self.query, "-S", *names[first:first + 500]], text=True, capture_output=True)
            for line in done.stdout.splitlines():
                owners, separator, path = line.rpartition(": ")
                if separator and path in spellings and not line.startswith("diversion by"):
                    found.setdefault(spellings[path], self.packages[owners.split(",")[0].split(":")[0]])
        if missing := sorted(set(paths) - set(found)):
            fail("of no package of Debian, so that their licences are not known:\n  " + "\n  ".join(missing[:20]))
        return found


def pairs(path):
    """Returns the lines KEY=VALUE of a file."""
    return [line.split("=", 1) for line in path.read_text().splitlines() if line]


def linked(build, target):
    """Returns the files outside of the build of which the linker took something for a target."""
    path = build / "link_maps" / f"{target}.map"
    if not path.is_file():
        fail(f"there is no {path}: the build has no link maps")
    found = set()
    with path.open("rb") as file:
        for line in file:
            found.update(ARCHIVE.findall(line))
            found.update(OBJECT.findall(line))
    names = {os.path.normpath(name.decode()) for name in found}
    return {name for name in names if not name.startswith(str(build) + "/")}


def headers(build, ninja, sysroot):
    """Returns the headers outside of the tree that were compiled into any object of the build."""
    found = set()
    for line in run(ninja, "-C", str(build), "-t", "deps").splitlines():
        # The object was compiled again after ninja recorded its headers. (`ninja -n` does not tell: it ends at the edge that looks
        # for new files of globs, which is always out of date.)
        if line.endswith("(STALE)"):
            fail(f"{build} is not up to date: build it first")
        if line.startswith("    /"):
            found.add(os.path.normpath(line.strip()))
    outside = {path for path in found if path.startswith(("/usr/", "/lib/", "/opt/", *([f"{sysroot}/"] if sysroot else [])))}
    if not outside:
        fail(f"{build} knows no header: was it built?")
    return outside


def needed(readelf, path):
    return set(re.findall(r"\(NEEDED\)[^\[]*\[([^\]]+)\]", run(readelf, "-d", str(path))))


def licence_text(package):
    """Returns the text that Debian has for a package, with the licences that it refers to."""
    path = pathlib.Path(f"{package.root}{DOC}") / package.name / "copyright"
    if not path.is_file():
        fail(f"{package.name} has no {path}: install the package again, with its documentation")
    text = path.read_text(encoding="utf-8", errors="replace")
    names = re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text)
    return text, sorted({name for name in names if (COMMON / name).is_file()})


def identifier(name):
    """Returns a name with the characters that SPDX allows."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", name)


class Licences:
    """The texts by name: that of a source package, or, if packages of one source differ, that of the package."""

    def __init__(self):
        self.texts, self.common = {}, set()

    def add(self, package):
        """Returns the name of the package's text."""
        text, common = licence_text(package)
        self.common.update(common)
        name = package.source if self.texts.get(package.source, text) == text else package.name
        self.texts[name] = text
        return name


def component(package, licence):
    """Returns the SPDX package of a package of Debian."""
    return {
        "SPDXID": f"SPDXRef-{identifier(package.name)}",
        "name": package.name,
        "versionInfo": package.version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "homepage": package.homepage or "NOASSERTION",
        "sourceInfo": f"built by Debian from the source package {package.source} {package.source_version}",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": f"LicenseRef-{identifier(licence)}",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{package.name}@{package.version}"}],
    }


def collect(options):
    """Returns {package: {(relationship, comment, file)}} of all that is shipped or needed."""
    uses, by_file = {}, {}
    for target, file in pairs(options.build / "shipped.txt"):
        for path in linked(options.build, target):
            by_file.setdefault(path, set()).add(("STATIC_LINK", "members of its archives are linked in", file))
    archives = len(by_file)
    if not archives:
        fail("the link maps name no archive of others: they are not those of a build with COLLET_PORTABLE")
    for path in headers(options.build, options.ninja, options.sysroot):
        by_file.setdefault(path, set()).add(("STATIC_LINK", "its headers are compiled in", "all programs and libraries"))
    for path, file in pairs(options.build / "bundled.txt"):
        by_file.setdefault(path, set()).add(("CONTAINS", "shipped as it is", file))
    foreign = {path for path in by_file if options.sysroot and path.startswith(f"{options.sysroot}/")}
    for root, paths in (("", by_file.keys() - foreign), (options.sysroot, foreign)):
        for path, package in (Database(root).owners(paths) if paths else {}).items():
            uses.setdefault(package, set()).update(by_file[path])
    return uses


def system_libraries(options):
    """Returns the names of the shared libraries that the system must have."""
    names, own = set(), {path.name for path in options.installed.rglob("*.so*")}
    for _, file in pairs(options.build / "shipped.txt") + pairs(options.build / "bundled.txt"):
        names |= needed(options.readelf, options.installed / file)
    return sorted(names - own)


def document(options, uses, licences):
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    packages = [{
        "SPDXID": OWN, "name": "collet", "versionInfo": options.version, "supplier": "NOASSERTION", "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
        "comment": "The system must have: " + ", ".join(system_libraries(options)),
    }]
    relationships = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": OWN}]
    for package in sorted(uses):
        made = component(package, licences.add(package))
        packages.append(made)
        ways = {}
        for relationship, comment, file in uses[package]:
            ways.setdefault((relationship, comment), set()).add(file)
        for (relationship, comment), files in sorted(ways.items()):
            relationships.append({"spdxElementId": OWN, "relationshipType": relationship, "relatedSpdxElement": made["SPDXID"],
                                  "comment": f"{comment}: {', '.join(sorted(files))}"})
    extracted = [{"licenseId": f"LicenseRef-{identifier(name)}", "name": f"copyright of Debian's {name}", "extractedText": text}
                 for name, text in sorted(licences.texts.items())]
    body = {"packages": packages, "relationships": relationships, "hasExtractedLicensingInfos": extracted}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"collet-{options.version}",
        "documentNamespace": f"https://collet.invalid/spdx/{options.version}/{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)), "creators": ["Tool: collet-sbom"]}, **body
    }


def check_paths(installed, root):
    """Fails if a library or program names files by where they were when it was built: two builds of one commit are the same bytes."""
    folders = "build|conformance|hlo|reference_backends|sdk"
    pattern = re.compile(re.escape(str(root).encode()) + rb"/(?:" + folders.encode() + rb")/[!-~]*")
    for path in sorted(installed.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if data.startswith((b"\x7fELF", b"!<arch>")) and (found := pattern.search(data)):
            fail(f"{path.relative_to(installed)} names a file of the build, {found[0].decode()}; see -ffile-prefix-map in sdk/cmake")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), required=True, help="the build folder")
    parser.add_argument("--installed", type=pathlib.Path, required=True, help="where it is installed")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder")
    parser.add_argument("--version", required=True, help="of Collet")
    parser.add_argument("--sysroot", default="", help="the folder with Debian's packages that debian.py has made, if the build is for another machine")
    parser.add_argument("--ninja", default="ninja")
    parser.add_argument("--readelf", default="readelf")
    options = parser.parse_args()
    check_paths(options.installed, pathlib.Path(__file__).resolve().parents[2])
    uses = collect(options)
    licences = Licences()
    text = json.dumps(document(options, uses, licences), indent=2, ensure_ascii=False) + "\n"
    folder = options.output / "licenses"
    folder.mkdir(parents=True, exist_ok=True)
    for name, licence in sorted(licences.texts.items()):
        (folder / f"{name}.txt").write_text(licence, encoding="utf-8")
    for name in sorted(licences.common):
        (folder / f"{name}.txt").write_bytes((COMMON / name).read_bytes())
    (options.output / "sbom.spdx.json").write_text(text, encoding="utf-8")
    print(f"sbom: {len(uses)} packages of others are in {options.installed}")


if __name__ == "__main__":
    main()
