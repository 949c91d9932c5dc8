# For 64-bit ARM, on a machine of another kind: headers and libraries of a Debian for ARM that `./dev arm64` unpacks, and
# QEMU for the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc-12)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)

get_filename_component(sysroot ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot ABSOLUTE)
set(CMAKE_SYSROOT ${sysroot})
# The loader is named by its place here: QEMU's option -L would also lead the tests' own paths into the sysroot.
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--dynamic-linker,${sysroot}/lib/ld-linux-aarch64.so.1)
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64;-E;LD_LIBRARY_PATH=${sysroot}/lib/aarch64-linux-gnu:${sysroot}/usr/lib/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sysroot})
set(ENV{PKG_CONFIG_LIBDIR} ${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig:${sysroot}/usr/share/pkgconfig)
