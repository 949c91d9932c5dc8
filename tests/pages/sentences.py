#!/usr/bin/env python3
"""Sentences of more than 25 words. Without arguments: of the pages that have none, as a test; with pages: lists theirs.

  tests/pages/sentences.py            the test: edited.txt names the pages, and how many long sentences each may have
  tests/pages/sentences.py --count    of all pages: how many
  tests/pages/sentences.py PAGE...    the sentences
"""

import sys

from page import TREE, Page, count_words

WORDS_MAX = 25


def long_sentences(page):
    return [(line, text) for line, text in page.sentences() if count_words(text) > WORDS_MAX]


def all_pages():
    return [Page(path) for path in sorted([TREE / "README.md", *(TREE / "docs").rglob("*.md")])]


def main(arguments):
    if arguments == ["--count"]:
        counts = [(len(long_sentences(page)), page.name) for page in all_pages()]
        for count, name in counts:
            print(f"{count:5} {name}")
        print(f"{sum(count for count, _ in counts):5} together")
        return 0
    if arguments:
        for name in arguments:
            for line, text in long_sentences(Page(TREE / name)):
                print(f"{name}:{line}: {count_words(text)} words: {text}")
        return 0
    failed = 0
    for row in (TREE / "tests/pages/edited.txt").read_text(encoding="utf-8").splitlines():
        if not row or row.startswith("#"):
            continue
        name, most = row.rsplit(maxsplit=1)
        found = long_sentences(Page(TREE / name))
        if len(found) > int(most):
            failed = 1
            for line, text in found:
                print(f"{name}:{line}: a sentence of {count_words(text)} words, at most {WORDS_MAX} are easy to read: {text}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
