# One build for users and two with sanitizers, then all their tests in one run of ctest.
run_test() {
  need build test bench
  configure release -D FAIRLEAD_TESTS=ON -D FAIRLEAD_BENCHMARKS=ON
  compile build
  configure asan
  compile build/asan
  configure tsan
  compile build/tsan

  mkdir -p build/everything
  echo 'subdirs("../" "../asan" "../tsan")' >build/everything/CTestTestfile.cmake
  ctest --test-dir build/everything --parallel "$(nproc)" --output-on-failure --no-label-summary --no-tests=error "$@"
}
