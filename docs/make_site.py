#!/usr/bin/env python3
"""make_site.py [--tool COLLET] [--doxygen DOXYGEN] --output DIR

Makes the documentation as a site, DIR/html/index.html: the guides, the reference of the public headers, and, where --tool names the
built command, the references of its options and passes. It is searched without a server. A warning of Doxygen is an error, and so is a
dead link. Run it in the root of the sources."""
import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check_links  # noqa: E402


def version():
    with open("CMakeLists.txt", encoding="utf-8") as file:
        return re.search(r"project\(Collet VERSION ([0-9.]+)", file.read())[1]


def run_tool(tool, *arguments):
    done = subprocess.run([tool, *arguments], text=True, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"make_site: {tool} {' '.join(arguments)} failed with status {done.returncode}")
    return done.stdout


def passes_page(listed):
    """The reference of passes and pipelines, from `collet opt --list-passes --json -`."""
    def cell(text):
        return str(text).replace("|", "\\|").replace("<", "\\<")
    out = ["# Passes", "", "Made from the pass table by `collet opt --list-passes`. The guide is [adding a pass](adding_a_pass.md).", ""]
    for kind, entries in listed.items():
        if not isinstance(entries, list) or not entries:
            continue
        columns = list(entries[0])
        out += [f"## {kind.capitalize()}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for entry in entries:
            values = [", ".join(v) if isinstance(v, list) else v for v in (entry.get(c, "") for c in columns)]
            out.append("| " + " | ".join(cell(v) for v in values) + " |")
        out.append("")
    return "\n".join(out)


def mend(folder):
    """Doxygen links to a section of nested classes even if all of them are private and the section is not there."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not name.endswith(".html"):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        mended = text if 'name="nested-classes"' in text else re.sub(r'<a href="#nested-classes">[^<]*</a>(?: &#124;)?\s*', "", text)
        if mended != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(mended)


def check_pages(folder):
    """Yields what a page lacks to be read on a phone and to be found by the search."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".html"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            for part in ('name="viewport"', 'href="site.css"', 'src="search/search.js"'):
                if part not in text:
                    yield os.path.join(folder, name), 1, f"the page lacks {part}"
    if not any(name.startswith("pages_") for name in os.listdir(os.path.join(folder, "search"))):
        yield folder, 0, "the guides are not in the search"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", help="the built command")
    parser.add_argument("--doxygen", default="doxygen")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    generated = os.path.join(args.output, "generated")
    os.makedirs(generated, exist_ok=True)
    pages = {}
    if args.tool:
        pages["options.md"] = run_tool(args.tool, "manual", "--format", "md")
        pages["passes.md"] = passes_page(json.loads(run_tool(args.tool, "opt", "--list-passes", "--json", "-")))
    inputs = "INPUT += " if pages else ""
    for name, text in pages.items():
        # Links of these pages are written as from docs/.
        path = os.path.join(generated, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"\]\((\w+\.md)", lambda m: "](" + os.path.relpath(os.path.join(HERE, m[1]), generated), text))
        inputs += f'"{path}" '
    with open(os.path.join(HERE, "Doxyfile"), encoding="utf-8") as file:
        text = file.read()
    text += f'\nPROJECT_NUMBER = {version()}\nOUTPUT_DIRECTORY = "{args.output}"\n{inputs}\n'
    text += f'FILTER_PATTERNS = "*.md={sys.executable} {os.path.join(HERE, "doxygen_filter.py")}"\n'
    done = subprocess.run([args.doxygen, "-"], input=text, text=True)
    if done.returncode:
        return done.returncode
    site = os.path.join(args.output, "html")
    mend(site)
    bad = 0
    for path, number, complaint in [*check_links.check_site(site), *check_pages(site)]:
        print(f"{path}:{number}: {complaint}")
        bad += 1
    print(f"make_site: {site}/index.html, {sum(n.endswith('.html') for n in os.listdir(site))} pages, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
