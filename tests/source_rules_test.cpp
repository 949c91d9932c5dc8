// Operations that only certain files may use, because a mistake there harms the application's process.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fairlead::tests {
namespace {

namespace fs = std::filesystem;

struct Rule {
  const char* word;                 // a line with this word is checked
  const char* pattern;              // a breach matches it
  std::vector<std::string> places;  // files and folders that are permitted
  std::vector<std::string> applies{"src", "doors", "include", "tools"};
  const char* unless = "";  // no breach if this is in the same statement
};

bool is_under(const std::string& file, const std::vector<std::string>& places) {
  return std::ranges::any_of(places, [&](const std::string& place) { return file.starts_with(place); });
}

bool is_of_tests(const std::string& file) {
  return file.ends_with("_test.cpp") || file.find("_for_tests") != file.npos || file.starts_with("doors/amudp/tests/");
}

// Returns the text from the matching line to the end of the statement.
std::string statement_at(const std::vector<std::string>& lines, std::size_t first) {
  std::string all;
  for (std::size_t i = first; i < std::min(lines.size(), first + 6); ++i) {
    all += lines[i];
    if (lines[i].find(';') != std::string::npos) break;
  }
  return all;
}

std::string without_comment(const std::string& line) {
  return line.substr(0, line.find("//"));
}

std::vector<std::string> breaches(const Rule& rule, const fs::path& project) {
  const std::regex pattern(rule.pattern);
  std::vector<std::string> found;
  for (const std::string& top : rule.applies) {
    for (const auto& entry : fs::recursive_directory_iterator(project / top)) {
      const std::string extension = entry.path().extension(), file = fs::relative(entry.path(), project);
      if ((extension != ".hpp" && extension != ".cpp") || is_of_tests(file) || is_under(file, rule.places)) continue;
      std::ifstream stream(entry.path());
      std::vector<std::string> lines;
      for (std::string line; std::getline(stream, line);) lines.push_back(without_comment(line));
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].find(rule.word) == std::string::npos || !std::regex_search(lines[i], pattern)) continue;
        if (*rule.unless != '\0' && statement_at(lines, i).find(rule.unless) != std::string::npos) continue;
        found.push_back(fmt::format("{}:{}: {}", file, i + 1, lines[i]));
      }
    }
  }
  return found;
}

/// Checks that the project keeps the rule, and that each planted line would break it in each folder that it applies to.
void expect_kept(const Rule& rule, const std::vector<std::string>& planted) {
  const auto found = breaches(rule, FAIRLEAD_SOURCE_FOLDER);
  EXPECT_TRUE(found.empty()) << fmt::format("{}", fmt::join(found, "\n"));
  std::string folder = fs::temp_directory_path() / "fairlead_rules_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const std::string& top : rule.applies) {
    fs::create_directories(fs::path(folder) / top);
    std::ofstream file(fs::path(folder) / top / "planted.cpp");
    for (const std::string& line : planted) file << line << "\n";
  }
  const auto seen = breaches(rule, folder);
  fs::remove_all(folder);
  ASSERT_FALSE(planted.empty());
  EXPECT_EQ(seen.size(), planted.size() * rule.applies.size()) << rule.pattern << " sees only\n"
                                                               << fmt::format("{}", fmt::join(seen, "\n"));
}

TEST(SourceRules, TheEnvironmentIsReadWhereItIsKnownWhetherToBelieveIt) {
  expect_kept({.word = "env",
               .pattern = R"(\b(secure_)?getenv\s*\(|\benviron\b)",
               .places = {"src/base/environment.", "tools/perf/far_process.cpp"}},  // it hands its environment on
              {"auto x = std::getenv(name);", "secure_getenv (name);", "for (char** one = environ; *one; ++one) {}"});
}

TEST(SourceRules, ThreadsBeginWhereSignalsAreBlocked) {
  expect_kept({.word = "thread",
               .pattern = R"(\bstd::j?thread\b(?!::id)|\bpthread_create\b|\bthrd_create\b)",
               .places = {"src/base/thread."},
               .applies = {"src", "doors", "include"}},
              {"std::thread other([] {});", "std::jthread other;", "pthread_create(&thread, 0, run, 0);"});
  expect_kept({.word = "async", .pattern = R"(\bstd::async\b)", .places = {}, .applies = {"src", "doors", "include"}},
              {"auto later = std::async(run);"});
}

// Without the ones whose result a program may ignore: those that wait or deliver, set a callback, and clean up.
TEST(SourceRules, ThePublicInterfaceLetsNoFailureGoUnseen) {
  expect_kept(
      {.word = "(",
       .pattern = R"(^\s*(static )?(Result<.*>|Status|std::expected<.*>) (?!put|stop_and_wait|close|deliver_all|)"
                  R"(wait|set_callback|remove|destroy|poll|add_to)\w+\()",
       .places = {},
       .applies = {"include"}},
      {"  Result<> open();", "Status set_depth(unsigned depth);", "  static Result<std::vector<int>> list();"});
}

