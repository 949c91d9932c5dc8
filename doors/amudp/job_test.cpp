// The console of a job, and messages to it from ranks, strangers and malicious ranks.

#include "doors/amudp/console.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/child_for_tests.hpp"
#include "doors/amudp/job_environment.hpp"
#include "doors/amudp/library.hpp"
#include "doors/amudp/spmd.hpp"

namespace fairlead::amudp {
namespace {

using namespace std::chrono_literals;

constexpr int kPatience = 20'000;  // ms; only ends a failing test

// A console in a thread of its own.
class RunningConsole {
 public:
  explicit RunningConsole(std::uint32_t processes, std::size_t waiting_max = Connection::kWaitingMax) {
    std::string error;
    sockaddr_in listen{};
    listen.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    console_ = Console::open({.listen = listen, .processes = processes, .waiting_max = waiting_max}, error);
    EXPECT_NE(console_, nullptr) << error;
    address_ = console_->address();
    thread_ = std::thread([this] {
      code_ = console_->run();
      console_.reset();  // closes its connections, as the end of a process does
    });
  }
  ~RunningConsole() {
    if (thread_.joinable()) thread_.join();
  }
  const JobAddress& address() const { return address_; }
  int end() {
    thread_.join();
    return code_;
  }

 private:
  std::unique_ptr<Console> console_;
  JobAddress address_;
  int code_ = -1;
  std::thread thread_;
};

// A rank as the console sees it, under the test's control.
class Rank {
 public:
  explicit Rank(Connection connection) : connection_(std::move(connection)) {}
  explicit Rank(const JobAddress& job) : connection_(Connection::open(job.where)) { EXPECT_TRUE(connection_); }
  Rank(const JobAddress& job, int number) : Rank(job) { greet(job.secret, number); }

