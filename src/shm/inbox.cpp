// Reads records that local peers have written.

#include "shm/inbox.hpp"

namespace fairlead::shm {
namespace {

constexpr std::uint64_t kPulledMax = 64ULL << 20;  // bytes; bounds the time for which a copy occupies our engine

}  // namespace

// Locates a message by reference. Returns false if it does not lie in memory of the sender that we have mapped.
bool Inbox::find_payload(const Connection& from) {
  const bool is_traced = (record_.place & wire::kPlaceIsTraced) != 0;
  const std::uint64_t size = record_.message_bytes, place = record_.place & ~wire::kPlaceIsTraced;
  const Memory* const memory = is_traced ? &from.traced : from.arena.get();
  const std::uint64_t bytes = is_traced ? from.traced_bytes : from.arena == nullptr ? 0 : from.arena_bytes;
  if (!record_.payload.empty() || size == 0 || size > kPulledMax || place > bytes || size > bytes - place) return false;
  set_whole(other_.peer, {memory->head() + place, size});
  other_.permission = &from.other->tickets[record_.ticket % Tickets::kCount];
  other_.ticket = static_cast<std::uint32_t>(record_.ticket);
  return true;
}

Inbox::Read Inbox::read_other(const Source& from, std::span<const std::byte> body) {
  wire::ShmKind kind{};
  if (!wire::decode_shm_envelope(body, kind, other_.envelope)) return Read::malformed;
  if (kind == wire::ShmKind::batch) return read_batch(from, body);
  if (kind == wire::ShmKind::taken_back) return Read::taken_back;
  delivery_ = &other_;
  if (wire::is_whole(kind)) [[likely]] {
    set_whole(from.handle, body.subspan(wire::shm_head_bytes(kind)));
    return Read::message;
  }
  return read_part(from, body) ? Read::message : Read::malformed;
}

/// Makes `bytes` the payload of the other delivery, and counts the message.
void Inbox::set_whole(link::PeerHandle from, std::span<const std::byte> bytes) {
  other_.peer = from;
  other_.bytes = bytes;
  other_.size = bytes.size();
  other_.offset = 0;
  other_.reassembly = link::Delivery::kWhole;
  other_.is_first = other_.is_last = true;
  other_.target = 0;
  other_.permission = nullptr;
  count_message(bytes.size());
}

Inbox::Read Inbox::read_batch(const Source& from, std::span<const std::byte> body) {
  if (body.size() > sizeof(wire::ShmHead) + kBatchMax) return Read::malformed;
  // Checks all lengths before delivering anything: after the peer has ended, a malformed record is looked at again.
  const std::span<const std::byte> messages = body.subspan(sizeof(wire::ShmHead));
  std::span<const std::byte> message;
  for (std::span<const std::byte> rest = messages; !rest.empty();)
    if (!wire::take_batched(rest, message)) return Read::malformed;
  inlined_.peer = from.handle;
  inlined_.envelope = other_.envelope;
  delivery_ = &inlined_;
  batch_ = messages;
  return Read::batch;
}

bool Inbox::take_batched() {
  std::span<const std::byte> message;
  if (!wire::take_batched(batch_, message)) [[unlikely]]
    return batch_ = {}, false;  // the peer has changed it meanwhile
  set_inlined(message);
  return true;
}

// Reads a message by reference or a chunk of a long message.
bool Inbox::read_part(const Source& from, std::span<const std::byte> body) {
  if (!wire::decode_shm(body, record_)) return false;
  other_.peer = from.handle;
  other_.bytes = record_.payload;
  Arriving& arriving = from.arriving;
  switch (record_.kind) {
    case wire::ShmKind::by_reference:
      if (!find_payload(from.connection)) return false;
      other_.envelope = record_.envelope;
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
  counters_.bytes_delivered += record_.payload.size();
  other_.permission = nullptr;
  other_.envelope = arriving.envelope;
  other_.size = arriving.size;
  other_.offset = arriving.done;
  other_.reassembly = 0;
  other_.is_first = record_.kind == wire::ShmKind::first;
  other_.target = arriving.target;
  arriving.done += record_.payload.size();
  other_.is_last = arriving.done == arriving.size;
  arriving.is_under_way = !other_.is_last;
  if (other_.is_last) ++counters_.messages_delivered;
  return true;
}

}  // namespace fairlead::shm
