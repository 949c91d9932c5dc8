#pragma once
// The server of bulkping: answers messages, and transfers bulk data from and to buffers by their descriptors.
//
// Each request becomes a job. A job waits until it is due (delay, pause before a retry) and a buffer is free. Requests
// beyond kJobsMax are refused. Every transfer ends with a buffer event, whatever the client does, and frees its buffer.

#include <fairlead/net.hpp>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/bulkping/bulk_pool.hpp"
#include "tools/bulkping/figures.hpp"
#include "tools/bulkping/machine.hpp"

namespace fairlead::tools {

class BulkpingServer {
 public:
  BulkpingServer(net::Domain& domain, const BulkpingServerOptions& options);
  ~BulkpingServer();

  Result<> start(std::string_view address);
  /// Serves for about `time`. The caller repeats the call.
  void serve(Duration time);
  void stop();

  const std::string& address() const { return node_.address(); }
  net::TransferMachine& machine() { return node_.machine(); }
  bool has_lost_engine() const { return node_.has_lost_engine(); }
  net::Statistics statistics() { return node_.statistics(); }
  ServerFigures figures() const;

 private:
  static constexpr std::size_t kJobsMax = 4096;

  /// A request to serve, or (kind verdict) a reply to send.
  struct Job {
    Request request;
    net::EndPoint client;
    Instant due{};
    int attempts = 0;
  };

  void on_request(Request request, const net::EndPoint& sender);
  void on_reply_end(const net::BufferEvent& event);
  void on_bulk_end(const net::BufferEvent& event);
  /// Starts all jobs that can be started. The caller holds the lock.
  void start_jobs();
  /// Returns false if the job must wait for a buffer.
  bool try_start(Job& job);
  bool try_reply(Job& job);
  bool try_transfer(Job& job);
  void again_or_give_up(Job job, Status status);
  void reply(const Job& job, Status status, std::string_view text);
  void finish_transfer(const Job& job, net::QueueKind queue, Status status, std::span<const std::byte> payload);
  void tell(std::string line);

  net::Domain& domain_;
  const BulkpingServerOptions options_;

  mutable std::mutex mutex_;
  bool is_stopping_ = false;
  std::deque<Job> waiting_;
  std::map<const net::Buffer*, Job> under_way_;
  ServerFigures figures_;
  std::uint64_t lines_told_ = 0;

  BulkpingMachine node_;
  BulkPool bulk_;
  std::vector<std::unique_ptr<net::Buffer>> reply_buffers_;
  std::vector<net::Buffer*> reply_idle_;
};

}  // namespace fairlead::tools
