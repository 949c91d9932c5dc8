// Queries of devices and ports.
#include <endian.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "doors/ibverbs/device_memory.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

// unassigned: programs that know vendors must not mistake this device for one of theirs
constexpr std::uint32_t kVendor = 0x1fa1;
constexpr std::uint32_t kPart = 1;
constexpr std::uint64_t kClockKhz = 1'000'000;  // completion timestamps are in nanoseconds
constexpr std::size_t kPortAttrOldSize = 48;    // bytes that the exported symbol fills

// Every region may be pageable, because nothing is pinned.
constexpr std::uint32_t kPagedUd = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
constexpr std::uint32_t kPagedUc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE;
constexpr std::uint32_t kPagedRc = kPagedUd | kPagedUc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

constexpr std::uint8_t kWidth4X = 2;
constexpr std::uint8_t kSpeedEdr = 32;  // 4 x 25 Gbit/s
constexpr std::uint8_t kLinkUp = 5;

int bits(std::uint32_t limit) {
  return static_cast<int>(std::min<std::uint32_t>(limit, 0x7fff'ffff));
}

void fill(const OpenContext& context, ibv_device_attr& out) {
  const verbs::DeviceLimits& limits = context.native.limits();
  out = {};
  std::strcpy(out.fw_ver, "0.0.1");
  out.node_guid = out.sys_image_guid = htobe64(context.identity.guid);
  out.max_mr_size = limits.max_mr_size;
  out.page_size_cap = ~0xfffULL & 0xffff'ffff;
  out.vendor_id = kVendor;
  out.vendor_part_id = kPart;
  out.max_qp = bits(limits.max_qp);
  out.max_qp_wr = bits(limits.max_qp_wr);
  out.device_cap_flags = IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
                         IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
                         IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                         IBV_DEVICE_MEM_MGT_EXTENSIONS;
  out.max_sge = out.max_sge_rd = bits(limits.max_sge);
  out.max_cq = bits(limits.max_cq);
  out.max_cqe = bits(limits.max_cqe);
  out.max_mr = bits(limits.max_mr);
  out.max_mw = bits(limits.max_mw);
  out.max_pd = bits(limits.max_pd);
  out.max_qp_rd_atom = out.max_qp_init_rd_atom = bits(limits.max_qp_rd_atom);
  out.max_res_rd_atom = bits(limits.max_res_rd_atom);
  out.atomic_cap = IBV_ATOMIC_HCA;
  out.max_ah = bits(limits.max_ah);
  out.max_mcast_grp = bits(limits.max_groups);
  out.max_mcast_qp_attach = bits(limits.max_group_qp);
  out.max_total_mcast_qp_attach = bits(limits.max_groups * limits.max_group_qp);
  out.max_srq = bits(limits.max_srq);
  out.max_srq_wr = bits(limits.max_srq_wr);
  out.max_srq_sge = bits(limits.max_srq_sge);
  out.max_pkeys = static_cast<std::uint16_t>(limits.max_pkeys);
  out.local_ca_ack_delay = limits.local_ca_ack_delay;
  out.phys_port_cnt = 1;
}

Result<ibv_port_attr> port_attributes(const OpenContext& context, std::uint8_t port) {
  const auto native = context.native.query_port(port);
  if (!native) return std::unexpected(native.error());
  ibv_port_attr out{};
  out.state = static_cast<ibv_port_state>(native->state);
  out.max_mtu = static_cast<ibv_mtu>(native->max_mtu);
  out.active_mtu = static_cast<ibv_mtu>(native->active_mtu);
  out.gid_tbl_len = static_cast<int>(native->gid_count);
  out.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  out.max_msg_sz = native->max_message_size;
  out.pkey_tbl_len = static_cast<std::uint16_t>(native->pkey_count);
  out.lid = native->lid;
  out.sm_lid = native->is_infiniband ? native->lid : 0;
  out.max_vl_num = 1;
  out.active_width = kWidth4X;
  out.active_speed = kSpeedEdr;
  out.phys_state = native->state == verbs::PortState::active ? kLinkUp : 3;
  out.link_layer = native->is_infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  out.flags = native->is_infiniband ? 0 : IBV_QPF_GRH_REQUIRED;
  return out;
}

ibv_gid_entry entry_of(const OpenContext& context, const verbs::Gid& gid, std::uint32_t index) {
  ibv_gid_entry entry{};
  std::memcpy(entry.gid.raw, gid.data(), gid.size());
  entry.gid_index = index;
  entry.port_num = 1;
  const bool is_infiniband = context.identity.personality == verbs::Personality::ib;
  entry.gid_type = is_infiniband ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
  entry.ndev_ifindex = is_infiniband ? 0 : context.identity.device.interface_index;
  return entry;
}

bool is_zero(const verbs::Gid& gid) {
  return std::ranges::all_of(gid, [](std::uint8_t byte) { return byte == 0; });
}

/// Copies a structure to the program. Zero-fills the rest if the program's version is larger.
template <typename Structure>
void hand_out(const Structure& value, void* out, std::size_t size) {
  std::memset(out, 0, size);
  std::memcpy(out, &value, std::min(size, sizeof value));
}

}  // namespace

int query_port(ibv_context* abi, std::uint8_t port, ibv_port_attr* out, std::size_t size) try {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || out == nullptr) return fail(EINVAL);
  const auto attributes = port_attributes(*context, port);
  if (!attributes) return fail(attributes.error());
  hand_out(*attributes, out, size);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int query_device_extended(ibv_context* abi, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                          std::size_t size) try {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || out == nullptr || size < sizeof out->orig_attr) return fail(EINVAL);
  if (input != nullptr && input->comp_mask != 0) return fail(EINVAL);
  ibv_device_attr_ex attributes{};
  fill(*context, attributes.orig_attr);
  attributes.completion_timestamp_mask = ~0ULL;
  attributes.hca_core_clock = kClockKhz;
  attributes.phys_port_cnt_ex = 1;
  attributes.max_dm_size = kDeviceMemoryMax;
  attributes.odp_caps = {
      .general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
      .per_transport_caps = {.rc_odp_caps = kPagedRc, .uc_odp_caps = kPagedUc, .ud_odp_caps = kPagedUd}};
  attributes.xrc_odp_caps = kPagedRc;
  hand_out(attributes, out, size);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int query_values(ibv_context* abi, ibv_values_ex* values) try {
  const Call call;
  if (find_context(abi) == nullptr || values == nullptr) return fail(EINVAL);
  if ((values->comp_mask & ~IBV_VALUES_MASK_RAW_CLOCK) != 0) return fail(EINVAL);
  if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0) ::clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

int ibv_query_device(ibv_context* abi, ibv_device_attr* out) try {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || out == nullptr) return fail(EINVAL);
  fill(*context, *out);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int ibv_query_port(ibv_context* abi, std::uint8_t port, _compat_ibv_port_attr* out) try {
  return query_port(abi, port, reinterpret_cast<ibv_port_attr*>(out), kPortAttrOldSize);
} catch (const std::exception&) {
  return thrown();
}

int ibv_query_gid(ibv_context* abi, std::uint8_t port, int index, ibv_gid* out) try {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || out == nullptr || index < 0) {
    fail(EINVAL);
    return -1;
  }
  const auto gid = context->native.query_gid(port, static_cast<std::uint32_t>(index));
  if (!gid) {
    fail(gid.error());
    return -1;
  }
  std::memcpy(out->raw, gid->data(), gid->size());
  return 0;
} catch (const std::exception&) {
  (void)thrown();
  return -1;
}

