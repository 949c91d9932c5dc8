#!/usr/bin/env python3
"""check.py FOLDER: checks that the built site loads nothing from other hosts, and that its links and anchors exist."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

_LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data"),
          ("video", "src"), ("audio", "src"), ("embed", "src"), ("use", "href"), ("image", "href"), ("form", "action")}
_FOREIGN = re.compile(r"^\s*(?:[a-z]+:)?//", re.I)
_STYLE_LOADS = re.compile(r"url\(\s*['\"]?\s*((?:https?:)?//[^)]*)\)|@import\s+(?:url\()?['\"]?((?:https?:)?//[^'\");]*)", re.I)


class Seen(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.names, self.styles = [], [], set(), []
        self._in_style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names.update(filter(None, [found.get("id"), found.get("name")]))
        self.styles += filter(None, [found.get("style")])
        self._in_style = tag == "style"
        for name, value in attributes:
            if value and (tag, name) in _LOADS and not (tag == "link" and found.get("rel") == "canonical"):
                self.loads.append(value)
            if value and (tag, name) == ("a", "href"):
                self.links.append(value)

    def handle_data(self, data):
        if self._in_style:
            self.styles.append(data)

    def handle_endtag(self, tag):
        self._in_style = False


def main(folder):
    folder = folder.resolve()
    pages = {path: Seen(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    faults = []
    for path, seen in pages.items():
        name = path.relative_to(folder)
        faults += [f"{name}: loads {each}" for each in seen.loads if _FOREIGN.match(each)]
        faults += [f"{name}: a style loads {each[0]}" for text in seen.styles for each in _STYLE_LOADS.finditer(text)]
        for link in seen.links if name.name != "404.html" else []:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|//", target):
                continue
            found = (path.parent / urllib.parse.unquote(target)).resolve() if target else path
            found = found / "index.html" if found.is_dir() else found
            if not found.exists():
                faults.append(f"{name}: links to {link}, which is not there")
            elif anchor and found in pages and urllib.parse.unquote(anchor) not in pages[found].names:
                faults.append(f"{name}: links to {link}, which has no such anchor")
    for path in [*folder.rglob("*.css"), *folder.rglob("*.svg")]:
        text = path.read_text(encoding="utf-8")
        faults += [f"{path.relative_to(folder)}: loads {each[0]}" for each in _STYLE_LOADS.finditer(text)]
    print("\n".join(faults), end="\n" if faults else "")
    print(f"{len(pages)} pages, {len(faults)} faults")
    return bool(faults) or len(pages) < 30


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
