#pragma once
// Carries the connection managers' messages over src/net: reliable, from authenticated senders, refused at once where
// nobody listens, and over shared memory within a host.
//
// A listener at port N is an engine at UDP port N, so the kernel's table of UDP ports is the directory. It decides who
// listens where and who was first, and frees a port when its holder dies. This process sends all messages from its
// home: one end per address, on the engine of its verbs device. A connection therefore outlives the listener that
// accepted it.
//
// The callbacks from src/net only fill the inbox; the service empties it.

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

/// Returns the address of the manager at a port, for example "10.0.0.7@udp:7471:37:1".
std::string listener_address(const Ip& ip, std::uint16_t port);
/// Returns the IP address in such a text, or nullopt if it has none.
std::optional<Ip> ip_of_address(std::string_view address);
/// Returns the UDP port in such a text, or nullopt if it has none.
std::optional<std::uint16_t> port_of_address(std::string_view address);

struct Delivery {
  Ip local{};              // our address at which it arrived
  std::uint16_t port = 0;  // the listener's port; 0: at home
  std::string from;
  Message message;
};

struct Outcome {
  std::uint64_t tag = 0;
  Status status = Status::ok;
};

class Carrier {
 public:
  /// How long a peer may delay the acknowledgement of a message. Longer than the engine waits for a silent peer.
  static constexpr Duration kPatience = std::chrono::seconds(20);

  /// `wake` is an eventfd that is signalled when there is something to collect. It must outlive this object.
  explicit Carrier(int wake, Duration patience = kPatience);
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  /// Returns 0 or an errno; EADDRINUSE if the port is taken. Calls are counted: each listen() needs an unlisten().
  int listen(const Ip& local, std::uint16_t port);
  void unlisten(const Ip& local, std::uint16_t port);

  /// Sends a message. If the result is ok, exactly one outcome with this tag follows.
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

  static constexpr std::size_t kReceives = 4;             // buffers per end
  static constexpr std::size_t kReceiveSize = 16 * 1024;  // bytes
  static constexpr std::size_t kSendsMax = 1024;          // messages on their way

  const int wake_;
  const Duration patience_;
  std::optional<net::Domain> domain_;
  std::map<Place, std::unique_ptr<End>> ends_;  // port 0: home

  mutable std::mutex inbox_;  // guards the following members; nothing is called while it is held
  Collected collected_;
  std::vector<std::pair<End*, net::Buffer*>> emptied_;  // receive buffers to add again
  std::vector<std::unique_ptr<Outgoing>> free_;
  std::map<Outgoing*, std::unique_ptr<Outgoing>> sent_;
  std::uint64_t malformed_ = 0;
};

}  // namespace fairlead::rdma_cm