int ibv_query_gid_type(ibv_context* abi, std::uint8_t port, unsigned index, unsigned* type);
int ibv_query_gid_type(ibv_context* abi, std::uint8_t port, unsigned index, unsigned* type) {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || type == nullptr || !context->native.query_gid(port, index)) {
    fail(EINVAL);
    return -1;
  }
  // A different enumeration, in which 1 means RoCE v2.
  *type = context->identity.personality == verbs::Personality::ib ? 0 : 1;
  return 0;
}

int _ibv_query_gid_ex(ibv_context* abi, std::uint32_t port, std::uint32_t index, ibv_gid_entry* out,
                      std::uint32_t flags, std::size_t size) try {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || out == nullptr || flags != 0 || port != 1) return fail(EINVAL);
  const auto gid = context->native.query_gid(1, index);
  if (!gid) return fail(gid.error());
  if (is_zero(*gid)) return fail(ENODATA);
  hand_out(entry_of(*context, *gid, index), out, size);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

ssize_t _ibv_query_gid_table(ibv_context* abi, ibv_gid_entry* out, std::size_t count, std::uint32_t flags,
                             std::size_t size) try {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || flags != 0) return -fail(EINVAL);
  const auto port = context->native.query_port(1);
  if (!port) return -fail(port.error());
  std::size_t filled = 0;
  for (std::uint32_t index = 0; index < port->gid_count; ++index) {
    const auto gid = context->native.query_gid(1, index);
    if (!gid || is_zero(*gid)) continue;
    if (filled == count || out == nullptr) return -fail(EINVAL);
    hand_out(entry_of(*context, *gid, index), reinterpret_cast<std::byte*>(out) + filled * size, size);
    ++filled;
  }
  return static_cast<ssize_t>(filled);
} catch (const std::exception&) {
  (void)thrown();
  return -errno;
}

int ibv_query_pkey(ibv_context* abi, std::uint8_t port, int index, __be16* out) try {
  const Call call;
  const OpenContext* context = find_context(abi);
  if (context == nullptr || out == nullptr || index < 0) {
    fail(EINVAL);
    return -1;
  }
  const auto key = context->native.query_pkey(port, static_cast<std::uint32_t>(index));
  if (!key) {
    fail(key.error());
    return -1;
  }
  *out = htobe16(*key);
  return 0;
} catch (const std::exception&) {
  (void)thrown();
  return -1;
}

int ibv_get_pkey_index(ibv_context* abi, std::uint8_t port, __be16 wanted) try {
  __be16 key = 0;
  for (int index = 0; ibv_query_pkey(abi, port, index, &key) == 0; ++index) {
    if (key == wanted) return index;
  }
  return -1;
} catch (const std::exception&) {
  (void)thrown();
  return -1;
}
}
