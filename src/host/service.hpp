#pragma once
// The host engine: a thread that serves applications of this host, over engines of its own. With
// ServiceOptions::threads it has other such threads (Workers). An application belongs to one thread, like its engine.
// The first thread has the listener. It passes each first call of a connection to the right thread (Routes).
//
// Polling: an active application is awake, and the thread polls its ring and its ports. One that has been idle for a
// while is parked. It costs nothing until its socket, or an engine descriptor of one of its ports, becomes readable. If
// all are idle, the thread waits as a waiter in an application does (queue/wait_ladder.hpp): it polls, yields, then
// parks all, and sleeps until a call or the network wakes it. If all that are awake are leaving, and wait for a silent
// peer, it looks at them once in a while.
//
// Permission: the first matching rule of ServiceOptions decides who may attach and with which quota. If none matches,
// processes of the daemon's own user and of root may attach, without a quota.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"
#include "base/time.hpp"
#include "embedded/attach.hpp"
#include "host/application.hpp"
#include "host/handover.hpp"
#include "host/idle_wait.hpp"
#include "host/mailbox.hpp"
#include "host/routes.hpp"
#include "host/rule.hpp"
#include "host/served_engines.hpp"
#include "host/spare_descriptor.hpp"
#include "host/visitors.hpp"
#include "host/workers.hpp"
#include "shm/listener.hpp"
#include "shm/users.hpp"

namespace fairlead::host {

struct ServiceOptions {
  std::string file{};                // of the socket that applications connect to
  base::FileDescriptor inherited{};  // that socket, if a supervisor created and keeps it
  std::vector<Rule> rules{};
  std::vector<base::SocketAddress> engines{};  // permitted addresses; empty: every local one
  std::size_t applications_max = 256;
  std::int64_t applications_per_user_max = 64;
  std::uint32_t engines_max = 16;      // divided among the threads
  std::uint32_t threads = 1;           // at most kThreadsMax
  std::vector<unsigned> processors{};  // thread i runs on processors[i % size]; empty: on any
  engine::EngineOptions engine{};      // of every engine here
};

class Service {
 public:
  /// Returns `in_use` if another host engine listens at the file.
  static Result<std::unique_ptr<Service>> open(ServiceOptions options);
  /// Continues where the previous program in this process has stopped (service_saved.cpp), with its socket.
  static Result<std::unique_ptr<Service>> resume(ServiceOptions options, std::span<const std::byte> state);
  /// Checks what open() requires of the options, without opening anything.
  static Result<> check(const ServiceOptions& options);
  /// Checks whether resume() could use that state with these options. Changes nothing.
  static Result<> check(const ServiceOptions& options, std::span<const std::byte> state);
  ~Service();

  /// Serves until stop(), `deadline`, or a request for replacement. Returns true if it was stopped and all applications
  /// have left; each later call then returns true at once.
  bool run(base::Instant deadline = base::kNever);
  /// Safe in any thread and in a signal handler.
  void stop() noexcept;
  /// Makes run() of another thread's service return false. Any thread.
  void interrupt() { mailbox_.interrupt(); }
  /// Passes a first call to this service. Returns false if it has too many. Any thread.
  bool put(FirstCall& call) { return mailbox_.put(call); }
  /// Returns whether stop() was called. run() may not have acted on it yet.
  bool is_stopped() const noexcept;

  /// Returns whether a replacement was requested; true once per request.
  bool takes_replacement_wish() noexcept { return std::exchange(is_replacement_wanted_, false); }
  /// Quiesces all threads within 100 ms and saves their state. While the result lives, nothing is served. The caller
  /// then executes the next program, or calls go_on(). On failure the service continues: `in_use` if peers of this
  /// host still share memory, `again` if peers have not acknowledged in time or an application is leaving,
  /// `not_supported` if something cannot be saved.
  Result<Handover> hand_over();
  void go_on(Handover handover);
  /// Tells the requester why there was no replacement.
  void refuse_replacement(const Error& why);

  /// Returns the number of attached applications, of all threads.
  std::size_t applications() const { return routes_->applications(); }

 private:
  friend class ThreadHandover;

  struct Attached {
    std::unique_ptr<Application> application;
    Routes::Seat seat;
    base::FileDescriptor process;  // pidfd: readable when it has ended, even if a forked child still holds its sockets
    base::Instant busy_at{};
    base::Instant wake_at = base::kNever;  // while it is parked
    bool is_parked = false;
  };
  /// The source of an epoll event: the application's number, and the index of its port + 1. 0 means the application
  /// itself, kProcess its process, kPairs its queue pairs.
  static constexpr std::uint32_t kIndexBits = 16, kProcess = (1U << kIndexBits) - 1, kPairs = kProcess - 1;

