// Processes of a job leave while others still send to them: in any order, with requests, replies and long messages in
// flight, polling and blocking. An orderly end causes no error. The death of a process does, reported once
// for each request to it.
//
// FAIRLEAD_TEST_LEAVES=1000 runs each case so many times instead of a few.

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "am/pair_for_tests.hpp"
#include "base/thread_sanitizer.hpp"

namespace fairlead::am {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRanks = 3;
constexpr std::uint8_t kEchoBack = 20;
constexpr std::size_t kLongBytes = 60'000, kPlace = 70'000;

struct Case {
  const char* name;
  const char* path;
  const char* fault;
  bool blocks;
};

/// What the processes report to each other and to the test, in shared memory.
struct Board {
  std::array<Name, kRanks> names;
  std::array<std::atomic<bool>, kRanks> is_named, has_met, is_gone;
  std::array<std::atomic<unsigned>, kRanks> returned, dropped, served;
  std::array<std::atomic<int>, kRanks> first_refusal;
  char why[kRanks][300];  // the first failure
};

/// The order in which the ranks leave, and how the first one ends.
struct Exit {
  std::array<std::size_t, kRanks> places{0, 1, 2};
  bool is_death = false;
  unsigned messages_before = 0;  // of the first rank
};

class Rank {
 public:
  Rank(Board& board, const Case& how, const Exit& exit, std::size_t number)
      : board_(board), how_(how), exit_(exit), number_(number) {}

  [[noreturn]] void live() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto domain = open();
    Bundle bundle(domain, BundleMode::sequential);
    Endpoint& endpoint = *bundle.add_endpoint().value();
    equip(endpoint);
    learn_names(endpoint);
    meet(bundle, endpoint);
    for (unsigned sent = 0; !is_my_turn(sent); ++sent) talk(bundle, endpoint, sent);
    if (is_first() && exit_.is_death) ::kill(::getpid(), SIGKILL);
    board_.dropped[number_] = static_cast<unsigned>(endpoint.requests_to_left());
    domain.leave();
    ::_exit(0);
  }

 private:
  Domain open() const {
    DomainSettings settings{.ip = fmt::format("127.0.{}.{}", 10 + number_, 1 + ::getppid() % 250), .engine = {}};
    if (how_.path == std::string_view("host")) {
      settings.engine.emplace_back("core", "host");
      settings.engine.emplace_back("host", host::DaemonForTests::shared().file());
    } else {
      settings.engine.emplace_back("path", how_.path);
    }
    settings.engine.emplace_back("give_up_after", "1000");
    settings.engine.emplace_back("unreachable_after", "200");
    if (how_.fault[0] != 0) settings.engine.emplace_back("fault", how_.fault);
    return Domain::open(settings).value();
  }
  void equip(Endpoint& endpoint) {
    endpoint.set_tag(Tag::of(kKey));
    endpoint.set_segment(segment_.data(), segment_.size());
    endpoint.set_error_handler(&on_returned, this);
    EXPECT_EQ(endpoint.set_handler(kEcho, &on_echo, this), Status::ok);
    EXPECT_EQ(endpoint.set_handler(kEchoBack, &on_echo_back, this), Status::ok);
  }
  static void on_returned(void* context, Endpoint& endpoint, const Returned& returned) {
    auto& rank = *static_cast<Rank*>(context);
    if (returned.refusal == Refusal::left || !rank.has_met_) return;
    ++rank.board_.returned[rank.number_];
    int none = 0;
    if (!rank.board_.first_refusal[rank.number_].compare_exchange_strong(none, static_cast<int>(returned.refusal)))
      return;
    const std::string why = fmt::format("to {}: {}", returned.translation, endpoint.describe(returned.translation));
    char(&place)[sizeof Board::why[0]] = rank.board_.why[rank.number_];
    place[why.copy(place, sizeof place - 1)] = '\0';
  }
  static void on_echo(void* context, Token& token, const Message& message) {
    auto& rank = *static_cast<Rank*>(context);
    ++rank.board_.served[rank.number_];
    // The next long message may be arriving at the same place, so the test must not read there.
    const auto bytes = std::span(rank.data_).first(message.data.size());
    static_cast<void>(message.size == Size::large ? token.reply_long(0, kEchoBack, bytes, message.arguments)
                                                  : token.reply_medium(kEchoBack, message.data, message.arguments));
  }
  static void on_echo_back(void* context, Token& token, const Message&) {
    std::uint32_t from = 0;
    if (token.source_index(from)) static_cast<Rank*>(context)->is_heard_[from] = true;
  }
  void learn_names(Endpoint& endpoint) {
    board_.names[number_] = endpoint.name();
    board_.is_named[number_] = true;
    for (std::size_t other = 0; other < kRanks; ++other) {
      while (!board_.is_named[other]) std::this_thread::sleep_for(100us);
      EXPECT_EQ(endpoint.map(static_cast<std::uint32_t>(other), board_.names[other], kKey), Status::ok);
    }
  }
  /// No rank leaves before all have heard each other, because the end of an unknown peer cannot be noticed.
  void meet(Bundle& bundle, Endpoint& endpoint) {
    for (std::uint32_t to = 0; to < kRanks; ++to) {
      while (to != number_ && !is_heard_[to]) {
        static_cast<void>(endpoint.request(to, kEcho, {}));  // repeated until it is heard
        while (endpoint.outstanding() != 0) bundle.wait(std::chrono::steady_clock::now() + 1ms);
      }
    }
    board_.has_met[number_] = true;
    while (!std::ranges::all_of(board_.has_met, [](const auto& has) { return has.load(); }))
      bundle.wait(std::chrono::steady_clock::now() + 1ms);
    has_met_ = true;
  }
  bool is_first() const { return exit_.places[number_] == 0; }
  /// Returns whether this rank may leave: the first after so many messages, the others after their predecessors.
  bool is_my_turn(unsigned sent) const {
    if (is_first()) return sent >= exit_.messages_before;
    for (std::size_t other = 0; other < kRanks; ++other)
      if (exit_.places[other] < exit_.places[number_] && !board_.is_gone[other]) return false;
    return !exit_.is_death || board_.returned[number_] != 0;
  }
  /// Sends one message to each other rank, of each kind in turn, without waiting for earlier ones.
  void talk(Bundle& bundle, Endpoint& endpoint, unsigned turn) {
    constexpr std::array<Argument, 2> kWords{1, 2};
    for (std::uint32_t to = 0; to < kRanks; ++to) {
      if (to == number_) continue;
      // The target may be gone already.
      static_cast<void>(turn % 3 == 0 ? endpoint.request(to, kEcho, kWords)
                        : turn % 3 == 1
                            ? endpoint.request_medium(to, kEcho, std::span(data_).first(900), kWords)
                            : endpoint.request_long(to, kPlace, kEcho, std::span(data_).first(kLongBytes), kWords));
    }
    how_.blocks ? bundle.wait(std::chrono::steady_clock::now() + 1ms) : bundle.poll();
  }

