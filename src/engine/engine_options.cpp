#include "engine/engine_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <type_traits>
#include <utility>

#include "base/quantity.hpp"
#include "base/shown.hpp"
#include "engine/active.hpp"
#include "engine/unknown_variables.hpp"
#include "link/link_options.hpp"
#include "link/seal_settings.hpp"
#include "onesided/shared_tables.hpp"
#include "path/udp_options.hpp"
#include "shm/connections.hpp"

namespace fairlead::engine {
namespace {

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = 1024 * kKi;

// Lower layers define the defaults of their own options.
using namespace std::chrono_literals;
constexpr link::LinkOptions kLink;
constexpr path::UdpOptions kUdp;

constexpr WordOptionRow kWords[] = {
    {"core", "embedded, host or auto", "FAIRLEAD_CORE",
     "where the engine runs: in this process, in the host's fairleadd, or there if it listens and admits this process"},
    {"fault", "as drop=1%,delay=1ms", "FAIRLEAD_FAULT", "faults to inject into sent datagrams"},
    {"flight", "stderr, or a file", "FAIRLEAD_FLIGHT",
     "where stalls and lost peers are reported when they are detected"},
    {"host", "an absolute path, or nothing", "FAIRLEAD_HOST", "the socket file of fairleadd"},
    {"log", "as info,link=debug", "FAIRLEAD_LOG",
     "what is logged to standard error, or to the program: off, error, warning, info or debug, for all topics or by "
     "topic"},
    {"path", "auto, udp or shm", "FAIRLEAD_PATH",
     "the path to peers of this host: shared memory where both permit it, UDP, or shared memory only"},
    {"seal", "psk:FILE, x25519:FILE or x25519", "FAIRLEAD_SEAL",
     "the key that sessions over UDP are sealed with; shared memory is not sealed"},
    {"seal_peers", "a file", "FAIRLEAD_SEAL_PEERS",
     "the file of trusted public keys; default: known_peers beside the key file"},
    {"seal_require", "ranges as 10.0.0.0/8,fd00::/8, or nothing", "FAIRLEAD_SEAL_REQUIRE",
     "peers with whom all traffic must be sealed; all, if not set and a key is given"},
    {"shm_directory", "an absolute path, or nothing", "FAIRLEAD_SHM_DIRECTORY",
     "where engines of this host find each other, instead of by abstract names"},
    {"shm_users", "own or all", "FAIRLEAD_SHM_USERS",
     "whether processes of other users may share memory with this one"},
    {"wait", "adaptive, spin or sleep", "FAIRLEAD_WAIT", "whether waiting threads spin for a while, always, or never"},
};

// In the order of Option.
constexpr std::array<OptionRow, static_cast<std::size_t>(Option::count_)> kTable{{
    {"port_first", "port", 20480, 1024, 65535, "FAIRLEAD_PORT_FIRST",
     "first UDP port of the range searched for a free one"},
    {"port_count", "ports", 4096, 1, 64512, "FAIRLEAD_PORT_COUNT", "length of that range"},
    {"receive_buffer", "bytes", kUdp.receive_buffer_bytes, 64 * kKi, 1024 * kMi, "FAIRLEAD_RECEIVE_BUFFER",
     "kernel receive buffer to request; the granted size limits what peers may have in flight to this engine"},
    {"send_buffer", "bytes", kUdp.send_buffer_bytes, 64 * kKi, 1024 * kMi, "FAIRLEAD_SEND_BUFFER",
     "kernel send buffer to request"},
    {"hot_peers", "peers", 1, 0, 64, "FAIRLEAD_HOT_PEERS",
     "peers that get a connected socket of their own, if no more are busy"},
    {"datagram_size", "bytes", kLink.datagram_size_max, 1200, 65507, "FAIRLEAD_DATAGRAM_SIZE",
     "largest UDP payload of one datagram; the route's MTU lowers it further"},
    {"window_segments", "segments", kLink.window_segments, 64, 4096, "FAIRLEAD_WINDOW_SEGMENTS",
     "segments in flight to one peer; a power of two"},
    {"window_bytes", "bytes", kLink.window_bytes, 64 * kKi, 64 * kMi, "FAIRLEAD_WINDOW_BYTES",
     "bytes in flight to one peer, counted as the kernel charges them"},
    {"embedded_max", "bytes", kLink.embedded_max, 0, 1024, "FAIRLEAD_EMBEDDED_MAX",
     "messages up to this size are copied at submission instead of referenced"},
    {"tiny_max", "bytes", kLink.tiny_max, 0, 1024, "FAIRLEAD_TINY_MAX",
     "messages up to this size travel on the command channel"},
    {"command_depth", "messages", kLink.command_depth, 16, 65536, "FAIRLEAD_COMMAND_DEPTH",
     "messages of the command channel that wait to be sent to one peer; a further one is refused with again"},
    {"data_depth", "messages", kLink.data_depth, 16, 65536, "FAIRLEAD_DATA_DEPTH",
     "messages of the data channel that wait or are in flight to one peer; a further one is refused with again"},
    {"command_segment", "bytes", kLink.command_segment_max, 1200, 1920, "FAIRLEAD_COMMAND_SEGMENT",
     "size to which short messages that wait together are packed; segments of long ones have datagram_size"},
    {"ack_delay", "us", kLink.ack_after / 1us, 1, 10000, "FAIRLEAD_ACK_DELAY",
     "longest time that an acknowledgement waits for data to carry it"},
    {"resend_after_min", "us", kLink.resend_after_min / 1us, 100, 1000000, "FAIRLEAD_RESEND_AFTER_MIN",
     "lower bound of the resend timeout"},
    {"give_up_after", "ms", kLink.give_up_after / 1ms, 10, 600000, "FAIRLEAD_GIVE_UP_AFTER",
     "time without an acknowledgement after which a known peer is given up and operations pending to it fail"},
    {"unreachable_after", "ms", kLink.connect_within / 1ms, 10, 600000, "FAIRLEAD_UNREACHABLE_AFTER",
     "time after which a peer that has never answered counts as unreachable"},
    {"peers_max", "peers", kLink.peers_max, 1, 1048575, "FAIRLEAD_PEERS_MAX", "peers that one engine remembers"},
    {"operations_max", "operations", 262144, 16, 1048575, "FAIRLEAD_OPERATIONS_MAX",
     "operations pending in one engine"},
    {"events_max", "events", 1048576, 2, 16777216, "FAIRLEAD_EVENTS_MAX", "events that one port may reserve"},
    {"spin", "us", 50, 0, 1000000, "FAIRLEAD_SPIN",
     "longest time that a waiting thread spins before it sleeps; it spins less after waits without result"},
    {"early_max", "bytes", 64 * kMi, 0, 4096 * kMi, "FAIRLEAD_EARLY_MAX",
     "room for requests of queue pairs that arrive out of order; a quarter of it for each queue pair"},
    {"active_packed_max", "bytes", 864, 0, kActivePackedMost, "FAIRLEAD_ACTIVE_PACKED_MAX",
     "active messages up to this size are packed with their arguments; longer ones get a buffer and a completion step"},
    {"active_memory_max", "bytes", 64 * kMi, 1 * kMi, 16384 * kMi, "FAIRLEAD_ACTIVE_MEMORY_MAX",
     "buffers for longer active messages that wait at one port; replies may take as much again"},
    {"active_messages_max", "messages", 65536, 16, 1048576, "FAIRLEAD_ACTIVE_MESSAGES_MAX",
     "active requests that wait at one port; replies may be as many again"},
    {"shm_ring", "bytes", shm::ConnectionOptions::kRingBytes, 64 * kKi, 64 * kMi, "FAIRLEAD_SHM_RING",
     "shared memory for each direction to a peer of this host; a power of two"},
    {"shm_peers_max", "peers", shm::ConnectionOptions::kPeersMax, 1, 4096, "FAIRLEAD_SHM_PEERS_MAX",
     "peers of this host that are reached through shared memory; more go over UDP"},
    {"shm_shared_max", "bytes", 16384 * kMi, 0, 1048576 * kMi, "FAIRLEAD_SHM_SHARED_MAX",
     "registered memory that peers of this host may access directly; 0: all data goes through the rings"},
    {"shm_huge_max", "bytes", 256 * kMi, 0, 1048576 * kMi, "FAIRLEAD_SHM_HUGE_MAX",
     "memory from 2 MiB up to this size, allocated by the library for access by peers of this host, gets huge pages at "
     "once, if the kernel has them; 0: never"},
    {"shm_cma_max", "bytes", 256 * kKi, 0, onesided::kCarriedOutMax, "FAIRLEAD_SHM_CMA_MAX",
     "one-sided operations up to this size on memory that is not shared use process_vm_writev and process_vm_readv, "
     "if the peer is not polling and the kernel permits it; 0: never"},
    {"shm_cma_awake_max", "bytes", 0, 0, onesided::kCarriedOutMax, "FAIRLEAD_SHM_CMA_AWAKE_MAX",
     "the same for a peer that polls; the ring is quicker then"},
    {"shm_pull_min", "bytes", 8 * kKi, 0, onesided::kCarriedOutMax, "FAIRLEAD_SHM_PULL_MIN",
     "messages from this size on that lie in shared memory are copied once, by the receiver, instead of through the "
     "ring; those up to 8 KiB never"},
    {"shm_pull_max", "bytes", 16 * kMi, 0, onesided::kCarriedOutMax, "FAIRLEAD_SHM_PULL_MAX",
     "the size up to which messages are copied so; 0: none"},
    {"seal_rekey_bytes", "bytes", link::SealSettings::kBytesMax, 64 * kKi, 65536 * kMi, "FAIRLEAD_SEAL_REKEY_BYTES",
     "how many bytes a sealed session encrypts and decrypts before it renews its keys"},
    {"seal_rekey_after", "s", link::SealSettings::kAgeMax / 1s, 1, 86400, "FAIRLEAD_SEAL_REKEY_AFTER",
     "age of a sealed session's keys after which the next message renews them"},
}};

constexpr FormerOption kFormer[] = {
    {"shm_foreign_max", "FAIRLEAD_SHM_FOREIGN_MAX", Option::shm_cma_max},
    {"shm_foreign_awake_max", "FAIRLEAD_SHM_FOREIGN_AWAKE_MAX", Option::shm_cma_awake_max},
};

const OptionRow& row_of(Option option) {
  return kTable[static_cast<std::size_t>(option)];
}

// Returns the current name of an option.
std::string_view name_today(std::string_view name) {
  const auto* const former = std::ranges::find(kFormer, name, &FormerOption::name);
  return former == std::end(kFormer) ? name : row_of(former->now).name;
}

bool is_power_of_two(const OptionRow& row) {
  return &row == &row_of(Option::window_segments) || &row == &row_of(Option::shm_ring);
}

Error out_of_range(const OptionRow& row, std::string_view text, std::string_view where) {
  return {Status::invalid, 0,
          fmt::format("{} {}: want {} to {} {}{} (default {}), as {}; correct {}", row.name, text, row.value_min,
                      row.value_max, row.unit, is_power_of_two(row) ? ", a power of two" : "", row.value_default,
                      base::quantity_wanted(row.unit), where)};
}

}  // namespace

EngineOptions::EngineOptions() noexcept {
  for (std::size_t i = 0; i < kTable.size(); ++i) values_[i] = kTable[i].value_default;
}

Result<EngineOptions> EngineOptions::from_environment() {
  const auto settings = base::Settings::read();
  return settings ? of(*settings) : std::unexpected(settings.error());
}

Result<EngineOptions> EngineOptions::of(const base::Settings& settings) {
  if (auto known = check_names(settings.file()); !known) return std::unexpected(std::move(known.error()));
  EngineOptions options;
  const auto read = [&](const OptionRow& row, std::string_view variable) -> Result<> {
    const auto given = settings.find(variable);
    if (!given || options.set(row.name, given->text)) return {};
    return std::unexpected(out_of_range(row, fmt::format("'{}'", base::shown(given->text)), given->remedy));
  };
  for (const FormerOption& former : kFormer)
    if (auto done = read(row_of(former.now), former.environment); !done) return std::unexpected(done.error());
  for (const OptionRow& row : kTable)
    if (auto done = read(row, row.environment); !done) return std::unexpected(done.error());
  for (const WordOptionRow& word : kWords) {
    const auto given = settings.find(word.environment);
    if (!given) continue;
    if (auto set = options.set(word.name, given->text); !set) {
      set.error().message += fmt::format("; correct {}", given->remedy);
      return std::unexpected(std::move(set.error()));
    }
  }
  return options;
}

// Returns false if no option with a word as its value has this name.
bool EngineOptions::set_word(std::string_view name, std::string_view text, Result<>& result) {
  const auto* const row = std::ranges::find(kWords, name, &WordOptionRow::name);
  if (row == std::end(kWords)) return false;
  const auto refuse = [&] {
    result = std::unexpected(
        Error{Status::invalid, 0, fmt::format("{} '{}': want {}", name, base::shown(text), row->wanted)});
  };
  const auto choose = [&](const auto& names, auto& choice) {
    const auto* const found = std::ranges::find(names, text);
    if (found == std::end(names)) return refuse();
    choice = static_cast<std::remove_reference_t<decltype(choice)>>(found - std::begin(names));
  };
  if (name == "fault") {
    auto plan = path::FaultPlan::parse(text);
    if (plan) fault_ = *plan;
    if (!plan) result = std::unexpected(std::move(plan.error()));
  } else if (name == "flight") {
    flight_ = text;
  } else if (name == "log") {
    auto levels = base::LogLevels::parse(text);
    if (levels) log_ = *levels;
    if (!levels) result = std::unexpected(std::move(levels.error()));
  } else if (name == "core") {
    constexpr std::string_view kNames[] = {"embedded", "host", "auto"};
    choose(kNames, core_);
  } else if (name == "path") {
    constexpr std::string_view kNames[] = {"auto", "udp", "shm"};
    choose(kNames, path_);
  } else if (name == "seal") {
    if (const auto files = seal::KeyringFiles::parse(text, {}); files) {
      seal_ = text;
    } else {
      result = std::unexpected(files.error());
    }
  } else if (name == "seal_peers") {
    seal_peers_ = text;
  } else if (name == "seal_require") {
    auto ranges = text.empty() ? Result<std::vector<base::AddressRange>>() : base::parse_ranges(text);
    if (ranges) seal_require_ = std::move(*ranges);
    if (!ranges) result = std::unexpected(std::move(ranges.error()));
  } else if (name == "shm_directory" || name == "host") {
    if (text.empty() || text.starts_with('/')) {
      (name == "host" ? host_ : shm_directory_) = text;
    } else {
      refuse();
    }
  } else if (name == "shm_users") {
    constexpr std::string_view kNames[] = {"own", "all"};
    choose(kNames, admits_all_users_);
  } else if (name == "wait") {
    using queue::WaitChoice;
    constexpr std::string_view kNames[] = {"adaptive", "spin", "sleep"};
    constexpr WaitChoice kChoices[] = {WaitChoice::adaptive, WaitChoice::spin, WaitChoice::sleep};
    std::size_t chosen = std::size(kNames);
    choose(kNames, chosen);
    if (chosen < std::size(kNames)) wait_ = kChoices[chosen];
  }
  return true;
}

std::optional<seal::KeyringFiles> EngineOptions::seal() const {
  if (seal_.empty()) return std::nullopt;
  auto files = seal::KeyringFiles::parse(seal_, seal_peers_);
  return files ? std::optional(std::move(*files)) : std::nullopt;  // it was parsed when it was set
}

std::vector<base::AddressRange> EngineOptions::seal_require() const {
  if (seal_require_) return *seal_require_;
  if (seal_.empty()) return {};
  return {base::AddressRange::all()};
}

Result<> EngineOptions::set(std::string_view name, std::string_view text) {
  if (Result<> word; set_word(name, text, word)) return word;
  const auto* row = std::ranges::find(kTable, name_today(name), &OptionRow::name);
  if (row == kTable.end()) {
    return std::unexpected(Error{
        Status::invalid, 0, fmt::format("no option is called '{}': `fairlead options` lists them", base::shown(name))});
  }
  const auto value = base::parse_quantity(text, row->unit);
  if (!value) return std::unexpected(out_of_range(*row, fmt::format("'{}'", base::shown(text)), "it"));
  return set(static_cast<Option>(row - kTable.begin()), *value);
}

Result<> EngineOptions::set(Option option, std::uint64_t value) {
  const OptionRow& row = row_of(option);
  const bool is_in_range = value >= row.value_min && value <= row.value_max;
  if (!is_in_range || (is_power_of_two(row) && !std::has_single_bit(value))) {
    return std::unexpected(out_of_range(row, fmt::format("{}", value), "it"));
  }
  values_[static_cast<std::size_t>(option)] = value;
  return {};
}

std::span<const FormerOption> former_options() noexcept {
  return kFormer;
}

std::vector<std::string_view> EngineOptions::differences(const EngineOptions& other) const {
  std::vector<std::string_view> names;
  const auto compare = [&](std::string_view name, bool is_same) {
    if (!is_same) names.push_back(name);
  };
  for (std::size_t i = 0; i < kTable.size(); ++i) compare(kTable[i].name, values_[i] == other.values_[i]);
  compare("core", core_ == other.core_);
  compare("host", host_ == other.host_);
  compare("fault", fault_ == other.fault_);
  compare("flight", flight_ == other.flight_);
  compare("log", log_ == other.log_);
  compare("path", path_ == other.path_);
  compare("seal", seal_ == other.seal_);
  compare("seal_peers", seal_peers_ == other.seal_peers_);
  compare("seal_require", seal_require() == other.seal_require());
  compare("shm_directory", shm_directory_ == other.shm_directory_);
  compare("shm_users", admits_all_users_ == other.admits_all_users_);
  compare("wait", wait_ == other.wait_);
  return names;
}

}  // namespace fairlead::engine

namespace fairlead {

std::span<const OptionRow> option_table() noexcept {
  return engine::kTable;
}

std::span<const WordOptionRow> word_option_table() noexcept {
  return engine::kWords;
}

}  // namespace fairlead