  void greet(const std::string& secret, int number) {
    std::vector<std::byte> hello(kSecretText + sizeof(std::uint32_t));
    std::memcpy(hello.data(), secret.data(), std::min(secret.size(), kSecretText));
    const std::uint32_t pid = 1'000'000'000U + static_cast<unsigned>(number);  // an unused PID
    std::memcpy(hello.data() + kSecretText, &pid, sizeof pid);
    send(Frame::hello, number, hello);
  }
  void send(Frame kind, int number, std::span<const std::byte> payload = {}) {
    connection_->send(kind, number, payload);
  }
  void send_bytes(std::span<const std::byte> bytes) {
    static_cast<void>(::send(connection_->descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  // Returns nullopt if the connection has ended.
  std::optional<Received> next() {
    for (;;) {
      if (auto frame = connection_->next()) return frame;
      pollfd look{connection_->descriptor(), POLLIN, 0};
      if (poll(&look, 1, kPatience) != 1 || !connection_->read_some()) return connection_->next();
    }
  }
  void close() { connection_.reset(); }

 private:
  std::optional<Connection> connection_;
};

std::string text_of(const Received& frame) {
  return {reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size()};
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(AmudpJob, ADeathIsToldToTheOthersAtOnceWithItsName) {
  RunningConsole console(3);
  Rank first(console.address(), 0), second(console.address(), 1), third(console.address(), 2);
  for (Rank* rank : {&first, &second, &third}) EXPECT_EQ(rank->next()->head.kind, Frame::start);
  third.send(Frame::gather, 0);
  third.send(Frame::beat, 1);
  third.close();
  for (Rank* rank : {&first, &second}) {
    const auto told = rank->next();  // the very next frame
    ASSERT_TRUE(told);
    EXPECT_EQ(told->head.kind, Frame::exit);
    EXPECT_EQ(told->head.number, 1);
    EXPECT_TRUE(
        text_of(*told).starts_with("rank 2 (process 1000000002) ended without AMX_SPMDExit: its connection "
                                   "closed; its last sign of life came "))
        << text_of(*told);
    EXPECT_TRUE(text_of(*told).ends_with(" ms ago, after 1 barriers and gathers")) << text_of(*told);
    rank->close();
  }
  EXPECT_EQ(console.end(), 1);
}

TEST(AmudpJob, AnExitIsEverybodysAndNeedsNoReason) {
  RunningConsole console(2);
  Rank first(console.address(), -1), second(console.address(), -1);
  ASSERT_EQ(first.next()->head.kind, Frame::start);
  ASSERT_EQ(second.next()->head.kind, Frame::start);
  second.send(Frame::exit, 5);
  for (Rank* rank : {&first, &second}) {
    const auto told = rank->next();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->head.kind, Frame::exit);
    EXPECT_EQ(told->head.number, 5);
    EXPECT_TRUE(told->payload.empty());
    rank->close();
  }
  EXPECT_EQ(console.end(), 5);
}

TEST(AmudpJob, StrangersDisturbNobody) {
  RunningConsole console(2);
  Rank first(console.address(), 1);
  std::minstd_rand random(1);
  for (int i = 0; i < 100; ++i) {
    Rank stranger(console.address());
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? 1 : random());
    if (i % 4 == 1) {
      stranger.greet(std::string(kSecretText, 'x'), i % 3);  // the wrong secret
      EXPECT_FALSE(stranger.next());
    } else if (i % 4 == 2) {
      stranger.greet(console.address().secret, 1 + i % 50);  // a rank number that is taken or too high
      EXPECT_FALSE(stranger.next());
    } else {
      stranger.send_bytes(bytes);
    }
  }
  Rank second(console.address(), 0);
  EXPECT_EQ(first.next()->head.number, 1);
  EXPECT_EQ(second.next()->head.number, 0);
  first.send(Frame::gather, 0, bytes_of("behind"));
  second.send(Frame::gather, 0, bytes_of("before"));
  EXPECT_EQ(text_of(*first.next()), "beforebehind");
  EXPECT_EQ(text_of(*second.next()), "beforebehind");
  first.send(Frame::exit, 0);
  while (first.next()->head.kind != Frame::exit) continue;
  first.close();
  second.close();
  EXPECT_EQ(console.end(), 0);
}

// More strangers than may wait at once, none of which leaves by itself.
TEST(AmudpJob, StrangersThatStayMakeRoomForRanks) {
  RunningConsole console(2);
  std::vector<std::unique_ptr<Rank>> strangers;
  const auto come = [&] {
    for (std::size_t i = 0; i < 2 * Console::kStrangersMax; ++i)
      strangers.push_back(std::make_unique<Rank>(console.address()));
  };
  come();
  Rank first(console.address(), 0);
  come();
  Rank second(console.address(), 1);
  EXPECT_EQ(first.next()->head.kind, Frame::start);
  EXPECT_EQ(second.next()->head.kind, Frame::start);
  for (const auto& stranger : strangers) EXPECT_FALSE(stranger->next()) << "a stranger was heard";
  EXPECT_FALSE(Connection::open_once(console.address().where)) << "nobody can knock at a job that has started";
  first.send(Frame::exit, 3);
  EXPECT_EQ(second.next()->head.number, 3);
  first.close();
  second.close();
  EXPECT_EQ(console.end(), 3);
}

// A rank that is stopped, or in a debugger, with more to read than its socket holds.
TEST(AmudpJob, ARankThatDoesNotReadHoldsUpNobody) {
  RunningConsole console(3);
  Rank first(console.address(), 0), second(console.address(), 1), deaf(console.address(), 2);
  for (Rank* rank : {&first, &second, &deaf}) EXPECT_EQ(rank->next()->head.kind, Frame::start);
  const std::string part(8 << 20, 'x');
  constexpr int kGathers = 3;
  for (int i = 0; i < kGathers; ++i) {
    for (Rank* rank : {&first, &second, &deaf}) rank->send(Frame::gather, 0, bytes_of(part));
    for (Rank* rank : {&first, &second}) {
      const auto all = rank->next();
      ASSERT_TRUE(all);
      EXPECT_EQ(all->payload.size(), 3 * part.size());
    }
  }
  first.close();
  const auto told = second.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->head.kind, Frame::exit);
  EXPECT_TRUE(text_of(*told).starts_with("rank 0 ")) << text_of(*told);
  second.close();
  EXPECT_EQ(console.end(), 1);  // it does not wait for the rank that does not read, either
}

TEST(AmudpJob, WhoeverNeverReadsIsGivenUp) {
  RunningConsole console(2, 8 << 20);
  Rank honest(console.address(), 0), deaf(console.address(), 1);
  for (Rank* rank : {&honest, &deaf}) EXPECT_EQ(rank->next()->head.kind, Frame::start);
  const std::string part(1 << 20, 'x');
  std::optional<Received> told;
  for (int i = 0; i < 100; ++i) {  // more than sockets can hold
    for (Rank* rank : {&honest, &deaf}) rank->send(Frame::gather, 0, bytes_of(part));
    told = honest.next();
    ASSERT_TRUE(told);
    if (told->head.kind == Frame::exit) break;
  }
  ASSERT_EQ(told->head.kind, Frame::exit);
  EXPECT_TRUE(text_of(*told).starts_with("rank 1 (process 1000000001) does not read what it is told"))
      << text_of(*told);
  honest.close();
  EXPECT_EQ(console.end(), 1);
}

// Without a free descriptor, the connection waits and no process spins.
TEST(AmudpJob, WithoutDescriptorsRanksWaitAndTheProcessorRests) {
  EXPECT_EQ(base::exit_of_child([] {
              RunningConsole console(1);
              base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
              const int next = dup(0);  // the lowest free number
              close(next);
              rlimit limit{}, none{};
              if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
              none = {static_cast<rlim_t>(next), limit.rlim_max};
              if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 2;
              const sockaddr_in where = console.address().where;
              if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) return 8;
              const auto used = [] {
                rusage usage{};
                getrusage(RUSAGE_SELF, &usage);
                return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
              };
              const auto before = used();
              std::this_thread::sleep_for(500ms);
              const bool rests = used() - before < 200ms;
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 3;
              Rank rank{Connection(std::move(socket))};
              rank.greet(console.address().secret, 0);
              const auto told = rank.next();
              if (!told || told->head.kind != Frame::start) return 4;
              rank.send(Frame::exit, 0);
              if (const auto end = rank.next(); !end || end->head.kind != Frame::exit) return 5;
              rank.close();
              return console.end() != 0 ? 6 : rests ? 0 : 7;
            }),
            0);
}

// A process with the secret can at most end the job: each job ends.
TEST(AmudpJob, ARankThatSaysAnythingAtMostEndsTheJob) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::minstd_rand random(seed);
    RunningConsole console(2);
    Rank honest(console.address(), 0), wild(console.address(), 1);
    ASSERT_EQ(honest.next()->head.kind, Frame::start);
    honest.send(Frame::gather, 0, bytes_of("part"));
    for (int i = 0; i < 20; ++i) {
      std::vector<std::byte> payload(random() % 3 == 0 ? random() % 3000 : random() % 8);
      for (std::byte& byte : payload) byte = static_cast<std::byte>(random());
      if (random() % 8 == 0) {
        wild.send_bytes(payload);  // not a frame
      } else {
        const auto kind = static_cast<Frame>(random() % 8 == 0 ? random() % 256 : random() % 6);
        wild.send(kind, static_cast<int>(random()), payload);
      }
    }
    wild.close();
    auto told = honest.next();
    while (told && told->head.kind == Frame::gather) told = honest.next();
    ASSERT_TRUE(told) << "the honest one was not told, seed " << seed;
    EXPECT_EQ(told->head.kind, Frame::exit);
    honest.close();
    EXPECT_EQ(console.end(), told->head.number) << "seed " << seed;
  }
}

