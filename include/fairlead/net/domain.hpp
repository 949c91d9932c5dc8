#pragma once
// What buffers and transfer machines have in common: settings and limits (spec/motr.md 1.2).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>

namespace fairlead::net {

struct DomainState;

/// Settings of the engine by name and value, e.g. {"ack_delay", "50"}, on top of the environment's
/// (FAIRLEAD_ACK_DELAY=50).
struct DomainSettings {
  std::vector<std::pair<std::string, std::string>> engine;
};

/// A handle: moving it does not disturb its buffers and machines, which keep the domain alive by themselves. Several
/// domains per process are normal. The engine of an address is made by the first transfer machine that starts there,
/// with its domain's settings, and shared by all later ones of the process.
class Domain {
 public:
  /// `invalid` names the setting or the environment variable that is unknown, unreadable or out of range.
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
