// The log of a process: wanted lines are written, others are not even formatted, and lines beyond the limit are
// counted.

#include "base/log.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/child_for_tests.hpp"
#include "base/file_descriptor.hpp"
#include "base/log_budget.hpp"

namespace fairlead::base {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(LogLevels, AreGivenForAllTopicsOrOne) {
  const auto of = [](std::string_view text) { return LogLevels::parse(text).value().of_topic; };
  using enum LogLevel;
  EXPECT_THAT(of(""), ElementsAre(warning, warning, warning, warning, warning));
  EXPECT_THAT(of("info"), ElementsAre(info, info, info, info, info));
  EXPECT_THAT(of("info,link=debug"), ElementsAre(info, debug, info, info, info));
  EXPECT_THAT(of("verbs=off,engine=error"), ElementsAre(error, warning, warning, warning, off));
  EXPECT_THAT(of("link=debug,info"), ElementsAre(info, info, info, info, info)) << "the later one wins";
}

TEST(LogLevels, OfAnyOtherTextAreRefusedWithWhatIsWanted) {
  for (const char* text : {"x", "info,", "info,,", ",info", "link", "link=", "=info", "nothing=info", "info=link",
                           "link=debug=info", "INFO", " info"}) {
    const auto parsed = LogLevels::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().status, Status::invalid);
    EXPECT_THAT(parsed.error().message,
                HasSubstr("want LEVEL or TOPIC=LEVEL, several with commas; levels: off, error"));
  }
}

TEST(LogBudget, ABurstPassesAndThenAsManyAsComeBack) {
  LogBudget budget;
  Instant now{1h};
  const auto pass = [&](int lines) {
    int passed = 0;
    for (int i = 0; i < lines; ++i) passed += budget.take(now);
    return passed;
  };
  EXPECT_EQ(pass(150), 100);
  EXPECT_EQ(budget.take_left_out(), 50u);
  EXPECT_EQ(budget.take_left_out(), 0u);
  now += 1s;
  EXPECT_EQ(pass(150), 10);
  now += 1h;
  EXPECT_EQ(pass(150), 100);
}

/// A process of its own, with a log of its own.
template <typename Work>
void in_child(const char* levels, Work&& work) {
  EXPECT_EQ(exit_of_child([&] {
              ::setenv("FAIRLEAD_LOG", levels, 1);
              return work() ? 0 : 1;
            }),
            0);
}

/// Captures what is written to standard error meanwhile.
template <typename Work>
std::string written_by(Work&& work) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return "no pipe";
  const FileDescriptor kept(::dup(STDERR_FILENO)), read_end(pipe[0]), write_end(pipe[1]);
  if (!kept.is_open() || ::dup2(write_end.get(), STDERR_FILENO) < 0) return "no standard error";
  work();
  ::dup2(kept.get(), STDERR_FILENO);
  std::string text(65536, ' ');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(read_end.get(), text.data(), text.size()), 0)));
  return text;
}

void log_each_level() {
  log(LogLevel::error, LogTopic::link, "", "one");
  log(LogLevel::warning, LogTopic::link, "10.0.0.1:20480", "two \033[31m");
  log(LogLevel::info, LogTopic::link, "10.0.0.1:20480", "three");
  log(LogLevel::info, LogTopic::shm, "", "four");
  log(LogLevel::debug, LogTopic::link, "", "five");
}

TEST(Log, WritesWarningsToStandardErrorUnlessToldElse) {
  in_child("", [] { return written_by(log_each_level) == "fairlead: one\nfairlead at 10.0.0.1:20480: two ?[31m\n"; });
}

TEST(Log, ObeysTheEnvironment) {
  in_child("off,shm=info", [] { return written_by(log_each_level) == "fairlead: four\n"; });
  in_child("nonsense", [] { return written_by(log_each_level).starts_with("fairlead: one\n"); });
}

