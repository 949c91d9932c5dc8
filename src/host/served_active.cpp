#include "host/served_active.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "host/active_request.hpp"
#include "host/call.hpp"

namespace fairlead::host {
namespace {

/// Returns the bytes that travel in the event or a slot: the head, and the data unless it is in the segment.
std::uint64_t carried_bytes(const engine::Arrival& arrival) {
  return arrival.head + (arrival.is_placed ? 0 : arrival.data_length);
}

bool is_sender_lost(Status status) {
  return status == Status::unreachable || status == Status::silent || status == Status::restarted ||
         status == Status::refused;
}

}  // namespace

Result<std::unique_ptr<ServedActive>> ServedActive::open(embedded::EmbeddedActive& engine, engine::PortHandle port,
                                                         const base::SocketAddress& address, std::byte* memory,
                                                         ActiveRoom& room) {
  std::unique_ptr<ServedActive> made(new ServedActive(engine, port, address, memory, room));
  auto arrivals = queue::Producer::attach(made->queue_memory_);
  if (!arrivals) return std::unexpected(std::move(arrivals.error()));
  if (arrivals->element_bytes() != kArrivalBytes) {
    return std::unexpected(Error{
        Status::invalid, 0,
        fmt::format("arrivals of {} bytes: this host engine writes {}", arrivals->element_bytes(), kArrivalBytes)});
  }
  made->arrivals_ = std::move(*arrivals);
  if (const Status status = engine.activate(port, kBounds); status != Status::ok)
    return std::unexpected(Error{status, 0, "the engine did not make an active port"});
  return made;
}

ServedActive::ServedActive(embedded::EmbeddedActive& engine, engine::PortHandle port,
                           const base::SocketAddress& address, std::byte* memory, ActiveRoom& room)
    : engine_(engine), port_(port), address_(address), memory_(memory), room_(room), queue_memory_(memory_.arrivals()) {
  ++room_.ports;
}

ServedActive::~ServedActive() {
  --room_.ports;
  room_.request_places -= places_;
}

// Sending ------------------------------------------------------------------------------------------------------------

Status ServedActive::send(const Request& request, std::span<const iovec> memory, std::uint64_t cookie, bool& is_done) {
  const engine::ActiveMessage message = to_message(request, memory, cookie);
  const bool is_answer = message.kind == engine::ActiveKind::reply || message.kind == engine::ActiveKind::returned;
  is_done = engine_.is_copied(message.length);
  if (is_answer) return send_answer(message);
  if (message.to.engine == address_ && message.length > kHereMost) return Status::too_big;
  return send_request(message);
}

/// Sends a request, or the notice that a reply was rejected.
Status ServedActive::send_request(const engine::ActiveMessage& message) {
  const bool is_request = message.kind == engine::ActiveKind::request;
  if (is_request && !has_place(message.name)) return Status::no_memory;
  engine::Conversation conversation;
  const Status status = engine_.send_active(port_, message, conversation);
  if (status == Status::no_memory) return Status::again;
  if (status != Status::ok || !is_request) return status;
  ConversationCell& cell = memory_.conversation(static_cast<std::uint32_t>(message.name));
  cell.way.store(conversation.way, std::memory_order_relaxed);
  cell.losses.store(conversation.losses, std::memory_order_relaxed);
  cell.name.store(message.name, std::memory_order_release);
  return status;
}

Status ServedActive::send_answer(engine::ActiveMessage message) {
  const std::uint64_t answer = message.reply_access;
  const engine::UnansweredRequest* const request = find(answer);
  if (request == nullptr) {
    fault_ = "it answered a request that it did not get, or twice";
    return Status::invalid;
  }
  message.to = request->source;
  message.name = request->name;
  message.reply_access = request->reply_access;
  engine::Conversation conversation;
  const bool is_too_big = message.to.engine == address_ && message.length > kHereMost;
  const Status status = is_too_big ? Status::too_big : engine_.send_active(port_, message, conversation);
  if (status == Status::again || status == Status::no_memory) return Status::again;
  // The requester shall not wait for an answer that the engine does not send.
  if (status != Status::ok) engine_.refuse(port_, *request, status);
  unanswered_.release(static_cast<std::uint32_t>(answer));
  return status;
}

/// The engine has a table of the places in requests' names, and grows it.
bool ServedActive::has_place(std::uint64_t name) {
  const auto place = static_cast<std::uint32_t>(name);
  if (place < places_) return true;
  if (place >= kRequestPlacesMax - (room_.request_places - places_)) return false;
  room_.request_places += place + 1 - places_;
  places_ = place + 1;
  return true;
}

void ServedActive::set_segment(const engine::Segment& segment, std::uint64_t number) {
  take_all();  // what has arrived lies in the previous segment
  engine_.set_segment(port_, segment);
  place_ = segment;
  segment_ = number;
}

void ServedActive::leave() {
  has_left_ = true;
  engine_.leave(port_, Status::canceled);
}

void ServedActive::close(bool is_owner_gone) {
  const Status status = has_left_ ? Status::canceled : is_owner_gone ? Status::unreachable : Status::stale;
  engine_.leave(port_, status);  // also requests that arrive meanwhile are refused for this reason
  const auto end = [&](engine::Arrival& arrival) {
    refuse(arrival, status);
    engine_.release_arrival(port_, arrival);
  };
  for (const Waiting& waiting : waiting_) end(*waiting.arrival);
  waiting_.clear();
  while (engine::Arrival* const arrival = engine_.next_arrival(port_)) end(*arrival);
  unanswered_.for_each(
      [&](std::uint32_t, const engine::UnansweredRequest& request) { engine_.refuse(port_, request, status); });
}

// Arrivals -----------------------------------------------------------------------------------------------------------

bool ServedActive::give() {
  if (!arrivals_) return false;
  std::uint32_t count = 0;
  for (; count < kArrivalsInTurn && !waiting_.empty(); ++count) {
    const Waiting first = waiting_.front();
    if (!give(*first.arrival, first.segment)) return count > 0;
    waiting_.pop_front();
    engine_.release_arrival(port_, *first.arrival);
  }
  for (; count < kArrivalsInTurn; ++count) {
    engine::Arrival* const arrival = engine_.next_arrival(port_);
    if (arrival == nullptr) break;
    if (!give(*arrival, segment_)) {
      waiting_.push_back({arrival, segment_});
      break;
    }
    engine_.release_arrival(port_, *arrival);
  }
  return count > 0;
}

bool ServedActive::park() {
  if (waiting_.empty()) return false;
  memory_.page().stalled.sleeping.exchange(1, std::memory_order_acq_rel);
  if (give()) return true;
  take_all();  // so that the engine does not keep us awake
  return false;
}

/// Takes all arrivals from the engine. The bounds of its port limit how many there are.
void ServedActive::take_all() {
  while (engine::Arrival* const arrival = engine_.next_arrival(port_)) waiting_.push_back({arrival, segment_});
}

/// Returns a request to its sender, unless that is lost.
void ServedActive::refuse(const engine::Arrival& arrival, Status status) {
  if (arrival.kind != engine::ActiveKind::request || is_sender_lost(arrival.status)) return;
  engine_.refuse(port_, {arrival.source, arrival.name, arrival.reply_access, arrival.word}, status);
}

/// Hands over an arrival, or refuses a request that did not come whole. Returns false if there is no room.
bool ServedActive::give(const engine::Arrival& arrival, std::uint64_t segment) {
  const bool is_request = arrival.kind == engine::ActiveKind::request;
  // More than fits in a slot is longer than a correct peer sends.
  const bool is_too_long = carried_bytes(arrival) > ActiveLayout::kSlotBytes;
  const Status status = arrival.status == Status::ok && is_too_long ? Status::message_size : arrival.status;
  if (is_request && status != Status::ok) {
    refuse(arrival, status);
    return true;
  }
  std::byte* const element = arrivals_->pnext();
  if (element == nullptr) {
    if (arrivals_->status() == Status::invalid) fault_ = "it has damaged the queue of its active messages";
    return false;
  }
  if (is_request && !unanswered_.has_room()) return false;
  const std::uint64_t bytes = status == Status::ok ? carried_bytes(arrival) : 0;
  ArrivalHead event{.access = arrival.access,
                    .name = arrival.name,
                    .answer = arrival.reply_access,
                    .offset = arrival.offset,
                    .data_length = status == Status::ok ? arrival.data_length : 0,
                    .segment = segment,
                    .source = to_plain(arrival.source.engine),
                    .source_port = arrival.source.port,
                    .word = arrival.word,
                    .head = status == Status::ok ? arrival.head : std::uint16_t{0},
                    .kind = std::to_underlying(arrival.kind),
                    .status = std::to_underlying(status),
                    .flags = arrival.is_placed ? ArrivalHead::kIsPlaced : std::uint8_t{0}};
  std::byte* to = element + sizeof event;
  if (bytes > kInlineMost) {
    const auto slot = take_slot();
    if (!slot) return false;
    event.slot = *slot;
    to = memory_.slot(*slot);
  }
  if (is_request) {
    const std::uint32_t place = unanswered_.acquire();
    unanswered_[place] = {arrival.source, arrival.name, arrival.reply_access, arrival.word};
    event.answer = std::uint64_t{unanswered_.generation(place)} << 32 | place;
  }
  std::memcpy(element, &event, sizeof event);
  if (bytes > 0) std::memcpy(to, arrival.head_bytes, bytes);  // the data of an unplaced message follows its head
  arrivals_->put();
  given_bytes_ += event.data_length;
  return true;
}

std::optional<std::uint8_t> ServedActive::take_slot() {
  for (const bool is_second : {false, true}) {
    for (std::size_t i = 0; i < used_slots_.size(); ++i) {
      if (is_second) used_slots_[i] &= ~memory_.page().given_back[i].exchange(0, std::memory_order_acq_rel);
      if (~used_slots_[i] == 0) continue;
      const auto bit = static_cast<unsigned>(std::countr_one(used_slots_[i]));
      used_slots_[i] |= std::uint64_t{1} << bit;
      return static_cast<std::uint8_t>(64 * i + bit);
    }
  }
  return std::nullopt;
}

}  // namespace fairlead::host
