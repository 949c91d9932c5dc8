# Fuzzes for a given time. New inputs go to build/fuzz/NAME, and crashing ones to build/fuzz/NAME-crash-...: copy those to
# tests/fuzz/corpus/NAME, so that the tests run them.
run_fuzz() {
  if [ $# = 0 ]; then
    echo "./dev fuzz NAME [SECONDS] or ./dev fuzz --all MINUTES, where NAME is one of:"
    fuzz_targets | sed 's/^/  /'
    return
  fi
  local names=$1 seconds=${2:-60}
  if [ "$1" = --all ]; then
    names=$(fuzz_targets)
    case ${2:-} in
      '' | *[!0-9]*) die "./dev fuzz --all wants the minutes that all targets together may take" ;;
    esac
    seconds=$(($2 * 60 / $(wc -w <<<"$names")))
    [ "$seconds" -gt 0 ] || die "less than a second for each of $(wc -w <<<"$names") targets: give more minutes"
  elif [ ! -f "tests/fuzz/$1_fuzz.cpp" ]; then
    die "no fuzz target '$1': ./dev fuzz lists them"
  fi
  need build fuzz
  configure fuzz
  # shellcheck disable=SC2086
  compile build/fuzz $(printf '%s_fuzz ' $names)
  local name failed=
  for name in $names; do
    fuzz_one "$name" "$seconds" || failed="$failed $name"
  done
  [ -z "$failed" ] || die "failed:$failed; the inputs are build/fuzz/NAME-*"
}

fuzz_targets() {
  find tests/fuzz -name '*_fuzz.cpp' -printf '%f\n' | sed 's/_fuzz\.cpp$//' | sort
}

fuzz_one() {
  local found=build/fuzz/$1 kept=tests/fuzz/corpus/$1
  mkdir -p "$found"
  [ -d "$kept" ] || kept=
  echo "fuzzing $1 for $2 s"
  # An input that takes more than ten seconds counts as a hang. The last lines of a target contain the number of its runs.
  # shellcheck disable=SC2086
  "build/fuzz/bin/$1_fuzz" -max_total_time="$2" -timeout=10 -print_final_stats=1 -artifact_prefix="$found-" "$found" $kept
}
