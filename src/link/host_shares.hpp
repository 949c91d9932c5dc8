#pragma once
// Fair shares of a bounded table by host. Members belong to hosts (base::SocketAddress::host()). When space is short,
// the host with most members gives way, its oldest member first. So a flooding host shuts out itself, and others only
// if they hold as much.

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include "base/sip_hash.hpp"
#include "base/socket_address.hpp"
#include "link/message.hpp"

namespace fairlead::link {

template <typename Member, ListHook Member::* kHook>
class HostShares {
 public:
  explicit HostShares(const base::SipKey& key) : hosts_(0, Hash{key}) {}

  /// Adds the member as the youngest of its host.
  void add(Member& member) {
    Host& host = hosts_[member.address.host()];
    host.members.push_back(member);
    resize(host, host.size + 1);
    ++size_;
  }
  /// Removes the member; does nothing if it is not in the table.
  void remove(Member& member) {
    if (!(member.*kHook).is_linked()) return;
    const auto found = hosts_.find(member.address.host());
    (member.*kHook).unlink();
    --size_;
    resize(found->second, found->second.size - 1);
    if (found->second.size == 0) hosts_.erase(found);
  }
  /// Keeps a member that was considered for removal: it becomes the youngest of its host, and its host the last of its
  /// size.
  void pass_over(Member& member) {
    Host& host = hosts_.find(member.address.host())->second;
    (member.*kHook).unlink();
    host.members.push_back(member);
    resize(host, host.size);
  }

  std::size_t size() const { return size_; }
  std::size_t size_of(const base::SocketAddress& address) const {
    const auto found = hosts_.find(address.host());
    return found == hosts_.end() ? 0 : found->second.size;
  }
  /// Returns the oldest member of the address's host, or null if that host has none.
  Member* oldest_of(const base::SocketAddress& address) {
    const auto found = hosts_.find(address.host());
    return found == hosts_.end() ? nullptr : &found->second.members.front();
  }
  /// Returns the oldest member of the host with most members. Of several such hosts, the one that has had that many
  /// longest. Null if the table is empty.
  Member* oldest_of_largest() { return by_size_.empty() ? nullptr : &by_size_.begin()->members.front(); }

 private:
  struct Hash {
    base::SipKey key;
    std::size_t operator()(std::uint64_t host) const { return base::SipHash(key).add(host).value(); }
  };
  struct Host {
    boost::intrusive::list<Member, boost::intrusive::member_hook<Member, ListHook, kHook>,
                           boost::intrusive::constant_time_size<false>>
        members;
    std::size_t size = 0;
    boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> hook;
  };
  struct Larger {
    bool operator()(const Host& a, const Host& b) const { return a.size > b.size; }
  };

  /// Moves the host to the end of the hosts of its new size.
  void resize(Host& host, std::size_t size) {
    host.hook.unlink();
    host.size = size;
    by_size_.insert(host);
  }

  std::unordered_map<std::uint64_t, Host, Hash> hosts_;
  boost::intrusive::multiset<Host, boost::intrusive::member_hook<Host, decltype(Host::hook), &Host::hook>,
                             boost::intrusive::compare<Larger>, boost::intrusive::constant_time_size<false>>
      by_size_;
  std::size_t size_ = 0;
};

}  // namespace fairlead::link
