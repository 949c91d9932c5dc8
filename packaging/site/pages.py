#!/usr/bin/env python3
"""pages.py FOLDER [COMMAND...]: makes the pages of the site in FOLDER, for mkdocs.yml. Copies those of docs/, and generates
one for each public header, for each file of the tree that a page links to, and for the --help of each command. Adapts links.
"""

import pathlib
import re
import shutil
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
OTHERS = ["CHANGELOG.md", "SECURITY.md"]
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".yaml": "yaml", ".txt": "text", ".md": "text"}
LINK = re.compile(r"\[([^][]*)\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)")


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def source_page(folder, name):
    """Makes the page of a file of the tree."""
    path = TREE / name
    text = path.read_text(encoding="utf-8")
    fence = "~~~~~~"
    put(folder / "tree" / f"{name}.md", f"# {name}\n\n{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n")
    return f"tree/{name}.md"


def header_pages(folder):
    """Makes a page for each public header from its first comment, and the list of all."""
    rows = []
    for path in sorted((TREE / "include").rglob("*.hpp")):
        name = str(path.relative_to(TREE))
        about = []
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            if not line.startswith("// "):
                break
            about.append(line[3:])
        sentence = re.split(r"(?<=\.) ", re.sub(r" \(docs/[^)]*\)", "", " ".join(about)) + " ")[0].replace("|", "\\|")
        rows.append(f"| [`<{path.relative_to(TREE / 'include')}>`]({source_page(folder, name)}) | {sentence} |")
    put(folder / "headers.md", "# C++ headers\n\nShapes, units, errors and thread rules stand beside each declaration. As man pages they "
        "come with the package `libfairlead-dev`.\n\n| header | what is in it |\n| --- | --- |\n" + "\n".join(rows) + "\n")


def help_of(*words):
    return subprocess.run([*words, "--help"], check=True, capture_output=True, text=True, timeout=30).stdout.rstrip()


def command_page(folder, commands):
    parts = ["# Commands\n\nEach command tells its options by `--help`; the packages have the same as man pages."]
    for command in commands:
        name = pathlib.Path(command).name
        parts.append(f"## {name}\n\n```text\n{help_of(command)}\n```")
        for word in re.findall(r"^  ([a-z][\w-]*) ", help_of(command).partition("\nSubcommands:\n")[2], re.M):
            text = help_of(command, word)
            parts.append(f"### {name} {word}\n\n```text\n{text}\n```")
            for below in re.findall(r"^  ([a-z][\w-]*) ", text.partition("\nSubcommands:\n")[2], re.M):
                parts.append(f"#### {name} {word} {below}\n\n```text\n{help_of(command, word, below)}\n```")
    if not commands:
        parts.append("They are not on this page, since `build/bin/fairlead` was not built when it was made: `./dev build`.")
    put(folder / "commands.md", "\n\n".join(parts) + "\n")


def title(path):
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").strip()


def page(folder, path):
    """Copies a page of the tree; its links then lead to pages of the site."""

    def changed(link):
        found = (path.parent / link[2]).resolve()
        if not found.is_relative_to(TREE):
            raise SystemExit(f"{path}: {link[2]} is not in the tree")
        name = str(found.relative_to(TREE))
        if name == "include/fairlead":
            target = "headers.md"
        elif name == "README.md":
            target = "README.md"
        elif name in OTHERS:
            target = name
        elif name.startswith("docs/"):
            target = name.removeprefix("docs/")
        else:
            target = source_page(folder, name)
        text = title(found) if link[1] == link[2] and found.suffix == ".md" else link[1]
        return f"[{text}]({target}{link[3] or ''})"

    put(folder / path.name, LINK.sub(changed, path.read_text(encoding="utf-8")))


def main(folder, commands):
    shutil.rmtree(folder, ignore_errors=True)
    header_pages(folder)
    command_page(folder, commands)
    for path in [*sorted((TREE / "docs").glob("*.md")), *(TREE / name for name in OTHERS)]:
        page(folder, path)
    shutil.copy(TREE / "packaging/site/extra.css", folder)
    for path in [*(TREE / "docs").glob("*.svg"), *(TREE / "docs/pictures").glob("*.svg")]:
        target = folder / path.relative_to(TREE / "docs")
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
