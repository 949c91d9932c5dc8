# Makes one release build and two with sanitizers, then runs all their tests with one ctest: those of whole programs and of
# the slowest build first. Many tests mostly wait, so twice as many run at a time as there are processors. The sanitizer
# builds run the tests of modules, the conformance tests, the fuzz inputs and the examples. With --full they also run those
# of whole programs, and all tests use their largest models and all seeds, inputs and failing calls, of which an ordinary
# run takes a part. That takes more than twice as long.
# FAIRLEAD_TEST_NO_SKIPS=1: a skipped test fails the run, except those in tests/allowed_skips.txt.
run_test() {
  local full=OFF conformance=ON inputs=8000
  if [ "${1:-}" = --full ]; then
    full=ON conformance=OFF inputs=20000
    export FAIRLEAD_TEST_FULL=1
    shift
  fi
  need build test
  configure release -D FAIRLEAD_TESTS=ON -D FAIRLEAD_BENCHMARKS=OFF -D FAIRLEAD_REPLAY_INPUTS=$inputs
  compile build
  configure asan -D FAIRLEAD_TOOLS=$full -D FAIRLEAD_TEST_CONFORMANCE=$conformance -D FAIRLEAD_REPLAY_INPUTS=$inputs
  compile build/asan
  configure tsan -D FAIRLEAD_TOOLS=$full -D FAIRLEAD_TEST_CONFORMANCE=$conformance
  compile build/tsan

  mkdir -p build/everything
  echo 'subdirs("../tsan" "../asan" "../")' >build/everything/CTestTestfile.cmake
  export FAIRLEAD_TEST_SKIP_LOG=$PWD/build/everything/skipped.txt
  rm -f "$FAIRLEAD_TEST_SKIP_LOG"
  export FAIRLEAD_TEST_SIM_SEED=${FAIRLEAD_TEST_SIM_SEED:-$(seed_of_commit)}
  local status=0
  ctest --test-dir build/everything --parallel "$(($(nproc) * 2))" --output-on-failure --no-label-summary --no-tests=error "$@" || status=$?
  tell_skips || status=1
  echo "building and testing took $((SECONDS / 60)) min $((SECONDS % 60)) s"
  return $status
}

# Prints the seed of the simulator, different for each commit.
seed_of_commit() {
  local commit
  commit=$(git rev-parse HEAD 2>/dev/null) || commit=$(date +%s%3N)
  echo $((0x${commit:0:12}))
}

# Lists skipped tests, including those in a program that is one test for ctest. Fails if a skip is not allowed.
tell_skips() {
  [ -f "$FAIRLEAD_TEST_SKIP_LOG" ] || return 0
  local allowed others
  allowed=$(grep -c '^allowed ' "$FAIRLEAD_TEST_SKIP_LOG" || true)
  others=$(grep -c '^skipped ' "$FAIRLEAD_TEST_SKIP_LOG" || true)
  echo "$((allowed + others)) tests were skipped, $allowed of them as tests/allowed_skips.txt has it:"
  sort "$FAIRLEAD_TEST_SKIP_LOG" | uniq -c
  [ "$others" = 0 ] || [ "${FAIRLEAD_TEST_NO_SKIPS:-}" != 1 ]
}