// Messages from a console are checked, too.
TEST(AmudpJob, AConsoleThatSaysAnythingIsNotJoined) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 16), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  struct Said {
    Frame kind;
    int rank;
    StartInfo info;
    std::size_t size;
  };
  for (const Said& said :
       {Said{Frame::gather, 0, {1, 2, 4}, sizeof(StartInfo)}, Said{Frame::start, 0, {1, 2, 4}, 7},
        Said{Frame::start, 0, {1, 0, 4}, sizeof(StartInfo)}, Said{Frame::start, 2, {1, 2, 4}, sizeof(StartInfo)},
        Said{Frame::start, -1, {1, 2, 4}, sizeof(StartInfo)},
        Said{Frame::start, 0, {1, 1U << 31, 4}, sizeof(StartInfo)},
        Said{Frame::start, 0, {1, 2, -4}, sizeof(StartInfo)}}) {
    std::thread hostile([&] {
      Connection connection(base::FileDescriptor(accept(listener, nullptr, nullptr)));
      connection.send(said.kind, said.rank, std::as_bytes(std::span(&said.info, 1)).first(said.size));
    });
    std::string error;
    EXPECT_EQ(Worker::join({.where = address, .secret = "x"}, -1, error), nullptr);
    EXPECT_NE(error.find("did not take us"), std::string::npos) << error;
    hostile.join();
  }
  close(listener);
}

