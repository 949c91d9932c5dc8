#include "host/service_state.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include <fmt/format.h>

#include "base/saved.hpp"
#include "base/sip_hash.hpp"
#include "host/routes.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint64_t kMark = 0x6574'6174'5364'6166;  // "fadState"
constexpr std::uint32_t kStateVersion = 7;              // raised with each change of the format

struct Head {
  std::uint64_t mark = kMark;
  std::uint32_t version = kStateVersion;
  std::uint64_t bytes = 0, checksum = 0;
};

/// Detects accidental damage only. Forgery needs no defence: the state comes from this process, in a sealed memfd.
std::uint64_t checksum(std::span<const std::byte> bytes) {
  return base::SipHash({kMark, kStateVersion}).add(bytes).value();
}

std::unexpected<Error> no_state(std::string message) {
  return std::unexpected(Error{Status::invalid, 0, std::move(message)});
}

template <typename Archive>
void fields(Archive& archive, Head& head) {
  archive(head.mark, head.version, head.bytes, head.checksum);
}
}  // namespace

// Serialisation of types, wherever they occur.

template <typename Archive>
void fields(Archive& archive, PlainAddress& address) {
  for (std::uint8_t& part : address.ip) archive(part);
  archive(address.scope, address.port);
}
template <typename Archive>
void fields(Archive& archive, Request& request) {
  archive(request.operation, request.offset, request.length, request.epoch, request.key, request.size_min, request.to,
          request.to_port, request.messages_max, request.port, request.kind, request.flags, request.status);
}
template <typename Archive>
void fields(Archive& archive, Quota& quota) {
  archive(quota.ports, quota.operations, quota.bytes_per_second, quota.number_first, quota.number_last, quota.pairs,
          quota.queue_bytes, quota.events, quota.registered_bytes);
}
template <typename Archive>
void fields(Archive& archive, PendingState& one) {
  archive(one.index, one.name, one.serial, one.slot, one.generation, one.offset, one.length, one.events, one.port,
          one.is_posted, one.is_outgoing);
}
template <typename Archive>
void fields(Archive& archive, DeferredState& deferred) {
  archive(deferred.request, deferred.serial);
}
template <typename Archive>
void fields(Archive& archive, BlankState& blank) {
  archive(blank.slot, blank.generation);
}
template <typename Archive>
void fields(Archive& archive, KeysState& keys) {
  archive(keys.given, keys.blanks);
}
template <typename Archive>
void fields(Archive& archive, ApplicationPortState& port) {
  archive(port.index, port.slot, port.generation, port.socket, port.events, port.deferred, port.keys, port.active);
}
template <typename Archive>
void fields(Archive& archive, ApplicationState& one) {
  archive(one.socket, one.memory, one.process, one.memory_bytes, one.secret, one.engine, one.quota, one.consumed,
          one.served, one.started, one.attached_at, one.pending, one.ports, one.pairs);
}
template <typename Archive>
void fields(Archive& archive, ServedEngineState& one) {
  archive(one.socket, one.thread, one.is_for_any_port, one.engine);
}
template <typename Archive>
void fields(Archive& archive, VisitorState& visitor) {
  archive(visitor.socket, visitor.came_at);
}
template <typename Archive>
void fields(Archive& archive, ServiceState& state) {
  archive(state.threads, state.listener, state.is_inherited, state.asker, state.visitors, state.engines,
          state.applications, state.stopped_at, state.file);
}

namespace {

bool is_sound(const ApplicationState& one) {
  const auto is_inside = [&](const PendingState& pending) {
    return pending.index < kOperationsMax && pending.offset >= Layout::head_bytes() &&
           pending.offset <= one.memory_bytes && pending.length != 0 &&
           pending.length <= one.memory_bytes - pending.offset && pending.port < kPortsMax && pending.events != 0;
  };
  const auto is_port = [](const ApplicationPortState& port) {
    return port.index < kPortsMax && port.socket >= 0 && port.keys.blanks.size() <= kKeysAhead &&
           port.keys.blanks.size() <= port.keys.given;
  };
  const bool are_pairs_whole = !one.pairs || (one.pairs->socket >= 0 && one.pairs->rings >= 0 &&
                                              one.pairs->memory >= 0 && one.pairs->memory_bytes <= kRegisteredBytesMax);
  return one.socket >= 0 && one.memory >= 0 && are_pairs_whole && std::ranges::all_of(one.pending, is_inside) &&
         std::ranges::all_of(one.ports, is_port);
}

/// Returns whether each engine and each application has one of the threads, and applications that of their engine.
bool are_threads_sound(const ServiceState& state) {
  const auto has_thread = [&](const ServedEngineState& one) { return one.thread < state.threads; };
  const auto has_its_engine = [&](const ApplicationState& application) {
    return std::ranges::any_of(state.engines, [&](const ServedEngineState& one) {
      return one.engine.address == application.engine && one.thread == Routes::thread_of_secret(application.secret);
    });
  };
  return state.threads != 0 && state.threads <= kThreadsMax && std::ranges::all_of(state.engines, has_thread) &&
         std::ranges::all_of(state.applications, has_its_engine);
}

}  // namespace

std::vector<int> ServiceState::descriptors() const {
  std::vector<int> all{listener, asker};
  for (const VisitorState& visitor : visitors) all.push_back(visitor.socket);
  for (const ServedEngineState& one : engines) all.push_back(one.socket);
  for (const ApplicationState& one : applications) {
    all.insert(all.end(), {one.socket, one.memory, one.process});
    for (const ApplicationPortState& port : one.ports) all.push_back(port.socket);
    if (one.pairs) all.insert(all.end(), {one.pairs->socket, one.pairs->rings, one.pairs->memory});
  }
  std::erase(all, -1);
  return all;
}

base::SavedBytes encode(ServiceState& state) {
  base::SavedWriter body;
  body(state);
  return with_head(body.bytes());
}

base::SavedBytes with_head(std::span<const std::byte> fields) {
  Head head{.bytes = fields.size(), .checksum = checksum(fields)};
  base::SavedWriter whole;
  whole(head);
  base::SavedBytes bytes = whole.bytes();
  bytes.insert(bytes.end(), fields.begin(), fields.end());
  return bytes;
}

Result<ServiceState> decode_state(std::span<const std::byte> bytes) {
  Head head;
  base::SavedWriter measure;
  measure(head);
  base::SavedReader first(bytes);
  first(head);
  if (!first.is_good() || head.mark != kMark) return no_state("this is no state of a host engine");
  if (head.version != kStateVersion) {
    return no_state(fmt::format("the state has version {}, and this fairleadd reads version {}: restart it instead",
                                head.version, kStateVersion));
  }
  const auto body = bytes.subspan(measure.bytes().size());
  if (head.bytes != body.size() || head.checksum != checksum(body)) return no_state("the state is damaged");
  ServiceState state;
  base::SavedReader reader(body);
  reader(state);
  if (!reader.is_at_end() || state.listener < 0 || !std::ranges::all_of(state.applications, is_sound) ||
      !are_threads_sound(state))
    return no_state("the state contradicts itself");
  const std::vector<int> descriptors = state.descriptors();
  if (std::unordered_set(descriptors.begin(), descriptors.end()).size() != descriptors.size() ||
      std::ranges::any_of(descriptors, [](int one) { return one < 0; }))
    return no_state("the state names a descriptor twice");
  return state;
}

}  // namespace fairlead::host
