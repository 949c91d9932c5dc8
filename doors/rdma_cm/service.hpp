#pragma once
// All ids of this process, and the thread that serves them. The thread handles what the carrier has collected, runs the
// timers, checks that peers live, and ends the ids of closed files. There is one lock. Only starting and ending a
// listener may block while it is held.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/interface_watch.hpp"
#include "base/thread.hpp"
#include "doors/rdma_cm/carrier.hpp"
#include "doors/rdma_cm/event_file.hpp"
#include "doors/rdma_cm/id.hpp"
#include "doors/rdma_cm/outbox.hpp"

namespace fairlead::rdma_cm {

/// Counts what was refused because of a stranger, a peer or a program; `fairlead run --explain` reports it.
struct ServiceCounters {
  std::uint64_t requests = 0;
  std::uint64_t no_listener = 0;   // requests for a port space without a listener
  std::uint64_t backlog_full = 0;  // requests answered with "try again"
  std::uint64_t unknown_name = 0;  // messages for a connection that does not exist here
  std::uint64_t wrong_sender = 0;  // messages for a connection of another sender
  std::uint64_t repeated = 0;      // requests that have an id already
  std::uint64_t lost_peers = 0;
};

class Service {
 public:
  static constexpr std::size_t kIdsMax = 65536;
  static constexpr std::uint32_t kBacklogMax = 1024;
  static constexpr Duration kAliveEvery = std::chrono::seconds(1);

  /// Returns the service of this process. The child of a fork has its own, without any file.
  static Service& of_process();

  Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Opens a file. Returns -1 with errno on failure.
  int open(int flags);
  /// Returns null if it is no file of this process.
  std::shared_ptr<EventFile> find_file(ino_t inode);
  /// Call after a close: ends the files of which no program holds a copy any more.
  void end_closed_files();
  /// Waits until a rejection by this connection has arrived, up to a short limit. A program may end right after it,
  /// without atexit(), and its peer must get the rejection nevertheless.
  void wait_until_rejected(std::uint64_t name);
  /// Call at exit: informs the peers, as the kernel does.
  void leave();
  std::string describe();
  ServiceCounters counters();

  std::mutex& mutex() { return mutex_; }

  // The caller of everything below holds the lock.

  /// Returns null if there is no room or no randomness.
  std::shared_ptr<Id> make_id(std::uint16_t port_space, std::uint8_t qp_type);
  /// Returns null unless it is an id of this file.
  std::shared_ptr<Id> find(std::uint32_t handle, const EventFile& file);
  /// Ends the id. Its unreported events are discarded.
  void destroy(const std::shared_ptr<Id>& id);
  /// Carries out a step. The caller handles its error.
  void apply(const std::shared_ptr<Id>& id, const Step& step);
  /// Queues an event for the program.
  void tell(const std::shared_ptr<Id>& id, const Told& told, const std::shared_ptr<Id>& child = nullptr);
  /// Call when the program has got the event of this request.
  static void told_of_request(Id& listener, const Id& child) { listener.backlog.release(child.peer); }
  int listen(const std::shared_ptr<Id>& id, std::uint32_t backlog);
  /// Joins the group and queues the event. Returns null if the id is in too many groups.
  std::shared_ptr<Membership> join(const std::shared_ptr<Id>& id, const Ip& group, std::uint64_t uid);
  /// Leaves a group. Returns null if no id of this file is in it. Unreported events are discarded.
  std::shared_ptr<Membership> leave(std::uint32_t handle, EventFile& file);
  std::uint16_t next_source_port();

 private:
  void run();
  void work(Instant now);
  void take(const Delivery& delivery, Instant now);
  void take_request(const Delivery& delivery);
  void answer_without_id(const Delivery& delivery, Kind kind, std::uint8_t reason);
  std::shared_ptr<Id> addressee(const Delivery& delivery);
  std::shared_ptr<Id> listener_of(const Delivery& delivery);
  void take_outcome(const Outcome& outcome, Instant now);
  void fail(const Failed& failed, Instant now);
  void lose_peer(const std::string& address, Status status, Instant now);
  void post(Id& id, const Message& message);
  void post(Sent sent);
  void send(std::uint64_t tag);
  void arm(Id& id);
  void expire(Instant now);
  void ask_peers(Instant now);
  /// Returns whether the last question is unanswered, and nobody is at the address, which is one of ours.
  bool is_known_gone(const std::string& address) const;
  void lose_devices(Instant now);
  void remove_events(EventFile& file, const Id& id);
  Instant next_due() const;
  void wake() const;
  bool start_thread();

  std::mutex mutex_;
  base::FileDescriptor wake_, poll_;
  std::optional<base::InterfaceWatch> interfaces_;  // absent if the kernel does not permit it
  Carrier carrier_;
  base::Thread thread_;
  bool has_thread_ = false;

  std::unordered_map<ino_t, std::shared_ptr<EventFile>> files_;
  std::map<std::uint32_t, std::shared_ptr<Id>> ids_;
  std::set<std::uint32_t> free_handles_;
  std::uint32_t handles_ = 0;             // handles ever used
  std::uint32_t membership_handles_ = 0;  // likewise
  std::unordered_map<std::uint64_t, std::uint32_t> by_name_;
  std::map<std::pair<std::string, std::uint64_t>, std::uint32_t>
      by_request_;  // sender and its name: requests not answered yet
  std::vector<std::shared_ptr<Id>> listeners_;
  std::set<std::pair<Instant, std::uint32_t>> timers_;
  Outbox outbox_;
  Instant ask_at_ = kNever;
  std::size_t asked_ = 0;  // rounds of asking; each round uses another connection of a peer
  std::uint16_t next_port_ = 0;
  ServiceCounters counters_;
};

}  // namespace fairlead::rdma_cm
