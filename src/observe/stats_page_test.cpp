// Statistics pages: readers get exactly what the owner wrote, and nothing in a page is trusted unchecked.

#include "observe/stats_page.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "base/child_for_tests.hpp"
#include "base/place_for_tests.hpp"
#include "observe/stats_finder.hpp"
#include "observe/stats_view.hpp"

namespace fairlead::observe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Wish = StatsPage::Wish;

constexpr base::Instant kNow{7s}, kOnce{};

EngineStats some_stats(std::uint64_t value) {
  EngineStats stats{.facts = {.path = "udp", .counters = {}, .peers = {}}, .ports = {}, .pairs = {}, .flights = {}};
  for (int i = 0; i < 200; ++i) stats.facts.counters.push_back({fmt::format("counter.{}", i), value});
  stats.facts.peers.push_back(
      {.address = base::place_for_tests(9), .path = "shm", .path_reason = {}, .is_connected = true});
  stats.ports.push_back({.number = 34, .operations = 2, .dropped_no_buffer = 3, .takes_active = true});
  stats.facts.peers_total = stats.ports_total = stats.pairs_total = 1;
  stats.pairs.push_back({.number = 17,
                         .peer_number = 18,
                         .type = "RC",
                         .state = "RTS",
                         .peer = base::place_for_tests(9),
                         .requests = 5,
                         .in_flight = 4});
  stats.flights.push_back({base::place_for_tests(9), 1000, {FlightEvent(kNow, FlightKind::sent, 3, 4000)}});
  return stats;
}

StatsPage page_of_test() {
  return std::move(*StatsPage::create(base::place_for_tests(1), kNow));
}

