# Builds the library for 64-bit ARM, and runs the tests of its modules up to the engine and net with QEMU. They use the
# generic code instead of that for x86-64. QEMU supports less of Linux than a real machine (tests/arm64_left_out.txt), and
# has the memory order of its host. So tests with several processes, and faults of ARM's memory order, need a real machine.
run_arm64() {
  need build arm64
  local root=build/arm64-sysroot
  if [ ! -e "$root/complete" ]; then
    echo "unpacking a Debian for ARM into $root"
    rm -rf "$root"
    mkdir -p build
    mmdebstrap --quiet --architectures=arm64 --variant=extract --include="$(packages_for arm64-sysroot | tr ' ' ,)" \
      bookworm "$root"
    touch "$root/complete"
  fi
  configure arm64 -D FAIRLEAD_PRECOMPILED_HEADERS=PROGRAMS -D FAIRLEAD_REPLAY_INPUTS=1000
  compile build/arm64
  GTEST_FILTER="-$(sed -n '/^#/d; s/: .*//p' tests/arm64_left_out.txt | paste -sd:)" \
    ctest --test-dir build/arm64 --parallel "$(nproc)" --output-on-failure --no-tests=error \
    -R 'arm64\.((base|queue|observe|wire|seal|path|link|transport|onesided|shm|qp|engine|net)_test|fuzz|example)' "$@"
}
