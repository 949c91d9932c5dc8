#pragma once
// libipsec-mb, Intel's code for AES-GCM: a segment of 1400 bytes in 89 ns where libcrypto takes 393 ns. It is an
// accelerator, so it is loaded if it is there, like libcrypto (libcrypto.hpp), and done without if it is not.

#include <intel-ipsec-mb.h>

namespace fairlead::seal {

/// The library's table of functions; null if it is not installed, of another version than it was compiled for (its
/// table may be another one then), failed its own test, or the processor has no AES instructions. Thread-safe.
const IMB_MGR* ipsec_mb();

}  // namespace fairlead::seal
