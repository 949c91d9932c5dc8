// Reads records that local peers have written.

#include "shm/inbox.hpp"

namespace fairlead::shm {
namespace {

constexpr std::uint64_t kPulledMax = 64ULL << 20;  // bytes; bounds the time for which a copy occupies our engine

}  // namespace

// Locates a message by reference. Returns false if it does not lie in the sender's arena.
bool Inbox::find_payload(const Connection& from) {
  const std::uint64_t size = record_.message_bytes, place = record_.place;
  if (from.arena == nullptr || !record_.payload.empty() || size == 0 || size > kPulledMax || place > from.arena_bytes ||
      size > from.arena_bytes - place)
    return false;
  set_whole(delivery_.peer, {from.arena->head() + place, size});
  delivery_.permission = &from.other->tickets[record_.ticket % Tickets::kCount];
  delivery_.ticket = static_cast<std::uint32_t>(record_.ticket);
  return true;
}

void Inbox::set_whole(link::PeerHandle from, std::span<const std::byte> bytes) {
  delivery_.peer = from;
  delivery_.bytes = bytes;
  delivery_.size = bytes.size();
  delivery_.offset = 0;
  delivery_.reassembly = link::Delivery::kWhole;
  delivery_.is_first = delivery_.is_last = true;
  delivery_.target = 0;
  delivery_.permission = nullptr;
}

bool Inbox::read(const Source& from, const RingReader::Record& record) {
  wire::ShmKind kind{};
  if (!wire::decode_shm_envelope(record.body, kind, delivery_.envelope)) return false;
  if (wire::is_whole(kind)) [[likely]] {
    set_whole(from.handle, record.body.subspan(wire::shm_head_bytes(kind)));
    counters_.bytes_delivered += delivery_.size;
    ++counters_.messages_delivered;
    return true;
  }
  return read_part(from, record);
}

// Reads a message by reference or a chunk of a long message.
bool Inbox::read_part(const Source& from, const RingReader::Record& record) {
  if (!wire::decode_shm(record.body, record_)) return false;
  delivery_.peer = from.handle;
  delivery_.bytes = record_.payload;
  counters_.bytes_delivered +=
      record_.kind == wire::ShmKind::by_reference ? record_.message_bytes : record_.payload.size();
  Arriving& arriving = from.arriving;
  switch (record_.kind) {
    case wire::ShmKind::by_reference:
      if (!find_payload(from.connection)) return false;
      delivery_.envelope = record_.envelope;
      ++counters_.messages_delivered;
      return true;
    case wire::ShmKind::inlined:
    case wire::ShmKind::ordered:
    case wire::ShmKind::tagged:
    case wire::ShmKind::whole:
    case wire::ShmKind::batch:
    case wire::ShmKind::taken_back:
      return false;  // handled before
    case wire::ShmKind::first:
      if (arriving.is_under_way) return false;
      arriving = {
          .is_under_way = true, .envelope = record_.envelope, .size = record_.message_bytes, .moved_at = from.now};
      break;
    case wire::ShmKind::next:
      if (!arriving.is_under_way || record_.payload.empty()) return false;
      break;
  }
  if (record_.payload.size() > arriving.size - arriving.done) return false;
  delivery_.permission = nullptr;
  delivery_.envelope = arriving.envelope;
  delivery_.size = arriving.size;
  delivery_.offset = arriving.done;
  delivery_.reassembly = 0;
  delivery_.is_first = record_.kind == wire::ShmKind::first;
  delivery_.target = arriving.target;
  arriving.done += record_.payload.size();
  delivery_.is_last = arriving.done == arriving.size;
  arriving.is_under_way = !delivery_.is_last;
  if (delivery_.is_last) ++counters_.messages_delivered;
  return true;
}

}  // namespace fairlead::shm
