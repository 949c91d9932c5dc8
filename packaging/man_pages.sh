#!/usr/bin/env bash
# man_pages.sh COMMAND FOLDER: makes all man pages from current sources. fairlead(1) and fairlead-SUBCOMMAND(1) come from
# --help, section 3 (classes and calls) from the public headers; those of AM-2 are in FOLDER/amudp. Section 7 (settings, counters and words) comes from the
# docs pages, which tests compare with the sources.
set -euo pipefail
command=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
tree=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
export LC_ALL=C.UTF-8
version=$("$command" --version | awk '{print $2}')

# page NAME [SUBCOMMAND]: makes a page; the first line of the help is its summary.
page() {
  local name=$1
  shift
  local about wrapper
  about=$("$command" "$@" --help | head -n 1)
  wrapper=$(mktemp)
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$command" "$*" >"$wrapper"
  chmod +x "$wrapper"
  help2man --no-info --section=1 --manual="Fairlead" --source="fairlead $version" --name="${about%%:*}" \
    --version-string="fairlead $version" "$wrapper" |
    sed -e "s/^\.TH [^ ]*/.TH ${name^^}/" -e "/^\.SH NAME/{n; s/^[^ ]*/$name/}" -e '/^\.SH EXAMPLES/{n; s/$/\n.nf/}' >"$folder/$name.1"
  rm -f "$wrapper"
}

# subcommands [SUBCOMMAND]: lists its subcommands, from its help.
subcommands() { "$command" "$@" --help | awk '/^Subcommands:/ {on = 1; next} on && /^  [a-z]/ {print $1}'; }

# Makes one page for each class and namespace, with its C++ name. Pages of doxygen for files and folders are omitted.
calls() {
  local scratch name
  scratch=$(mktemp -d)
  (cd "$tree" && { cat packaging/Doxyfile; echo "OUTPUT_DIRECTORY = $scratch"; echo "PROJECT_NUMBER = $version"; } |
    doxygen - >/dev/null)
  for each in "$scratch"/man/man3/fairlead*.3 "$scratch"/man/man3/net.h.3; do  # the second contains the C functions
    name=$(sed -n '1s/^\.TH "\([^"<]*\).*/\1/p' "$each" | tr / -)
    # Removes template parameters from names, adds a summary where there is none (man's index needs it), and escapes lines
    # that begin with a quote, which troff would take for requests.
    sed -e '1,/^\.SH NAME/s/< [^>]* >//' -e '/^\.SH NAME/{n; s/< [^>]* >//; /\\-/!s/ *$/ \\- of libfairlead/;}' \
      -e "s/^'/\\\\\&'/" "$each" >"$folder/$name.3"
  done
  rm -rf "$scratch"
  # Each C function has its own name for man, too.
  links fairlead-net.h "$folder" < <(grep -oE '\bfairlead_[a-z0-9_]+\(' "$tree/include/fairlead/net.h")
}

# links PAGE FOLDER: for each "NAME(" of standard input, makes a page that is PAGE of section 3.
links() {
  local call
  while IFS= read -r call; do
    printf '.so man3/%s.3\n' "$1" >"$2/${call%(}.3"
  done < <(sort -u)
}

# The calls of AM-2, in the folder amudp: the headers' own texts without their lists of numbered macros.
active_messages() {
  local header name
  mkdir -p "$folder/amudp"
  for header in "$tree"/doors/amudp/include/amudp*.h; do
    name=$(basename "$header")
    {
      printf '.TH %s 3 "" "Fairlead %s" Fairlead\n.SH NAME\n' "${name^^}" "$version"
      printf '%s \\- active messages of AM-2 over UDP\n.SH SYNOPSIS\n.nf\n#include <%s>\n' "$name" "$name"
      printf '\ncc program.c $(pkg-config \\-\\-cflags \\-\\-libs amudp)\n.fi\n.SH DESCRIPTION\n.nf\n'
      sed -e '/^#define AM[A-Z]*_[A-Za-z]*[0-9]\+(/d' -e '/clang-format/d' -e 's/\\/\\e/g' -e "s/^[.']/\\\\\\&&/" "$header"
      printf '.fi\n.SH SEE ALSO\nfairlead(1)\n'
    } >"$folder/amudp/$name.3"
    links "$name" "$folder/amudp" < <(sed -n 's/^#define \(AM_Init\|AMX_SPMDStartup\) .*/\1(/p' "$header"
      grep -E '^extern .*\(' "$header" | grep -oE '\b_?(AM|AMX|AMUDP)_[A-Za-z0-9]+\(' | sed 's/^_//')
  done
}

# tables NAME SENTENCE: makes a page of docs/NAME.md, whose wide tables become lists.
tables() {
  awk -v name="$1" -v sentence="$2" '
    NR == 1 {printf "# NAME\n\nfairlead-%s - %s\n\n# DESCRIPTION\n", name, sentence; next}
    !/^\|/ {row = 0; print; next}
    {
      gsub(/\\\|/, "\001"); count = split($0, cell, / *\| */); row++
      for (i = 2; i < count; ++i) gsub("\001", "|", cell[i])
      if (row == 1) {for (i in cell) heading[i] = cell[i]; next}
      if (row == 2) next
      printf "%s\n", cell[2]; separator = ": "
      for (i = 3; i < count - 1; ++i) {printf "%s%s %s", separator, heading[i], cell[i]; separator = ", "}
      printf "%s%s\n\n", separator == ", " ? ". " : ": ", cell[count - 1]
    }' "$tree/docs/$1.md" | sed 's/\[\([a-z]*\)\.md\](\1\.md)/**fairlead-\1**(7)/g' |
    lowdown -s -Tman -M "title=fairlead-$1" -M section=7 -M "source=fairlead $version" -M volume=Fairlead \
      >"$folder/fairlead-$1.7"
}

page fairlead
command=$(dirname "$command")/fairleadd page fairleadd
for subcommand in $(subcommands); do
  page "fairlead-$subcommand" "$subcommand"
  for below in $(subcommands "$subcommand"); do
    page "fairlead-$subcommand-$below" "$subcommand" "$below"
  done
done
calls
active_messages
tables settings "what can be set, and where"
tables counters "what an engine counts"
tables words "statuses, numbers and states, and what they mean"
