# SPDX-License-Identifier: Apache-2.0
"""The journal of a suite's run: a line of JSON for each test that ended, and {"done": true} at the end of a whole run."""
import json
import zlib


def is_drawn(test, every, seed):
    """True if the sample of one in `every` tests has this one."""
    return zlib.crc32(f"{seed} {test}".encode()) % every == 0


def read(path):
    """Returns a map from test to its (state, message, seconds), and whether the run came to its end."""
    found, done = {}, False
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
        except ValueError:  # the end of a line that was not written whole
            continue
        done = entry.get("done", False)
        if "test" in entry:
            found[entry["test"]] = entry["state"], entry.get("message", ""), entry.get("seconds", 0)
    return found, done


def append_to(path):
    """Opens a journal for writing at its end; a last line that was not written whole stands alone there."""
    whole = not path.is_file() or path.read_bytes()[-1:] in (b"", b"\n")
    out = path.open("a")
    if not whole:
        out.write("\n")
    return out
