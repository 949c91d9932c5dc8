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
  set_whole(delivery_.peer, {memory->head() + place, size});
  delivery_.permission = &from.other->tickets[record_.ticket % Tickets::kCount];
  delivery_.ticket = static_cast<std::uint32_t>(record_.ticket);
  return true;
}

Inbox::Read Inbox::read_other(const Source& from, const RingReader::Record& record, const wire::ShmHead& head) {
  const std::span<const std::byte> body = record.body;
  if (body.size() < sizeof head) return Read::malformed;
  if (head.kind == wire::ShmKind::batch) return read_batch(from, body, head);
  if (head.kind == wire::ShmKind::taken_back) return Read::taken_back;
  wire::ShmKind kind{};
  if (!wire::decode_shm_envelope(body, kind, delivery_.envelope)) return Read::malformed;
  if (wire::is_whole(kind)) [[likely]] {
    set_whole(from.handle, body.subspan(wire::shm_head_bytes(kind)));
    return Read::message;
  }
  return read_part(from, record) ? Read::message : Read::malformed;
}

Inbox::Read Inbox::read_batch(const Source& from, std::span<const std::byte> body, const wire::ShmHead& head) {
  if (body.size() > sizeof head + kBatchMax) return Read::malformed;
  // Checks all lengths before delivering anything: after the peer has ended, a malformed record is looked at again.
  const std::span<const std::byte> messages = body.subspan(sizeof head);
  std::span<const std::byte> message;
  for (std::span<const std::byte> rest = messages; !rest.empty();)
    if (!wire::take_batched(rest, message)) return Read::malformed;
  set_envelope(head);
  delivery_.peer = from.handle;
  batch_ = messages;
  return Read::batch;
}

bool Inbox::take_batched() {
  std::span<const std::byte> message;
  if (!wire::take_batched(batch_, message)) [[unlikely]]
    return batch_ = {}, false;  // the peer has changed it meanwhile
  set_whole(delivery_.peer, message);
  return true;
}

// Reads a message by reference or a chunk of a long message.
bool Inbox::read_part(const Source& from, const RingReader::Record& record) {
  if (!wire::decode_shm(record.body, record_)) return false;
  delivery_.peer = from.handle;
  delivery_.bytes = record_.payload;
  Arriving& arriving = from.arriving;
  switch (record_.kind) {
    case wire::ShmKind::by_reference:
      if (!find_payload(from.connection)) return false;
      delivery_.envelope = record_.envelope;
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
