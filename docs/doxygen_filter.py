#!/usr/bin/env python3
"""doxygen_filter.py FILE.md

Prints a guide in the form that Doxygen reads: headings get names, and links to headings of other guides lead to these. Run by Doxygen
(Doxyfile, FILTER_PATTERNS); check_links.py knows where links lead."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_links  # noqa: E402


def name_of(path, anchor):
    """The name of a heading in the whole site."""
    stem = os.path.splitext(os.path.basename(path))[0].lower()
    return re.sub(r"[^a-z0-9_]", "_", f"{stem}__{anchor.lower()}")


def anchors_in_order(text):
    """Yields (line number, anchor) of the headings without a name of their own."""
    seen = {}
    for number, line in check_links.lines_without_code(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading and "{#" not in line:
            slug = check_links.slug_of(heading[1])
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            yield number, slug if count == 0 else f"{slug}-{count}"


def filtered(path, text):
    names = dict(anchors_in_order(text))
    outside = {number for number, _ in check_links.lines_without_code(text)}

    def link(match):
        target = match[2]
        name, _, anchor = target.partition("#")
        other = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if check_links.EXTERNAL.match(target) or not anchor or not other.endswith(".md") or not os.path.exists(other):
            return match[0]
        with open(other, encoding="utf-8") as file:
            given = f"{{#{anchor}}}" in file.read()
        return f"[{match[1]}](#{anchor if given else name_of(other, anchor)})"

    out = []
    for number, line in enumerate(text.splitlines(), 1):
        if number in outside:
            line = re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)", link, line)
            # The first heading is the page's title, which Doxygen names itself.
            if number in names and not line.startswith("# "):
                line = f"{line} {{#{name_of(path, names[number])}}}"
        out.append(line)
    return "\n".join(out) + "\n"


def main():
    path = os.path.relpath(sys.argv[1])
    with open(path, encoding="utf-8") as file:
        sys.stdout.write(filtered(path, file.read()))


if __name__ == "__main__":
    main()
