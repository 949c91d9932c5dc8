#pragma once
// A message that comes in chunks, or a request that came before its turn and waits for it.

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
    answer,    // data of a read: placed at once
    datagram,  // UD: one piece, complete with the last chunk
  };

  std::uint32_t pair = kNone;      // index; kNone: its chunks are thrown away
  std::uint32_t incarnation = 0;   // of the pair, of answers
  wire::RequestSequence sequence;  // of requests, and of what answers answer
  Kind kind = Kind::request;
  bool is_linked = false;  // further chunks come from the link
  wire::Envelope envelope;
  std::uint64_t size = 0;
  std::uint64_t bytes_held = 0;
  std::vector<Piece> held;
  std::uint32_t next = kNone, previous = kNone;  // of the pair, by sequence
};

}  // namespace fairlead::qp
