#pragma once
// Queue pairs at the host engine (docs/host.md). Completion and notice streams belong to this process, as with an
// embedded engine. The host engine reports results as events in the shared memory. A thread that polls, arms or waits
// moves them to their streams; for sleepers, a watcher thread does so.
//
// Whether a post fits is decided here. Rare calls are sent to the host engine and wait for its answer. If the host
// engine ends, pending requests end with `wr_flush_err` and cause `host_ended`, and each queue pair gets an event.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/process_mark.hpp"
#include "base/short_lock.hpp"
#include "host/client_pair.hpp"
#include "host/host_connection.hpp"
#include "host/pair_calls.hpp"
#include "host/pair_ring.hpp"
#include "host/pair_watcher.hpp"
#include "host/registered_memory.hpp"
#include "qp/notice_streams.hpp"
#include "qp/pair_core.hpp"
#include "queue/consumer.hpp"
#include "queue/idle_polls.hpp"
#include "shm/memory.hpp"
#include "wire/pair_words.hpp"

namespace fairlead::host {

class HostPairs final : public qp::PairCore {
 public:
  /// Opens a connection of its own. `application` is the secret of the attachment.
  static Result<std::unique_ptr<HostPairs>> open(HostConnection& host, const std::string& file,
                                                 std::uint64_t application, queue::WaitChoice choice);
  ~HostPairs() override;

  qp::PairAccount* accounts() override { return accounts_.get(); }
  std::span<std::byte> allocate(std::uint64_t bytes) override { return memory_->allocate(bytes); }
  void free(std::span<std::byte> memory) override { memory_->free(memory); }
  Result<std::uint32_t> add_region(const qp::RegionPlan& plan) override;
  Status remove_region(std::uint32_t key) override;
  Result<> change_region(std::uint32_t key, const qp::RegionPlan& plan) override;
  Result<std::uint32_t> add_window(verbs::WindowType type, std::uint32_t domain) override;
  void remove_window(std::uint32_t key) override;
  void unbind_windows(std::uint32_t region) override;
  Result<qp::NoticeStream*> open_notices() override;
  void close_notices(qp::NoticeStream* stream) override;
  void tell(qp::NoticeStream* stream, const qp::Notice& notice) override;
  Result<qp::CompletionStream*> open_completions(const qp::CompletionStream::Plan& plan) override;
  Status close_completions(qp::CompletionStream* stream) override;
  void arm(qp::CompletionStream* stream, qp::CompletionStream::Armed armed) override;
  void listen(qp::CompletionStream* stream, qp::NoticeStream* channel) override;
  Result<qp::ReceiveQueueHandle> open_receive_queue(const qp::ReceiveQueuePlan& plan) override;
  Status close_receive_queue(qp::ReceiveQueueHandle queue) override;
  Status change_receive_queue(qp::ReceiveQueueHandle queue, std::uint32_t depth, std::uint32_t limit) override;
  qp::ReceiveQueueFacts receive_queue_facts(qp::ReceiveQueueHandle queue) override;
  int post_to_receive_queue(qp::ReceiveQueueHandle queue, std::span<const verbs::ReceiveRequest> requests,
                            std::size_t& taken) override;
  Result<qp::OpenPair> open_pair(const qp::PairPlan& plan) override;
  void close_pair(qp::PairHandle pair) override;
  Status change_pair(qp::PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes) override;
  qp::PairFacts pair_facts(qp::PairHandle pair) override;
  Result<> attach_group(qp::PairHandle pair, const verbs::Gid& group, std::uint16_t lid) override;
  Status detach_group(qp::PairHandle, const verbs::Gid&) override { return Status::stale; }
  bool is_in_group(qp::PairHandle) override { return false; }
  int post_send(qp::PairHandle pair, std::span<const verbs::SendRequest> requests, std::size_t& taken) override;
  int post_send_all(qp::PairHandle pair, std::span<const verbs::SendRequest> requests) override;
  int post_receive(qp::PairHandle pair, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) override;
  bool progress() override;
  void linger() override;

  std::uint64_t moved_bytes() const { return memory_->moved_bytes(); }

 private:
  HostPairs(HostConnection& host, shm::Memory rings, std::shared_ptr<RegisteredMemory> memory,
            queue::WaitChoice choice);

  PairPage& page() const noexcept { return *reinterpret_cast<PairPage*>(rings_.head()); }
  ClientPair* find(qp::PairHandle handle) const;
  ClientQueue* find_queue(qp::ReceiveQueueHandle handle);
  static PairCall call_of(const qp::RegionPlan& plan, const RegisteredPlace& place);
  static PairCall call_of(const qp::PairPlan& plan);
  // The caller holds the lock:
  int check(const ClientPair& pair, const verbs::SendRequest& request, std::uint32_t ahead) const;
  bool post(ClientPair& pair, const verbs::SendRequest& request);
  int post(ClientPair& pair, const verbs::ReceiveRequest& request);
  void wait_for_room(std::unique_lock<base::ShortLock>& lock, PairRing& ring, std::size_t elements);
  bool drain();
  void take(const PairNews& news);
  void take_notice(const PairNews& news);
  void complete(ClientPair& pair, const verbs::WorkCompletion& completion, std::uint32_t retires);
  void flush(ClientPair& pair, bool is_of_receives, const PendingRequests::Entry& entry);
  void overrun(ClientPair& pair, std::uint32_t retires);
  void tell_failures();
  bool is_any_armed() const;
  void end_all();
  /// Called by the watcher.
  bool look();

  HostConnection& host_;
  shm::Memory rings_;
  std::shared_ptr<RegisteredMemory> memory_;
  shm::Socket socket_;
  std::unique_ptr<qp::PairAccount[]> accounts_;
  const base::ProcessMark mark_;

  base::ShortLock mutex_;  // guards the members below
  PairRing ring_;          // of sends and calls
  PairRing receives_;      // of receives
  PairCalls calls_;
  std::optional<queue::Consumer> events_;
  std::vector<std::unique_ptr<ClientPair>> pairs_;  // by the index in their numbers
  std::array<ClientQueue, kReceiveQueuesMax> queues_;
  std::unordered_map<std::uint32_t, RegisteredPlace> places_;  // of regions, by key
  std::vector<std::unique_ptr<qp::CompletionStream>> streams_;
  qp::NoticeStreams notices_;
  queue::IdlePolls idle_polls_;
  std::uint32_t incarnations_ = 0;
  bool is_ended_ = false;
  bool owes_failures_ = false;  // some queue pair does

  std::unique_ptr<PairWatcher> watcher_;  // last member: ends first
};

}  // namespace fairlead::host
