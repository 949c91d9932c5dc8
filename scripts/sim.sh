run_sim() {
  need build test
  configure release -D FAIRLEAD_TESTS=ON
  compile build fairlead-sim
  exec build/bin/fairlead-sim "$@"
}
