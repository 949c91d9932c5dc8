#include "tools/nettest/client.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

std::uint64_t random_name() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

NettestClient::NettestClient(net::Domain& domain, const NettestPlan& plan)
    : plan_(plan), name_(random_name()), node_(domain, [this](const net::BufferEvent& event) { on_reply(event); }) {}

Result<> NettestClient::start(std::string_view address, const std::vector<std::string>& servers) {
  const PooledMachine::Room room{.message_size = plan_.is_bulk ? kBulkRequestBytes : plan_.size,
                                 .messages = 2ULL * plan_.concurrency * servers.size()};
  if (auto started = node_.start(address, room, Events::by_thread); !started) return started;
  for (const std::string& server : servers) {
    auto end_point = node_.machine().create_end_point(server);
    if (!end_point) return std::unexpected(std::move(end_point.error()));
    const std::uint64_t count = plan_.count == 0 ? std::numeric_limits<std::uint64_t>::max() : plan_.count;
    Server& made = servers_.emplace_back(Server{std::move(*end_point), count});
    for (std::uint32_t i = 0; i < plan_.concurrency; ++i)
      if (auto slot = make_slot(made); !slot) return slot;
  }
  return {};
}

Result<> NettestClient::make_slot(Server& server) {
  Slot& slot = slots_.emplace_back();
  slot.client = this;
  slot.server = &server;
  slot.stamp = {.client = name_, .slot = static_cast<std::uint32_t>(slots_.size() - 1)};
  for (auto [buffer, size] : {std::pair(&slot.message, plan_.is_bulk ? kBulkRequestBytes : plan_.size),
                              std::pair(&slot.out, plan_.size), std::pair(&slot.in, plan_.size)}) {
    if (!plan_.is_bulk && buffer != &slot.message) break;
    auto made = make_buffer(slot, size);
    if (!made) return std::unexpected(std::move(made.error()));
    *buffer = std::move(*made);
  }
  return {};
}

Result<std::unique_ptr<net::Buffer>> NettestClient::make_buffer(Slot& slot, std::uint64_t size) {
  auto buffer = net::Buffer::allocate(node_.domain(), size);
  if (buffer) (*buffer)->set_callback([this, &slot](const net::BufferEvent& event) { on_event(slot, event); });
  return buffer;
}

void NettestClient::begin() {
  const std::lock_guard lock(mutex_);
  for (Slot& slot : slots_) begin(slot);
}

bool NettestClient::is_done() {
  const std::lock_guard lock(mutex_);
  return under_way_ == 0;
}

void NettestClient::stop() {
  finish();
  (void)node_.machine().stop_and_wait(net::StopMode::abort);
}

