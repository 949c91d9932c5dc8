#include <fairlead/verbs/connection.hpp>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/exchange.hpp"
#include "verbs/context_state.hpp"

namespace fairlead::verbs {
namespace {

// The format, in network order: format number, queue pair number, GID, and the memory's rkey, address and length.
constexpr std::uint64_t kFormat = 0x464C'4956'0000'0001;  // "FLIV", version 1

template <typename Number>
std::byte* put(std::byte* to, Number number) {
  for (std::size_t i = sizeof(Number); i-- != 0;) *to++ = static_cast<std::byte>(number >> 8 * i);
  return to;
}

template <typename Number>
const std::byte* take(const std::byte* from, Number& number) {
  number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number = static_cast<Number>(number << 8 | std::to_integer<Number>(*from++));
  return from;
}

}  // namespace

std::array<std::byte, Invitation::kBytes> Invitation::to_bytes() const noexcept {
  std::array<std::byte, kBytes> bytes;
  std::byte* to = put(bytes.data(), kFormat);
  to = put(to, pair.number);
  to = put(to, memory.rkey);
  for (const std::uint8_t part : pair.gid) *to++ = std::byte{part};
  to = put(to, memory.address);
  put(to, memory.length);
  return bytes;
}

Result<Invitation> Invitation::from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() != kBytes)
    return failure(EINVAL,
                   "an invitation has " + std::to_string(kBytes) + " bytes, not " + std::to_string(bytes.size()));
  Invitation invitation;
  std::uint64_t format = 0;
  const std::byte* from = take(bytes.data(), format);
  if (format != kFormat) return failure(EINVAL, "no invitation, or one of another release: both ends need the same");
  from = take(from, invitation.pair.number);
  from = take(from, invitation.memory.rkey);
  for (std::uint8_t& part : invitation.pair.gid) part = std::to_integer<std::uint8_t>(*from++);
  from = take(from, invitation.memory.address);
  take(from, invitation.memory.length);
  if (invitation.pair.number == 0) return failure(EINVAL, "an invitation of no queue pair");
  return invitation;
}

Result<> connect(QueuePair& pair, const PairAddress& peer, const ConnectOptions& options) {
  if (pair.type() == QpType::ud)
    return failure(EINVAL, "a queue pair of type UD is not connected: each send names its peer (AddressHandle)");
  namespace mask = qp_mask;
  const bool is_reliable = pair.type() == QpType::rc;
  QpAttributes wanted;
  wanted.access_flags = options.access;
  wanted.path_mtu = options.path_mtu;
  wanted.dest_qp_num = peer.number;
  wanted.av = {.dgid = peer.gid, .is_global = true};
  wanted.max_rd_atomic = wanted.max_dest_rd_atomic = options.max_rd_atomic;
  wanted.min_rnr_timer = options.min_rnr_timer;
  wanted.port_num = 1;
  wanted.timeout = options.timeout;
  wanted.retry_cnt = options.retry_cnt;
  wanted.rnr_retry = options.rnr_retry;
  const std::array<std::pair<QpState, std::uint32_t>, 3> steps{
      {{QpState::init, mask::pkey_index | mask::port | mask::access_flags},
       {QpState::rtr, mask::av | mask::path_mtu | mask::dest_qp_num | mask::rq_psn |
                          (is_reliable ? mask::max_dest_rd_atomic | mask::min_rnr_timer : 0)},
       {QpState::rts,
        mask::sq_psn | (is_reliable ? mask::timeout | mask::retry_cnt | mask::rnr_retry | mask::max_rd_atomic : 0)}}};
  for (const auto& [state, what] : steps) {
    wanted.state = state;
    if (auto moved = pair.modify(wanted, mask::state | what); !moved) {
      (void)pair.modify({.state = QpState::reset}, mask::state);
      return moved;
    }
  }
  return {};
}

Result<std::vector<std::byte>> exchange(int socket, std::span<const std::byte> own, Instant deadline) {
  return base::exchange(socket, own, base::Instant(deadline.time_since_epoch()));
}

}  // namespace fairlead::verbs
