#pragma once
// A domain holds the settings and limits that its buffers and transfer machines share.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::net {

struct DomainState;

/// Upper limits for the buffers of a domain.
struct BufferLimits {
  std::uint64_t buffer_bytes = std::uint64_t{1} << 36;
  std::uint64_t segment_bytes = std::uint64_t{1} << 36;  ///< Buffer::allocate() makes as many segments as needed
  std::size_t segments = 1024;

  /// The limits of Motr over LNet, for programs that must also run there.
  static constexpr BufferLimits motr() noexcept { return {std::uint64_t{1} << 20, 4096, 256}; }
};

/// Engine settings by name and value, e.g. {"ack_delay", "50"}. They override the environment (FAIRLEAD_ACK_DELAY=50).
struct DomainSettings {
  std::vector<std::pair<std::string, std::string>> engine = {};
  BufferLimits limits = {};  ///< no limit may exceed its default
};

/// A handle. Its buffers and machines keep the domain alive, and moving the handle does not affect them. A process may
/// have several domains. The first transfer machine that starts at an address creates the engine there, with the
/// settings of its domain. All later machines of the process at that address share the engine.
class Domain {
 public:
  /// `invalid` names the setting, environment variable or limit that is unknown, unreadable or out of range.
  [[nodiscard]] static Result<Domain> open(const DomainSettings& settings = {});

  Domain(Domain&&) noexcept;
  Domain& operator=(Domain&&) noexcept;
  ~Domain();

  /// Closes the domain: nothing can be created in it afterwards. `bad_state` (nothing changed) while it has transfer
  /// machines or buffers. The destructor has no such condition: remaining objects keep the domain alive.
  Result<> close();

  /// Limits of a buffer: total bytes, bytes of a segment, number of segments.
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
