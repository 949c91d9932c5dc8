# Static checks of the sources. All steps run, even if one fails.
check_format() {
  local file status=0
  while read -r file; do
    if ! clang-format-19 --dry-run --Werror "$file" 2>/dev/null; then
      echo "$file: not in the project's format"
      status=1
    fi
  done < <(cxx_files)
  return $status
}

check_includes() { build/clang/bin/whole_test --gtest_brief=1 --gtest_filter='IncludeTable*'; }

check_tidy() {
  # Only the sources of the compile commands: headers are checked with the sources that include them.
  # Debian 12's Boost.Asio has no coroutines with clang.
  cxx_files | grep '\.cpp$' | grep -v -e '^tests/install/' -e '^examples/asio.cpp' |
    xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/clang --quiet 2>&1 |
    { grep -v -e 'warnings generated' -e 'Suppressed' -e 'Use -header-filter' || true; }
}

check_abi() { ./dev abi; }

run_check() {
  need build test fuzz bench format check
  configure clang
  compile build/clang all all_verify_interface_header_sets  # warnings are errors; each header must compile alone

  local step failed=()
  for step in format includes tidy abi; do
    echo "checking $step"
    "check_$step" || failed+=("$step")
  done
  if [ ${#failed[@]} -gt 0 ]; then
    die "found faults in: ${failed[*]} (./dev format mends the format)"
  fi
  echo "no faults found"
}