NettestFigures NettestClient::figures() {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void NettestClient::begin(Slot& slot) {
  if (is_finishing_ || slot.server->left == 0 || slot.failures >= kFailuresMax) return;
  --slot.server->left;
  ++under_way_;
  ++slot.stamp.sequence;
  slot.begun = now();
  slot.is_good = true;
  slot.has_reply = false;
  slot.pending = 1;  // for this function
  const Instant deadline = slot.begun + plan_.timeout;
  const std::span message = slot.message->segment(0);
  write_stamp(message, slot.stamp);
  Status status = Status::ok;
  if (plan_.is_bulk) {
    status = expose(slot, deadline);
  } else if (plan_.is_verified) {
    fill_pattern(message.subspan(kStampBytes), slot.stamp.payload());
  }
  if (status == Status::ok)
    status = node_.machine().add(*slot.message, net::MessageSend{.to = slot.server->end_point, .deadline = deadline});
  if (status == Status::ok) {
    slot.pending += plan_.is_bulk ? 1 : 2;
  } else {
    ++figures_.sent.failed;
    cancel_bulk(slot);
  }
  end_part(slot, status == Status::ok);
}

/// The server does not know of the buffers.
void NettestClient::cancel_bulk(Slot& slot) {
  for (const auto& buffer : {slot.out.get(), slot.in.get()})
    if (buffer != nullptr) node_.machine().cancel(*buffer);
}

/// Exposes both buffers, for the server to read and to write.
Status NettestClient::expose(Slot& slot, Instant deadline) {
  if (plan_.is_verified) fill_pattern(slot.out->segment(0), slot.stamp.payload());
  Status status = node_.machine().add(*slot.out, net::PassiveSend{.deadline = deadline});
  if (status != Status::ok) return status;
  ++slot.pending;
  status = node_.machine().add(*slot.in, net::PassiveReceive{.deadline = deadline});
  if (status != Status::ok) return status;
  ++slot.pending;
  slot.message->write(kStampBytes, slot.out->descriptor());
  slot.message->write(kStampBytes + net::kDescriptorSize, slot.in->descriptor());
  return status;
}

void NettestClient::on_reply(const net::BufferEvent& event) {
  const std::span<const std::byte> bytes = event.buffer.bytes(event.offset, event.length);
  {
    const auto stamp = read_stamp(bytes);
    const std::lock_guard lock(mutex_);
    ++figures_.received.done;
    figures_.bytes_received += event.length;
    const bool is_mine = stamp && stamp->client == name_ && stamp->slot < slots_.size() && !plan_.is_bulk;
    if (!is_mine || bytes.size() != plan_.size ||
        (plan_.is_verified && check_pattern(bytes.subspan(kStampBytes), stamp->payload()))) {
      ++figures_.received.bad;
    } else if (Slot& slot = slots_[stamp->slot]; slot.stamp == *stamp && slot.pending > 0 && !slot.has_reply) {
      slot.has_reply = true;
      end_part(slot, true);
    }
  }
  node_.put(event.buffer);
}

void NettestClient::on_event(Slot& slot, const net::BufferEvent& event) {
  const std::lock_guard lock(mutex_);
  count(event, slot);
  const bool is_good = event.status == Status::ok;
  if (event.queue == net::QueueKind::message_send && !is_good) {  // nothing comes back
    cancel_bulk(slot);
    if (!plan_.is_bulk && !std::exchange(slot.has_reply, true)) end_part(slot, false);
  }
  end_part(slot, is_good);
}

void NettestClient::count(const net::BufferEvent& event, const Slot& slot) {
  const bool is_good = event.status == Status::ok;
  if (event.queue == net::QueueKind::message_send) {
    ++(is_good ? figures_.sent.done : figures_.sent.failed);
    if (is_good && !plan_.is_bulk) figures_.bytes_sent += plan_.size;
    return;
  }
  const bool is_out = event.queue == net::QueueKind::passive_bulk_send;
  NettestTally& tally = is_out ? figures_.bulk_sent : figures_.bulk_received;
  ++(is_good ? tally.done : tally.failed);
  if (is_good) (is_out ? figures_.bytes_sent : figures_.bytes_received) += plan_.size;
  if (is_good && !is_out && plan_.is_verified && check_pattern(slot.in->segment(0), slot.stamp.payload())) ++tally.bad;
}

void NettestClient::end_part(Slot& slot, bool is_good) {
  slot.is_good = slot.is_good && is_good;
  if (--slot.pending == 0) end(slot);
}

void NettestClient::end(Slot& slot) {
  --under_way_;
  if (slot.is_good) {
    ++figures_.round_trips.done;
    figures_.round_trip_time.record(now() - slot.begun);
    slot.failures = 0;
  } else {
    ++figures_.round_trips.failed;
    ++slot.failures;
  }
  begin(slot);
}

// All other operations have a deadline; only a reply may never come.
void NettestClient::expire() {
  const std::lock_guard lock(mutex_);
  const Instant late = now() - plan_.timeout;
  for (Slot& slot : slots_) {
    if (plan_.is_bulk || slot.has_reply || slot.pending == 0 || slot.begun > late) continue;
    slot.has_reply = true;
    end_part(slot, false);
  }
}

}  // namespace fairlead::tools
