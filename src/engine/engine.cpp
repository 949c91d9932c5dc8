#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/ensure.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::engine {
namespace {

link::LinkOptions link_options(const EngineOptions& options, const path::Path& path, const base::SocketAddress& own) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  link::LinkOptions link;
  link.own = own;
  link.datagram_size_max = static_cast<std::uint32_t>(options.get(Option::datagram_size));
  link.window_segments = static_cast<std::uint32_t>(options.get(Option::window_segments));
  link.window_bytes = std::min(options.get(Option::window_bytes), path.receive_buffer_bytes());
  link.receive_buffer_bytes = path.receive_buffer_bytes();
  link.embedded_max = static_cast<std::uint32_t>(options.get(Option::embedded_max));
  link.tiny_max = static_cast<std::uint32_t>(options.get(Option::tiny_max));
  link.command_depth = static_cast<std::uint32_t>(options.get(Option::command_depth));
  link.data_depth = static_cast<std::uint32_t>(options.get(Option::data_depth));
  link.command_segment_max = static_cast<std::uint32_t>(options.get(Option::command_segment));
  link.ack_after = microseconds(options.get(Option::ack_delay));
  link.resend_after_min = microseconds(options.get(Option::resend_after_min));
  link.give_up_after = milliseconds(options.get(Option::give_up_after));
  link.connect_within = milliseconds(options.get(Option::unreachable_after));
  link.peers_max = static_cast<std::uint32_t>(options.get(Option::peers_max));
  return link;
}

std::unique_ptr<transport::Transports> make_transports(std::unique_ptr<path::Path> path, const base::SocketAddress& own,
                                                       const EngineOptions& options, std::uint64_t epoch,
                                                       std::uint64_t seed, link::TokenSource& secrets,
                                                       std::unique_ptr<shm::Transport> shm,
                                                       std::optional<link::SealSettings> sealing) {
  if (!path) return nullptr;
  if (sealing) {
    sealing->bytes_max = options.get(Option::seal_rekey_bytes);
    sealing->age_max = std::chrono::seconds(options.get(Option::seal_rekey_after));
  }
  const transport::Transports::Plan plan{
      .link = link_options(options, *path, own),
      .hot_peers = options.get(Option::hot_peers),
      .datagram_size_max = static_cast<std::uint32_t>(options.get(Option::datagram_size)),
      .sealing = std::move(sealing),
      .is_udp_chosen = options.path() == PathChoice::udp,
  };
  // The link sends its epoch to every peer that greets it. The engine's epoch is known only from descriptors. Messages
  // carry keys XOR this epoch, so a peer that has never seen a descriptor must guess 64 bits.
  const std::uint64_t life = link::TokenSource(~seed, epoch).next();
  return std::make_unique<transport::Transports>(std::move(path), plan, life, secrets.next(), std::move(shm));
}

base::Duration ask_after(const EngineOptions& options) {
  return std::chrono::milliseconds(options.get(Option::give_up_after)) / 8;
}

ActiveMessages::Bounds active_bounds(const EngineOptions& options) {
  return {.port = {.arrivals_max = static_cast<std::uint32_t>(options.get(Option::active_messages_max)),
                   .memory_max = options.get(Option::active_memory_max),
                   .packed_max = static_cast<std::uint32_t>(options.get(Option::active_packed_max))},
          .filling_max = static_cast<std::uint32_t>(options.get(Option::operations_max)),
          .ask_after = ask_after(options)};
}

}  // namespace

Engine::Engine(std::unique_ptr<path::Path> path, const base::SocketAddress& address, const EngineOptions& options,
               std::uint64_t epoch, std::uint64_t seed, std::unique_ptr<shm::Transport> shm,
               std::optional<link::SealSettings> sealing)
    : address_(address),
      options_(options),
      epoch_(epoch),
      secrets_(seed, epoch),
      transports_(make_transports(std::move(path), address, options, epoch, seed, secrets_, std::move(shm),
                                  std::move(sealing))),
      ports_(address),
      active_(ports_, transports_.get(), address, active_bounds(options)),
      messages_(ports_, transports_.get(), address, epoch, options_, secrets_),
      lost_peers_(std::chrono::milliseconds(options.get(Option::give_up_after))) {}

Engine::~Engine() = default;

