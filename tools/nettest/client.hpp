#pragma once
// The client of a nettest. It runs a number of concurrent round trips with each server, each in a slot of its own. A
// ping is a message and its reply. A bulk round trip is a request with two descriptors: the server reads one buffer and
// writes the other.

#include <fairlead/net.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/nettest/figures.hpp"
#include "tools/nettest/plan.hpp"
#include "tools/nettest/pooled_machine.hpp"
#include "tools/nettest/stamp.hpp"

namespace fairlead::tools {

class NettestClient {
 public:
  NettestClient(net::Domain& domain, const NettestPlan& plan);
  ~NettestClient() { stop(); }

  /// `plan.check()` must have succeeded. Sends nothing yet.
  Result<> start(std::string_view address, const std::vector<std::string>& servers);
  void begin();
  /// Starts no more round trips.
  void finish() { is_finishing_ = true; }
  /// Returns whether no round trip is under way.
  bool is_done();
  /// Gives up round trips that exceed the timeout. Call it now and then.
  void expire();
  void stop();

  NettestFigures figures();

 private:
  static constexpr std::uint32_t kFailuresMax = 10;  // consecutive failures after which a slot rests

  struct Server {
    net::EndPoint end_point;
    std::uint64_t left = 0;  // round trips not begun yet
  };
  struct Slot {
    NettestClient* client = nullptr;
    Server* server = nullptr;
    NettestStamp stamp;
    Instant begun{};
    std::uint32_t pending = 0;  // outstanding events, including the reply
    std::uint32_t failures = 0;
    bool has_reply = false;  // of a ping
    bool is_good = false;
    std::unique_ptr<net::Buffer> message, out, in;
  };

  Result<> make_slot(Server& server);
  Result<std::unique_ptr<net::Buffer>> make_buffer(Slot& slot, std::uint64_t size);
  void on_reply(const net::BufferEvent& event);
  void on_event(Slot& slot, const net::BufferEvent& event);
  // The caller holds the lock.
  void begin(Slot& slot);
  Status expose(Slot& slot, Instant deadline);
  void cancel_bulk(Slot& slot);
  void count(const net::BufferEvent& event, const Slot& slot);
  void end_part(Slot& slot, bool is_good);
  void end(Slot& slot);

  const NettestPlan plan_;
  const std::uint64_t name_;
  std::atomic<bool> is_finishing_ = false;
  std::mutex mutex_;
  NettestFigures figures_;
  std::uint64_t under_way_ = 0;
  std::deque<Server> servers_;
  std::deque<Slot> slots_;
  PooledMachine node_;  // last, so that it ends before what its callbacks use
};

}  // namespace fairlead::tools
