#!/usr/bin/env python3
"""Checks that tests which the pages name exist: `Suite.Name`, `Suite.*`, and `.Other` for another one of that suite.

  tests/pages/named_tests.py
"""

import re
import sys

from page import TREE, Page

_DEFINED = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
_NAMED = re.compile(r"([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)?\.(\*|\w+)")
_ENDINGS = {"cpp", "hpp", "h", "c", "md", "py", "sh", "txt", "json", "toml", "service", "cmake", "so"}


def defined():
    """All tests of the tree, by suite."""
    tests = {}
    for top in ("daemon", "doors", "sim", "src", "tests", "tools"):
        for path in sorted((TREE / top).rglob("*.cpp")):
            for suite, name in _DEFINED.findall(path.read_text(encoding="utf-8", errors="replace")):
                tests.setdefault(suite, set()).add(name)
    return tests


def absent_tests(page, tests):
    suite, line_of_suite = None, 0
    for line, code in page.code():
        named = _NAMED.fullmatch(code)
        if not named or named[2] in _ENDINGS or code == "Suite.Test":  # a placeholder
            line_of_suite = 0
            continue
        if named[1]:
            suite, line_of_suite = named[1], line
        elif line != line_of_suite:
            continue  # no test
        if named[2] not in tests.get(suite, ()) and not (named[2] == "*" and suite in tests):
            yield line, f"`{code}`: there is no such test"


def main():
    tests = defined()
    faults = []
    for path in sorted(TREE.glob("docs/*.md")):
        page = Page(path)
        faults += [f"{page.name}:{line}: {what}" for line, what in absent_tests(page, tests)]
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
