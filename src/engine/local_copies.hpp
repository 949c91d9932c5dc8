#pragma once
// Messages, puts and gets between ports of this engine that are too long for one turn. In each pass one of them goes
// on, by so many bytes; whoever has the engine's lock does nothing else meanwhile. An end may be gone when its turn
// comes: then nothing more is copied, and the other end is told.

#include <array>
#include <cstdint>
#include <vector>

#include "engine/exposures.hpp"
#include "engine/message_context.hpp"
#include "engine/receives.hpp"

namespace fairlead::engine {

class LocalCopies {
 public:
  static constexpr std::uint64_t kBytesInTurn = 4ULL << 20;

  LocalCopies(MessageContext& context, Receives& receives, Exposures& exposures)
      : context_(context), receives_(receives), exposures_(exposures) {}

  /// Whether so many bytes take more than a turn. An engine that reaches only itself has none: nobody makes its passes.
  bool takes_turns(std::uint64_t bytes) const { return bytes > kBytesInTurn && context_.transports != nullptr; }
  /// For one more. False: there is no memory for it.
  bool reserve();
  /// What was submitted in slot `active` goes to the placement of a message, or to or from an exposure.
  void begin_message(std::uint32_t active, std::uint32_t placement);
  void begin_transfer(std::uint32_t active, std::uint32_t exposure, std::uint64_t length);

  bool is_empty() const { return copies_.empty(); }
  /// Whether that operation was submitted for one of them.
  bool has(std::uint32_t active) const { return !copies_.empty() && find(active) != copies_.size(); }
  /// A turn.
  void progress(base::Instant now);
  /// Whoever has submitted it wants it no more: both ends end.
  void cancel(std::uint32_t active, base::Instant now);

 private:
  struct Copy {
    std::uint64_t active = 0;     // name of the operation that was submitted
    std::uint64_t exposure = 0;   // name of the exposure; of messages none
    std::uint64_t placement = 0;  // name of a message's place
    std::uint64_t length = 0, done = 0;
  };

  std::size_t find(std::uint32_t active) const;
  /// Takes it out.
  Copy take(std::size_t index);
  Placement* placement(const Copy& copy);
  /// The operation whose memory is the other end; null if it has ended.
  Operation* passive(const Copy& copy);
  void go_on(Copy& copy, Operation& passive, std::uint64_t bytes);
  void end(const Copy& copy, Status status, base::Instant now);
  void end_passive(const Copy& copy, Status status, base::Instant now);

  MessageContext& context_;
  Receives& receives_;
  Exposures& exposures_;
  std::vector<Copy> copies_;
  std::size_t next_ = 0;
  std::array<iovec, link::kPiecesMax> part_;
};

}  // namespace fairlead::engine
