#pragma once
// Carries the managers' messages over the net face: reliable, from proven senders, refused at once where nobody is,
// inside a host through shared memory. A listener at port N is an engine at UDP port N, so the kernel's table of UDP
// ports is the directory: who listens where, who was first, and that a port is free again at its holder's death. All
// that this process sends goes from its home, one end for each address, on the engine that its verbs device has anyway;
// so a connection outlives the listener that it came to.
//
// The callbacks of the net face only put things into the inbox; the service takes them out.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/net.hpp>

#include "doors/rdma_cm/message.hpp"

namespace fairlead::rdma_cm {

/// Where a manager is reached: "10.0.0.7@udp:7471:37:1".
std::string listener_address(const Ip& ip, std::uint16_t port);
/// The address in such a text; none if it has none.
std::optional<Ip> ip_of_address(std::string_view address);

struct Delivery {
  Ip local{};              // our address at which it came
  std::uint16_t port = 0;  // the listener's; 0: at home
  std::string from;
  Message message;
};

struct Outcome {
  std::uint64_t tag = 0;
  Status status = Status::ok;
};

class Carrier {
 public:
  /// So long the peer may withhold the word that it has a message; longer than the engine waits for one that is silent.
  static constexpr Duration kPatience = std::chrono::seconds(20);

  /// `wake` is an eventfd that is told when there is something to collect. It outlives this.
  explicit Carrier(int wake, Duration patience = kPatience);
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  /// 0 or an errno, EADDRINUSE if somebody has the port. Counts: as many unlisten() as listen().
  int listen(const Ip& local, std::uint16_t port);
  void unlisten(const Ip& local, std::uint16_t port);

  /// ok promises one outcome with this tag.
  Status send(const Ip& local, const std::string& to, const Message& message, std::uint64_t tag);

  struct Collected {
    std::vector<Delivery> deliveries;
    std::vector<Outcome> outcomes;
  };
  Collected collect();

  std::uint64_t malformed() const;

 private:
  struct End;
  struct Outgoing;
  using Place = std::pair<Ip, std::uint16_t>;

  int start(End& end, const std::string& address);
  void receive(End& end, const net::BufferEvent& event);
  void finish(Outgoing& outgoing, Status status);
  int open_domain();
  End* home(const Ip& local);
  int listen_at(const Ip& local, std::uint16_t port);
  std::unique_ptr<Outgoing> take_outgoing();
  void wake() const;

  static constexpr std::size_t kReceives = 4;             // buffers of an end
  static constexpr std::size_t kReceiveSize = 16 * 1024;  // bytes
  static constexpr std::size_t kSendsMax = 1024;          // on their way

  const int wake_;
  const Duration patience_;
  std::optional<net::Domain> domain_;
  std::map<Place, std::unique_ptr<End>> ends_;  // port 0: home

  mutable std::mutex inbox_;  // for what follows; nothing is called under it
  Collected collected_;
  std::vector<std::pair<End*, net::Buffer*>> emptied_;  // receive buffers to be added again
  std::vector<std::unique_ptr<Outgoing>> free_;
  std::map<Outgoing*, std::unique_ptr<Outgoing>> sent_;
  std::uint64_t malformed_ = 0;
};

}  // namespace fairlead::rdma_cm
