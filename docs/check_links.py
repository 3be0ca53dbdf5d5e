#!/usr/bin/env python3
"""check_links.py [--site DIR] [FILE.md...]

Checks the links of Markdown files: the files that they name exist, and so do the headings. With --site: those of all pages of a made
site, to files and to places in them. Links to other hosts are not followed. Prints file:line: complaint; exit code 1 if there is one."""
import argparse
import html.parser
import os
import re
import sys
import urllib.parse

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+(?:\([^()]*\))?)>?(?:\s+\"[^\"]*\")?\s*\)")
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.I)


def lines_without_code(text):
    """Yields (number, line) outside of code blocks, without spans of code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = None if fence and mark[1].startswith(fence) else fence or mark[1]
            continue
        if fence is None and not line.startswith("    "):
            yield number, line


def without_spans(line):
    return re.sub(r"(`+).*?\1", "code", line)


def slug_of(heading):
    """The anchor of a heading, as GitHub makes it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def anchors_of(text):
    """The anchors of a file."""
    anchors, seen = set(), {}
    for _, line in lines_without_code(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading:
            given = re.search(r"\{#([^}]+)\}", heading[1])
            if given:
                anchors.add(given[1])
                continue
            slug = slug_of(heading[1])
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            anchors.add(slug if count == 0 else f"{slug}-{count}")
        anchors.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
    return anchors


def check_markdown(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for number, line in lines_without_code(text):
        for target in LINK.findall(without_spans(line)):
            if EXTERNAL.match(target):
                continue
            name, _, anchor = target.partition("#")
            name = urllib.parse.unquote(name)
            other = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(other):
                yield number, f"there is no {target}"
            elif anchor and other.endswith(".md"):
                with open(other, encoding="utf-8") as file:
                    if anchor not in anchors_of(file.read()):
                        yield number, f"{other} has no heading for #{anchor}"


class Page(html.parser.HTMLParser):
    """The links and places of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)
            elif (name == "href" and tag in ("a", "link", "area")) or (name == "src" and tag in ("img", "script")):
                self.links.append((self.getpos()[0], value))


def check_site(folder):
    pages = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(root, name)
                with open(path, encoding="utf-8", errors="replace") as file:
                    pages[os.path.normpath(path)] = Page(file.read())
    if not pages:
        yield folder, 0, "there are no pages"
    for path, page in sorted(pages.items()):
        for line, link in page.links:
            if EXTERNAL.match(link):
                continue
            name, _, place = link.partition("#")
            name = urllib.parse.unquote(name.partition("?")[0])
            other = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(other):
                yield path, line, f"there is no {link}"
            elif place and other in pages and urllib.parse.unquote(place) not in pages[other].places:
                yield path, line, f"{link} leads to no place of that page"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", metavar="DIR", help="a made site")
    parser.add_argument("files", nargs="*", metavar="FILE.md")
    args = parser.parse_args()
    if not args.site and not args.files:
        parser.error("name files, or a site")
    bad = 0
    for path in args.files:
        for number, complaint in check_markdown(path):
            print(f"{path}:{number}: {complaint}")
            bad += 1
    if args.site:
        for path, number, complaint in check_site(args.site):
            print(f"{path}:{number}: {complaint}")
            bad += 1
    print(f"check_links: {bad} dead links")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
