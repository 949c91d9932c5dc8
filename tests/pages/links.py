#!/usr/bin/env python3
"""Checks that links, their anchors, and paths of the tree in backticks exist. Each page must be in the index, and each
picture must have a text. Sources may cite only pages that exist, and only documents of the tree. Uses no network and
no file outside the tree.

  tests/pages/links.py
"""

import fnmatch
import functools
import os
import re
import sys
from xml.etree import ElementTree

from page import TREE, Page, anchor_of

_FOLDERS = "bench cmake daemon docs doors examples include packaging scripts sim src tests third_party tools".split()
_PATH = re.compile(r"(?:[\w.*{},-]+/)+[\w.*{},-]*")
_FILE = re.compile(r"[\w*{},-]+\.(?:hpp|cpp|h|c|py|sh|pml|cmake|md|map)")
_BEGINS = ["", "src/", "include/fairlead/", "include/", "doors/"]  # where a path of a page may begin
_CITED_PAGE = re.compile(r"\bdocs/([a-z-]+\.md)(?:, \"([^\"]+)\")?")
# Documents that were used while the code was written, and are not in the tree.
_ABSENT = re.compile(r"\bdesign section\b|\bspec/\w+\.md\b|\(spec(:|$)|\bspec: |\bseed 0\d\d\b")


def pages():
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "third_party/*/README.md", "packaging/**/*.md"):
        yield from (Page(path) for path in sorted(TREE.glob(pattern)))


def paths_of_tree():
    """Files and folders, from the tree's own on."""
    found = {name for name in os.listdir(TREE) if not name.startswith("build")}
    for top in _FOLDERS:
        for place, folders, files in os.walk(TREE / top):
            place = os.path.relpath(place, TREE)
            found.update([place], (f"{place}/{name}" for name in files))
    return found


def sources(paths):
    kinds = (".hpp", ".cpp", ".c", ".h", ".py", ".sh", ".cmake", ".map", ".pml")
    return sorted(path for path in paths if path.endswith(kinds) and "/corpus/" not in path and path != "tests/pages/links.py")


def wrong_links(page, page_of):
    for line, target in page.links():
        if re.match(r"[a-z]+:", target):
            continue  # another host's
        path, _, anchor = target.partition("#")
        found = (page.path.parent / path).resolve() if path else page.path
        if not found.exists() or not found.is_relative_to(TREE):
            yield line, f"links to {target}, which does not exist"
        elif anchor and found.suffix == ".md" and anchor not in page_of(found).anchors():
            yield line, f"links to {target}: {found.name} has no such heading"


def alternatives(path):
    """`a_{b,c}.hpp` is two paths."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        return [path]
    ways = (path[: braces.start()] + each + path[braces.end() :] for each in braces[1].split(","))
    return [each for way in ways for each in alternatives(way)]


def is_in_tree(path, paths, names):
    path = path.rstrip("/")
    if path.endswith("."):  # `engine/receives.*` without its star
        path += "*"
    among = paths if "/" in path else names
    if "*" in path:
        return any(fnmatch.filter(among, begin + path) for begin in (_BEGINS if "/" in path else [""]))
    return any(begin + path in paths for begin in _BEGINS) or path in names or f"{path}.in" in names


def wrong_paths(page, paths, names):
    for line, code in page.code():
        for word in re.split(r"[\s=:]+", code):
            if re.search(r"[A-Z]{4,}|\.\.", word) or word.startswith(("/", "$", "~", "./", "build", "-")):
                continue  # a placeholder (src/NAME), or no path of the tree
            is_path = _PATH.fullmatch(word)
            is_file = _FILE.fullmatch(word.rsplit("/", 1)[-1]) and (is_path or "/" not in word)
            if is_file or (is_path and word.split("/")[0] in _FOLDERS):
                for path in alternatives(word):
                    if not is_in_tree(path, paths, names):
                        yield line, f"`{path}` is not in the tree"


def wrong_citations(text, page_of):
    for number, line in enumerate(text.splitlines(), 1):
        if "docs/" not in line and not _ABSENT.search(line):
            continue
        if absent := _ABSENT.search(line):
            yield number, f"cites '{absent[0]}', which is not in the tree: say it here, or link to a page of docs/"
        for cited in _CITED_PAGE.finditer(line):
            page = TREE / "docs" / cited[1]
            if not page.exists():
                yield number, f"cites docs/{cited[1]}, which does not exist"
            elif cited[2] and anchor_of(cited[2]) not in page_of(page).anchors():
                yield number, f"cites docs/{cited[1]}, \"{cited[2]}\": that page has no such heading"


def unlisted_pages():
    """Each page is in the index, and in the navigation of the site."""
    for index, listed in (("docs/README.md", "({})"), ("packaging/site/mkdocs.yml", ": {}\n")):
        text = (TREE / index).read_text(encoding="utf-8")
        for path in sorted((TREE / "docs").glob("*.md")):
            if listed.format(path.name) not in text and path.name != "README.md":
                yield f"{index}: docs/{path.name} is missing"


def faulty_pictures():
    """Each is small, and says in words what it shows."""
    for path in sorted((TREE / "docs/pictures").glob("*.svg")):
        name = path.relative_to(TREE)
        if path.stat().st_size > 20 * 1024:
            yield f"{name}: more than 20 KiB"
        picture = ElementTree.parse(path).getroot()
        for part in ("title", "desc"):
            if not (picture.findtext(f"{{http://www.w3.org/2000/svg}}{part}") or "").strip():
                yield f"{name}: no <{part}>"


def main():
    page_of = functools.cache(Page)
    paths = paths_of_tree()
    names = {os.path.basename(path) for path in paths}
    faults = [*unlisted_pages(), *faulty_pictures()]
    for page in pages():
        found = [*wrong_links(page, page_of)]
        if page.name != "CHANGELOG.md":  # it also tells what was
            found += [*wrong_paths(page, paths, names), *wrong_citations("\n".join(page.lines), page_of)]
        faults += [f"{page.name}:{line}: {what}" for line, what in found]
    for name in sources(paths):
        text = (TREE / name).read_text(encoding="utf-8", errors="replace")
        if "docs/" in text or _ABSENT.search(text):
            faults += [f"{name}:{line}: {what}" for line, what in wrong_citations(text, page_of)]
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
