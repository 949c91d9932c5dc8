#pragma once
// The serving end of a nettest. A ping goes back as it came. For a bulk round trip the server reads what the client
// exposes, and writes it back.
//
// Either needs a buffer of the server, and waits in line for one. A message's own buffer is back in the pool before its
// round trip can end, so there is room for all that clients may have under way.

#include <fairlead/net.hpp>

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/nettest_figures.hpp"
#include "tools/nettest_plan.hpp"
#include "tools/nettest_stamp.hpp"
#include "tools/pooled_machine.hpp"

namespace fairlead::tools {

class NettestServer {
 public:
  NettestServer(net::Domain& domain, const NettestPlan& plan);
  ~NettestServer() { (void)node_.machine().stop_and_wait(net::StopMode::abort); }

  /// `plan.check()` was good.
  Result<> start(std::string_view address);
  /// What is under way comes to its end first.
  void stop();

  const std::string& address() const { return node_.address(); }
  NettestFigures figures();

 private:
  /// A round trip. The descriptors are those of the client's buffers, of a bulk one.
  struct Round {
    NettestStamp stamp;
    net::Buffer* message = nullptr;  // while it waits: a ping, which is not the pool's then
    std::uint64_t length = 0;        // of it
    net::EndPoint client;
    net::BufferDescriptor from{}, to{};
  };

  void on_message(const net::BufferEvent& event);
  void on_end(const net::BufferEvent& event);
  // With the lock held.
  bool is_request(std::span<const std::byte> bytes) const {
    return !plan_.is_bulk || bytes.size() == kBulkRequestBytes;
  }
  Round round_of(const net::BufferEvent& event, const NettestStamp& stamp) const;
  void start_rounds();
  Status start_round(net::Buffer& buffer, Round& round);
  void count(const net::BufferEvent& event);
  void end_round(net::Buffer& buffer, bool is_good);
  bool is_right(std::span<const std::byte> bytes, const NettestStamp& stamp) const;

  const NettestPlan plan_;
  std::mutex mutex_;
  NettestFigures figures_;
  std::deque<Round> waiting_;  // no more than clients may have under way
  std::vector<Round> rounds_;  // that have a buffer, which leads to its one by Buffer::user()
  std::optional<net::BufferPool> buffers_;
  PooledMachine node_;
};

}  // namespace fairlead::tools
