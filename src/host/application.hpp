#pragma once
// An application that is attached to the host engine. Checks its requests, passes them on to an engine, and returns
// their results.
//
// The application may write anything into the shared memory at any time. Each request is therefore copied once and then
// checked; the state of pending operations is kept here. A request that our library never writes ends this
// application's attachment, and nothing else.
//
// Not thread-safe: only the host engine's thread that serves this application calls it.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/core.hpp"
#include "host/allowance.hpp"
#include "host/application_pairs.hpp"
#include "host/application_port.hpp"
#include "host/call.hpp"
#include "host/layout.hpp"
#include "host/listing.hpp"
#include "host/quota.hpp"
#include "host/served_engine.hpp"
#include "host/service_state.hpp"
#include "queue/consumer.hpp"
#include "shm/memory.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

/// The memory that an application shares, mapped completely, and its descriptor.
struct SharedMemory {
  shm::Memory memory;
  base::ForeignDescriptor file;
  std::uint64_t bytes = 0;
};

class Application {
 public:
  // Operations in a turn, before others get theirs: requests, and as many deferred requests and events of each port.
  // Shorter if other applications are awake: a turn delays each message of theirs, several times.
  static constexpr std::uint32_t kTurn = 64, kSharedTurn = 4;
  static constexpr std::uint32_t kPortsInSharedTurn = 16;  // the next turn begins with the others

  /// `memory` belongs to the application, and has `bytes` bytes.
  static Result<std::unique_ptr<Application>> make(shm::Socket socket, SharedMemory memory,
                                                   std::shared_ptr<ServedEngine> engine, std::uint64_t secret,
                                                   const Quota& quota);
  /// Continues where the previous program stopped (application_saved.cpp). `socket_of` makes a socket of a saved
  /// descriptor.
  using SocketOf = std::function<shm::Socket(int)>;
  static Result<std::unique_ptr<Application>> restore(const ApplicationState& state, shm::Socket socket,
                                                      SharedMemory memory, std::shared_ptr<ServedEngine> engine,
                                                      const SocketOf& socket_of);
  /// Continues with its queue pairs.
  Result<> restore_pairs(PairTools& tools, PairMemory memory, shm::Socket socket, const ApplicationPairsState& state);
  /// Returns the state, without the process descriptor. Returns `again` if the application is leaving, closes a port,
  /// or waits for a call of its queue pairs. Makes no call to the engine.
  Result<ApplicationState> save();
  /// While held, nothing of this application goes to the engine.
  void hold(bool is_held) { is_held_ = is_held; }

  const shm::Socket& socket() const noexcept { return socket_; }
  std::uint64_t secret() const noexcept { return secret_; }
  engine::Core& core() noexcept { return *core_; }
  const Quota& quota() const noexcept { return quota_; }
  /// Returns whether these are the application's own credentials.
  bool is_of(const shm::Credentials& who) const noexcept {
    return who.user == socket_.credentials().user && who.process == socket_.credentials().process;
  }
  bool is_of_user(std::uint32_t user) const noexcept { return user == socket_.credentials().user; }
  /// Returns its name for people: "process 4711 of user 1000".
  std::string name() const;
  AttachedFact fact() const;

  /// Opens a port. Returns `in_use` if it has a port of that index, `no_memory` or `not_permitted` if its quota forbids
  /// it, `invalid` if it names more than kPortNumbersMax numbers. Other errors are those of Core::open_port() and
  /// open_port_dynamic().
  Result<Answer> open_port(const Call& call);
  /// Sets the connection of an open port.
  const ApplicationPort& connect_port(std::uint32_t index, shm::Socket socket) {
    ports_[index]->connect(std::move(socket));
    return *ports_[index];
  }
  /// Returns null if there is none.
  ApplicationPort* port(std::uint32_t index) { return index < kPortsMax ? ports_[index].get() : nullptr; }
  /// Opens what queue pairs need, in memory of the application. Returns `in_use` if it has them already.
  Result<> open_pairs(PairTools& tools, PairMemory memory);
  /// Returns null if it has none.
  ApplicationPairs* pairs() { return pairs_.get(); }
  /// Cancels the port's pending operations. The port closes when all have ended.
  void close_port(std::uint32_t index, bool wants_answer);
  /// Does the same with all ports, because the application has left or must leave.
  void leave();
  /// Returns whether it has left and nothing refers to its memory any more.
  bool is_gone() const noexcept { return is_leaving_ && ports_open_ == 0 && (!pairs_ || pairs_->is_gone()); }
  bool is_leaving() const noexcept { return is_leaving_; }
  /// Records why it must leave: it broke the protocol, or memory is short. `why` must be a literal.
  void blame(std::string_view why);
  /// Returns why it must leave; empty if it need not.
  std::string_view fault() const noexcept { return fault_; }

