#pragma once
// One thread of a bulkping client, with a transfer machine of its own. Each loop consists of one message with its
// reply, one bulk to the server (passive send here, active receive there) and one bulk to the client (passive receive
// here, active send there). Every payload is verified where it arrives; the server's verdict reports its result.

#include <fairlead/net.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tools/base/event_waiter.hpp"
#include "tools/bulkping/figures.hpp"
#include "tools/bulkping/machine.hpp"

namespace fairlead::tools {

class BulkpingThread {
 public:
  /// The thread calls `should_stop` while it waits.
  BulkpingThread(net::Domain& domain, const BulkpingClientOptions& options, std::uint64_t client, std::uint32_t thread,
                 const std::atomic<bool>& should_stop);
  ~BulkpingThread();

  /// Starts the transfer machine at `address`. Sends nothing yet.
  Result<> start(std::string_view address);
  /// Runs all loops. An error is one line that names thread, loop and server. Returns without error if stopped early.
  Result<> run();
  void stop();

  const std::string& address() const { return node_.address(); }
  net::Statistics statistics() { return node_.statistics(); }
  std::uint64_t messages_dropped() { return node_.machine().messages_dropped(); }
  std::vector<net::Counter> counters() { return node_.machine().engine_counters(); }
  /// Returns a copy. Thread-safe.
  ClientFigures figures() const;
  std::uint64_t bytes_moved() const { return bytes_moved_.load(std::memory_order_relaxed); }
  std::uint64_t loops_done() const { return loops_done_.load(std::memory_order_relaxed); }

 private:
  /// How the operation of one buffer ended; empty until it has.
  struct Ending {
    Status status = Status::ok;
    std::uint64_t length = 0;
  };

  Result<std::unique_ptr<net::Buffer>> make_buffer(std::uint64_t size, std::optional<Ending>& ending);
  Result<> ping(std::uint32_t loop);
  Result<> bulk(std::uint32_t loop, Direction direction);
  Result<> check_delivery(std::uint32_t loop);
  /// Sends a request, with up to three attempts.
  Result<> send(const Request& request, Instant deadline);
  Status send_once(const Request& request, Instant deadline);
  /// Waits for the end of the bulk buffer's operation, then for the server's verdict.
  Result<> await_bulk(const Request& request, Instant deadline);
  Result<Request> await_verdict(const Request& request, Instant deadline);
  /// Cancels the operation of a buffer and waits for its end. Returns its final status.
  Status take_back(net::Buffer& buffer, const std::optional<Ending>& ending);
  void on_request(Request verdict);
  bool is_stopped() const;
  std::unexpected<Error> failure(const Request& request, Status status, std::string_view what) const;
  Request request_of(RequestKind kind, std::uint32_t loop) const;

  net::Domain& domain_;
  const BulkpingClientOptions& options_;
  const std::uint64_t client_;
  const std::uint32_t thread_;
  const std::atomic<bool>& should_stop_;

  BulkpingMachine node_;
  EventWaiter waiter_;
  net::EndPoint server_;
  // Callbacks change these, under the waiter's lock.
  std::optional<Ending> message_ending_, bulk_ending_;
  std::optional<Request> verdict_;
  Request asked_;  // the request whose verdict is awaited
  // Declared after the members that their callbacks change.
  std::unique_ptr<net::Buffer> message_, bulk_;

  mutable std::mutex figures_mutex_;
  ClientFigures figures_;
  std::atomic<std::uint64_t> bytes_moved_ = 0, loops_done_ = 0;
};

}  // namespace fairlead::tools
