#pragma once
// A message that arrives in chunks, or a request that arrived before its turn and waits.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/envelope.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::qp {

struct Arrival {
  static constexpr std::uint32_t kNone = ~0U;

  struct Piece {
    std::uint64_t offset = 0;
    std::size_t size = 0;
    std::unique_ptr<std::byte[]> bytes;
    std::span<const std::byte> span() const { return {bytes.get(), size}; }
  };
  enum class Kind : std::uint8_t {
    request,
    answer,    // data of a read; each chunk is placed at once
    datagram,  // UD; collected in one piece, delivered with the last chunk
  };

  std::uint32_t pair = kNone;      // index; kNone: a datagram, or a dropped request whose chunks are discarded
  std::uint32_t incarnation = 0;   // of the queue pair; only for answers
  wire::RequestSequence sequence;  // of the request, also for its answer; not for datagrams
  Kind kind = Kind::request;
  bool is_linked = false;  // more chunks of the request will arrive
  wire::Envelope envelope;
  std::uint64_t size = 0;
  std::uint64_t bytes_held = 0;
  std::vector<Piece> held;
  std::uint32_t next = kNone, previous = kNone;  // in the queue pair's ArrivalChain
};

}  // namespace fairlead::qp
