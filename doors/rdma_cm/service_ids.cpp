// Ids: their steps, events, listeners and groups.

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "doors/ibverbs/fail_pair.hpp"
#include "doors/rdma_cm/addressing.hpp"
#include "doors/rdma_cm/event_answer.hpp"
#include "doors/rdma_cm/service.hpp"

namespace fairlead::rdma_cm {
namespace {

// Fails the queue pair and flushes its receives, so that a program that waits only for completions notices.
void fail_pair(const Id& id) {
  const ibverbs::Identity* const identity = find_identity(id.device);
  if (identity != nullptr) ibverbs::fail_pair(*identity, id.terms.qp_num, id.connection.peer_terms().qp_num);
}

}  // namespace

std::shared_ptr<Id> Service::find(std::uint32_t handle, const EventFile& file) {
  const auto found = ids_.find(handle);
  return found != ids_.end() && found->second->file.get() == &file ? found->second : nullptr;
}

void Service::remove_events(EventFile& file, const Id& id) {
  std::vector<std::shared_ptr<Id>> children;
  std::erase_if(file.events, [&](const Pending& pending) {
    if (pending.id.get() != &id && pending.child.get() != &id) return false;
    if (pending.child && pending.id.get() == &id) children.push_back(pending.child);
    if (pending.child.get() == &id) told_of_request(*pending.id, id);
    return true;
  });
  for (const auto& child : children) destroy(child);
}

void Service::destroy(const std::shared_ptr<Id>& id) {
  if (ids_.erase(id->handle) == 0) return;
  if (const auto message = id->connection.destroy()) post(*id, *message);
  arm(*id);
  by_name_.erase(id->connection.name());
  by_request_.erase({id->peer_address, id->connection.peer_name()});
  if (std::erase(listeners_, id) != 0) {
    for (const Ip& ip : id->listens) carrier_.unlisten(ip, id->source.port);
  }
  remove_events(*id->file, *id);
  free_handles_.insert(id->handle);
}

void Service::apply(const std::shared_ptr<Id>& id, const Step& step) {
  if (step.send) post(*id, *step.send);
  if (step.tell) tell(id, *step.tell);
  if (step.fails_pair) fail_pair(*id);
  if (step.has_forgotten) ask_at_ = Instant::clock::now();
  arm(*id);
  if (id->connection.needs_peer() && ask_at_ == kNever) {
    ask_at_ = Instant::clock::now() + kAliveEvery;
    wake();
  }
}

void Service::tell(const std::shared_ptr<Id>& id, const Told& told, const std::shared_ptr<Id>& child) {
  if (id->uid == 0 && !child) return;  // a request that the program has not accepted: its accept will fail
  Pending pending{.id = id, .child = child, .answer = answer_of(child ? *child : *id, told)};
  pending.answer.uid = id->uid;
  id->file->push(std::move(pending));
}

int Service::listen(const std::shared_ptr<Id>& id, std::uint32_t backlog) {
  if (id->connection.state() > State::bound) return EINVAL;
  id->reserved.clear();
  const std::vector<Ip> ips = devices_of(id->source, id->takes_v6_only);
  if (ips.empty()) return ENODEV;
  for (const auto& other : listeners_) {
    if (other->port_space != id->port_space || other->source.port != id->source.port) continue;
    if (std::ranges::any_of(ips, [&](const Ip& ip) { return std::ranges::count(other->listens, ip) != 0; }))
      return EADDRINUSE;
  }
  for (const Ip& ip : ips) {
    const int error = carrier_.listen(ip, id->source.port);
    if (error == 0) {
      id->listens.push_back(ip);
      continue;
    }
    for (const Ip& begun : id->listens) carrier_.unlisten(begun, id->source.port);
    id->listens.clear();
    return error;
  }
  id->backlog = Places(backlog == 0 || backlog > kBacklogMax ? kBacklogMax : backlog);
  listeners_.push_back(id);
  return id->connection.listen().error;
}

std::shared_ptr<Membership> Service::join(const std::shared_ptr<Id>& id, const Ip& group, std::uint64_t uid) {
  if (id->groups.size() >= Id::kGroupsMax) return nullptr;
  auto membership =
      std::make_shared<Membership>(Membership{.handle = membership_handles_++, .uid = uid, .group = group});
  id->groups.push_back(membership);
  id->file->push({.id = id, .child = nullptr, .answer = answer_of_join(*id, *membership), .membership = membership});
  return membership;
}

std::shared_ptr<Membership> Service::leave(std::uint32_t handle, EventFile& file) {
  for (const auto& [_, id] : ids_) {
    const auto found = std::ranges::find(id->groups, handle, [](const auto& each) { return each->handle; });
    if (id->file.get() != &file || found == id->groups.end()) continue;
    const auto left = *found;
    id->groups.erase(found);
    std::erase_if(file.events, [&](const Pending& pending) { return pending.membership == left; });
    return left;
  }
  return nullptr;
}

}  // namespace fairlead::rdma_cm
