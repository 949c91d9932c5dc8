#include "tools/nettest/server.hpp"

#include <algorithm>
#include <utility>

#include "tools/base/now.hpp"

namespace fairlead::tools {
NettestServer::NettestServer(net::Domain& domain, const NettestPlan& plan)
    : plan_(plan), node_(domain, [this](const net::BufferEvent& event) { on_message(event); }) {}

Result<> NettestServer::start(std::string_view address) {
  rounds_.resize(plan_.server_concurrency);
  std::size_t next = 0;
  auto pool = make_pool(node_.domain(), plan_.size, rounds_.size(), [&](net::Buffer& buffer) {
    buffer.set_callback([this](const net::BufferEvent& event) { on_end(event); });
    buffer.set_user(&rounds_.at(next++));
  });
  if (!pool) return std::unexpected(std::move(pool.error()));
  buffers_.emplace(std::move(*pool));
  const std::uint64_t message_size = plan_.is_bulk ? kBulkRequestBytes : plan_.size;
  // A client may get the reply and send the next message before the reply's buffer is back in the pool.
  return node_.start(address, {.message_size = message_size, .messages = 2 * plan_.arrivals()}, Events::by_thread);
}

void NettestServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    figures_.round_trips.failed += waiting_.size();
    waiting_.clear();
  }
  (void)node_.machine().stop_and_wait(net::StopMode::drain);
}

NettestFigures NettestServer::figures() {
  const std::lock_guard lock(mutex_);
  return figures_;
}

bool NettestServer::is_right(std::span<const std::byte> bytes, const NettestStamp& stamp) const {
  return !plan_.is_verified || !check_pattern(bytes, stamp.payload());
}

void NettestServer::on_message(const net::BufferEvent& event) {
  const std::span<const std::byte> bytes = event.buffer.bytes(event.offset, event.length);
  const auto stamp = read_stamp(bytes);
  const std::lock_guard lock(mutex_);
  ++figures_.received.done;
  const bool is_good = stamp && is_request(bytes);
  if (!is_good || (!plan_.is_bulk && !is_right(bytes.subspan(kStampBytes), *stamp))) ++figures_.received.bad;
  if (!plan_.is_bulk) figures_.bytes_received += event.length;
  if (!is_good || waiting_.size() >= plan_.arrivals()) return node_.put(event.buffer);
  waiting_.push_back(round_of(event, *stamp));
  if (plan_.is_bulk) node_.put(event.buffer);
  start_rounds();
}

NettestServer::Round NettestServer::round_of(const net::BufferEvent& event, const NettestStamp& stamp) const {
  Round round{.stamp = stamp, .length = event.length, .client = event.sender};
  if (!plan_.is_bulk) {
    round.message = &event.buffer;
    return round;
  }
  const std::span<const std::byte> rest = event.buffer.bytes(event.offset, event.length).subspan(kStampBytes);
  std::ranges::copy(rest.first(net::kDescriptorSize), round.from.begin());
  std::ranges::copy(rest.subspan(net::kDescriptorSize), round.to.begin());
  return round;
}

void NettestServer::start_rounds() {
  while (!waiting_.empty()) {
    net::Buffer* const buffer = buffers_->get();
    if (buffer == nullptr) return;
    Round& round = *static_cast<Round*>(buffer->user());
    round = std::move(waiting_.front());
    waiting_.pop_front();
    if (start_round(*buffer, round) == Status::ok) continue;
    ++(plan_.is_bulk ? figures_.bulk_received : figures_.sent).failed;
    end_round(*buffer, false);
  }
}

Status NettestServer::start_round(net::Buffer& buffer, Round& round) {
  const Instant deadline = now() + plan_.timeout;
  if (plan_.is_bulk)
    return node_.machine().add(buffer, net::ActiveReceive{.descriptor = round.from, .deadline = deadline});
  buffer.write(0, round.message->bytes(0, round.length));
  node_.put(*std::exchange(round.message, nullptr));
  return node_.machine().add(buffer,
                             net::MessageSend{.to = round.client, .length = round.length, .deadline = deadline});
}

void NettestServer::end_round(net::Buffer& buffer, bool is_good) {
  ++(is_good ? figures_.round_trips.done : figures_.round_trips.failed);
  (void)buffers_->put(buffer);
}

void NettestServer::count(const net::BufferEvent& event) {
  const bool is_read = event.queue == net::QueueKind::active_bulk_receive, is_good = event.status == Status::ok;
  NettestTally& tally = !plan_.is_bulk ? figures_.sent : is_read ? figures_.bulk_received : figures_.bulk_sent;
  ++(is_good ? tally.done : tally.failed);
  if (!is_good) return;
  const Round& round = *static_cast<const Round*>(event.buffer.user());
  (is_read ? figures_.bytes_received : figures_.bytes_sent) += plan_.is_bulk ? plan_.size : round.length;
  if (is_read && !is_right(event.buffer.bytes(0, plan_.size), round.stamp)) ++tally.bad;
}

void NettestServer::on_end(const net::BufferEvent& event) {
  const std::lock_guard lock(mutex_);
  count(event);
  bool is_good = event.status == Status::ok;
  if (is_good && event.queue == net::QueueKind::active_bulk_receive) {
    const Round& round = *static_cast<const Round*>(event.buffer.user());
    const net::ActiveSend back{.descriptor = round.to, .deadline = now() + plan_.timeout};
    if (node_.machine().add(event.buffer, back) == Status::ok) return;
    ++figures_.bulk_sent.failed;
    is_good = false;
  }
  end_round(event.buffer, is_good);
  start_rounds();
}

}  // namespace fairlead::tools
