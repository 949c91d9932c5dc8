#pragma once
// One end of a queue-pair measurement: a reliable connection, memory that the other end may access, and counts.

#include <fairlead/verbs.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tools/perf/place.hpp"
#include "tools/perf/protocol.hpp"

namespace fairlead::tools {

inline constexpr int kVerbsLooksPerReap = 16;  // polls of memory that the peer writes, per poll of the queues

class VerbsEnd {
 public:
  /// `place` names the address and the engine's settings.
  static Result<std::unique_ptr<VerbsEnd>> open(const PerfPlace& place, const PerfPlan& plan);

  /// Returns what the other end must know of this one, as text for its meet().
  std::string at() const;
  Result<> meet(std::string_view other);

  /// Posts one signalled request, from the outgoing half of our memory to the arriving half of the peer's. Returns 0 or
  /// an errno.
  int request(VerbsOp op, std::uint64_t size) noexcept;
  int receive() noexcept;
  /// Polls completions of requests. Returns false after a failed one; failure() describes it.
  bool reap() noexcept;
  /// Polls received messages, too, and posts each receive again.
  bool reap_receives() noexcept;
  std::uint64_t ended() const noexcept { return ended_; }
  std::uint64_t received() const noexcept { return received_; }
  Error failure() const;

  /// The last byte that the peer writes, and the last byte that we write.
  std::uint8_t arrived(std::uint64_t size) const noexcept;
  void stamp(std::uint64_t size, std::uint8_t number) noexcept;

 private:
  VerbsEnd(verbs::Context context, verbs::ProtectionDomain domain, verbs::CompletionQueue sends,
           verbs::CompletionQueue receives, verbs::MemoryRegion region, verbs::QueuePair pair, std::uint64_t half)
      : context_(std::move(context)),
        domain_(std::move(domain)),
        sends_(std::move(sends)),
        receives_(std::move(receives)),
        region_(std::move(region)),
        pair_(std::move(pair)),
        half_(half) {}
  bool take(verbs::CompletionQueue& queue, std::uint64_t& count) noexcept;
  std::byte* memory() const noexcept { return static_cast<std::byte*>(region_.address()); }

  verbs::Context context_;
  verbs::ProtectionDomain domain_;
  verbs::CompletionQueue sends_, receives_;
  verbs::MemoryRegion region_;
  verbs::QueuePair pair_;
  std::uint64_t half_;  // bytes; the first half of the memory is for arriving data, the second for outgoing
  verbs::RemoteMemory there_;
  std::uint64_t ended_ = 0, received_ = 0;
  std::array<verbs::WorkCompletion, 32> taken_;  // a member, because clearing it would cost as much as a message
  verbs::WorkCompletion failed_;
};

}  // namespace fairlead::tools
