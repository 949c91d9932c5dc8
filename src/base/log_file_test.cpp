#include "base/log_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fairlead::base {
namespace {

TEST(LogFile, NothingWrittenThereCommandsATerminal) {
  std::string folder = std::filesystem::temp_directory_path() / "fairlead_log_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/log";
  auto log = LogFile::open(path);
  ASSERT_TRUE(log) << log.error().message;
  log->write("two lines\nof \x1b]0;title\a a \xe2\x80\xae peer\r\n");
  log->write("and one\n");
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove_all(folder);
  EXPECT_EQ(text, "two lines\nof ?]0;title? a ??? peer?\nand one\n");
}

TEST(LogFile, WhatCannotBeOpenedIsSaidAtOnce) {
  const auto log = LogFile::open("/nowhere/to/be/found");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message, "cannot open the folder /nowhere: No such file or directory");
}

TEST(LogFile, ReportsThatNobodyReadsAreCountedNotWaitedFor) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const FileDescriptor kept(::dup(STDERR_FILENO));
  ASSERT_EQ(::dup2(pipe[1], STDERR_FILENO), STDERR_FILENO);
  auto log = LogFile::open("stderr");
  const std::string long_one(1 << 20, 'x');  // more than a pipe holds
  if (log) {
    log->write(long_one);
    log->write(long_one);
  }
  std::string taken(1 << 20, ' ');
  taken.resize(static_cast<std::size_t>(::read(pipe[0], taken.data(), taken.size())));
  if (log) log->write("read again\n");
  std::string next(1 << 20, ' ');
  next.resize(static_cast<std::size_t>(::read(pipe[0], next.data(), next.size())));
  ::dup2(kept.get(), STDERR_FILENO);
  ::close(pipe[0]);
  ::close(pipe[1]);
  ASSERT_TRUE(log);
  EXPECT_EQ(taken, std::string(taken.size(), 'x'));
  EXPECT_EQ(next, "(2 reports before this found no room)\nread again\n");
}

}  // namespace
}  // namespace fairlead::base
