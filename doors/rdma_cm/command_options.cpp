// SET_OPTION.
#include <array>

#include "doors/rdma_cm/command.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr std::size_t kOptionMax = 1024;     // bytes; a path record has 72
constexpr std::uint8_t kAckTimeoutMax = 31;  // 5 bits

template <typename Value>
bool take_value(std::span<const std::byte> bytes, Value& value) {
  if (bytes.size() != sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  return true;
}

int set_of_id(Id& id, std::uint32_t name, std::span<const std::byte> bytes) {
  int flag = 0;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      return take_value(bytes, id.tos) ? 0 : EINVAL;
    case RDMA_OPTION_ID_REUSEADDR:
      if (!take_value(bytes, flag)) return EINVAL;
      if (id.connection.state() != State::idle && (flag == 0 || id.connection.state() == State::listening))
        return EINVAL;
      id.reuses_address = flag != 0;
      if (id.reuses_address) id.reserved.clear();
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      if (!take_value(bytes, flag) || id.connection.state() > State::bound) return EINVAL;
      id.takes_v6_only = flag != 0;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT: {
      std::uint8_t timeout = 0;
      if (!take_value(bytes, timeout) || timeout > kAckTimeoutMax) return EINVAL;
      id.ack_timeout = timeout;
      return 0;
    }
    default:
      return ENOSYS;
  }
}

/// The program sets a route. Its contents do not matter, because we know ours anyway; the id now has a route.
int set_path(const Command& command, const std::shared_ptr<Id>& id, std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() % sizeof(ib_path_rec_data) != 0) return EINVAL;
  const Step step = id->connection.resolve_route(0);
  command.service.apply(id, step);
  return step.error;
}

}  // namespace

int set_option(const Command& command) {
  const auto wanted = command.get<rdma_ucm_set_option>();
  std::array<std::byte, kOptionMax> value;
  if (wanted.optlen > value.size()) return EINVAL;
  const auto bytes = std::span(value).first(wanted.optlen);
  if (!read_user(wanted.optval, bytes)) return EFAULT;
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.find(wanted.id, *command.file);
  if (!id) return ENOENT;
  if (wanted.level == RDMA_OPTION_ID) return set_of_id(*id, wanted.optname, bytes);
  if (wanted.level == RDMA_OPTION_IB && wanted.optname == RDMA_OPTION_IB_PATH) return set_path(command, id, bytes);
  return ENOSYS;
}

}  // namespace fairlead::rdma_cm
