#!/usr/bin/env python3
"""future.py [--major | --late] INCLUDE_DIR OUTPUT_DIR

Writes the public headers of INCLUDE_DIR to OUTPUT_DIR/collet as a later version might have them: structs with struct_size, tables and
attribute records have one more member at their end; there is one more op, element type, device trait and type ability; opset
and minor version are higher by one. With --major the major version is, and an enumerator has another value; with --late no version is."""
import argparse
import os
import re
import sys

SIZED = re.compile(r"^(struct (collet_\w+) \{\n(?:  /\*\*.*?\*/\n)?  uint32_t struct_size;.*?)^\};", re.M | re.S)
RECORD = re.compile(r"^(struct (collet_\w+_attrs) \{\n.*?)^\};", re.M | re.S)
OP = 'COLLET_OP(255, FROM_THE_FUTURE, "from-the-future", CORE, elementwise, 1, 1, None, NONE, ANY, COLLET_OP_ELEMENTWISE, 0, 2)\n'
TYPE = 'COLLET_TYPE(FUTURE8, "future8", 63, 8, UNSIGNED, 2)\n'


def replace(pattern, replacement, text, least=1):
    text, count = re.subn(pattern, replacement, text, flags=re.M | re.S)
    if count < least:
        sys.exit(f"future.py: {count} places match {pattern}")
    return text


def after_last(marker, line, text):
    place = text.rindex(marker)
    end = text.index("\n", place) + 1
    return text[:end] + line + text[end:]


def grown(match):
    body = match[1]
    member = "void (*future_function)(void);" if "(*" in body.splitlines()[-1] or "_table" in match[2] else "uint64_t future_field;"
    return f"{body}  {member} /**< since the next minor version */\n}};"


def changed(name, text, major, late):
    if name == "types.h" and not late:
        text = replace(r"(#define COLLET_ABI_M%s )(\d+)u" % ("AJOR" if major else "INOR"),
                       lambda m: f"{m[1]}{int(m[2]) + 1}u", text)
        text = replace(r"(#define COLLET_OPSET )(\d+)u", lambda m: f"{m[1]}{int(m[2]) + 1}u", text)
    if name == "backend.h":
        text = replace(r"(COLLET_MAY_COMPUTE = 4)", r"\1, COLLET_MAY_FUTURE = 1 << 30", text)
        if major:
            text = replace(r"(COLLET_MAY_MOVE = )2", r"\g<1>8", text)
        text = replace(r"(COLLET_TRAIT_SERIAL = 1,)", r"\1 COLLET_TRAIT_FUTURE = 1 << 30,", text)
    if name == "ops.def":
        text = after_last("\nCOLLET_OP(", OP, text)
    if name == "types.def":
        text = after_last("\nCOLLET_TYPE(", TYPE, text)
    if name in ("backend.h", "tables.h"):
        text = SIZED.sub(grown, text)
    if name == "attributes.h":
        text = RECORD.sub(r"\1  int64_t future_field; /**< since the next opset */\n};", text)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--major", action="store_true")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("include_dir")
    parser.add_argument("output_dir")
    args = parser.parse_args()
    source, target = (os.path.join(folder, "collet") for folder in (args.include_dir, args.output_dir))
    os.makedirs(target, exist_ok=True)
    for name in sorted(os.listdir(source)):
        with open(os.path.join(source, name), encoding="utf-8") as file:
            text = changed(name, file.read(), args.major, args.late)
        with open(os.path.join(target, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
