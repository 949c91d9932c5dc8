#pragma once
// The transfer machine of either end of bulkping: keeps receive buffers posted, with the command line's settings.

#include <fairlead/net.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tools/bulkping/options.hpp"
#include "tools/bulkping/request.hpp"

namespace fairlead::tools {

/// Called with each request that arrives, and its sender.
using RequestCallback = std::function<void(Request request, const net::EndPoint& sender)>;

class BulkpingMachine {
 public:
  BulkpingMachine(net::Domain& domain, const BulkpingCommon& options, RequestCallback on_request);

  /// Starts at `address` and posts the receive buffers.
  Result<> start(std::string_view address);
  /// Cancels queued operations and waits for their end.
  void stop();

  net::TransferMachine& machine() { return machine_; }
  const net::TransferMachine& machine() const { return machine_; }
  const std::string& address() const { return address_; }
  net::Statistics statistics() { return machine_.statistics(); }
  std::uint64_t malformed_requests() const { return malformed_; }

  /// Returns whether the host engine has ended, so nothing more will arrive.
  bool has_lost_engine() const { return has_lost_engine_; }

  /// Returns the largest message size.
  std::uint64_t message_size() const { return options_.message_size; }

 private:
  Status post(net::Buffer& buffer);
  void on_receive(const net::BufferEvent& event);

  net::Domain& domain_;
  const BulkpingCommon options_;
  const RequestCallback on_request_;
  std::string address_;
  std::atomic<std::uint64_t> malformed_ = 0;
  std::atomic<bool> has_lost_engine_ = false;
  net::TransferMachine machine_;
  std::vector<std::unique_ptr<net::Buffer>> receive_buffers_;
};

}  // namespace fairlead::tools
