run_format() {
  need format
  cxx_files | xargs clang-format-19 -i
}
