# Makes a release build, then runs all tests with one ctest: those of whole programs first. Many tests mostly wait, so twice
# as many run at a time as there are processors. The builds with sanitizers fill that time: each is itself a test, at a low
# priority, for which its own tests wait. The sanitizer builds run the tests of modules, the conformance tests and the fuzz
# inputs, that of the address sanitizer also the simulator's tests of src/net. With --full the release build runs the tests
# of modules, too, and the sanitizer builds run those of whole programs; these are made before all tests, because ctest asks
# their programs for lists of tests. All tests then use their largest models and all seeds, inputs and failing calls, of
# which an ordinary run takes a part. That takes more than twice as long.
# FAIRLEAD_TEST_NO_SKIPS=1: a skipped test fails the run, except those in tests/allowed_skips.txt.
run_test() {
  local full=OFF conformance=ON inputs=8000 skip
  skip=$(all_modules_but_queue)
  if [ "${1:-}" = --full ]; then
    full=ON conformance=OFF inputs=20000 skip=
    export FAIRLEAD_TEST_FULL=1
    shift
  fi
  need build test
  need fuzz programs &  # meanwhile
  local packages=$!
  configure release -D FAIRLEAD_TESTS=ON -D FAIRLEAD_BENCHMARKS=OFF -D FAIRLEAD_REPLAY_INPUTS=$inputs -D FAIRLEAD_TEST_SKIP="$skip"
  compile build
  wait $packages
  configure asan -D FAIRLEAD_TOOLS=$full -D FAIRLEAD_TEST_CONFORMANCE=$conformance -D FAIRLEAD_REPLAY_INPUTS=$inputs
  configure tsan -D FAIRLEAD_TOOLS=$full -D FAIRLEAD_DOORS=$full -D FAIRLEAD_AMUDP=$full -D FAIRLEAD_TEST_CONFORMANCE=$conformance
  mkdir -p build/everything
  local tests=build/everything/CTestTestfile.cmake at_once=$(($(nproc) * 2))
  : >$tests
  if [ $full = ON ]; then
    compile build/asan
    compile build/tsan
  else
    build_as_tests >$tests
    at_once=$((at_once + $(nproc)))  # a build counts as one test for each processor
  fi
  echo 'subdirs("../tsan" "../asan" "../")' >>$tests
  export FAIRLEAD_TEST_SKIP_LOG=$PWD/build/everything/skipped.txt
  rm -f "$FAIRLEAD_TEST_SKIP_LOG"
  export FAIRLEAD_TEST_SIM_SEED=${FAIRLEAD_TEST_SIM_SEED:-$(seed_of_commit)}
  local status=0
  ctest --test-dir build/everything --parallel $at_once --output-on-failure --no-label-summary --no-tests=error "$@" || status=$?
  tell_skips || status=1
  echo "building and testing took $((SECONDS / 60)) min $((SECONDS % 60)) s"
  return $status
}

# Prints what an ordinary run does not test in the release build. The queue's tests are mostly templates: optimised, they
# are other code.
all_modules_but_queue() {
  find src -mindepth 1 -maxdepth 1 -type d ! -name queue -printf '%f;' && echo doors
}

# Prints tests that make the builds with sanitizers, one after the other; that of the slowest tests first.
build_as_tests() {
  local preset before=
  for preset in tsan asan; do
    cat <<TEXT
add_test($preset.build nice cmake --build "$PWD/build/$preset" --parallel $(nproc))
set_tests_properties($preset.build PROPERTIES FIXTURES_SETUP $preset.build PROCESSORS $(nproc) DEPENDS "$before" TIMEOUT 3000)
TEXT
    before=$preset.build
  done
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
