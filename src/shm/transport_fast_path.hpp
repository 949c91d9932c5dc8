#pragma once
// The inline loop of Transport::send_short(). Short messages that are sent together share a record, because moving a
// cache line to another processor is most of the cost of each.

#include <cstring>

#include "base/copy_short.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {

/// Returns how many of the parts share the next record, and the bytes of its payload. A single message gets a record of
/// its own.
inline Transport::Run Transport::next_run(std::span<const link::SendPart> parts) {
  Run run;
  for (const link::SendPart& part : parts) {
    const std::size_t bytes = run.bytes + sizeof(wire::ShmLength) + part.length;
    if (!fits(part) || part.length > kManyEach || bytes > Inbox::kBatchMax) break;
    run.bytes = bytes;
    ++run.count;
  }
  if (run.count > 1) return run;
  return parts.empty() || !fits(parts[0]) ? Run{} : Run{1, parts[0].length};
}

inline std::size_t Transport::send_short(link::PeerHandle handle, const link::ShortSend& send, base::Instant now,
                                         std::span<link::OperationHandle> names) {
  Peer* const found = fast_peer(handle);
  if (found == nullptr) [[unlikely]]
    return 0;
  Peer& peer = *found;
  Connection& to = connections_->peer(peer.connection_slot);
  // A local copy stays in registers: the compiler might assume that the payload writes alias the original.
  RingWriter writer = to.writer;
  const std::uint64_t read = to.reader.read();
  wire::ShmHead head{.kind = wire::ShmKind::inlined,
                     .operation = static_cast<std::uint8_t>(wire::Operation::message),
                     .source_port = send.source_port,
                     .target_port = send.target_port};
  std::size_t count = 0;
  while (count < send.parts.size()) {
    const Run run = next_run(send.parts.subspan(count));
    const bool has_room = run.count != 0 && peer.pending.has_room(run.count);
    std::byte* const body = has_room ? writer.reserve(sizeof head + run.bytes) : nullptr;
    if (body == nullptr) [[unlikely]]
      break;
    head.kind = run.count == 1 ? wire::ShmKind::inlined : wire::ShmKind::batch;
    wire::store_shm_head(body, head);
    std::byte* out = body + sizeof head;
    for (const link::SendPart& part : send.parts.subspan(count, run.count)) {
      if (run.count > 1) {
        const auto length = static_cast<wire::ShmLength>(part.length);
        std::memcpy(out, &length, sizeof length);
        out += sizeof length;
      }
      base::copy_short(out, static_cast<const std::byte*>(part.memory[0].iov_base), part.length);
      out += part.length;
    }
    writer.publish(sizeof head + run.bytes, read);
    for (const std::size_t end = count + run.count; count < end; ++count) {
      const link::SendPart& part = send.parts[count];
      counters_.bytes_sent += part.length;
      peer.pending.append().set(writer.written(), part.cookie, send.owner, part.length);
      names[count] = {link::kShortSlots | (handle.slot - kFirstSlot),
                      static_cast<std::uint32_t>(peer.pending.last_number()), now};
    }
  }
  if (count == 0) [[unlikely]]
    return 0;
  to.writer = writer;
  to.reader.told();
  to.alert();
  if (!peer.is_busy) [[unlikely]]
    make_busy(handle.slot - kFirstSlot, now);
  counters_.messages_sent += count;
  return count;
}

}  // namespace fairlead::shm
