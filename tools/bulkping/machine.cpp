#include "tools/bulkping/machine.hpp"

#include <fmt/format.h>

#include <utility>

namespace fairlead::tools {

BulkpingMachine::BulkpingMachine(net::Domain& domain, const BulkpingCommon& options, RequestCallback on_request)
    : domain_(domain), options_(options), on_request_(std::move(on_request)), machine_(domain) {}

Result<> BulkpingMachine::start(std::string_view address) {
  if (!options_.is_async) {
    if (auto chosen = machine_.deliver_synchronously(); !chosen) return chosen;
  }
  auto own = machine_.start_and_wait(address);
  if (!own) return std::unexpected(std::move(own.error()));
  address_ = own->address();
  if (options_.message_size > machine_.message_size_max()) {
    return std::unexpected(Error{Status::message_size, 0,
                                 fmt::format("--message-size {}: messages hold at most {} bytes", options_.message_size,
                                             machine_.message_size_max())});
  }
  for (std::uint32_t i = 0; i < options_.receive_buffers; ++i) {
    auto buffer = net::Buffer::allocate(domain_, options_.receive_buffer_size());
    if (!buffer) return std::unexpected(std::move(buffer.error()));
    (*buffer)->set_callback(net::QueueKind::message_receive,
                            [this](const net::BufferEvent& event) { on_receive(event); });
    receive_buffers_.push_back(std::move(*buffer));
    if (const Status posted = post(*receive_buffers_.back()); posted != Status::ok) {
      return std::unexpected(
          Error{posted, 0,
                fmt::format("cannot post receive buffer {} of {}: {}: ask for fewer with --receive-buffers", i + 1,
                            options_.receive_buffers, to_string(posted))});
    }
  }
  return {};
}

void BulkpingMachine::stop() {
  (void)machine_.stop_and_wait(net::StopMode::abort);
}

Status BulkpingMachine::post(net::Buffer& buffer) {
  const std::uint64_t size_min = options_.receive_size_min > 0 ? options_.receive_size_min : options_.message_size;
  return machine_.add(buffer, net::MessageReceive{.size_min = size_min, .messages_max = options_.messages_max});
}

void BulkpingMachine::on_receive(const net::BufferEvent& event) {
  if (event.status == Status::ok) {
    // Decode it before the buffer may be filled again.
    auto request = decode_request(event.buffer.bytes(event.offset, event.length));
    if (request) {
      on_request_(std::move(*request), event.sender);
    } else {
      ++malformed_;
    }
  }
  if (event.status == Status::restarted) has_lost_engine_ = true;
  if (event.is_final && event.status == Status::ok) (void)post(event.buffer);
}

}  // namespace fairlead::tools
