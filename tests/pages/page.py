"""A page of Markdown as its readers meet it: sentences, headings, links and paths, each with the line that it stands in."""

import pathlib
import re

TREE = pathlib.Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^\s*(```|~~~)")
_INLINE_CODE = re.compile(r"`[^`]+`")
_HEADING = re.compile(r"^#{1,6} +(.*?)\s*#*$")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) +")
_LINK = re.compile(r"!?\[([^][]*(?:\[[^][]*\][^][]*)*)\]\(([^()\s]+)\)")
_SENTENCE_END = re.compile(r"(?<=[^.][.!?])[)\"*_]*\s+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf)\.$")


class Page:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.name = str(self.path.relative_to(TREE))
        self.lines = self.path.read_text(encoding="utf-8").splitlines()
        self.prose = self._without_code_blocks()

    def _without_code_blocks(self):
        """The lines, with those of code blocks empty."""
        kept, in_block = [], False
        for line in self.lines:
            is_fence = bool(_FENCE.match(line))
            is_indented = line.startswith("    ") and (not kept or not kept[-1].strip()) and not _ITEM.match(line)
            kept.append("" if in_block or is_fence or is_indented else line)
            in_block ^= is_fence
        return kept

    def anchors(self):
        """The anchors of the headings, as code hosts and mkdocs make them."""
        found = set()
        for line in self.prose:
            heading = _HEADING.match(line)
            if not heading:
                continue
            text = _LINK.sub(r"\1", heading[1])
            anchor = anchor_of(text)
            count = 0
            while (numbered := anchor if count == 0 else f"{anchor}-{count}") in found:
                count += 1
            found.add(numbered)
        return found

    def links(self):
        """Pairs of line number and target."""
        for number, line in enumerate(self.prose, 1):
            for link in _LINK.finditer(line):
                yield number, link[2]

    def code(self):
        """Pairs of line number and text in backticks, outside of code blocks."""
        for number, line in enumerate(self.prose, 1):
            for code in _INLINE_CODE.finditer(line):
                yield number, code[0].strip("`")

    def paragraphs(self):
        """Pairs of line number and text: an item of a list, a heading and a cell of a table are paragraphs of their own."""
        first, text = 0, []
        for number, line in enumerate([*self.prose, ""], 1):
            bare = line.strip()
            is_row = bare.startswith("|")
            heading = _HEADING.match(line)
            if text and (not bare or is_row or heading or _ITEM.match(line)):
                yield first, " ".join(text)
                text = []
            if is_row:
                for cell in re.split(r"(?<!\\)\|", bare)[1:-1]:
                    yield number, cell.strip()
            elif heading:
                yield number, heading[1]
            elif bare:
                first = first if text else number
                text.append(_ITEM.sub("", line).strip())

    def sentences(self):
        """Pairs of line number and sentence. What stands in backticks is one word."""
        for number, text in self.paragraphs():
            plain = _LINK.sub(r"\1", _INLINE_CODE.sub("`code`", text))
            held = ""
            for piece in _SENTENCE_END.split(plain):
                held = f"{held} {piece}".strip()
                if not _ABBREVIATION.search(held):
                    yield number, held
                    held = ""
            if held:
                yield number, held


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def count_words(sentence):
    return sum(1 for word in sentence.split() if re.search(r"\w", word))
