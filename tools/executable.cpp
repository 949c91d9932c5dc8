#include "tools/executable.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/environment.hpp"

namespace fairlead::tools {
namespace {

constexpr unsigned kProgramHeadersMax = 128;

/// Returns whether it is an ELF executable without a dynamic loader. Also false if it is no ELF file.
bool is_static(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  Elf64_Ehdr header{};
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kProgramHeadersMax) return false;
  in.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!in.read(reinterpret_cast<char*>(&part), sizeof part)) return false;
    if (part.p_type == PT_INTERP) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> find_executable(const std::string& word) {
  if (word.find('/') != std::string::npos)
    return ::access(word.c_str(), X_OK) == 0 ? std::optional(word) : std::nullopt;
  const char* path = base::environment("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + word;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

std::optional<std::string> preload_obstacle(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return {};
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 && ::geteuid() != 0) {
    return "it runs as another user (setuid), and the loader then ignores LD_PRELOAD; run it as that user";
  }
  if (is_static(file)) return "it is statically linked, so no library can be put before its own; link it dynamically";
  return {};
}

}  // namespace fairlead::tools
