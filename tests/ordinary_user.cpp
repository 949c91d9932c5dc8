#include "tests/ordinary_user.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "tests/child_process.hpp"

namespace fairlead::tests {

namespace fs = std::filesystem;

OrdinaryUser::OrdinaryUser(std::string command) : command_(std::move(command)) {
  if (::geteuid() == 0) prefix_ = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  if (!can_execute(command_)) copy_command();
  EXPECT_TRUE(can_execute(command_)) << command_;
}

OrdinaryUser::~OrdinaryUser() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

bool OrdinaryUser::can_execute(const std::string& program) const {
  auto words = prefix_;
  words.insert(words.end(), {"test", "-x", program});
  return run(words).exit_code == 0;
}

// Copies the command and the library that it preloads, with the same relative paths.
void OrdinaryUser::copy_command() {
  folder_ = fmt::format("{}ordinary_user.{}", testing::TempDir(), ::getpid());
  const fs::path prefix = fs::path(command_).parent_path().parent_path();
  const std::string preload = run({command_, "run", "--", "sh", "-c", "echo ${LD_PRELOAD%%:*}"}).output;
  const fs::path library = preload.substr(0, preload.find('\n'));
  for (const fs::path& file : {fs::path(command_), library}) {
    const fs::path copy = folder_ / file.lexically_relative(prefix);
    fs::create_directories(copy.parent_path());
    fs::copy_file(file, copy);
  }
  command_ = folder_ / fs::path(command_).lexically_relative(prefix);
}

}  // namespace fairlead::tests