  static constexpr std::uint32_t kCallsInTurn = 4;
  static constexpr std::size_t kLastAwakeMax = 4;
  static constexpr std::uint64_t kListener = 0, kEnd = 1, kVisitors = 2, kMail = 3, kFirstApplication = 16;

  Service(ServiceOptions options, base::FileDescriptor poll, base::FileDescriptor end, std::shared_ptr<Routes> routes,
          std::uint32_t thread);

  /// Makes a service and its workers.
  static Result<std::unique_ptr<Service>> make(const ServiceOptions& options);
  static Result<std::unique_ptr<Service>> make(const ServiceOptions& options, std::shared_ptr<Routes> routes,
                                               std::uint32_t thread);
  void bind();
  void settle();
  void end();
  Result<> listen_at(shm::Listener listener);
  static Result<> check_unchanged(const ServiceOptions& options, const ServiceState& state);
  template <typename Visit>
  void for_each_thread(Visit&& visit);
  Result<Handover> try_to_save(base::Instant began);
  Result<> restore(const ServiceState& state);
  Result<> take_asker(Visitor& visitor);
  bool watch_port(std::uint64_t number, Application& application, std::uint32_t index, bool is_known = false);
  Result<shm::Listener> listen();
  void pass(base::Instant deadline);
  template <typename Serve>
  void serve(Application& application, Serve&& serve);
  bool serve_awake(base::Instant now);
  bool park(Attached& attached);
  void wake(std::uint64_t number, Attached& attached);
  void wake_due(base::Instant now);
  void drop_gone();
  void look_at_sockets(base::Instant wake_at);
  void dispatch(std::uint64_t source);
  template <typename Take>
  bool read_calls(const shm::Socket& socket, std::uint64_t source, Take&& take);
  void hear(std::uint64_t source, Application& application);
  void hear_port(std::uint64_t source, Application& application, std::uint32_t index);
  void hear_pairs(std::uint64_t source, Application& application);
  void accept_visitors();
  void greet_visitors();
  bool accept_visitor(bool& has_room);
  void greet(Visitor& visitor, const Call& call, shm::Letter& letter);
  void greet_or_refuse(Visitor& visitor, const Call& call, shm::Letter& letter);
  std::uint32_t thread_for(const Call& call);
  void pass_on(std::uint32_t thread, FirstCall call);
  void take_mail();
  void list(const shm::Socket& visitor, const Call& call) const;
  static std::string describe(const engine::Core& core, const Call& call);
  Result<Quota> admit(const shm::Socket& visitor) const;
  Result<Routes::Seat> take_seat(const shm::Socket& visitor) const;
  Result<> attach(shm::Socket& visitor, const Call& call, base::ForeignDescriptor file);
  Result<> open_port(shm::Socket& visitor, const Call& call);
  Result<> open_pairs(shm::Socket& visitor, const Call& call, shm::Letter& letter);
  /// Returns the application that has the secret, if the visitor is that application.
  Result<std::pair<const std::uint64_t, Attached>*> find(const shm::Socket& visitor, const Call& call);
  Result<std::shared_ptr<ServedEngine>> engine_at(const base::SocketAddress& address, const shm::Socket& visitor);
  bool watch(int descriptor, std::uint64_t source, std::uint32_t events, bool is_known = false);

  const ServiceOptions options_;
  const std::shared_ptr<Routes> routes_;
  const std::uint32_t thread_;
  shm::Users users_;
  shm::Listener listener_;
  base::FileDescriptor poll_, end_;
  shm::Socket asker_;  // awaits the answer to `fairleadd --replace`
  Visitors visitors_;
  SpareDescriptor spare_;
  Mailbox mailbox_;
  ServedEngines engines_;
  std::unordered_map<std::uint64_t, Attached> applications_;
  std::unordered_map<std::uint64_t, std::uint64_t> by_secret_;
  std::vector<std::uint64_t> awake_, last_awake_;  // the latter before the present sleep, some of them
  PairTools pair_tools_;
  std::uint64_t next_number_;
  base::Instant look_at_{};                 // when to look at the sockets again
  base::Instant accept_at_ = base::kNever;  // while is_closed_to_visitors_
  base::Instant wake_at_ = base::kNever;    // earliest of the parked applications
  bool is_closed_to_visitors_ = false;
  std::uint32_t passes_in_vain_ = 0;
  const base::Duration linger_;  // idle time before an application is parked, while others are busy
  IdleWait wait_;
  bool are_all_leaving_ = false;  // those that are awake, and nothing happened in the last pass
  bool has_gone_ones_ = false, is_ending_ = false, is_inherited_ = false;
  bool is_replacement_wanted_ = false, is_interrupted_ = false, is_settled_ = false;
  Workers workers_;  // ends first
};

}  // namespace fairlead::host
