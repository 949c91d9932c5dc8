#!/usr/bin/env python3
"""Sentences of more than 25 words. Without arguments: a test that they are few on each page; with pages: lists theirs.

  tests/pages/sentences.py            the test
  tests/pages/sentences.py --count    of each page: how many
  tests/pages/sentences.py PAGE...    the sentences
"""

import sys

from page import TREE, Page, count_words

WORDS_MAX = 25
SHARE_MAX = 0.04  # of a page's sentences; two are always allowed


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
    for page in all_pages():
        found, most = long_sentences(page), max(2, SHARE_MAX * sum(1 for _ in page.sentences()))
        if len(found) > most:
            failed = 1
            print(f"{page.name}: {len(found)} sentences of more than {WORDS_MAX} words, at most {most:.0f} should be; cut some:")
            for line, text in found:
                print(f"  {page.name}:{line}: {count_words(text)} words: {text}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
