# Fuzzing for a time. What is found new goes to build/fuzz/NAME; an input that crashes becomes build/fuzz/NAME-crash-...:
# keep it in tests/fuzz/corpus/NAME, where the tests run it from then on.
run_fuzz() {
  if [ $# = 0 ]; then
    echo "./dev fuzz NAME [SECONDS], where NAME is one of:"
    find tests/fuzz -name '*_fuzz.cpp' -printf '  %f\n' | sed 's/_fuzz\.cpp$//' | sort
    return
  fi
  local name=$1 seconds=${2:-60}
  [ -f "tests/fuzz/${name}_fuzz.cpp" ] || die "no fuzz target '$name': ./dev fuzz lists them"
  need build fuzz
  configure fuzz
  compile build/fuzz "${name}_fuzz"
  local found=build/fuzz/$name kept=tests/fuzz/corpus/$name
  mkdir -p "$found"
  if [ ! -d "$kept" ]; then
    kept=
  fi
  exec "build/fuzz/bin/${name}_fuzz" -max_total_time="$seconds" -artifact_prefix="$found-" "$found" $kept
}
