# SPDX-License-Identifier: Apache-2.0
"""The options that compare.py, torch_compare.py and scaling.py share."""
import argparse
import fnmatch
import os
import pathlib


def new_parser(flag, description, what="programs"):
    """Returns the parser of `./dev bench FLAG`, which measures `what`."""
    parser = argparse.ArgumentParser(prog=f"./dev bench {flag}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*", metavar="FILTER", help=f"only {what} whose name has this in it, or matches this pattern")
    parser.add_argument("--list", action="store_true", help=f"print the names of the {what}, and do nothing else")
    parser.add_argument("--threads", type=int, default=0, help="cores for each side (all unless told)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="everything, for machines")
    return parser


def check(parser, options):
    """Checks --threads and --seconds, and sets the number of threads."""
    cores = len(os.sched_getaffinity(0))
    if not 0 <= options.threads <= cores:
        parser.error(f"--threads: at most {cores} here")
    if not 0 < options.seconds < 3600:
        parser.error("--seconds: more than 0")
    options.threads = options.threads or cores


def check_files(parser, paths):
    """Checks that these files, None for one that is not asked for, can be written."""
    for path in paths:
        if path is not None and (path.is_dir() or not path.resolve().parent.is_dir()):
            parser.error(f"{path} cannot be written")


def wanted(name, filters):
    """True where a name has one of the filters in it, or matches it; also where there are none."""
    return not filters or any(f in name or fnmatch.fnmatchcase(name, f) for f in filters)
