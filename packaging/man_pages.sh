#!/usr/bin/env bash
# man_pages.sh COMMAND FOLDER: makes the man pages fairlead(1) and fairlead-SUBCOMMAND(1) from what --help says.
set -euo pipefail
command=$(realpath "$1")
mkdir -p "$2"
export LC_ALL=C.UTF-8

# page NAME [SUBCOMMAND]: the first line of the help is what the page is named by.
page() {
  local name=$1
  shift
  local about wrapper
  about=$("$command" "$@" --help | head -n 1)
  wrapper=$(mktemp)
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$command" "$*" >"$wrapper"
  chmod +x "$wrapper"
  help2man --no-info --section=1 --manual="Fairlead" --source="fairlead $version" --name="${about%%:*}" \
    --version-string="fairlead $version" "$wrapper" | sed "s/$(basename "$wrapper" | tr a-z A-Z)/${name^^}/" >"$folder/$name.1"
  rm -f "$wrapper"
}

folder=$2
version=$("$command" --version | awk '{print $2}')
page fairlead
"$command" --help | awk '/^Subcommands:/ {on = 1; next} on && /^  [a-z]/ {print $1}' | while read -r subcommand; do
  page "fairlead-$subcommand" "$subcommand"
done
