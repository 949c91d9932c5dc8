#pragma once
// The result of a work request. Values and layout are those of ibv_wc.

#include <cstddef>
#include <cstdint>
#include <string>

#include <fairlead/verbs/types.hpp>

namespace fairlead::verbs {

enum class WcStatus : std::uint32_t {
  success = 0,
  loc_len_err = 1,
  loc_qp_op_err = 2,
  loc_prot_err = 4,
  wr_flush_err = 5,
  mw_bind_err = 6,
  bad_resp_err = 7,
  loc_access_err = 8,
  rem_inv_req_err = 9,
  rem_access_err = 10,
  rem_op_err = 11,
  retry_exc_err = 12,
  rnr_retry_exc_err = 13,
  fatal_err = 19,
  general_err = 21,
};

enum class WcOpcode : std::uint32_t {
  send = 0,
  write = 1,
  read = 2,
  compare_swap = 3,
  fetch_add = 4,
  bind_window = 5,
  invalidate = 6,
  atomic_write = 9,
  receive = 128,
  receive_write_imm = 129,
};

/// Bits of WorkCompletion::wc_flags.
namespace wc_flags {
inline constexpr std::uint32_t grh = 1U << 0;  ///< UD: the first 40 bytes of the buffer are the network header
inline constexpr std::uint32_t with_imm = 1U << 1;
inline constexpr std::uint32_t with_inv = 1U << 3;
}  // namespace wc_flags

struct WorkCompletion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::success;
  WcOpcode opcode = WcOpcode::send;  ///< also set for failures
  std::uint32_t vendor_err = 0;      ///< a Cause
  std::uint32_t byte_len = 0;        ///< receives: length of the message (UD: + 40); all others: length of the request
  std::uint32_t imm = 0;             ///< with_imm: the immediate data; with_inv: the key that the peer has invalidated
  std::uint32_t qp_num = 0;
  std::uint32_t src_qp = 0;  ///< UD receives
  std::uint32_t wc_flags = 0;
  std::uint16_t pkey_index = 0;
  std::uint16_t slid = 0;
  std::uint8_t sl = 0;  ///< UD receives: type of the network header, as mlx5 reports it (1: IPv6, 2: IPv4)
  std::uint8_t dlid_path_bits = 0;
  std::uint16_t reserved = 0;
  std::uint64_t timestamp_ns = 0;  ///< monotonic time at which the engine produced it (behind the fields of ibv_wc)
};
static_assert(offsetof(WorkCompletion, timestamp_ns) == 48);

const char* to_string(WcStatus status) noexcept;
/// "send", "write", "read", "receive", ...
const char* to_string(WcOpcode opcode) noexcept;
/// One line for people: the request, its queue pair and its result; for a failure also cause and remedy.
std::string describe(const WorkCompletion& completion);

}  // namespace fairlead::verbs
