#pragma once
// The inline loop of Transport::send_short(). Short messages that are sent together share a record, because moving a
// cache line to another processor is most of the cost of each.

#include "base/copy_short.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {

/// Returns how many of the parts share the next record, and the bytes of its payload. A single message gets a record of
/// its own.
inline Transport::Run Transport::next_run(std::span<const link::SendPart> parts) {
  if (!fits(parts[0])) return {};
  Run run;
  if (parts.size() > 1) {
    for (const link::SendPart& part : parts) {
      const std::size_t bytes = run.bytes + sizeof(wire::ShmLength) + part.length;
      if (!fits(part) || part.length > kManyEach || bytes > Inbox::kBatchMax) break;
      run.bytes = bytes;
      ++run.count;
    }
  }
  return run.count > 1 ? run : Run{1, parts[0].length};
}

/// Writes the next record, after `sent` parts. Returns the number of parts in it; 0 if there is no room.
inline std::size_t Transport::write_shorts(std::uint32_t index, Connection& to, const link::ShortSend& send,
                                           std::size_t sent, base::Instant now,
                                           std::span<link::OperationHandle> names) {
  const std::span<const link::SendPart> parts = send.parts.subspan(sent);
  base::Fifo<Pending>& pending = peers_[index].pending;
  const Run run = next_run(parts);
  const std::size_t bytes = sizeof(wire::ShmHead) + run.bytes;
  std::byte* const body = run.count != 0 && pending.has_room(run.count) ? to.writer.reserve(bytes) : nullptr;
  if (body == nullptr) [[unlikely]]
    return 0;
  wire::store_shm_head(body, {.kind = run.count == 1 ? wire::ShmKind::inlined : wire::ShmKind::batch,
                              .operation = static_cast<std::uint8_t>(wire::Operation::message),
                              .source_port = send.source_port,
                              .target_port = send.target_port});
  std::byte* out = body + sizeof(wire::ShmHead);
  const std::uint64_t line = to.writer.written_with(bytes);
  for (std::size_t i = 0; i < run.count; ++i) {
    const link::SendPart& part = parts[i];
    if (run.count > 1) {
      wire::store(out, 0, static_cast<wire::ShmLength>(part.length));
      out += sizeof(wire::ShmLength);
    }
    base::copy_short(out, static_cast<const std::byte*>(part.memory[0].iov_base), part.length);
    out += part.length;
    counters_.bytes_sent += part.length;
    pending.append().set(line, part.cookie, send.owner, part.length);
    names[sent + i] = {link::kShortSlots | index, static_cast<std::uint32_t>(pending.last_number()), now};
  }
  to.writer.publish(bytes, to.reader.read());
  return run.count;
}

inline std::size_t Transport::send_short(link::PeerHandle handle, const link::ShortSend& send, base::Instant now,
                                         std::span<link::OperationHandle> names) {
  Peer* const peer = fast_peer(handle);
  if (peer == nullptr) [[unlikely]]
    return 0;
  const std::uint32_t index = handle.slot - kFirstSlot;
  Connection& to = connections_->peer(peer->connection_slot);
  std::size_t sent = 0;
  while (sent < send.parts.size()) {
    const std::size_t more = write_shorts(index, to, send, sent, now, names);
    if (more == 0) [[unlikely]]
      break;
    sent += more;
  }
  if (sent == 0) [[unlikely]]
    return 0;
  to.reader.told();
  to.alert();
  if (!peer->is_busy) [[unlikely]]
    make_busy(index, now);
  counters_.messages_sent += sent;
  return sent;
}

}  // namespace fairlead::shm
