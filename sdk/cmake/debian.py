#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gets from Debian what a build needs and this machine does not have installed.

    debian.py sysroot arm64 --output build/sysroot-arm64 llvm-19-dev libfmt-dev ...
    debian.py source libprotobuf-dev --output build/protobuf

sysroot makes a folder with packages of another architecture, and all that they depend on, for cross-compilation. It has dpkg's
database, too (dpkg-query --admindir=DIR/var/lib/dpkg). source makes a folder with the sources, Debian's changes applied, of the
version of a package that is installed here.

All comes from the places that this machine's apt knows. Nothing is installed, and no script of a package runs, so no rights are
needed. A folder that holds what is asked for is left as it is.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

STAMP = ".made_by_debian_py"


def run(*command, **options):
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    except OSError as error:
        sys.exit(f"debian.py: {command[0]}: {error.strerror}")
    if done.returncode:
        sys.exit(f"debian.py: {' '.join(map(str, command[:2]))} ended with {done.returncode}:\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Apt:
    """apt with lists and archives in a folder of its own, as on a machine where nothing is installed."""

    def __init__(self, folder, architecture=None, sources=False):
        for name in ("lists/partial", "archives/partial", "parts"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        self.archives = folder / "archives"
        self.command = ["apt-get", "--quiet", "--yes"]
        settings = [f"Dir::State={folder}", f"Dir::State::status={folder}/status", f"Dir::State::lists={folder}/lists", f"Dir::Cache={folder}",
                    f"Dir::Cache::archives={folder}/archives", "Debug::NoLocking=1", "APT::Sandbox::User=", "Acquire::Retries=3"]
        if architecture:
            settings += [f"APT::Architecture={architecture}", f"APT::Architectures={architecture}"]
        if sources:
            settings += [f"Dir::Etc::SourceParts={self._sources(folder / 'parts')}", "Dir::Etc::SourceList=/dev/null"]
        for setting in settings:
            self.command += ["-o", setting]
        run(*self.command, "update")

    @staticmethod
    def _sources(folder):
        """Writes the places of packages as places of sources."""
        etc = pathlib.Path("/etc/apt")
        for path in [etc / "sources.list", *sorted(etc.glob("sources.list.d/*"))]:
            if not path.is_file() or path.suffix not in (".list", ".sources"):
                continue
            lines = path.read_text().splitlines()
            if path.suffix == ".list":
                lines = ["deb-src" + line[3:] for line in lines if line.startswith("deb ")]
            else:
                lines = ["Types: deb-src" if line.startswith("Types:") else line for line in lines]
            (folder / path.name).write_text("".join(f"{line}\n" for line in lines))
        return folder

    def run(self, *arguments, **options):
        return run(*self.command, *arguments, **options)


def unpack(files, root):
    """Unpacks packages, and writes the part of dpkg's database that says which file is whose."""
    info = root / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (info / "format").write_text("1\n")
    # Packages of a merged /usr name files by /lib, too.
    for folder in ("lib", "bin", "sbin"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    status = []
    for file in files:
        run("dpkg-deb", "--extract", file, root)
        fields = run("dpkg-deb", "--field", file)
        name, architecture, multi = (run("dpkg-deb", "--field", file, field).strip() for field in ("Package", "Architecture", "Multi-Arch"))
        status.append(f"{fields.rstrip()}\nStatus: install ok installed\n")
        archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], stdout=subprocess.PIPE, check=True).stdout
        listed = subprocess.run(["tar", "--list"], input=archive, stdout=subprocess.PIPE, check=True).stdout.decode()
        paths = ["/." if path == "./" else path[1:].rstrip("/") for path in listed.splitlines()]
        suffix = f":{architecture}" if multi == "same" else ""
        (info / f"{name}{suffix}.list").write_text("".join(f"{path}\n" for path in paths))
    (root / "var/lib/dpkg/status").write_text("\n".join(status))


def make_links_relative(root):
    """An absolute link would lead to this machine's files."""
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            if os.path.islink(path) and (target := os.readlink(path)).startswith("/"):
                os.unlink(path)
                os.symlink(os.path.relpath(f"{root}{target}", folder), path)


def make(output, wanted, fill):
    """Makes the folder by fill(new folder, folder for other files), unless it holds what is wanted."""
    output = output.resolve()
    stamp = output / STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    if output.exists() and any(output.iterdir()) and not stamp.is_file():
        sys.exit(f"debian.py: {output} is not empty, and was not made by this program")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{output.name}.", dir=output.parent) as name:
        made = pathlib.Path(name) / "made"
        made.mkdir()
        fill(made, pathlib.Path(name))
        (made / STAMP).write_text(wanted)
        shutil.rmtree(output, ignore_errors=True)
        made.rename(output)


def sysroot(options):
    def fill(folder, work):
        apt = Apt(work / "apt", architecture=options.architecture)
        apt.run("install", "--download-only", "--no-install-recommends", *options.packages)
        files = sorted(apt.archives.glob("*.deb"))
        print(f"debian.py: unpacking {len(files)} packages for {options.architecture}", file=sys.stderr)
        unpack(files, folder)
        make_links_relative(folder)

    make(options.output, "\n".join([options.architecture, *sorted(options.packages)]) + "\n", fill)


def source(options):
    told = run("dpkg-query", "-W", "-f", "${source:Package}\t${source:Version}\n", options.package).splitlines()[0]
    name, version = told.split("\t")

    def fill(folder, work):
        Apt(work / "apt", sources=True).run("source", f"{name}={version}", cwd=work)
        [unpacked] = [path for path in work.iterdir() if path.is_dir() and path.name.startswith(f"{name}-")]
        for path in unpacked.iterdir():
            path.rename(folder / path.name)

    make(options.output, f"{name} {version}\n", fill)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("sysroot", help="packages of another architecture, unpacked")
    verb.add_argument("architecture", help="Debian's name of it: arm64")
    verb.add_argument("packages", nargs="+", metavar="PACKAGE")
    verb.set_defaults(run=sysroot)
    verb = verbs.add_parser("source", help="the sources of a package that is installed here")
    verb.add_argument("package")
    verb.set_defaults(run=source)
    for verb in verbs.choices.values():
        verb.add_argument("--output", type=pathlib.Path, required=True, help="the folder; what this program put there is replaced")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
