#pragma once
// The six queues of a transfer machine.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairlead::net {

/// The numbers are stable: buffer descriptors contain them.
enum class QueueKind : std::uint8_t {
  message_receive = 0,
  message_send = 1,
  passive_bulk_receive = 2,
  passive_bulk_send = 3,
  active_bulk_receive = 4,
  active_bulk_send = 5,
};

inline constexpr std::size_t kQueueKinds = 6;

/// Returns "message receive", "passive bulk send", ......
std::string_view to_string(QueueKind kind) noexcept;

}  // namespace fairlead::net
