#pragma once
// The state of the host engine for the next program in this process (docs/host.md): engines, applications, and
// connections without a call. Descriptors stay open across exec(), so the state contains their numbers.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fairlead/error.hpp>

#include "engine/engine_state.hpp"
#include "host/layout.hpp"
#include "host/pairs_state.hpp"
#include "host/quota.hpp"
#include "host/served_active_state.hpp"
#include "queue/producer.hpp"

namespace fairlead::host {

/// A pending operation of an application.
struct PendingState {
  std::uint32_t index = 0;
  std::uint64_t name = 0, serial = 0;
  std::uint32_t slot = 0, generation = 0;  // at the engine
  std::uint64_t offset = 0, length = 0;    // its memory
  std::uint32_t events = 0;
  std::uint16_t port = 0;
  bool is_posted = false;  // else it is deferred
  bool is_outgoing = false;
};

struct DeferredState {
  Request request;
  std::uint64_t serial = 0;
};

/// A key that the application has not used yet, at the engine.
struct BlankState {
  std::uint32_t slot = 0, generation = 0;
};

struct KeysState {
  std::uint64_t given = 0;
  std::vector<BlankState> blanks;  // of the last keys given, in order
};

struct ApplicationPortState {
  std::uint32_t index = 0;
  std::uint32_t slot = 0, generation = 0;  // at the engine
  std::int32_t socket = -1;
  queue::Producer::Position events;
  std::vector<DeferredState> deferred;
  KeysState keys;
  std::optional<ServedActiveState> active;
};

struct ApplicationState {
  std::int32_t socket = -1, memory = -1;
  std::int32_t process = -1;  // none for another PID namespace
  std::uint64_t memory_bytes = 0, secret = 0;
  base::SocketAddress engine;
  Quota quota;
  std::uint64_t consumed = 0, served = 0, started = 0;  // requests
  base::Instant attached_at{};
  std::vector<PendingState> pending;
  std::vector<ApplicationPortState> ports;
  std::optional<ApplicationPairsState> pairs;
};

struct ServedEngineState {
  std::int32_t socket = -1;
  std::uint32_t thread = 0;
  bool is_for_any_port = false;  // applications of its thread that ask for any port get it
  engine::EngineState engine;
};

struct VisitorState {
  std::int32_t socket = -1;
  base::Instant came_at{};
};

struct ServiceState {
  std::uint32_t threads = 1;
  std::int32_t listener = -1;
  bool is_inherited = false;  // the listener is from a supervisor
  std::int32_t asker = -1;    // awaits the answer to `fairleadd --replace`
  std::vector<VisitorState> visitors;
  std::vector<ServedEngineState> engines;
  std::vector<ApplicationState> applications;  // the secret of each names its thread
  base::Instant stopped_at{};                  // when the previous program stopped serving
  std::string file;                            // of the listener

  /// Returns all descriptors that stay open.
  std::vector<int> descriptors() const;
};

base::SavedBytes encode(ServiceState& state);
/// Prepends a mark, the version, the length and a checksum, as encode() does.
base::SavedBytes with_head(std::span<const std::byte> fields);
/// Returns `invalid` if the bytes are no state, damaged, of another version, or contain an impossible value.
Result<ServiceState> decode_state(std::span<const std::byte> bytes);

}  // namespace fairlead::host
