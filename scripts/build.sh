run_build() {
  need build test bench
  configure release -D FAIRLEAD_TESTS=ON -D FAIRLEAD_BENCHMARKS=ON -D FAIRLEAD_TEST_SKIP=
  compile build "$@"
}
