#include "doors/ibverbs/pair_features.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr std::uint64_t kUdOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUcOperations = kUdOperations | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                        IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
                                        IBV_QP_EX_WITH_SEND_WITH_INV;
constexpr std::uint64_t kRcOperations = kUcOperations | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE;

constexpr std::uint64_t kXrcOperations =
    kRcOperations & ~std::uint64_t{IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV};

std::optional<Absent> absent_attribute(std::uint32_t mask) {
  if ((mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0) return Absent::segmentation;
  if ((mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH)) != 0) return Absent::work_queues;
  return mask != 0 ? std::optional(Absent::pair_attributes) : std::nullopt;
}

std::optional<Absent> absent_operation(std::uint64_t flags) {
  constexpr std::uint64_t kFlush = 1 << 11;  // of later versions of libibverbs
  if ((flags & IBV_QP_EX_WITH_TSO) != 0) return Absent::segmentation;
  if ((flags & kFlush) != 0) return Absent::flush;
  return flags != 0 ? std::optional(Absent::posting_calls) : std::nullopt;
}

}  // namespace

std::uint64_t operations_of(unsigned type) {
  switch (type) {
    case IBV_QPT_RC:
      return kRcOperations;
    case IBV_QPT_UC:
      return kUcOperations;
    case IBV_QPT_UD:
      return kUdOperations;
    case IBV_QPT_XRC_SEND:
      return kXrcOperations;
    default:
      return 0;
  }
}

std::optional<Absent> absent_type(unsigned type) {
  if (type == IBV_QPT_RAW_PACKET) return Absent::raw_packets;
  return operations_of(type) == 0 ? std::optional(Absent::pair_types) : std::nullopt;
}

std::optional<Absent> absent_feature(const ibv_qp_init_attr_ex& attributes) {
  constexpr std::uint32_t kKnown =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  const bool is_target = attributes.qp_type == IBV_QPT_XRC_RECV;
  if (!is_target) {
    if (const auto absent = absent_type(raw(attributes.qp_type))) return absent;
  }
  // A target uses no protection domain, but librdmacm always passes one.
  const std::uint32_t known = is_target ? std::uint32_t{IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD} : kKnown;
  if (const auto absent = absent_attribute(attributes.comp_mask & ~known)) return absent;
  if (is_target) return std::nullopt;
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attributes.create_flags != 0)
    return Absent::pair_flags;
  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) == 0) return std::nullopt;
  return absent_operation(attributes.send_ops_flags & ~operations_of(raw(attributes.qp_type)));
}

}  // namespace fairlead::ibverbs