TEST(AmudpJob, AddressesAreReadWholeOrNotAtAll) {
  const auto good = JobAddress::parse("10.1.2.3:4567:swordfish");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->to_string(), "10.1.2.3:4567:swordfish");
  for (const char* bad : {"", ":", "::", "10.1.2.3", "10.1.2.3:4567", "10.1.2.3:4567:", "10.1.2:4567:x", "host:4567:x",
                          "10.1.2.3:65536:x", "10.1.2.3:-1:x", "10.1.2.3:45 67:x", "10.1.2.3::x",
                          "10.1.2.3:4567:123456789012345678901234567890123"}) {
    EXPECT_FALSE(JobAddress::parse(bad)) << bad;
  }
  std::minstd_rand random(3);
  const std::string letters = "0123456789.:ax";
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = "10.1.2.3:4567:swordfish";
    for (unsigned changes = random() % 4; changes-- > 0;)
      text[random() % text.size()] = letters[random() % letters.size()];
    text.resize(random() % (text.size() + 1));
    const auto parsed = JobAddress::parse(text);
    ++(parsed ? read : refused);
    if (!parsed) continue;
    // Only zeros before the port's number are not repeated.
    const std::size_t first = text.find(':') + 1, second = text.find(':', first);
    const std::string port = std::to_string(std::stoul(text.substr(first, second - first)));
    EXPECT_EQ(parsed->to_string(), text.substr(0, first) + port + text.substr(second)) << text;
    EXPECT_EQ(ntohs(parsed->where.sin_port), std::stoul(port)) << text;
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}

// Returns the names, sorted and separated by commas.
std::string names_told(EnvironmentFor reader) {
  std::vector<std::string> names;
  const std::string all = job_environment(reader);
  for (std::size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) {
    const std::string name = all.substr(at, all.find('=', at) - at);
    if (name.find("TOLD") != name.npos || name.starts_with("FAIRLEAD_AM_")) names.push_back(name);
  }
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ","));
}

TEST(AmudpJob, OtherHostsAreToldWhatIsForThemAndNobodyTheSecret) {
  const std::vector<const char*> names{"GASNET_TOLD",     "AMUDP_TOLD", "TOLD_TOKEN",         "UPC_TOLD_1",
                                       "FAIRLEAD_AM_JOB", "TOLD_PATH",  "FAIRLEAD_AM_MASTER", "AMUDP_PASSENV"};
  for (const char* name : names) ::setenv(name, "x", 1);
  EXPECT_EQ(names_told(EnvironmentFor::this_host), "AMUDP_TOLD,GASNET_TOLD,TOLD_PATH,TOLD_TOKEN,UPC_TOLD_1");
  EXPECT_EQ(names_told(EnvironmentFor::other_hosts), "AMUDP_TOLD,GASNET_TOLD");
  ::setenv("AMUDP_PASSENV", "TOLD_PATH, UPC_*", 1);
  EXPECT_EQ(names_told(EnvironmentFor::other_hosts), "AMUDP_TOLD,GASNET_TOLD,TOLD_PATH,UPC_TOLD_1");
  ::setenv("AMUDP_PASSENV", "*", 1);
  EXPECT_EQ(names_told(EnvironmentFor::other_hosts), names_told(EnvironmentFor::this_host));
  for (const char* name : names) ::unsetenv(name);
}

TEST(AmudpJob, NumbersOfTheEnvironmentAreNumbersOrSaidNotToBe) {
  const auto read = [](const char* text, std::string& error) {
    ::setenv("GASNET_TEST_NUMBER", text, 1);
    const double number = number_setting("TEST_NUMBER", 7, {0, 100}, error);
    ::unsetenv("GASNET_TEST_NUMBER");
    return number;
  };
  std::string error;
  EXPECT_EQ(read("12", error), 12);
  EXPECT_EQ(read("0.5", error), 0.5);
  EXPECT_EQ(read("", error), 7);
  EXPECT_EQ(error, "");
  for (const char* bad : {"x", "12x", "-1", "101", "nan", "inf", "1e999", "0x", " "}) {
    error.clear();
    EXPECT_EQ(read(bad, error), 7);
    EXPECT_EQ(error, fmt::format("GASNET_TEST_NUMBER={} is not a number from 0 to 100: correct or unset it", bad));
  }
}

}  // namespace
}  // namespace fairlead::amudp
