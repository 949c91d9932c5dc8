#include "qp/group_table.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include "path/group_sockets.hpp"
#include "qp/group_address.hpp"
#include "qp/queue_pair.hpp"

namespace fairlead::qp {
namespace {

std::unexpected<Error> cannot_attach(Status status, int number, std::string why) {
  return std::unexpected(Error{status, number, "multicast: " + std::move(why)});
}

bool has_pair(const std::vector<std::uint32_t>& pairs, std::uint32_t index) {
  return std::ranges::find(pairs, index) != pairs.end();
}

}  // namespace

base::SocketAddress GroupTable::address_of(const verbs::Gid& canonical) const {
  // The port after those of engines, on which all hosts agree.
  const auto port = static_cast<std::uint16_t>(shared_.bounds.port_first + wire::PairPort::kEngines);
  return address_of_group(canonical, shared_.address, port);
}

std::optional<base::SocketAddress> GroupTable::sealed_address(const base::SocketAddress& group) const {
  // The members of a group are unknown, but hosts of our own network are among them. If traffic with them has to be
  // sealed, none may be sent to the group.
  for (const base::SocketAddress& each : {group, shared_.address})
    if (!shared_.transports->may_be_clear(each)) return each;
  return std::nullopt;
}

Result<> GroupTable::attach(const QueuePair& pair, const verbs::Gid& gid, std::uint16_t lid) {
  if (!pair.is(verbs::QpType::ud)) return cannot_attach(Status::invalid, EINVAL, "only UD queue pairs are attached");
  if (!is_group(gid)) {
    return cannot_attach(Status::invalid, EINVAL, "this GID names no group: it is neither ff.. nor an IPv4 group");
  }
  const verbs::Gid wanted = canonical_group(gid);
  const auto known = std::ranges::find(groups_, wanted, &Group::gid);
  if (known == groups_.end()) return add({.gid = wanted, .lid = lid, .pairs = {pair.index}});
  if (has_pair(known->pairs, pair.index)) return {};
  if (known->pairs.size() == kPairsMost) {
    return cannot_attach(Status::no_memory, ENOMEM,
                         std::to_string(kPairsMost) + " queue pairs are attached to this group already: detach one");
  }
  known->pairs.push_back(pair.index);
  return {};
}

Result<> GroupTable::add(Group group) {
  if (groups_.size() == kGroupsMost) {
    return cannot_attach(Status::no_memory, ENOMEM,
                         "the device is in " + std::to_string(kGroupsMost) + " groups already: leave one");
  }
  path::GroupSockets* const sockets = shared_.transports != nullptr ? shared_.transports->groups() : nullptr;
  if (sockets == nullptr) {
    return cannot_attach(Status::not_supported, EOPNOTSUPP,
                         "this engine has no address of an interface to join a group with");
  }
  const base::SocketAddress address = address_of(group.gid);
  if (const auto sealed = sealed_address(address)) {
    return cannot_attach(Status::not_permitted, EPERM,
                         "datagrams of groups are not sealed, and nothing unsealed is exchanged with " +
                             sealed->ip_text() + ": leave it out of FAIRLEAD_SEAL_REQUIRE");
  }
  if (auto joined = sockets->join(address); !joined) return joined;
  groups_.push_back(std::move(group));
  return {};
}

void GroupTable::remove_pair(std::vector<Group>::iterator group, std::uint32_t pair) {
  std::erase(group->pairs, pair);
  if (!group->pairs.empty()) return;
  shared_.transports->groups()->leave(address_of(group->gid));
  groups_.erase(group);
}

Status GroupTable::detach(const QueuePair& pair, const verbs::Gid& gid) {
  const auto known = std::ranges::find(groups_, canonical_group(gid), &Group::gid);
  if (known == groups_.end() || !has_pair(known->pairs, pair.index)) return Status::stale;
  remove_pair(known, pair.index);
  return Status::ok;
}

bool GroupTable::is_attached(const QueuePair& pair) const {
  return std::ranges::any_of(groups_, [&](const Group& group) { return has_pair(group.pairs, pair.index); });
}

void GroupTable::forget(const QueuePair& pair) {
  for (std::size_t i = groups_.size(); i > 0; --i)
    if (has_pair(groups_[i - 1].pairs, pair.index))
      remove_pair(groups_.begin() + static_cast<std::ptrdiff_t>(i - 1), pair.index);
}

std::span<const std::uint32_t> GroupTable::pairs_of(const verbs::Gid& canonical) const {
  const auto known = std::ranges::find(groups_, canonical, &Group::gid);
  return known == groups_.end() ? std::span<const std::uint32_t>() : known->pairs;
}

const verbs::Gid* GroupTable::find_lid(std::uint16_t lid) const {
  if (lid == 0) return nullptr;  // stands for "no LID"
  const auto known = std::ranges::find(groups_, lid, &Group::lid);
  return known == groups_.end() ? nullptr : &known->gid;
}

}  // namespace fairlead::qp
