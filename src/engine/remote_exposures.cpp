// Enter, resolve, claim, copy, report, leave (docs/one-sided.md). The hazard pointer in the shared page is set from
// before the look-up until after the report. An owner that cancels waits for that, and then finds the report in our
// ring.

#include "engine/remote_exposures.hpp"

#include <algorithm>

#include "base/ensure.hpp"

namespace fairlead::engine {

bool RemoteExposures::carry_out(PortHandle handle, bool is_put, const Transfer& transfer, base::Instant now) {
  if (context_.shm_transport() == nullptr || transfer.length == 0 ||
      transfer.length > std::min(onesided::kCarriedOutMax, transfer.carried_out_max))
    return false;
  link::PeerHandle peer;
  const bool is_met = context_.transports->resolve(transfer.target.engine, now, peer) == Status::ok;
  shm::Connection* const there =
      is_met && shm::Transport::has(peer) ? context_.shm_transport()->mapped_peer(peer) : nullptr;
  if (there == nullptr || there->epoch != transfer.target_epoch) return false;
  const onesided::ExposureRequest request{
      .key = transfer.key, .port = transfer.target.port, .is_put = is_put, .length = transfer.length};
  std::optional<std::uint64_t> length;
  {
    onesided::RemoteMemory memory(*there, request.use());
    length = copy(peer, *there, memory, request, transfer.memory);
    if (memory.has_failed()) ++context_.counters.calls_failed;
    if (!length) {
      ++context_.counters.not_carried_out;
      return false;
    }
    tell_owner(peer, context_.ports[handle.slot].number, transfer, *length);
  }
  there->alert();
  ++(is_put ? context_.counters.puts_carried_out : context_.counters.gets_carried_out);
  context_.ports.produce(handle.slot, {.cookie = transfer.cookie,
                                       .length = *length,
                                       .offset = 0,
                                       .time_ns = now.time_since_epoch().count(),
                                       .source = transfer.target,
                                       .status = Status::ok,
                                       .is_final = true});
  return true;
}

/// Returns how much was transferred, or nullopt if the owner must be asked. Bytes that may have been written are then
/// written again.
std::optional<std::uint64_t> RemoteExposures::copy(link::PeerHandle peer, const shm::Connection& there,
                                                   onesided::RemoteMemory& memory,
                                                   const onesided::ExposureRequest& request,
                                                   std::span<const iovec> pieces) {
  auto place = memory.find(request);
  // The report must find room, because a completed transfer cannot be requested again.
  if (!place || !context_.shm_transport()->has_room(peer)) return std::nullopt;
  const bool is_mapped = place->mapped != nullptr;
  if (!is_mapped) {
    const EngineOptions& options = context_.options;
    if (!there.may_call(place->length, options.get(Option::shm_cma_max), options.get(Option::shm_cma_awake_max)))
      return std::nullopt;
    place = memory.find_by_calls(request);
  }
  if (!place || !memory.claim(request.key) || !memory.copy(request, *place, pieces)) return std::nullopt;
  if (!is_mapped) ++(request.is_put ? context_.counters.puts_by_calls : context_.counters.gets_by_calls);
  return place->length;
}

/// Writes the report without ringing, which may take a system call while we hold the hazard pointer.
void RemoteExposures::tell_owner(link::PeerHandle peer, std::uint32_t own_port, const Transfer& transfer,
                                 std::uint64_t length) {
  const bool is_told = context_.shm_transport()->write(peer, {.operation = wire::Operation::carried_out,
                                                              .source_port = own_port,
                                                              .target_port = transfer.target.port,
                                                              .key = transfer.key ^ transfer.target_epoch,
                                                              .a = length});
  ENSURE(is_told, "no room for a record, though there was");
}

}  // namespace fairlead::engine