  /// Begins a turn: passes on its requests, as many as a turn has and as many bytes as its allowance permits.
  /// `is_alone` if no other application is awake. Returns true if there were any.
  bool take_requests(base::Instant now, bool is_alone);
  /// Hands over the engine's completions. Returns true if there were any.
  bool give_events();
  /// The same for ports only, for all of them.
  bool give_events_of_ports();

  /// Prepares for the host engine's sleep. Returns false if there is work. Afterwards the socket becomes readable with
  /// the next request, and a port's engine descriptor with its next event.
  bool park();
  void unpark();
  /// While parked: returns when its rate lets it continue; kNever if the rate does not delay it.
  base::Instant wake_at() const;

 private:
  struct Operation {
    enum class Phase : std::uint8_t { unused, deferred, posted };
    std::uint64_t name = 0, serial = 0;
    engine::OperationHandle handle;
    iovec memory{};
    std::uint32_t events = 0;
    std::uint16_t port = 0;
    Phase phase = Phase::unused;
    bool is_outgoing = false;
  };

  Application(shm::Socket socket, SharedMemory memory, std::shared_ptr<ServedEngine> engine, std::uint64_t secret,
              const Quota& quota)
      : socket_(std::move(socket)),
        memory_(std::move(memory.memory)),
        file_(std::move(memory.file)),
        bytes_(memory.bytes),
        engine_(std::move(engine)),
        core_(engine_->core),
        secret_(secret),
        quota_(quota),
        allowance_(quota.bytes_per_second, base::MonotonicClock::now()) {}

  SharedPage& page() const noexcept { return *reinterpret_cast<SharedPage*>(memory_.head()); }
  void take(const Request& request);
  /// Returns whether the memory is inside that of buffers.
  bool is_inside(std::uint64_t offset, std::uint64_t length) const noexcept {
    return length == 0 || (offset >= Layout::head_bytes() && offset <= bytes_ && length <= bytes_ - offset);
  }
  // application_active.cpp
  void take_active(ApplicationPort& port, const Request& request);
  Status activate(ApplicationPort& port, const Request& request);
  void set_segment(ApplicationPort& port, const Request& request);
  void leave_active();
  bool give_arrivals(ApplicationPort& port, bool (ServedActive::*step)());
  void show_losses();
  void start(ApplicationPort& port, const Request& request);
  void cancel(ApplicationPort& port, const Request& request);
  Result<> admit_port(const Call& call) const;
  Status pass_on(ApplicationPort& port, const Request& request, Operation& operation);
  bool is_deferred(const DeferredRequest& waiting) const;
  bool retry(ApplicationPort& port);
  bool give_events_of_next_ports();
  void reply(Status status, std::uint64_t key);
  void give_keys(ApplicationPort& port);
  void refuse(ApplicationPort& port, const Request& request, Status status);
  bool give_events(std::uint32_t index, ApplicationPort& port);
  void give(ApplicationPort& port, const Event& event, bool is_news = true);
  void end(ApplicationPort& port, Operation& operation);
  void cancel_all(std::uint32_t index, ApplicationPort& port);
  bool end_turn_of_pairs(bool any);
  void wake_caller();
  Result<> restore_ports(const ApplicationState& state, const SocketOf& socket_of);
  Result<> restore_active(ApplicationPort& port, const ServedActiveState& state);
  Result<> restore_pending(const ApplicationState& state);

  shm::Socket socket_;
  shm::Memory memory_;
  base::ForeignDescriptor file_;  // of memory_
  const std::uint64_t bytes_;
  const std::shared_ptr<ServedEngine> engine_;
  const std::shared_ptr<embedded::EmbeddedCore> core_;  // of engine_
  const std::uint64_t secret_;
  const Quota quota_;
  Allowance allowance_;
  std::optional<queue::Consumer> requests_;
  std::deque<Operation> operations_;  // by the index in their names
  ActiveRoom active_room_;
  EventRoom event_room_{quota_.events};
  std::array<std::unique_ptr<ApplicationPort>, kPortsMax> ports_;
  std::unique_ptr<ApplicationPairs> pairs_;
  std::uint64_t losses_shown_ = ~0ULL;
  std::uint32_t turn_ = kTurn;   // operations in the present turn
  std::uint32_t next_port_ = 0;  // whose events come first in the next turn
  std::uint32_t ports_end_ = 0;  // one past the highest index in use
  std::uint32_t ports_open_ = 0;
  std::uint64_t pending_ = 0, served_ = 0, started_ = 0;
  std::uint64_t posted_ = 0;      // operations that the engine holds: pending ones, and keys given in advance
  std::uint64_t keys_given_ = 0;  // in advance, of all ports
  std::uint64_t sending_ = 0;     // pending operations that move data to or from a peer
  bool is_leaving_ = false, is_held_ = false;
  std::string_view fault_;
  base::Instant attached_at_ = base::MonotonicClock::now();
};

}  // namespace fairlead::host
