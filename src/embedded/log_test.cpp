// What engines log about themselves and about how each peer is reached.

#include <gmock/gmock.h>

#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fairlead/log.hpp>

#include <fmt/format.h>

#include "base/owned_file.hpp"
#include "base/place_for_tests.hpp"
#include "embedded/attach.hpp"

namespace fairlead::embedded {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class LoggedEngines : public testing::TestWithParam<const char*> {
 protected:
  LoggedEngines() {
    set_log_handler([this](const LogLine& line) {
      const std::scoped_lock lock(mutex_);
      lines_.push_back(std::string(to_string(line.topic)) + " " + std::string(line.engine) + ": " +
                       std::string(line.text));
    });
  }
  ~LoggedEngines() override {
    set_log_handler(nullptr);
    EXPECT_TRUE(set_log_levels("warning"));
  }
  std::shared_ptr<engine::Core> attach(std::uint16_t number) const {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set("path", GetParam()));
    return attach_embedded(base::place_for_tests(number), options).value();
  }
  /// One engine sends the other a message, and waits for its completion.
  void exchange() {
    const auto from = attach(1), to = attach(2);
    const auto port = *from->open_port(5), there = *to->open_port(5);
    EXPECT_EQ(from->reserve_events(port, 10), Status::ok);
    std::array<std::byte, 8> bytes{};
    const iovec piece{bytes.data(), bytes.size()};
    engine::OperationHandle name;
    EXPECT_EQ(from->send(port, {.to = {to->address(), 5}, .part = {{&piece, 1}, 8}}, name), Status::ok);
    EXPECT_TRUE(from->wait(port, base::MonotonicClock::now() + 30s));
    from->close_port(port);
    to->close_port(there);
  }
  std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }
  static std::string place(std::uint16_t number) { return base::place_for_tests(number).to_string(); }

  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_P(LoggedEngines, TellTheirStartTheirPeersAndTheirEnd) {
  ASSERT_TRUE(set_log_levels("info"));
  exchange();
  const std::string way =
      GetParam() == std::string("udp") ? " is reached over UDP" : " is reached through shared memory";
  const std::string topic = GetParam() == std::string("udp") ? "link" : "shm";
  for (const std::uint16_t number : {std::uint16_t{1}, std::uint16_t{2}}) {
    const std::string peer = place(static_cast<std::uint16_t>(3 - number));
    EXPECT_THAT(lines(), Contains(StartsWith("engine " + place(number) + ": the engine starts: UDP in datagrams")));
    EXPECT_THAT(lines(), Contains(StartsWith(fmt::format("{} {}: {}{}", topic, place(number), peer, way))));
    EXPECT_THAT(lines(), Not(Contains(HasSubstr("nobody listens")))) << "who leaves loses nobody";
    EXPECT_THAT(lines(), Contains("engine " + place(number) + ": the engine has ended"));
  }
}

TEST_P(LoggedEngines, SayNothingByDefault) {
  exchange();
  EXPECT_THAT(lines(), IsEmpty());
}

/// A temporary folder with a key file.
class LoggedKeys : public testing::Test {
 protected:
  LoggedKeys() {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    EXPECT_TRUE(base::create_secret_file(path(), "psk " + std::string(64, 'a') + "\n"));
  }
  ~LoggedKeys() override {
    set_log_handler(nullptr);
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/psk"; }

  std::string folder_ = std::filesystem::temp_directory_path() / "fairlead_log_XXXXXX";
};

// The program's log handler may wait for a thread that waits for the engine's lock.
TEST_F(LoggedKeys, AreComplainedOfWithoutTheEnginesLock) {
  engine::EngineOptions options;
  ASSERT_TRUE(options.set("seal", "psk:" + path()));
  const auto core = attach_embedded(base::place_for_tests(1), options).value();
  std::jthread other;
  std::atomic<int> lines{0};
  std::atomic<bool> is_free{false};
  set_log_handler([&](const LogLine& line) {
    if (line.topic != LogTopic::seal) return;
    other = std::jthread([&] {
      (void)core->facts();
      is_free = true;
    });
    for (int i = 0; i < 3000 && !is_free; ++i) std::this_thread::sleep_for(1ms);
    lines += is_free ? 1 : 100;
  });
  ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
  for (const auto end = base::MonotonicClock::now() + 30s; lines == 0 && base::MonotonicClock::now() < end;) {
    core->progress();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(lines, 1) << "0: nothing was told; 100: with the engine's lock held";
}

INSTANTIATE_TEST_SUITE_P(Over, LoggedEngines, testing::Values("udp", "shm"));

}  // namespace
}  // namespace fairlead::embedded
