#pragma once
// The one table of what can be set: name, unit, default, range, environment variable, one sentence. Values come from
// the table's defaults, then the file that FAIRLEAD_CONFIG names, then the environment, then the caller; each is
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

/// A name that an option had before, which is taken for one more release.
struct FormerOption {
  std::string_view name, environment;
  Option now;
};
std::span<const FormerOption> former_options() noexcept;

/// Which way engines of the same host are reached.
enum class PathChoice : std::uint8_t { automatic, udp, shm };

/// Where the engine is: in this process, in that of the host, or there if it is to be had.
enum class CoreChoice : std::uint8_t { embedded, host, automatic };

class EngineOptions {
 public:
  /// The defaults of the table.
  EngineOptions() noexcept;
  /// The defaults, overlaid by the environment and the file that it names; an unreadable or out-of-range value is an
  /// error that names its variable, or file and line.
  static Result<EngineOptions> from_environment();
  static Result<EngineOptions> of(const base::Settings& settings);

  std::uint64_t get(Option option) const noexcept { return values_[static_cast<std::size_t>(option)]; }
  /// What the path shall do to the datagrams it sends (docs/faults.md); beside the table, as it is no number: "fault",
  /// FAIRLEAD_FAULT.
  const path::FaultPlan& fault() const noexcept { return fault_; }
  /// Where stalls and losses are reported as they are noticed (docs/flight-recorder.md): "stderr", a file to append
  /// to, or empty for nowhere; "flight", FAIRLEAD_FLIGHT.
  const std::string& flight() const noexcept { return flight_; }
  /// What of the process's log is wanted (<fairlead/log.hpp>); "log", FAIRLEAD_LOG.
  const std::optional<base::LogLevels>& log() const noexcept { return log_; }
  /// "path", FAIRLEAD_PATH: auto (shared memory to peers of this host, where both may), udp, or shm (nothing else).
  PathChoice path() const noexcept { return path_; }
  /// "core", FAIRLEAD_CORE: embedded, host, or auto.
  CoreChoice core() const noexcept { return core_; }
  /// The socket file of the host engine; empty: where it listens by default. "host", FAIRLEAD_HOST.
  const std::string& host() const noexcept { return host_; }
  /// What sessions are sealed with (docs/seal.md); no key files: nothing is. "seal", "seal_peers" and "seal_require".
  std::optional<seal::KeyringFiles> seal() const;
  /// With whom nothing unsealed is exchanged: nobody without a key; everybody, if there is one and it was not set.
  std::vector<base::AddressRange> seal_require() const;
  /// Of the Unix sockets by which engines of a host meet; empty: abstract names. "shm_directory",
  /// FAIRLEAD_SHM_DIRECTORY.
  const std::string& shm_directory() const noexcept { return shm_directory_; }
  /// Whether processes of other users may share memory with us; "shm_users", FAIRLEAD_SHM_USERS: own or all.
  bool admits_all_users() const noexcept { return admits_all_users_; }
  /// "wait", FAIRLEAD_WAIT: adaptive, spin (never sleep) or sleep (never poll); queue/wait_ladder.hpp.
  queue::WaitChoice wait() const noexcept { return wait_; }
  /// By name ("ack_delay"), for command lines; the error names the range.
  Result<> set(std::string_view name, std::string_view text);
  Result<> set(Option option, std::uint64_t value);
  /// Names of those that are not the same.
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
