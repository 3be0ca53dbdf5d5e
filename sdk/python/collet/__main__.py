# SPDX-License-Identifier: Apache-2.0
"""`python -m collet`, and the command `collet` of the wheel: the tool takes the place of this process."""
import os
import sys

from collet._install import tool


def main() -> None:
    try:
        program = str(tool())
    except ImportError as error:
        sys.exit(str(error))
    try:
        os.execv(program, ["collet", *sys.argv[1:]])
    except OSError as error:
        print(f"collet: {program}: {error.strerror}", file=sys.stderr)
        sys.exit(4)  # the system failed, as the tool says it


if __name__ == "__main__":
    main()