  Board& board_;
  const Case& how_;
  const Exit& exit_;
  std::size_t number_;
  std::array<bool, kRanks> is_heard_{};
  bool has_met_ = false;
  std::vector<std::byte> segment_ = std::vector<std::byte>(200'000), data_ = std::vector<std::byte>(kLongBytes);
};

class Leaving : public testing::TestWithParam<Case> {
 protected:
  Leaving() {
    void* const shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board_ = new (shared) Board;
    if (GetParam().path == std::string_view("host")) host::DaemonForTests::shared();  // not of a child
  }
  ~Leaving() override { ::munmap(board_, sizeof(Board)); }

  static unsigned rounds(unsigned usual) {
    const char* wanted = std::getenv("FAIRLEAD_TEST_LEAVES");
#ifdef FAIRLEAD_THREAD_SANITIZER
    usual = 1;  // each run takes seconds
#endif
    return wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : usual;
  }

  void play(const Exit& exit) {
    std::memset(static_cast<void*>(board_), 0, sizeof(Board));
    std::array<pid_t, kRanks> processes{};
    for (std::size_t i = 0; i < kRanks; ++i) {
      processes[i] = ::fork();
      if (processes[i] == 0) Rank(*board_, GetParam(), exit, i).live();
    }
    for (std::size_t place = 0; place < kRanks; ++place) {
      const auto rank = static_cast<std::size_t>(std::ranges::find(exit.places, place) - exit.places.begin());
      status_[rank] = wait_for(processes[rank]);
      board_->is_gone[rank] = true;
    }
  }

  static int wait_for(pid_t process) {
    int status = -1;
    for (const auto until = std::chrono::steady_clock::now() + 60s; ::waitpid(process, &status, WNOHANG) == 0;) {
      if (std::chrono::steady_clock::now() > until) ::kill(process, SIGKILL);
      std::this_thread::sleep_for(200us);
    }
    return status;
  }

  Board* board_ = nullptr;
  std::array<int, kRanks> status_{};
};

TEST_P(Leaving, IsNoErrorForThoseWhoStillSend) {
  unsigned dropped = 0;
  Exit exit;
  for (unsigned round = 0; round < rounds(6); ++round) {
    exit.messages_before = round * 7 % 40;
    play(exit);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(status_[rank], 0) << "rank " << rank << " in round " << round;
      ASSERT_EQ(board_->returned[rank], 0U) << "rank " << rank << " in round " << round << ": refusal "
                                            << board_->first_refusal[rank] << ' ' << board_->why[rank];
      dropped += board_->dropped[rank];
    }
    std::ranges::next_permutation(exit.places);
  }
  EXPECT_GT(dropped, 0U) << "nobody sent to one that had left";
}

TEST_P(Leaving, ADeathIsAnErrorOfThoseWhoStillSend) {
  for (unsigned round = 0; round < rounds(1); ++round) {
    play({.is_death = true, .messages_before = 3 + round});
    ASSERT_EQ(status_[0], SIGKILL);
    for (const std::size_t rank : {1, 2}) {
      ASSERT_EQ(status_[rank], 0);
      EXPECT_EQ(board_->first_refusal[rank], static_cast<int>(Refusal::unreachable)) << "rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(How, Leaving,
                         testing::Values(Case{"udp_polling", "udp", "", false}, Case{"udp_blocking", "udp", "", true},
                                         Case{"lossy_polling", "udp", "drop=3%,seed=1", false},
                                         Case{"lossy_blocking", "udp", "drop=3%,seed=1", true},
                                         Case{"shm_polling", "shm", "", false}, Case{"shm_blocking", "shm", "", true},
                                         Case{"auto_polling", "auto", "", false},
                                         Case{"host_polling", "host", "", false},
                                         Case{"host_blocking", "host", "", true}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace fairlead::am
