#pragma once
// The C interface that this door implements: its structures have exactly the layout of rdma-core 44, which is checked
// here. Macros in its header would replace the names of functions that we define, so they are undefined.

#include <infiniband/verbs.h>

#include <cstring>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#if defined(__x86_64__)
static_assert(sizeof(ibv_device) == 664 && sizeof(ibv_context) == 328 && sizeof(verbs_context) == 648);
static_assert(offsetof(ibv_context, cmd_fd) == 264 && offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, abi_compat) == 320);
static_assert(sizeof(ibv_cq) == 128 && sizeof(ibv_cq_ex) == 288 && sizeof(ibv_qp) == 160 && sizeof(ibv_qp_ex) == 352);
static_assert(sizeof(ibv_srq) == 128 && sizeof(ibv_mr) == 48 && sizeof(ibv_ah) == 24 && sizeof(ibv_pd) == 16);
static_assert(sizeof(ibv_comp_channel) == 16 && sizeof(ibv_wc) == 48 && sizeof(ibv_send_wr) == 128);
static_assert(sizeof(ibv_port_attr) == 52 && sizeof(ibv_device_attr) == 232 && sizeof(ibv_device_attr_ex) == 400);
static_assert(sizeof(ibv_qp_attr) == 144 && sizeof(ibv_qp_init_attr) == 64 && sizeof(ibv_qp_init_attr_ex) == 136);
static_assert(sizeof(ibv_cq_init_attr_ex) == 56 && sizeof(ibv_gid_entry) == 32 && sizeof(ibv_async_event) == 16);
static_assert(sizeof(ibv_grh) == 40);
#endif

namespace fairlead::ibverbs {

/// Returns the number in an enumeration object. A C program may have stored a number that is no enumerator.
template <typename Enumeration>
unsigned raw(const Enumeration& value) {
  static_assert(sizeof(value) == sizeof(unsigned));
  unsigned number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace fairlead::ibverbs