qp::QueuePairs& Engine::make_pairs() {
  // The kernel gives a UDP port to one engine only, so the port's index in the range makes queue pair numbers unique.
  const auto port_first = static_cast<std::uint16_t>(options_.get(Option::port_first));
  const std::uint32_t slot = std::uint32_t{address_.port} - port_first;
  pairs_ = std::make_unique<qp::QueuePairs>(
      transports_.get(), address_,
      qp::QueuePairs::Bounds{
          .number_first = slot < wire::PairPort::kEngines ? slot << wire::PairPort::kIndexBits : kNone,
          .port_first = port_first,
          .copied_max = options_.get(Option::embedded_max),
          .early_max = options_.get(Option::early_max),
          .cma_max = options_.get(Option::shm_cma_max),
          .cma_awake_max = options_.get(Option::shm_cma_awake_max)});
  return *pairs_;
}

bool Engine::is_owing() const {
  if (!transports_) return false;
  return messages_.is_owing() || active_.is_owing() || transports_->link().is_owing() ||
         (pairs_ && pairs_->is_owing()) ||
         (shm_transport() != nullptr && shm_transport()->has_any(shm::Transport::Pendings::wanted));
}

void Engine::farewell(base::Instant now) {
  if (!transports_) return;
  if (pairs_) pairs_->progress(now);
  transports_->farewell(std::chrono::microseconds(options_.get(Option::ack_delay)), now);
}

bool Engine::cancel(PortHandle port, OperationHandle operation, base::Instant now) {
  now_ = now;
  if (!messages_.cancel(port, operation, now)) return false;
  if (!transports_) return true;
  react(now);
  messages_.grant_patience(port, operation, now);
  return true;
}

void Engine::cancel_all(PortHandle port, base::Instant now) {
  messages_.set_spares(port, {});
  messages_.for_each_of(port, [&](OperationHandle operation) { cancel(port, operation, now); });
  messages_.cancel_short_of(port, now);
  messages_.give_back_all(port, now);
}

void Engine::set_spares(PortHandle port, const SparePlan& plan, base::Instant now) {
  messages_.set_spares(port, plan);
  if (plan.spares) return;
  messages_.for_each_spare_of(port, [&](OperationHandle operation) { cancel(port, operation, now); });
}

void Engine::free_port(PortHandle handle) {
  const Port* const port = ports_.find(handle);
  if (port != nullptr && port->active) active_.close(handle.slot, now_);
  ports_.free(handle);
}

Status Engine::send_active(PortHandle handle, const ActiveMessage& message, base::Instant now,
                           Conversation* conversation) {
  Port* const found = ports_.find(handle);
  if (found == nullptr || !found->active) return Status::stale;
  Port& port = *found;
  if (const Status status = active_.begin(port, message); status != Status::ok) return status;
  now_ = now;
  const bool is_referenced = message.length > options_.get(Option::embedded_max);
  if (message.to.engine == address_) {
    active_.send_here(port, message, now);
    if (is_referenced)
      ports_.produce(handle.slot, {.cookie = message.cookie, .length = message.length, .source = message.to});
    return Status::ok;
  }
  if (!transports_) return Status::unreachable;
  link::PeerHandle peer;
  if (const Status status = transports_->resolve(message.to.engine, now, peer); status != Status::ok) return status;
  if (conversation != nullptr) *conversation = active_.conversation(peer);
  if (!is_referenced) [[likely]]
    return active_.send(peer, port, message, 0, now);
  const std::uint64_t name = messages_.track_send(handle, peer, message.to, message.length, message.cookie);
  if (name == 0) return Status::no_memory;
  const Status status = active_.send(peer, port, message, name, now, messages_.reference_of(name));
  if (status != Status::ok) messages_.untrack_send(name);
  return status;
}

void Engine::check() {
  std::vector<std::uint32_t> of_port;
  messages_.check(of_port);
  ports_.for_each([&](std::uint32_t slot, const Port& port) {
    const std::uint64_t own = slot < of_port.size() ? of_port[slot] : 0;
    const std::uint64_t elsewhere = transports_ ? transports_->count_pending(slot) : 0;
    ENSURE(port.operations == own + elsewhere, "port {}: {} operations, of which {} are here and {} in the transports",
           port.number, port.operations, own, elsewhere);
  });
  active_.check();
  if (pairs_) pairs_->check();
  if (shm_transport() != nullptr) shm_transport()->check();
  if (transports_) ENSURE(transports_->link().counters().is_consistent(), "the link's counters contradict each other");
}

}  // namespace fairlead::engine
