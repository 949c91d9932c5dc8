// Verbs that this device does not support. Each answers as a device without the feature does (docs/ibverbs.md).
#include "doors/ibverbs/objects.hpp"

using namespace fairlead::ibverbs;

extern "C" {

// No memory is pinned, so nothing must be protected from forked children.
int ibv_fork_init() {
  return 0;
}
ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}
int ibv_dontfork_range(void* base, size_t size);
int ibv_dontfork_range(void*, size_t) {
  return 0;
}
int ibv_dofork_range(void* base, size_t size);
int ibv_dofork_range(void*, size_t) {
  return 0;
}

int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  if (ece != nullptr) *ece = {};
  return fail(EOPNOTSUPP);
}
int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
  if (ece != nullptr && ece->vendor_id == 0) return 0;  // "no options", by convention
  return fail(EOPNOTSUPP);
}
}
