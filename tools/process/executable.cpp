#include "tools/process/executable.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/environment.hpp"
#include "tools/process/elf_file.hpp"

namespace fairlead::tools {
namespace {

constexpr int kInterpretersMost = 4;  // as in the kernel

/// Returns the program in the first line of a script; empty if the file is none.
std::string interpreter_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line, interpreter;
  constexpr std::size_t kLineMax = 256;
  line.resize(kLineMax);
  in.read(line.data(), kLineMax);
  line.resize(static_cast<std::size_t>(in.gcount()));
  if (!line.starts_with("#!")) return {};
  std::istringstream(line.substr(2, line.find('\n') - 2)) >> interpreter;
  return interpreter;
}

bool can_be_started(const std::string& file) {
  struct stat status{};
  return ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(file.c_str(), X_OK) == 0;
}

/// Returns whether the kernel gives the program rights that its caller lacks.
bool has_rights_of_its_own(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) return true;
  if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
}

}  // namespace

std::optional<std::string> find_executable(const std::string& word, std::string_view folders) {
  if (word.find('/') != std::string::npos) return can_be_started(word) ? std::optional(word) : std::nullopt;
  const char* path = base::environment("PATH");
  std::string all = path != nullptr ? path : "/usr/bin:/bin";
  if (!folders.empty()) all.append(":").append(folders);
  std::istringstream each(all);
  for (std::string folder; std::getline(each, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + word;
    if (can_be_started(file)) return file;
  }
  return {};
}

std::string program_of(const std::string& file) {
  std::string program = file;
  for (int i = 0; i < kInterpretersMost; ++i) {
    std::string interpreter = interpreter_of(program);
    if (interpreter.empty()) break;
    program = std::move(interpreter);
  }
  return program;
}

std::optional<std::string> preload_obstacle(const std::string& file) {
  const std::string program = program_of(file);
  if (has_rights_of_its_own(program)) {
    return "it has rights that you lack (setuid, setgid or file capabilities), and the loader then ignores LD_PRELOAD; "
           "run it as that user, or a copy without these rights";
  }
  const auto elf = read_elf(program);
  if (!elf) return {};
  if (!elf->is_native) {
    return "it was built for another processor or for 32 bits, and the loader then ignores LD_PRELOAD; build it for "
           "64 bits of this processor";
  }
  if (elf->loader.empty())
    return "it is statically linked, so no library can be put before its own; link it dynamically";
  return {};
}

}  // namespace fairlead::tools
