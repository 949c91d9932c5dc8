#pragma once
// What buffers and transfer machines have in common: settings and limits.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::net {

struct DomainState;

/// What the buffers of a domain may be at most.
struct BufferLimits {
  std::uint64_t buffer_bytes = std::uint64_t{1} << 36;
  std::uint64_t segment_bytes = std::uint64_t{1} << 36;  ///< Buffer::allocate() makes as many segments as it takes
  std::size_t segments = 1024;

  /// Motr's over LNet, for those who want to be told what would not go there.
  static constexpr BufferLimits motr() noexcept { return {std::uint64_t{1} << 20, 4096, 256}; }
};

/// Settings of the engine by name and value, e.g. {"ack_delay", "50"}, on top of the environment's
/// (FAIRLEAD_ACK_DELAY=50).
struct DomainSettings {
  std::vector<std::pair<std::string, std::string>> engine = {};
  BufferLimits limits = {};  ///< none above the defaults
};

/// A handle: moving it does not disturb its buffers and machines, which keep the domain alive by themselves. Several
/// domains per process are normal. The first transfer machine that starts at an address makes its engine, with its
/// domain's settings. All later ones of the process share it.
class Domain {
 public:
  /// `invalid` names the setting or the environment variable that is unknown, unreadable or out of range, or the limit.
  [[nodiscard]] static Result<Domain> open(const DomainSettings& settings = {});

  Domain(Domain&&) noexcept;
  Domain& operator=(Domain&&) noexcept;
  ~Domain();

  /// Ends the domain: from then on nothing can be made in it. `bad_state` (and nothing changed) while it has
  /// transfer machines or buffers. The destructor does without: what is left keeps the domain alive.
  Result<> close();

  /// Limits of a buffer: bytes altogether, bytes of a segment, segments.
  std::uint64_t buffer_size_max() const noexcept;
  std::uint64_t segment_size_max() const noexcept;
  std::size_t segments_max() const noexcept;

 private:
  friend class Buffer;
  friend class BufferPool;
  friend class TransferMachine;
  friend struct DomainState;
  explicit Domain(std::shared_ptr<DomainState> state) noexcept;

  std::shared_ptr<DomainState> state_;
};

}  // namespace fairlead::net
