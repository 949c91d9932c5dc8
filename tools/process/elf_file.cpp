#include "tools/process/elf_file.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>

namespace fairlead::tools {
namespace {

constexpr std::uint64_t kPartMax = 64 << 20;  // bytes; larger tables are taken for damage
constexpr unsigned kHeadersMax = 4096;

#if defined(__x86_64__)
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#else
constexpr Elf64_Half kOwnMachine = EM_NONE;
#endif

class Reader {
 public:
  explicit Reader(const std::string& file) : in_(file, std::ios::binary) {}

  template <typename Value>
  bool read(std::uint64_t offset, Value& value) {
    return read_bytes(offset, reinterpret_cast<char*>(&value), sizeof value);
  }
  std::optional<std::string> part(std::uint64_t offset, std::uint64_t size) {
    if (size > kPartMax) return {};
    std::string bytes(size, '\0');
    return read_bytes(offset, bytes.data(), size) ? std::optional(std::move(bytes)) : std::nullopt;
  }

 private:
  bool read_bytes(std::uint64_t offset, char* out, std::uint64_t size) {
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    return in_.good() && in_.read(out, static_cast<std::streamsize>(size)).good();
  }

  std::ifstream in_;
};

/// Returns nullopt if the program headers are damaged.
std::optional<std::string> loader_of(Reader& in, const Elf64_Ehdr& header) {
  if (header.e_phnum > kHeadersMax || (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr))) return {};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!in.read(header.e_phoff + i * sizeof part, part)) return {};
    if (part.p_type != PT_INTERP) continue;
    const auto bytes = in.part(part.p_offset, part.p_filesz);
    return bytes ? std::optional(std::string(bytes->c_str())) : std::nullopt;
  }
  return std::string();
}

std::vector<std::string> imports_of(Reader& in, const Elf64_Ehdr& header) {
  std::vector<std::string> names;
  if (header.e_shnum > kHeadersMax || header.e_shentsize != sizeof(Elf64_Shdr)) return names;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table{}, text{};
    if (!in.read(header.e_shoff + i * sizeof table, table)) return names;
    if (table.sh_type != SHT_DYNSYM || table.sh_link >= header.e_shnum) continue;
    if (!in.read(header.e_shoff + table.sh_link * sizeof text, text)) return names;
    const auto symbols = in.part(table.sh_offset, table.sh_size);
    const auto strings = in.part(text.sh_offset, text.sh_size);
    if (!symbols || !strings) return names;
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols->size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      std::memcpy(&symbol, symbols->data() + at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0 && symbol.st_name < strings->size())
        names.emplace_back(strings->c_str() + symbol.st_name);
    }
  }
  return names;
}

}  // namespace

std::optional<ElfFile> read_elf(const std::string& file) {
  Reader in(file);
  Elf64_Ehdr header{};
  if (!in.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  ElfFile found;
  found.is_native = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kOwnMachine;
  if (!found.is_native) return found;
  auto loader = loader_of(in, header);
  if (!loader) return {};
  found.loader = std::move(*loader);
  found.imported = imports_of(in, header);
  return found;
}

}  // namespace fairlead::tools
