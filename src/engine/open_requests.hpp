#pragma once
// The unanswered active-message requests of one port, and their targets. Only the target's answer is accepted, and only
// once.
//
// The AM layer names a request by a number whose low 32 bits are an index into its own table. No other open request of
// the port has that index, so it serves as an index here, too.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/completion.hpp"

namespace fairlead::engine {

class OpenRequests {
 public:
  static constexpr std::uint32_t kPlacesMax = 1U << 22;

  static bool is_possible(std::uint64_t name) { return place_of(name) < kPlacesMax; }

  void open(std::uint64_t name, const RemotePort& to) {
    const std::uint32_t place = place_of(name);
    if (place >= requests_.size()) [[unlikely]]
      requests_.resize(std::size_t{place} + 1);
    requests_[place] = {name, to, true};
  }
  void close(std::uint64_t name) {
    if (Request* const request = find(name)) request->is_open = false;
  }
  /// Returns whether the request awaits an answer from that port.
  bool is_open(std::uint64_t name, const base::SocketAddress& engine, std::uint32_t port) const {
    const Request* const request = find(name);
    return request != nullptr && request->to.port == port && request->to.engine == engine;
  }

 private:
  struct Request {
    std::uint64_t name = 0;
    RemotePort to;
    bool is_open = false;
  };

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
