#include "tools/perf/node.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fairlead::tools {
namespace {

constexpr std::uint64_t kReceiveBytes = 1 << 20;  // size of a receive buffer that holds several messages
constexpr std::size_t kReceiveBuffers = 8;
constexpr Duration kDrainAtMost = std::chrono::seconds{5};

std::uint32_t messages_in_buffer(std::uint64_t size) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kReceiveBytes / size, 1, net::kMessagesInBufferMax));
}

std::string machine_address(std::string_view host) {
  if (host == "0@lo") return "0@lo:20480:39:*";
  return host.contains(':') ? fmt::format("[{}]@udp:*:39:*", host) : fmt::format("{}@udp:*:39:*", host);
}

}  // namespace

Result<std::unique_ptr<PerfNode>> PerfNode::open(const PerfPlace& place) {
  auto domain = net::Domain::open({.engine = place.engine});
  if (!domain) return std::unexpected(std::move(domain.error()));
  std::unique_ptr<PerfNode> node(new PerfNode(std::move(*domain)));
  if (auto chosen = node->machine_.deliver_synchronously(); !chosen) return std::unexpected(std::move(chosen.error()));
  auto own = node->machine_.start_and_wait(machine_address(place.host));
  if (!own) return std::unexpected(std::move(own.error()));
  node->address_ = own->address();
  return node;
}

Result<PerfBuffers> PerfNode::make_buffers(std::size_t count, std::uint64_t size, const net::BufferCallback& callback) {
  PerfBuffers buffers;
  for (std::size_t i = 0; i < count; ++i) {
    auto buffer = net::Buffer::allocate(domain_, size);
    if (!buffer) return std::unexpected(std::move(buffer.error()));
    (*buffer)->set_callback(callback);
    std::ranges::fill((*buffer)->segment(0), std::byte{0x5a});  // touches all pages before the measurement
    buffers.push_back(std::move(*buffer));
  }
  return buffers;
}

Result<PerfBuffers> PerfNode::take_messages(std::uint64_t size,
                                            std::function<void(const net::BufferEvent&)> on_message) {
  const std::uint32_t messages = messages_in_buffer(size);
  const net::MessageReceive receive{.size_min = size, .messages_max = messages, .takes_loans = true};
  auto buffers =
      make_buffers(kReceiveBuffers, size * messages, [this, receive, on_message](const net::BufferEvent& event) {
        if (event.status == Status::ok) on_message(event);
        if (event.is_final && event.status != Status::canceled) (void)machine_.add(event.buffer, receive);
      });
  if (!buffers) return buffers;
  for (const auto& buffer : *buffers) {
    if (const Status added = machine_.add(*buffer, receive); added != Status::ok) {
      return std::unexpected(Error{added, 0, "cannot post a receive buffer: " + std::string(to_string(added))});
    }
  }
  return buffers;
}

// One buffer may be full and not posted again yet.
std::uint64_t PerfNode::room_for(std::uint64_t size) {
  return (kReceiveBuffers - 1) * messages_in_buffer(size);
}

void PerfNode::drain(PerfBuffers& buffers) {
  for (const auto& buffer : buffers) machine_.cancel(*buffer);
  poll_until([&] { return std::ranges::none_of(buffers, [](const auto& buffer) { return buffer->is_queued(); }); },
             kDrainAtMost);
}

}  // namespace fairlead::tools
