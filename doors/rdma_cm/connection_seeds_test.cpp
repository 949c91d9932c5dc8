// Two hosts with many connections, on a simulated clock. Each seed is a world: messages overtake each other, are late
// after a loss, or fail; hosts are killed and start again, or stand still for longer than their peers wait. Programs
// accept, reject, disconnect, destroy and dawdle at random. Every connection must end or be connected at both ends, and
// both programs must have been told the same, each event once.
#include "doors/rdma_cm/connection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace fairlead::rdma_cm {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeeds = 200;
constexpr int kConnections = 12;
constexpr Duration kDisturbed = 20s;    // connections begin, and hosts are disturbed, within this time
constexpr Duration kQuietAfter = 400s;  // longer than all timers together
constexpr Duration kSilentAfter = 5s;   // when the link gives up a peer that stands still
constexpr Duration kAskEvery = 1s;

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    for (Host& host : hosts_) ask(host);
    for (int i = 0; i < kConnections; ++i) {
      const std::size_t from = draw(2);
      at(kBegin + draw_time(kDisturbed), [this, from] { begin(hosts_[from]); });
    }
    for (std::uint64_t i = draw(4); i > 0; --i) {
      const std::size_t victim = draw(2);
      const bool is_killed = draw(2) == 0;
      at(kBegin + draw_time(kDisturbed),
         [this, victim, is_killed] { is_killed ? kill(hosts_[victim]) : stop(hosts_[victim]); });
    }
  }

  void run() {
    while (!events_.empty() && events_.begin()->first < kBegin + kDisturbed + kQuietAfter) {
      now_ = events_.begin()->first;
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
    for (const Host& host : hosts_) {
      for (const auto& [name, id] : host.ids) check_end(host, *id);
    }
  }
  int established() const { return established_; }

 private:
  static constexpr Instant kBegin{1000s};

  struct Id {
    Connection connection;
    bool is_initiator = false, has_accepted = false, has_left = false;
    std::uint64_t life = 0;  // of the peer's host, as its address names it
    std::map<Event, int> told{};
    PrivateData said{};  // with accept
    Instant armed = kNever;
  };
  using Ids = std::map<std::uint64_t, std::shared_ptr<Id>>;
  struct Host {
    std::size_t number = 0;
    std::uint64_t life = 1;  // a process that starts again is another one
    bool is_stopped = false;
    Ids ids{};
    std::set<std::uint64_t> requests{};         // initiators' names that have an id here
    std::vector<std::function<void()>> late{};  // what it does when it continues
  };

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  Duration draw_time(Duration below) { return Duration(draw(static_cast<std::uint64_t>(below.count()))); }
  void at(Instant when, std::function<void()> action) { events_.emplace(when, std::move(action)); }
  /// Runs it in this life of the host only, and not while it stands still.
  void at_host(Host& host, Duration delay, std::function<void()> action) {
    at(now_ + delay, [&host, life = host.life, action = std::move(action)] {
      if (host.life == life) alive(host, action);
    });
  }
  static void alive(Host& host, const std::function<void()>& action) {
    if (host.is_stopped) return host.late.push_back(action);
    action();
  }
  Host& other(const Host& host) { return hosts_[1 - host.number]; }
  static std::shared_ptr<Id> find(const Host& host, std::uint64_t name) {
    const auto found = host.ids.find(name);
    return found != host.ids.end() ? found->second : nullptr;
  }

  // ---- the network: reliable, without order

  Duration way() { return draw(10) == 0 ? draw_time(300ms) : 10us + draw_time(2ms); }

  /// `life`: that of the process that the sender means; 0: whoever listens.
  void send(Host& from, std::uint64_t life, const Message& message) {
    Host& to = other(from);
    const auto fail = [this, &from, life, message](Duration after, Status why) {
      at_host(from, after, [this, &from, life, message, why] { take_failure(from, life, message, why); });
    };
    at(now_ + way(), [this, &to, life, message, fail, sender = from.life] {
      if (!is_up_[to.number]) return fail(way(), Status::refused);
      if (life != 0 && life != to.life) return fail(way(), Status::restarted);
      if (to.is_stopped && draw(4) != 0) return fail(kSilentAfter, Status::silent);
      alive(to, [this, &to, meant = to.life, message, sender] {
        if (to.life == meant) take(to, sender, message);
      });
    });
  }

  void take_failure(Host& host, std::uint64_t life, const Message& message, Status why) {
    if (message.kind == Kind::alive) {
      for (const auto& [name, id] : host.ids) {
        if (id->life == life && id->connection.needs_peer()) apply(host, id, id->connection.lose(why, now_));
      }
      return;
    }
    if (const auto id = find(host, message.from)) apply(host, id, id->connection.fail(message.kind, why, now_));
  }

  void take(Host& host, std::uint64_t life, const Message& message) {
    if (message.kind == Kind::req || message.kind == Kind::sidr_req) return take_request(host, life, message);
    const auto id = find(host, message.to);
    if (message.kind == Kind::alive) {
      if (!id || id->connection.is_over()) answer(host, life, message, Kind::dreq, Reason::invalid_comm_id);
      return;
    }
    if (!id) {
      if (message.kind == Kind::dreq) answer(host, life, message, Kind::drep, {});
      if (message.kind == Kind::rep) answer(host, life, message, Kind::rej, Reason::invalid_comm_id);
      return;
    }
    const bool is_answer = id->connection.state() == State::requesting;
    if (!is_answer && (id->connection.peer_name() != message.from || id->life != life)) return;
    if (is_answer && message.kind == Kind::rep) id->life = life;
    apply(host, id, id->connection.take(message, now_));
  }

  void take_request(Host& host, std::uint64_t life, const Message& message) {
    if (host.requests.contains(message.from)) return;
    if (draw(8) == 0) return answer(host, life, message, Kind::busy, {});  // the backlog is full
    if (draw(12) == 0) return answer(host, life, message, Kind::rej, Reason::invalid_service_id);
    const auto id = std::make_shared<Id>(Id{.connection = Connection::answering(message, ++names_, 7)});
    id->life = life;
    host.requests.insert(message.from);
    host.ids.emplace(id->connection.name(), id);
    program(host, id, Event::connect_request);
  }

  void answer(Host& host, std::uint64_t life, const Message& to, Kind kind, Reason reason) {
    Message answer;
    answer.kind = kind;
    answer.reason = std::to_underlying(reason);
    answer.to = to.from;
    answer.from = to.to != 0 ? to.to : 1;
    send(host, life, answer);
  }

  // ---- what a manager does

  void apply(Host& host, const std::shared_ptr<Id>& id, const Step& step) {
    ASSERT_EQ(step.error, 0) << "refused in state " << std::to_underlying(id->connection.state());
    if (step.send) {
      const bool is_request = step.send->kind == Kind::req;
      send(host, is_request ? 0 : id->life, *step.send);
    }
    if (step.tell) note(host, id, *step.tell);
    arm(host, id);
  }
  void arm(Host& host, const std::shared_ptr<Id>& id) {
    const Instant due = id->connection.due();
    if (due == kNever || due == id->armed) return;
    id->armed = due;
    at_host(host, std::max(due - now_, Duration{}), [this, &host, id, due] {
      id->armed = kNever;
      if (id->connection.due() == due && find(host, id->connection.name()) == id)
        apply(host, id, id->connection.expire(now_));
    });
  }
  void ask(Host& host) {
    at(now_ + kAskEvery, [this, &host] {
      if (is_up_[host.number] && !host.is_stopped) {
        for (const auto& [name, id] : host.ids) {
          if (id->connection.needs_peer() && id->life != 0) send(host, id->life, id->connection.ask());
        }
      }
      ask(host);
    });
  }

  void kill(Host& host) {
    ++host.life;
    host.ids.clear();
    host.requests.clear();
    host.late.clear();
    host.is_stopped = false;
    is_up_[host.number] = false;
    at(now_ + draw_time(400ms), [this, &host] { is_up_[host.number] = true; });
  }
  void stop(Host& host) {
    host.is_stopped = true;
    at(now_ + draw_time(10s), [&host, life = host.life] {
      if (host.life != life) return;
      host.is_stopped = false;
      const auto late = std::exchange(host.late, {});
      for (const auto& action : late) alive(host, action);
    });
  }

  // ---- what programs do

  PrivateData words() {
    PrivateData data;
    data.length = 8;
    for (std::uint8_t& each : data.bytes) each = 0;
    for (std::size_t i = 0; i < data.length; ++i) data.bytes[i] = static_cast<std::uint8_t>(draw(256));
    return data;
  }

  void begin(Host& host) {
    if (!is_up_[host.number] || host.is_stopped) return;
    const auto id = std::make_shared<Id>(Id{.connection = Connection(++names_, 5, false)});
    id->is_initiator = true;
    host.ids.emplace(id->connection.name(), id);
    apply(host, id, id->connection.resolve_address(0));
    apply(host, id, id->connection.resolve_route(0));
    Message request;
    request.target = {.family = Family::v4, .ip = *ip_of("10.0.0.7"), .port = 1};
    apply(host, id, id->connection.connect(request, {}, words(), now_));
  }

  void note(Host& host, const std::shared_ptr<Id>& id, const Told& told) {
    EXPECT_EQ(++id->told[told.event], 1) << "told twice of event " << std::to_underlying(told.event);
    EXPECT_FALSE(id->has_left && told.event == Event::established) << "established after its end";
    if (told.event == Event::connect_response) check_answer(host, *id, told);
    if (told.event == Event::established) check_established(host, *id);
    program(host, id, told.event);
  }

  /// The peer's program has accepted, and its words are those that arrive.
  void check_answer(const Host& host, const Id& id, const Told& told) {
    const auto peer = find(other(host), id.connection.peer_name());
    if (!peer) return;  // it was killed, or its program destroyed it
    EXPECT_TRUE(peer->has_accepted);
    EXPECT_TRUE(
        std::equal(peer->said.bytes.begin(), peer->said.bytes.begin() + peer->said.length, told.data.bytes.begin()));
  }
  void check_established(const Host& host, const Id& id) {
    ++established_;
    const auto peer = find(other(host), id.connection.peer_name());
    if (!peer) return;
    EXPECT_TRUE(peer->has_accepted) << "established with a program that has not accepted";
  }

  void program(Host& host, const std::shared_ptr<Id>& id, Event event) {
    const bool dawdles = draw(20) == 0;
    const Duration after = dawdles ? draw_time(150s) : draw_time(50ms);
    at_host(host, after, [this, &host, id, event] {
      if (find(host, id->connection.name()) == id) react(host, id, event);
    });
  }

  void react(Host& host, const std::shared_ptr<Id>& id, Event event) {
    Connection& connection = id->connection;
    switch (event) {
      case Event::connect_request:
      case Event::connect_response: {
        const bool waits = connection.state() == State::requested || connection.state() == State::replied_to;
        if (!waits) return;  // it has ended meanwhile, and another event says so
        const std::uint64_t choice = draw(10);
        if (choice == 0) return destroy(host, id);
        if (choice == 1) {
          id->has_left = true;
          return apply(host, id, connection.reject(Reason::consumer_defined, {}));
        }
        id->has_accepted = true;
        const bool is_first = event == Event::connect_request;
        if (is_first) id->said = words();
        const Terms terms;
        apply(host, id, connection.accept(is_first ? &terms : nullptr, id->said, now_));
        if (!is_first && draw(2) == 0) leave_later(host, id);
        return;
      }
      case Event::established:
        if (draw(2) == 0) leave_later(host, id);
        return;
      case Event::disconnected:
        id->has_left = true;
        apply(host, id, connection.disconnect(now_));
        return;
      case Event::rejected:
      case Event::unreachable:
      case Event::timewait_exit:
        id->has_left = true;
        if (draw(2) == 0) destroy(host, id);
        return;
      default:
        return;
    }
  }
  void leave_later(Host& host, const std::shared_ptr<Id>& id) {
    at_host(host, draw_time(10s), [this, &host, id] {
      if (find(host, id->connection.name()) != id) return;
      if (draw(4) == 0) return destroy(host, id);
      id->has_left = true;
      apply(host, id, id->connection.disconnect(now_));
    });
  }
  void destroy(Host& host, const std::shared_ptr<Id>& id) {
    if (const auto last = id->connection.destroy()) send(host, id->life, *last);
    host.ids.erase(id->connection.name());
  }

  // ---- the end

  void check_end(const Host& host, const Id& id) {
    const State state = id.connection.state();
    const auto count = [&](Event event) { return id.told.contains(event) ? 1 : 0; };
    if (id.is_initiator) {
      EXPECT_EQ(count(Event::connect_response) + count(Event::rejected) + count(Event::unreachable) >= 1, true)
          << "never told how its request ended";
    }
    if (state == State::over) return;
    ASSERT_EQ(state, State::connected) << "it hangs, told of " << id.told.size() << " events";
    const auto peer = find(other(host), id.connection.peer_name());
    ASSERT_TRUE(peer) << "connected with nobody";
    EXPECT_EQ(peer->connection.state(), State::connected) << "connected at one end only";
    EXPECT_EQ(peer->connection.peer_name(), id.connection.name());
  }

  std::mt19937_64 random_;
  Instant now_ = kBegin;
  std::multimap<Instant, std::function<void()>> events_;
  std::array<Host, 2> hosts_{Host{.number = 0}, Host{.number = 1}};
  std::array<bool, 2> is_up_{true, true};
  std::uint64_t names_ = 100;
  int established_ = 0;
};

TEST(ConnectionSeeds, EndOnBothSidesOrOnNone) {
  int established = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    world.run();
    established += world.established();
  }
  EXPECT_GT(established, static_cast<int>(kSeeds)) << "worlds in which nothing is connected show nothing";
}

}  // namespace
}  // namespace fairlead::rdma_cm