TEST(StatsPage, TellsWhatItsOwnerWrote) {
  StatsPage page = page_of_test();
  page.publish(some_stats(11), Wish::flights, kNow);
  page.publish_report("waiting for nobody\n", kNow);
  const auto view = read_stats(page.descriptor(), kOnce);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(text_of(view->header.address), base::place_for_tests(1).to_string());
  EXPECT_EQ(view->header.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(view->counters.size(), 200u);
  EXPECT_EQ(view->counter("counter.199"), 11u);
  EXPECT_EQ(text_of(view->peers.at(0).path), "shm");
  EXPECT_EQ(view->ports.at(0).dropped_no_buffer, 3u);
  EXPECT_EQ(text_of(view->pairs.at(0).state), "RTS");
  EXPECT_EQ(view->report, "waiting for nobody\n");
  EXPECT_EQ(view->flights.at(0).recorded, 1000u);
  EXPECT_EQ(view->events.at(0).to_string(), "sent 3 datagrams, 4000 bytes");
}

TEST(StatsPage, HasBoundsAndTellsWhatTheyLeaveOff) {
  StatsPage page = page_of_test();
  EngineStats stats = some_stats(1);
  stats.ports.assign(5000, {.number = 1});
  stats.ports_total = 6000;
  stats.facts.counters.push_back({std::string(300, 'x'), 1});
  stats.flights.assign(FlightRecorder::kRingsMax, {{}, 999, std::vector<FlightEvent>(500)});
  page.publish(stats, Wish::flights, kNow);
  page.publish_report(std::string(100'000, 'r'), kNow);
  const auto view = read_stats(page.descriptor(), kOnce);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->ports.size(), 1024u);
  EXPECT_EQ(view->header.parts[static_cast<std::size_t>(StatsPart::ports)].total, 6000u);
  EXPECT_EQ(text_of(view->counters.back().name), std::string(56, 'x'));
  EXPECT_EQ(view->report.size(), 8192u);
  EXPECT_EQ(view->events.size(), std::size_t{FlightRecorder::kRingsMax} * FlightRecorder::kEvents);
}

TEST(StatsPage, CanBeWrittenByItsOwnerOnly) {
  const StatsPage page = page_of_test();
  const base::FileDescriptor other(
      ::open(fmt::format("/proc/self/fd/{}", page.descriptor()).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(other.is_open());  // the owner may open it; only the seals prevent writing
  EXPECT_EQ(::pwrite(other.get(), "x", 1, 0), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other.get(), 0), MAP_FAILED);
  EXPECT_EQ(::ftruncate(other.get(), 0), -1);
  struct stat facts{};
  ASSERT_EQ(::fstat(page.descriptor(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

// Each publication has one value in all its counters, so a reader must never see two.
TEST(StatsPage, IsNotReadHalfWritten) {
  StatsPage page = page_of_test();
  page.publish(some_stats(0), Wish::figures, kNow);
  std::atomic<bool> is_over{false};
  std::thread owner([&] {
    for (std::uint64_t value = 1; !is_over; ++value) {
      page.publish(some_stats(value), Wish::figures, kNow);
      std::this_thread::yield();
    }
  });
  // Until enough of them were read, however the processor is shared.
  for (std::uint64_t seen = 0, changes = 0, i = 0; changes < 200 && i < 200'000; ++i) {
    const auto view = read_stats(page.descriptor(), kOnce);
    if (!view) continue;  // reported as being written
    changes += std::exchange(seen, view->counter("counter.0")) != seen;
    EXPECT_EQ(view->counter("counter.0"), view->counter("counter.199"));
  }
  is_over = true;
  owner.join();
  EXPECT_TRUE(read_stats(page.descriptor(), kOnce));
}

/// A forged page.
class MadeUpPage : public testing::Test {
 protected:
  MadeUpPage() {
    StatsPage page = page_of_test();
    page.publish(some_stats(1), Wish::flights, kNow);
    bytes_.resize(kStatsPlaces.page_bytes);
    EXPECT_EQ(::pread(page.descriptor(), bytes_.data(), bytes_.size(), 0), static_cast<ssize_t>(bytes_.size()));
    write();
  }
  void write() {
    EXPECT_EQ(::pwrite(file_.get(), bytes_.data(), bytes_.size(), 0), static_cast<ssize_t>(bytes_.size()));
  }
  template <typename Value>
  void set(std::size_t offset, Value value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    write();
  }
  static std::size_t count_at(StatsPart part) {
    return offsetof(StatsHeader, parts) + static_cast<std::size_t>(part) * sizeof(StatsSection) +
           offsetof(StatsSection, count);
  }
  Status status() const {
    const auto view = read_stats(file_.get(), kOnce);
    return view ? Status::ok : view.error().status;
  }

  base::FileDescriptor file_{::memfd_create("made-up", MFD_CLOEXEC)};
  std::vector<std::byte> bytes_;
};

TEST_F(MadeUpPage, IsReadIfItMakesSense) {
  EXPECT_EQ(status(), Status::ok);
}

TEST_F(MadeUpPage, OfAnotherLayoutIsNamedAsSuch) {
  set(offsetof(StatsHeader, version), kStatsVersion + 1);
  const auto view = read_stats(file_.get(), kOnce);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().status, Status::not_supported);
  EXPECT_THAT(view.error().message, HasSubstr(fmt::format("layout {}", kStatsVersion + 1)));
}

TEST_F(MadeUpPage, ThatIsNoneIsRefused) {
  set(0, 'X');
  EXPECT_EQ(status(), Status::invalid);
}

TEST_F(MadeUpPage, ThatIsCutShortIsRefused) {
  ASSERT_EQ(::ftruncate(file_.get(), 5000), 0);
  EXPECT_EQ(status(), Status::invalid);
  ASSERT_EQ(::ftruncate(file_.get(), 100), 0);
  EXPECT_EQ(status(), Status::invalid);
}

TEST_F(MadeUpPage, WithMoreThanThereCanBeIsRefused) {
  for (const StatsPart part : {StatsPart::counters, StatsPart::report, StatsPart::events}) {
    const auto before = bytes_;
    set(count_at(part), 0xFFFF'FFFFU);
    EXPECT_EQ(status(), Status::invalid);
    bytes_ = before;
  }
}

TEST_F(MadeUpPage, WithAFlightBeyondItsEventsIsRefused) {
  set(kStatsPlaces.parts[static_cast<std::size_t>(StatsPart::flights)].offset + offsetof(StatsFlight, count), 2U);
  EXPECT_EQ(status(), Status::invalid);
}

TEST_F(MadeUpPage, ThatIsBeingWrittenForEverIsLeft) {
  set(offsetof(StatsHeader, sequence), 3U);
  EXPECT_EQ(status(), Status::again);
}

// The owner changes one figure after the other: an inconsistency meanwhile is no forgery.
TEST_F(MadeUpPage, ThatIsBeingWrittenIsNotJudged) {
  set(count_at(StatsPart::counters), 201U);
  EXPECT_EQ(status(), Status::invalid);
  set(offsetof(StatsHeader, sequence), 3U);
  EXPECT_EQ(status(), Status::again);
}

TEST_F(MadeUpPage, OfAnyBytesIsReadWithinItsBounds) {
  std::mt19937_64 random(1);
  std::size_t read = 0;
  const auto before = bytes_;
  for (int i = 0; i < 3000; ++i) {
    bytes_ = before;
    // In the header, except for the sequence: reading a page that is being written takes milliseconds.
    for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % sizeof(StatsHeader);
      if (at / 4 != offsetof(StatsHeader, sequence) / 4) bytes_[at] = static_cast<std::byte>(random());
    }
    for (int changes = 0; changes < 20; ++changes)
      bytes_[sizeof(StatsHeader) + random() % (bytes_.size() - sizeof(StatsHeader))] = static_cast<std::byte>(random());
    ASSERT_EQ(::pwrite(file_.get(), bytes_.data(), sizeof(StatsHeader), 0), static_cast<ssize_t>(sizeof(StatsHeader)));
    const auto view = read_stats(file_.get(), kOnce);
    if (!view) continue;
    ++read;
    for (const StatsFlight& flight : view->flights)
      for (const FlightEvent& event : std::span(view->events).subspan(flight.first, flight.count))
        EXPECT_FALSE(event.to_string().empty());
    for (const StatsPeer& peer : view->peers) EXPECT_LE(text_of(peer.address).size(), 64u);
  }
  EXPECT_GT(read, 100u);
  EXPECT_LT(read, 3000u);
}

// Finding ------------------------------------------------------------------------------------------------------------

std::size_t pages_of(pid_t pid) {
  return find_stats(pid).size();
}

TEST(StatsFinder, FindsThePagesOfAProcessAndRingsTheirBells) {
  StatsPage page = page_of_test();
  auto found = find_stats(::getpid());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].program(), "observe_test");
  ASSERT_TRUE(found[0].ring(false, kOnce));
  EXPECT_EQ(page.take_wish(), Wish::figures);
  EXPECT_FALSE(found[0].has_answered());
  ASSERT_TRUE(found[0].ring(true, kOnce) && found[0].ring(false, kOnce) && found[0].ring(true, kOnce));
  EXPECT_EQ(page.take_wish(), Wish::flights);
  page.publish(some_stats(1), Wish::figures, kNow);
  EXPECT_FALSE(found[0].has_answered()) << "the flights were asked for";
  page.publish(some_stats(1), Wish::flights, kNow);
  EXPECT_TRUE(found[0].has_answered());
}

TEST(StatsFinder, AsksAndSaysWhoDidNotAnswer) {
  StatsPage page = page_of_test();
  auto found = find_stats(::getpid());
  const auto before = ask_stats(found, false, 0s);
  ASSERT_EQ(before.size(), 1u);
  EXPECT_FALSE(before[0].is_fresh);
  ASSERT_TRUE(before[0].view);
  EXPECT_EQ(before[0].view->header.publications, 0u);
  std::atomic<bool> is_over{false};
  std::thread owner([&] {
    while (!is_over) {
      if (const Wish wish = page.take_wish(); wish != Wish::nothing) page.publish(some_stats(5), wish, kNow);
      std::this_thread::sleep_for(100us);
    }
  });
  const auto after = ask_stats(found, false, 30s);
  is_over = true;
  owner.join();
  EXPECT_TRUE(after[0].is_fresh);
  EXPECT_EQ(after[0].view->counter("counter.0"), 5u);
}

TEST(StatsFinder, AChildThatInheritedAPageHasNone) {
  const StatsPage page = page_of_test();
  EXPECT_EQ(base::exit_of_child([] { return static_cast<int>(pages_of(::getpid())); }), 0);
  EXPECT_EQ(pages_of(::getpid()), 1u);
}

TEST(StatsFinder, AProcessThatHasEndedHasNone) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const StatsPage page = page_of_test();
    ::write(ready[1], "x", 1);
    ::pause();
  }
  char letter = 0;
  ASSERT_EQ(::read(ready[0], &letter, 1), 1);
  EXPECT_EQ(pages_of(child), 1u);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(pages_of(child), 0u) << "not waited for, but dead";
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

// A process may make as many pages as it has descriptors; our descriptors have to last for all processes.
TEST(StatsFinder, TakesSoManyOfAProcess) {
  std::vector<StatsPage> pages;
  for (int i = 0; i < 70; ++i) pages.push_back(page_of_test());
  EXPECT_EQ(pages_of(::getpid()), 64u);
}

std::ptrdiff_t descriptors() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"));
}

// Many pages of another user, each held open, would leave no descriptors for those of others.
TEST(StatsFinder, HoldsNoDescriptorOfWhatItFinds) {
  std::vector<StatsPage> pages;
  for (int i = 0; i < 5; ++i) pages.push_back(page_of_test());
  const auto before = descriptors();
  const auto found = find_stats(::getpid());
  EXPECT_EQ(found.size(), 5u);
  EXPECT_EQ(descriptors(), before);
}

TEST(StatsFinder, ReadsNoOtherPageThatTookThePlace) {
  auto page = std::make_unique<StatsPage>(page_of_test());
  const int place = page->descriptor();
  const auto found = find_stats(::getpid());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].read(kOnce));
  const StatsPage other = page_of_test();
  ASSERT_EQ(::dup3(other.descriptor(), place, O_CLOEXEC), place);
  EXPECT_FALSE(found[0].read(kOnce));
}