TEST(SourceRules, OneHookOfForkKnowsWhatAChildHasInherited) {
  expect_kept({.word = "fork", .pattern = R"(\bpthread_atfork\b)", .places = {"src/base/process_mark."}},
              {"pthread_atfork(nullptr, nullptr, in_child);"});
}

TEST(SourceRules, NoWriteRaisesASignal) {
  expect_kept(
      {.word = "send",
       .pattern = R"((^|[^\w:])::send(to|msg|mmsg)?\s*\(|[^\w.:>]send(to|msg|mmsg)\s*\()",
       .places = {},
       .unless = "MSG_NOSIGNAL"},
      {"::send(a, b, c, 0);", "return ::sendmsg(a, &b, 0);", "x = sendmmsg(a, b, c, 0);", " sendto(a, b, c, 0);"});
  expect_kept(
      {.word = "write",
       .pattern =
           R"re((^|[^\w:])::p?writev?\s*\(|[^\w.:>]p?writev?\s*\(\s*(\w*descriptor\w*|\w+(\.|->)get\(\)|STD\w+|\d))re",
       .places = {"src/base/file_signals.", "src/base/network_namespace."},
       .applies = {"src", "doors", "include"}},
      {"::write(a, b, c);", "x = ::pwritev(a, b, c, d);", " write(descriptor, b, c);", " write(file.get(), b, c);",
       " write(STDERR_FILENO, b, c);", " writev(2, b, c);"});
  expect_kept({.word = "f",
               .pattern = R"(\bf(truncate|allocate)\s*\(|\bposix_fallocate\s*\()",
               .places = {"src/base/file_signals."},
               .applies = {"src", "doors", "include"}},
              {"::ftruncate(a, b);", "fallocate(a, 0, b, c);", "posix_fallocate(a, b, c);"});
}

// Peers' data enters the application's memory only through a permit, which the check of the peer's right creates. The
// other permitted places copy between our own buffers, or between two ends in this process.
TEST(SourceRules, WhatPeersSendIsPlacedByPermits) {
  constexpr const char* kCopies =
      R"((\b|__builtin_)mem(cpy|move)\s*\(|\bcopy_short\s*\(|\bscatter_(write|copy|store)\s*\()";
  const std::vector<std::string> planted{"std::memcpy(a, b, c);", "__builtin_memmove(a, b, c);",
                                         "copy_short(a, b, c);",  "scatter_write(a, b);",
                                         "scatter_copy(a, b);",   "scatter_store(a, b);"};
  expect_kept(
      {.word = "(",
       .pattern = kCopies,
       .places = {"src/engine/permit.hpp", "src/engine/messages_submit.cpp", "src/engine/transfers.cpp",  // loopback
                  "src/engine/local_copies.cpp", "src/engine/active_messages.cpp"},
       .applies = {"src/engine"}},
      planted);
  expect_kept({.word = "(",
               .pattern = kCopies,
               .places = {"src/qp/permit.hpp", "src/qp/send_queue.cpp", "src/qp/reorder_buffer.cpp",
                          "src/qp/datagrams.cpp", "src/qp/network_header.cpp", "src/qp/one_sided.cpp"},
               .applies = {"src/qp"}},
              planted);
  expect_kept(
      {.word = "(", .pattern = kCopies, .places = {"src/onesided/remote_memory.cpp"}, .applies = {"src/onesided"}},
      planted);
}

TEST(SourceRules, ABreachIsFound) {
  std::string folder = fs::temp_directory_path() / "fairlead_rules_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  fs::create_directories(fs::path(folder) / "src/base");
  std::ofstream(fs::path(folder) / "src/base/one.cpp") << "// getenv( is fine here\nauto x = std::getenv(\"A\");\n";
  std::ofstream(fs::path(folder) / "src/base/two.cpp") << "::send(a, b,\n  c, MSG_NOSIGNAL);\n::send(a, b, c, 0);\n";
  std::ofstream(fs::path(folder) / "src/base/three_test.cpp") << "std::getenv(\"A\");\n";
  const auto first = breaches({.word = "getenv", .pattern = R"(getenv\()", .places = {}, .applies = {"src"}}, folder);
  const auto second = breaches(
      {.word = "send", .pattern = R"(::send\()", .places = {}, .applies = {"src"}, .unless = "MSG_NOSIGNAL"}, folder);
  const auto third =
      breaches({.word = "getenv", .pattern = R"(getenv\()", .places = {"src/base/one."}, .applies = {"src"}}, folder);
  fs::remove_all(folder);
  EXPECT_EQ(first, std::vector<std::string>{"src/base/one.cpp:2: auto x = std::getenv(\"A\");"});
  EXPECT_EQ(second, std::vector<std::string>{"src/base/two.cpp:3: ::send(a, b, c, 0);"});
  EXPECT_TRUE(third.empty());
}

}  // namespace
}  // namespace fairlead::tests