TEST(Log, OfSeveralLinesHasTheOthersAtDebug) {
  const auto write = [] { log(LogLevel::info, LogTopic::link, "", "lost\nwhy\nand when\n"); };
  in_child("info", [&] { return written_by(write) == "fairlead: lost\n"; });
  in_child("info,link=debug",
           [&] { return written_by(write) == "fairlead: lost\nfairlead: why\nfairlead: and when\n"; });
}

TEST(Log, AProgramsCallCountsMoreThanSettingsAndThoseMoreThanTheEnvironment) {
  in_child("info", [] {
    const bool by_environment = is_logged(LogLevel::info, LogTopic::seal);
    suggest_log_levels(*LogLevels::parse("debug"));
    const bool by_settings = is_logged(LogLevel::debug, LogTopic::seal);
    const bool is_taken = set_log_levels("error").has_value();
    suggest_log_levels(*LogLevels::parse("debug"));
    const bool by_program = !is_logged(LogLevel::warning, LogTopic::seal);
    const bool is_refused = !set_log_levels("loud");
    return by_environment && by_settings && is_taken && by_program && is_refused;
  });
}

TEST(Log, GoesToTheProgramsFunction) {
  in_child("info", [] {
    std::vector<std::string> lines;
    set_log_handler([&](const LogLine& line) {
      lines.push_back(std::string(to_string(line.level)) + " " + std::string(to_string(line.topic)) + " " +
                      std::string(line.engine) + ": " + std::string(line.text));
      (void)set_log_levels("error");  // a handler may call anything declared in this header
      if (lines.size() == 2) throw std::runtime_error("is lost");
    });
    const bool is_silent = written_by([] {
                             log(LogLevel::info, LogTopic::shm, "10.0.0.1:20480", "hello");
                             log(LogLevel::info, LogTopic::shm, "", "not any more");
                             log(LogLevel::error, LogTopic::shm, "", "worse");
                           }).empty();
    set_log_handler(nullptr);
    const std::string after = written_by([] { log(LogLevel::error, LogTopic::shm, "", "again"); });
    return is_silent && lines == std::vector<std::string>{"info shm 10.0.0.1:20480: hello", "error shm : worse"} &&
           after.starts_with("fairlead: 1 lines before this were lost: ") && after.ends_with("\nfairlead: again\n");
  });
}

// What a program's handler holds is destroyed with it, and is the program's code, too.
TEST(Log, LetsAFunctionGoThatCallsIt) {
  in_child("info", [] {
    ::alarm(20);  // only a failing test waits so long
    std::shared_ptr<void> held(nullptr, [](void*) { (void)set_log_levels("error"); });
    set_log_handler([held](const LogLine&) {});
    held.reset();
    set_log_handler(nullptr);
    return !is_logged(LogLevel::warning, LogTopic::link);
  });
}

TEST(Log, TellsHowManyLinesWereTooMany) {
  in_child("info", [] {
    std::vector<std::string> lines;
    set_log_handler([&](const LogLine& line) { lines.emplace_back(line.text); });
    // A second's worth of lines may come back meanwhile; the missing ones were counted.
    for (int i = 0; i < 1000; ++i) log(LogLevel::info, LogTopic::link, "", "line");
    const std::size_t written = lines.size();
    std::this_thread::sleep_for(200ms);
    log(LogLevel::info, LogTopic::link, "", "last");
    return written < 200 && lines.back() == "last" &&
           lines[lines.size() - 2].find("lines before this were lost") != std::string::npos;
  });
}

TEST(Log, OfAChildBeginsAnew) {
  in_child("info", [] {
    set_log_handler([](const LogLine&) { std::abort(); });
    return exit_of_child([] {
             return written_by([] { log(LogLevel::info, LogTopic::link, "", "child"); }) == "fairlead: child\n" ? 0 : 1;
           }) == 0;
  });
}

}  // namespace
}  // namespace fairlead::base
