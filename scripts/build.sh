run_build() {
  need build test bench
  configure release -D FAIRLEAD_TESTS=ON -D FAIRLEAD_BENCHMARKS=ON
  compile build "$@"
}
