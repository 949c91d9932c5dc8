#!/usr/bin/env bash
# Opens a page of `fairlead perf --report` in headless Chromium: every chart must show a line, and the page must load nothing.
# Needs Debian's chromium-headless-shell (100 MB), so ./dev test leaves it out.
#   tests/perf_report_in_chromium.sh [COMMAND]
set -euo pipefail
command=$(realpath "${1:-build/bin/fairlead}")
browser=$(command -v chromium-headless-shell) || { echo "apt install chromium-headless-shell" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# page CHARTS MEASUREMENT...: checks that the measurement's page has CHARTS charts.
page() {
  local charts=$1 drawn
  shift
  "$command" perf "$@" --seconds 0.3 --report "$folder/report.html" >/dev/null
  drawn=$(unshare --net timeout 60 "$browser" --no-sandbox --disable-gpu --user-data-dir="$folder/profile" \
    --virtual-time-budget=5000 --dump-dom "file://$folder/report.html" 2>/dev/null | grep -o 'data-drawn="[^"]*"' || true)
  echo "perf $*: $drawn"
  [ "$drawn" = "data-drawn=\"$charts of $charts\"" ]
}

page 5 latency --size 8,1K,64K
page 5 bandwidth --path shm --size 4K,64K
page 4 am --size 8,64
