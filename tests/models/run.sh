#!/bin/sh
# run.sh MODEL [DEFINE...] [-- FAULT]: checks every state of a Promela model with spin. A DEFINE chooses what of the
# model, FAULT plants one. Exit code 0: no failure, 1: a failure was found (without a FAULT, its trail is printed), 2: the
# check itself could not be done.
set -u
model=$(realpath "$1") || exit 2
shift
for tool in spin clang-19; do
  command -v "$tool" >/dev/null || { echo "run.sh: $tool is missing: apt-get install spin clang-19" >&2; exit 2; }
done
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2

defines=
fault=
optimise=-O2
states=24  # powers of two that the hash table has room for
while [ $# -gt 0 ]; do
  if [ "$1" = -- ]; then
    fault=${2:?}
    optimise=-O0  # it is found soon
    states=20
    shift
  fi
  defines="$defines -D$1"
  shift
done
# shellcheck disable=SC2086
spin $defines -a "$model" >spin.log 2>&1 &&
  clang-19 $optimise -w -DSAFETY -DCOLLAPSE -DVECTORSZ=4096 -o pan pan.c >cc.log 2>&1 ||
  { cat spin.log cc.log >&2; exit 2; }
./pan -m200000 -w$states -n >pan.log 2>&1
if grep -q 'errors: 0' pan.log && ! grep -q 'search depth too small\|Search not completed' pan.log; then
  grep 'states, stored' pan.log
  exit 0
fi
grep '^pan:[0-9]*: ' pan.log || { cat pan.log >&2; exit 2; }
[ -n "$fault" ] || ./pan -r ./*.trail | grep '^ *[0-9]*:' | tail -n 40
exit 1
