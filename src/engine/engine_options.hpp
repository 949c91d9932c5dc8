#pragma once
// The table of all options: name, unit, default, range, environment variable, and a sentence. Values come from the
// defaults, the file that FAIRLEAD_CONFIG names, the environment, and the caller, in rising precedence. Each value is
// checked against its range.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/options.hpp>

#include "base/address_range.hpp"
#include "base/log_levels.hpp"
#include "base/settings.hpp"
#include "path/fault_plan.hpp"
#include "queue/wait_ladder.hpp"
#include "seal/keyring.hpp"

namespace fairlead::engine {

using fairlead::option_table;
using fairlead::OptionRow;

enum class Option : std::uint8_t {
  port_first,
  port_count,
  receive_buffer,
  send_buffer,
  hot_peers,
  datagram_size,
  window_segments,
  window_bytes,
  embedded_max,
  tiny_max,
  command_depth,
  data_depth,
  command_segment,
  ack_delay,
  resend_after_min,
  give_up_after,
  unreachable_after,
  peers_max,
  operations_max,
  events_max,
  spin,
  early_max,
  active_packed_max,
  active_memory_max,
  active_messages_max,
  shm_ring,
  shm_peers_max,
  shm_shared_max,
  shm_huge_max,
  shm_cma_max,
  shm_cma_awake_max,
  shm_pull_min,
  shm_pull_max,
  seal_rekey_bytes,
  seal_rekey_after,
  count_,
};

/// An option's previous name, accepted for one more release.
struct FormerOption {
  std::string_view name, environment;
  Option now;
};
std::span<const FormerOption> former_options() noexcept;

/// The transport to engines of the same host.
enum class PathChoice : std::uint8_t { automatic, udp, shm };

/// Where the engine runs: in this process, in the host engine, or in the host engine if available.
enum class CoreChoice : std::uint8_t { embedded, host, automatic };

class EngineOptions {
 public:
  /// Initialises with the table's defaults.
  EngineOptions() noexcept;
  /// Returns the defaults, overridden by the environment and the file that it names. An unreadable or out-of-range
  /// value is an error that names its variable, or file and line.
  static Result<EngineOptions> from_environment();
  static Result<EngineOptions> of(const base::Settings& settings);

  std::uint64_t get(Option option) const noexcept { return values_[static_cast<std::size_t>(option)]; }
  /// Faults that the path injects into the datagrams that it sends (docs/faults.md). Not in the table, because it is no
  /// number: "fault", FAIRLEAD_FAULT.
  const path::FaultPlan& fault() const noexcept { return fault_; }
  /// Where stalls and losses are reported when they are noticed (docs/flight-recorder.md): "stderr", a file to append
  /// to, or empty for none. "flight", FAIRLEAD_FLIGHT.
  const std::string& flight() const noexcept { return flight_; }
  /// The levels of the process's log (<fairlead/log.hpp>). "log", FAIRLEAD_LOG.
  const std::optional<base::LogLevels>& log() const noexcept { return log_; }
  /// "path", FAIRLEAD_PATH: auto (shared memory to local peers if both sides permit it), udp, or shm (only shared
  /// memory).
  PathChoice path() const noexcept { return path_; }
  /// "core", FAIRLEAD_CORE: embedded, host, or auto.
  CoreChoice core() const noexcept { return core_; }
  /// The host engine's socket file; empty: the default. "host", FAIRLEAD_HOST.
  const std::string& host() const noexcept { return host_; }
  /// The key files for sealing sessions (docs/seal.md); without key files, nothing is sealed. "seal", "seal_peers" and
  /// "seal_require".
  std::optional<seal::KeyringFiles> seal() const;
  /// The peers with which nothing unsealed is exchanged. Without a key: none. With a key and no setting: all.
  std::vector<base::AddressRange> seal_require() const;
  /// The directory of the Unix sockets by which local engines meet; empty: abstract names. "shm_directory",
  /// FAIRLEAD_SHM_DIRECTORY.
  const std::string& shm_directory() const noexcept { return shm_directory_; }
  /// Returns whether processes of other users may share memory with us. "shm_users", FAIRLEAD_SHM_USERS: own or all.
  bool admits_all_users() const noexcept { return admits_all_users_; }
  /// "wait", FAIRLEAD_WAIT: adaptive, spin (never sleep) or sleep (never poll); queue/wait_ladder.hpp.
  queue::WaitChoice wait() const noexcept { return wait_; }
  /// Sets an option by name ("ack_delay"), for command lines. The error names the range.
  Result<> set(std::string_view name, std::string_view text);
  Result<> set(Option option, std::uint64_t value);
  /// Returns the names of options that differ.
  std::vector<std::string_view> differences(const EngineOptions& other) const;

 private:
  bool set_word(std::string_view name, std::string_view text, Result<>& result);

  std::array<std::uint64_t, static_cast<std::size_t>(Option::count_)> values_;
  path::FaultPlan fault_;
  queue::WaitChoice wait_ = queue::WaitChoice::adaptive;
  std::string flight_;
  std::optional<base::LogLevels> log_;
  std::string seal_, seal_peers_;
  std::optional<std::vector<base::AddressRange>> seal_require_;
  std::string shm_directory_;
  PathChoice path_ = PathChoice::automatic;
  CoreChoice core_ = CoreChoice::embedded;
  std::string host_;
  bool admits_all_users_ = false;
};

}  // namespace fairlead::engine
