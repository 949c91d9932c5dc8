#pragma once
// What an ELF file says about how it is started: its loader, and the symbols that it takes from libraries.

#include <optional>
#include <string>
#include <vector>

namespace fairlead::tools {

struct ElfFile {
  bool is_native = false;             // of this processor, with 64 bits
  std::string loader;                 // the dynamic loader that starts it; empty for a library or a static program
  std::vector<std::string> imported;  // symbols that it uses and does not define, without versions
};

/// Returns nullopt if it is no ELF file, or is damaged. Any content is safe.
std::optional<ElfFile> read_elf(const std::string& file);

}  // namespace fairlead::tools
