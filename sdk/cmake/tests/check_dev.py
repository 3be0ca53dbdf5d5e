#!/usr/bin/env python3
"""check_dev.py: ./dev explains each verb, and installs what is missing as root, through sudo, or not at all. The
package manager is replaced by a script that records its arguments."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = ("bash", "cat", "dirname", "env", "git", "grep", "mkdir", "mktemp", "rm", "tail")
STAND_INS = {
    "dpkg-query": "",  # no package is installed
    "id": 'echo "$FAKE_ID"',
    "apt-get": 'echo "apt-get $*" >>"$FAKE_LOG"; [ -z "$FAKE_FAIL" ] || { echo "E: no network"; exit 100; }',
    "sudo": 'echo "sudo" >>"$FAKE_LOG"; [ "$1" = -n ] && shift; "$@"',
    "python3": "echo made",
}


def make_folder(folder, with_sudo):
    for name in TOOLS:
        os.symlink(shutil.which(name), os.path.join(folder, name))
    for name, body in STAND_INS.items():
        if name == "sudo" and not with_sudo:
            continue
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{shutil.which('bash')}\n{body}\n")
        os.chmod(path, 0o755)


def docs(user, with_sudo, fail=""):
    """Runs ./dev docs --without-tool on a system without doxygen. Returns the exit code, the output, and the calls of the package
    manager."""
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder, with_sudo)
        log = os.path.join(folder, "log")
        done = subprocess.run(["./dev", "docs", "--without-tool"], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              env={"PATH": folder, "FAKE_ID": user, "FAKE_LOG": log, "FAKE_FAIL": fail})
        calls = open(log, encoding="utf-8").read() if os.path.exists(log) else ""
        return done.returncode, done.stdout, calls


def expect(what, true, shown):
    if not true:
        sys.exit(f"{what}\n{shown}")


def check_verbs():
    usage = subprocess.run(["./dev"], text=True, stdout=subprocess.PIPE, check=True).stdout
    verbs = re.findall(r"^  ([a-z]+) +", usage, re.MULTILINE)
    expect("./dev lists its verbs", {"build", "test", "demo", "bench", "collet", "format", "lint", "docs"} <= set(verbs),
           usage)
    for verb in verbs:
        if verb == "collet":  # prints the help of the tool, which is built first
            continue
        for option in ("--help", "-h"):
            done = subprocess.run(["./dev", verb, option], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            good = done.returncode == 0 and done.stdout.startswith(f"./dev {verb}") and not done.stderr
            expect(f"./dev {verb} {option}", good, done)
    done = subprocess.run(["./dev", "dance"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect("an unknown verb", done.returncode == 2 and "dance" in done.stderr, done)
    return len(verbs)


def main():
    count = check_verbs()
    code, out, calls = docs("0", False)
    expect("as root", code == 0 and "install -y --no-install-recommends doxygen" in calls, (code, out, calls))
    code, out, calls = docs("1000", True)
    expect("through sudo", code == 0 and calls.startswith("sudo") and "apt-get" in calls, (code, out, calls))
    code, out, calls = docs("1000", False)
    good = code == 3 and not calls and "apt-get install -y --no-install-recommends doxygen" in out
    expect("neither: the line to run", good, (code, out, calls))
    code, out, calls = docs("0", False, fail="1")
    good = code == 1 and "E: no network" in out and "apt could not install: doxygen" in out and " update" in calls
    expect("a package manager that fails", good, (code, out, calls))
    print(f"{count} verbs explained; packages as root, through sudo, by neither")


if __name__ == "__main__":
    main()
