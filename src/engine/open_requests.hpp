#pragma once
// The unanswered active-message requests of one port, and their targets. Only the target's answer is accepted, and only
// once.
//
// The AM layer names a request by a number whose low 32 bits are an index into its own table. No other open request of
// the port has that index, so it serves as an index here, too.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "engine/completion.hpp"

namespace fairlead::engine {

class OpenRequests {
 public:
  static constexpr std::uint32_t kPlacesMax = 1U << 22;

  struct Request {
    std::uint64_t name = 0;
    RemotePort to;
    bool is_open = false;
    std::uint64_t local_way = 0;  // Conversation::way if a transport of this host carries it
  };

  static bool is_possible(std::uint64_t name) { return place_of(name) < kPlacesMax; }

  void open(std::uint64_t name, const RemotePort& to) {
    const std::uint32_t place = place_of(name);
    if (place >= requests_.size()) [[unlikely]]
      requests_.resize(std::size_t{place} + 1);
    requests_[place] = {name, to, true};
  }
  /// Notes the local transport's peer that carries the open request.
  void carry(std::uint64_t name, std::uint64_t local_way) { requests_[place_of(name)].local_way = local_way; }
  /// Returns whether a request to that local peer is open. Takes time in proportion to the requests ever open at once.
  bool is_any_at(std::uint64_t local_way) const {
    return std::ranges::any_of(
        requests_, [&](const Request& request) { return request.is_open && request.local_way == local_way; });
  }
  void close(std::uint64_t name) {
    if (Request* const request = find(name)) request->is_open = false;
  }
  /// Returns whether the request awaits an answer from that port.
  bool is_open(std::uint64_t name, const base::SocketAddress& engine, std::uint32_t port) const {
    const Request* const request = find(name);
    return request != nullptr && request->to.port == port && request->to.engine == engine;
  }

  std::vector<Request> save() const {
    std::vector<Request> open;
    std::ranges::copy_if(requests_, std::back_inserter(open), &Request::is_open);
    return open;
  }
  /// Returns false if the names are impossible.
  bool restore(std::span<const Request> open) {
    for (const Request& request : open) {
      if (!is_possible(request.name) || find(request.name) != nullptr) return false;
      this->open(request.name, request.to);
    }
    return true;
  }

 private:
  static std::uint32_t place_of(std::uint64_t name) { return static_cast<std::uint32_t>(name); }
  const Request* find(std::uint64_t name) const {
    const std::uint32_t place = place_of(name);
    if (place >= requests_.size()) return nullptr;
    const Request& request = requests_[place];
    return request.is_open && request.name == name ? &request : nullptr;
  }
  Request* find(std::uint64_t name) { return const_cast<Request*>(std::as_const(*this).find(name)); }

  std::vector<Request> requests_;
};

}  // namespace fairlead::engine
