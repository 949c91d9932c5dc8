#pragma once
// The requests of active messages of one port that have not been answered: who was asked what. Nobody else's answer is
// let in, and nobody's twice.
//
// The face names a request by any number whose low 32 bits are small, and which no other open request of the port has:
// a place in a table of its own, so it is one of ours, too.

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
  /// Whether it waits for an answer from there.
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
