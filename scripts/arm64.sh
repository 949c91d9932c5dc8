# The library for 64-bit ARM, and the tests of its modules up to the engine and net, run by QEMU: its generic code instead
# of that for x86-64. QEMU offers less of Linux than a machine does (tests/arm64_left_out.txt), and orders memory as the
# machine below it does. So what needs several processes, or shows its faults on ARM's memory alone, needs a machine.
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
