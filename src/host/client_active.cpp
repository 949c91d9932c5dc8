#include "host/client_active.hpp"

#include <cstring>
#include <utility>

#include "host/call.hpp"

namespace fairlead::host {
namespace {

Status status_of_place(const ClientActive::Place& place, const ArrivalHead& head) {
  if (head.segment != place.number || place.segment.length == 0) return Status::invalid;  // it was replaced meanwhile
  const bool is_inside = head.offset <= place.segment.length && head.data_length <= place.segment.length - head.offset;
  return is_inside ? Status::ok : Status::too_big;
}

}  // namespace

Result<std::unique_ptr<ClientActive>> ClientActive::make(const std::shared_ptr<ClientMemory>& memory) {
  auto bytes = ClientMemory::allocate(memory, ActiveLayout::bytes());
  if (!bytes) return std::unexpected(Error{Status::no_memory, 0, "the memory shared with the host engine is used up"});
  new (bytes.get()) ActivePage{};
  auto arrivals = queue::Consumer::create(ActiveMemory(bytes.get()).arrivals(),
                                          {.element_bytes = kArrivalBytes, .elements = kArrivalsMax + 1});
  if (!arrivals) return std::unexpected(std::move(arrivals.error()));
  return std::unique_ptr<ClientActive>(new ClientActive(std::move(bytes), std::move(*arrivals)));
}

engine::Arrival* ClientActive::next(std::uint64_t& copied) {
  while (const std::byte* const element = arrivals_.get()) {
    ArrivalHead head;
    std::memcpy(&head, element, sizeof head);
    if (head.kind > std::to_underlying(engine::ActiveKind::rejected) || !is_awaited(head)) {
      give_back_slot(head.slot);
      continue;
    }
    if (unused_.empty()) unused_.push_back(&all_.emplace_back());
    engine::Arrival* const arrival = unused_.back();
    unused_.pop_back();
    fill(*arrival, head, element + sizeof head, copied);
    return arrival;
  }
  return nullptr;
}

/// An answer ends its request.
bool ClientActive::is_awaited(const ArrivalHead& head) {
  const auto kind = static_cast<engine::ActiveKind>(head.kind);
  if (kind != engine::ActiveKind::reply && kind != engine::ActiveKind::returned) return true;
  if (!requests.is_open(head.name, from_plain(head.source), head.source_port)) return false;
  requests.close(head.name);
  return true;
}

void ClientActive::fill(engine::Arrival& arrival, const ArrivalHead& head, const std::byte* element,
                        std::uint64_t& copied) {
  arrival.kind = static_cast<engine::ActiveKind>(head.kind);
  arrival.status = status_from(head.status);
  arrival.is_placed = (head.flags & ArrivalHead::kIsPlaced) != 0;
  arrival.word = head.word;
  arrival.head = 0;
  arrival.reply_access = head.answer;
  arrival.source = {from_plain(head.source), head.source_port};
  arrival.access = head.access;
  arrival.name = head.name;
  arrival.offset = head.offset;
  arrival.data_length = 0;
  const bool has_slot = head.slot < ActivePage::kSlots;
  arrival.buffer = has_slot ? memory_.slot(head.slot) : nullptr;
  arrival.buffer_class = head.slot;
  arrival.head_bytes = has_slot ? arrival.buffer : arrival.packed.data();
  arrival.data = arrival.head_bytes;
  if (arrival.is_placed && arrival.status == Status::ok) arrival.status = status_of_place(place_, head);
  const std::uint64_t carried = head.head + (arrival.is_placed ? 0 : head.data_length);
  if (head.data_length > kSegmentMax || carried > (has_slot ? ActiveLayout::kSlotBytes : kInlineMost))
    arrival.status = Status::system;  // no host engine writes this
  if (arrival.status != Status::ok) return;
  if (!has_slot && carried > 0) std::memcpy(arrival.head_bytes, element, carried);
  arrival.head = head.head;
  arrival.data_length = head.data_length;
  arrival.data = arrival.head_bytes + head.head;
  if (!arrival.is_placed) return;
  arrival.data = place_.segment.at(head.offset);
  if (head.data_length == 0) return;
  std::memcpy(arrival.data, place_.shadow.get() + head.offset, head.data_length);
  copied += head.data_length;
}

void ClientActive::release(engine::Arrival& arrival) {
  if (arrival.buffer != nullptr) give_back_slot(arrival.buffer_class);
  arrival.buffer = nullptr;
  unused_.push_back(&arrival);
}

void ClientActive::give_back_slot(std::uint8_t slot) {
  if (slot >= ActivePage::kSlots) return;
  memory_.page().given_back[slot / 64].fetch_or(std::uint64_t{1} << slot % 64, std::memory_order_acq_rel);
}

bool ClientActive::has_ended(std::uint64_t request, const engine::PeerLoss& loss) const {
  const auto place = static_cast<std::uint32_t>(request);
  if (place >= kRequestPlacesMax) return false;
  const ConversationCell& cell = memory_.conversation(place);
  if (cell.name.load(std::memory_order_acquire) != request) return false;
  return loss.ends({cell.way.load(std::memory_order_relaxed), cell.losses.load(std::memory_order_relaxed)});
}

}  // namespace fairlead::host
