#include "sim/unchecked_records.hpp"

#include <cstring>

#include "wire/shm_record.hpp"

namespace fairlead::sim {
namespace {

constexpr std::size_t kOffenceBytes = wire::shm_head_bytes(wire::ShmKind::by_reference);  // as Liar writes them

bool is_valid(const std::optional<shm::RingReader::Record>& record) {
  wire::ShmKind kind{};
  wire::Envelope envelope;
  return record && wire::decode_shm_envelope(record->body, kind, envelope);
}

/// Calls visit(body, is_valid) for each record that waits in the ring of an open peer.
template <typename Visit>
void for_each_record(shm::Connections& connections, Visit&& visit) {
  for (std::uint32_t slot = 0; slot < connections.peers().size(); ++slot) {
    const shm::Connection& peer = connections.peer(slot);
    if (peer.state != shm::Connection::State::open) continue;
    for (shm::RingReader ahead = peer.reader; ahead.has_record();) {
      const auto record = ahead.record();
      if (!record) break;
      visit(slot, std::span(const_cast<std::byte*>(record->body.data()), record->body.size()), is_valid(record));
      ahead.pass(record->body.size());
    }
  }
}

}  // namespace

void skip_invalid_records(shm::Connections& connections) {
  for_each_record(connections, [](std::uint32_t, std::span<std::byte> body, bool is_valid) {
    if (is_valid || body.size() < kOffenceBytes) return;
    wire::encode_shm(body.data(), wire::ShmKind::inlined, {.operation = wire::Operation{}}, 0);
  });
}

bool overrun_invalid_record(shm::Connections& connections) {
  std::uint32_t from = shm::Connections::kNone;
  for_each_record(connections, [&](std::uint32_t slot, std::span<std::byte>, bool is_valid) {
    if (!is_valid) from = slot;
  });
  bool is_done = false;
  for_each_record(connections, [&](std::uint32_t slot, std::span<std::byte> body, bool is_valid) {
    if (from == shm::Connections::kNone || slot == from || !is_valid || is_done || body.empty()) return;
    body.back() ^= std::byte{1};
    is_done = true;
  });
  return is_done;
}

}  // namespace fairlead::sim
