#pragma once
// The server of a nettest. It returns a ping unchanged. For a bulk round trip, it reads the client's exposed memory and
// writes the data back.
//
// Both need a server buffer, and wait in a queue for one. A message's receive buffer returns to the pool before its
// round trip can end, so there is room for all round trips of the clients.

#include <fairlead/net.hpp>

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/nettest/figures.hpp"
#include "tools/nettest/plan.hpp"
#include "tools/nettest/pooled_machine.hpp"
#include "tools/nettest/stamp.hpp"

namespace fairlead::tools {

class NettestServer {
 public:
  NettestServer(net::Domain& domain, const NettestPlan& plan);
  ~NettestServer() { (void)node_.machine().stop_and_wait(net::StopMode::abort); }

  /// `plan.check()` must have succeeded.
  Result<> start(std::string_view address);
  /// Lets everything under way end first.
  void stop();

  const std::string& address() const { return node_.address(); }
  NettestFigures figures();

 private:
  /// A round trip. For a bulk one, the descriptors are those of the client's buffers.
  struct Round {
    NettestStamp stamp;
    net::Buffer* message = nullptr;  // while it waits: a ping's buffer, which is then outside the pool
    std::uint64_t length = 0;        // of `message`
    net::EndPoint client;
    net::BufferDescriptor from{}, to{};
  };

  void on_message(const net::BufferEvent& event);
  void on_end(const net::BufferEvent& event);
  // The caller holds the lock.
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
  std::deque<Round> waiting_;  // at most as many as the clients may have under way
  std::vector<Round> rounds_;  // round trips that have a buffer; Buffer::user() leads from the buffer to its round trip
  std::optional<net::BufferPool> buffers_;
  PooledMachine node_;
};

}  // namespace fairlead::tools
