#include "onesided/exposure_publisher.hpp"

namespace fairlead::onesided {
namespace {

// Ending an exposure outside the arena checks every peer, so their number is bounded.
constexpr std::uint32_t kCmaPeersMax = 64;

}  // namespace

ExposurePublisher::Answer ExposurePublisher::publish(std::uint32_t holder, const ExposurePlan& plan) {
  if (!is_seen() || plan.memory.empty()) return Answer::not_reached;
  const std::uint64_t length = plan.memory.size();
  const auto found = connections_->arena()->find(plan.memory);
  const bool is_outside =
      !found && own_.records != nullptr && length <= cma_max_ && connections_->peers().size() <= kCmaPeersMax;
  if (!found && !is_outside) return Answer::not_reached;
  if (places_.empty()) places_.resize(SharedTables::kExposures, kNone);
  std::uint32_t& place = places_[place_of(plan.key)];
  if (place != kNone) return Answer::crowded;
  place = holder | (is_outside ? kOutside : 0);
  if (is_outside) {
    own_.records->exposures[place_of(plan.key)].publish(
        {.key = plan.key,
         .address = reinterpret_cast<std::uintptr_t>(plan.memory.data()),
         .length = length,
         .is_writable = plan.is_writable});
  }
  published(plan.key).publish({.key = plan.key,
                               .offset = found.value_or(0),
                               .length = length,
                               .port = plan.port,
                               .is_writable = plan.is_writable},
                              publications_);
  return Answer::published;
}

/// Returns whether the peer named in the table may exist. Any peer may have written the name.
bool ExposurePublisher::may_live(std::uint64_t name) const {
  return name != 0 && name <= shm::DoorbellPage::kBits &&
         connections_->peers().may_live(static_cast<std::uint32_t>(name - 1));
}

bool ExposurePublisher::take(std::uint64_t key) {
  hide_own(key);
  if (is_used(key)) return false;
  const std::uint64_t taker = published(key).swap(key, 0);
  if (taker != key && may_live(taker)) return false;
  free(key);
  return true;
}

std::optional<Claimer> ExposurePublisher::cancel(std::uint64_t key) {
  hide_own(key);
  const std::uint64_t taker = published(key).holder.exchange(0, std::memory_order_acq_rel);
  // No peer claimed it; a peer that still names it can only find it withdrawn.
  if (taker == key && !is_outside(key)) return std::nullopt;
  const shm::ConnectionTable& peers = connections_->peers();
  if (taker == key || taker == 0 || taker > peers.size()) return Claimer{};
  return Claimer{.name = taker, .generation = peers[static_cast<std::uint32_t>(taker - 1)].generation};
}

std::optional<Status> ExposurePublisher::end_of(std::uint64_t key, Claimer& claimer) {
  if (connections_->read_sections().is_used(shm::Withdrawn::exposure(key))) return std::nullopt;
  if (claimer.name == 0) return Status::canceled;
  const auto slot = static_cast<std::uint32_t>(claimer.name - 1);
  const shm::Connection& peer = connections_->peer(slot);
  if (peer.generation != claimer.generation || peer.state == shm::Connection::State::closed)
    return Status::refused;  // the peer is gone and had reported nothing
  if (!peer.is_audible()) return std::nullopt;
  if (claimer.ring_read_at == 0) claimer.ring_read_at = peer.reader.read() + peer.reader.lines();
  if (!peer.reader.has_record() || peer.reader.read() >= claimer.ring_read_at) return Status::canceled;
  connections_->watch().remind(slot);
  return std::nullopt;
}

bool ExposurePublisher::take_from(const shm::Departure& gone, std::uint64_t key) {
  const std::uint64_t name = std::uint64_t{gone.slot} + 1;
  return shm::Withdrawn::exposure(key).is_used(gone.at) && published(key).swap(name, 0) == name;
}

}  // namespace fairlead::onesided
