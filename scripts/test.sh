# One build for users and two with sanitizers, then all their tests in one run of ctest, the slowest build's first. The
# sanitizers get the tests of the modules, the fuzz inputs and the examples; with --full also those of whole programs
# (twice as long).
run_test() {
  local full=OFF
  if [ "${1:-}" = --full ]; then
    full=ON
    shift
  fi
  need build test
  configure release -D FAIRLEAD_TESTS=ON -D FAIRLEAD_BENCHMARKS=OFF
  compile build
  configure asan -D FAIRLEAD_TOOLS=$full
  compile build/asan
  configure tsan -D FAIRLEAD_TOOLS=$full
  compile build/tsan

  mkdir -p build/everything
  echo 'subdirs("../tsan" "../asan" "../")' >build/everything/CTestTestfile.cmake
  ctest --test-dir build/everything --parallel "$(nproc)" --output-on-failure --no-label-summary --no-tests=error "$@"
}
