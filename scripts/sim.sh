run_sim() {
  need build test
  configure release -D FAIRLEAD_TESTS=ON
  compile build
  ctest --test-dir build --label-regex '^sim$' --output-on-failure --no-tests=error "$@"
}