// The page contains the bell's descriptor number, which must be that of the declared pipe.
TEST(StatsFinder, WritesIntoNoOtherPipe) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  std::vector<std::byte> bytes(kStatsPlaces.page_bytes);
  const StatsPage page = page_of_test();
  ASSERT_EQ(::pread(page.descriptor(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  std::memcpy(bytes.data() + offsetof(StatsHeader, bell_descriptor), &ends[1], sizeof ends[1]);
  const base::FileDescriptor liar(::memfd_create(kStatsName, MFD_CLOEXEC));
  ASSERT_EQ(::pwrite(liar.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  struct stat facts{};
  ASSERT_EQ(::fstat(liar.get(), &facts), 0);
  FoundStats found(::getpid(), "liar", liar.get(), facts.st_ino);
  ASSERT_TRUE(found.read(kOnce));
  EXPECT_FALSE(found.ring(false, kOnce));
  char letter = 0;
  EXPECT_EQ(::read(ends[0], &letter, 1), -1);
  ::close(ends[0]);
  ::close(ends[1]);
}

// The documentation --------------------------------------------------------------------------------------------------

std::string table_of(std::string_view what, std::span<const StatsField> fields) {
  std::string text = fmt::format("| {} | |\n| --- | --- |\n", what);
  for (const StatsField& field : fields) {
    const bool is_time = field.kind == StatsKind::time || field.kind == StatsKind::duration;
    text += fmt::format("| `{}` | {}{} |\n", field.name, field.sentence, is_time ? ", ns" : "");
  }
  return text + "\n";
}

TEST(StatsLayout, StandsInTheDocumentation) {
  std::string tables = table_of("engine", kStatsHeaderFields);
  for (const StatsPartRow& part : kStatsPartRows)
    if (!part.fields.empty() && part.name != "counters")
      tables += table_of(fmt::format("`{}`", part.name), part.fields);
  std::ifstream stream(FAIRLEAD_SOURCE_FOLDER "/docs/top.md");
  const std::string written{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(written, HasSubstr(tables)) << "docs/top.md is not what the table of fields says";
}

}  // namespace
}  // namespace fairlead::observe
