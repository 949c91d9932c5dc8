#include "tools/run/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "tools/process/child_process.hpp"
#include "tools/process/elf_file.hpp"
#include "tools/process/executable.hpp"

namespace fairlead::tools {
namespace {

struct Library {
  std::string name, file;  // the file is empty if there is none
};

struct KnownLibrary {
  std::string_view name, what;
};
constexpr std::array kKnown{
    KnownLibrary{"libibverbs.so.1", "Fairlead's library takes its place"},
    KnownLibrary{"librdmacm.so.1", "the system's library works: /dev/infiniband/rdma_cm is simulated"},
    KnownLibrary{"libibumad.so.3", "management datagrams are not simulated: it finds no port"},
    KnownLibrary{"libucp.so.0", "UCX's plugin for verbs gets the device; UCX_TLS=rc,self selects it inside a host"},
    KnownLibrary{"libfabric.so.1", "its provider verbs gets the device"},
    KnownLibrary{"libmpi.so.40", "Open MPI: put `fairlead run --` before each rank, and --mca pml ucx before it"},
    KnownLibrary{"libmpich.so.12", "MPICH: put `fairlead run --` before each rank"},
};

// Calls that only hardware answers, by the beginning of their names.
struct KnownCalls {
  std::string_view prefix, what, remedy;
};
constexpr std::array kHardwareCalls{
    KnownCalls{"mlx5dv_", "direct verbs of mlx5", "the device is not of mlx5, so take the path by standard verbs"},
    KnownCalls{"mlx4dv_", "direct verbs of mlx4", "the device is not of mlx4, so take the path by standard verbs"},
    KnownCalls{"efadv_", "direct verbs of EFA", "the device is not of EFA, so take the path by standard verbs"},
    KnownCalls{"ibv_reg_dmabuf_mr", "memory of other devices (dma-buf)", "register host memory"},
    KnownCalls{"umad_", "management datagrams", "no subnet manager is needed, and none is there"},
};

constexpr std::string_view kVerbs = "libibverbs.so";

/// Returns whether the file contains the text: a name that it may pass to dlopen().
bool mentions(const std::string& file, std::string_view text) {
  std::ifstream in(file, std::ios::binary);
  constexpr std::size_t kPiece = 1 << 20, kPiecesMost = 512;
  std::string piece;
  for (std::size_t i = 0; i < kPiecesMost && in; ++i) {
    const std::size_t kept = std::min(piece.size(), text.size() - 1);
    piece.erase(0, piece.size() - kept);
    piece.resize(kept + kPiece);
    in.read(piece.data() + kept, kPiece);
    piece.resize(kept + static_cast<std::size_t>(in.gcount()));
    if (piece.contains(text)) return true;
  }
  return false;
}

/// Returns the libraries that the loader would load, also those that libraries need. Our own loader lists them: the
/// program may name any file as its loader.
Result<std::vector<Library>> libraries_of(const std::string& program) {
  const auto own = read_elf("/proc/self/exe");
  if (!own || own->loader.empty()) return std::vector<Library>{};
  const auto listed = run_program({own->loader, "--list", program});
  if (!listed) return std::unexpected(listed.error());
  std::vector<Library> libraries;
  std::istringstream lines(*listed);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Library library;
    std::string arrow;
    if (!(words >> library.name >> arrow >> library.file) || arrow != "=>") continue;
    if (library.file == "not") library.file.clear();  // "not found"
    libraries.push_back(std::move(library));
  }
  return libraries;
}

void look_at_libraries(Findings& findings, const std::vector<Library>& libraries) {
  for (const Library& library : libraries) {
    if (library.file.empty()) {
      findings.push_back({Verdict::trouble, "library", library.name + " is not installed", "install its package"});
      continue;
    }
    const auto known = std::ranges::find(kKnown, library.name, &KnownLibrary::name);
    if (known != kKnown.end())
      findings.push_back({Verdict::good, "library", fmt::format("{}: {}", library.name, known->what), {}});
  }
}

/// Looks only at the program itself: libraries for hardware import such calls of each other, and ask for the device
/// first.
void look_at_calls(Findings& findings, const ElfFile& elf) {
  constexpr std::size_t kNamesMost = 3;
  for (const KnownCalls& calls : kHardwareCalls) {
    std::vector<std::string> names;
    std::ranges::copy_if(elf.imported, std::back_inserter(names),
                         [&](const std::string& name) { return name.starts_with(calls.prefix); });
    if (names.empty()) continue;
    const std::size_t count = names.size();
    names.resize(std::min(count, kNamesMost));
    findings.push_back({Verdict::note, "calls",
                        fmt::format("{}: {}{} will fail", calls.what, fmt::join(names, ", "),
                                    count > kNamesMost ? fmt::format(" and {} more", count - kNamesMost) : ""),
                        std::string(calls.remedy)});
  }
}

void look_at_verbs(Findings& findings, const std::string& program, const std::vector<Library>& libraries) {
  if (std::ranges::find(libraries, kKnown.front().name, &Library::name) != libraries.end()) return;
  if (mentions(program, kVerbs)) {
    findings.push_back({Verdict::good, "library", "it opens libibverbs by name, and gets Fairlead's", {}});
  } else {
    findings.push_back({Verdict::note, "library", "it does not link libibverbs itself",
                        "nothing, if it loads a plugin or starts another program: both get the device, too"});
  }
}

}  // namespace

Findings examine_program(const std::string& word) {
  Findings findings;
  const auto file = find_executable(word);
  if (!file) {
    findings.push_back({Verdict::trouble, "program", fmt::format("there is no program {} here", word),
                        "give its path, or install it"});
    return findings;
  }
  const std::string program = program_of(*file);
  if (const auto obstacle = preload_obstacle(*file)) {
    findings.push_back({Verdict::trouble, "program", fmt::format("{} gets no device: {}", *file, *obstacle), {}});
    return findings;
  }
  const auto elf = read_elf(program);
  if (!elf) {
    findings.push_back({Verdict::trouble, "program", *file + " is neither a program nor a script", {}});
    return findings;
  }
  findings.push_back({Verdict::good,
                      "program",
                      program == *file ? program + " can be given a device"
                                       : fmt::format("{} is a script; {} can be given a device", *file, program),
                      {}});
  const auto libraries = libraries_of(program);
  if (!libraries) {
    findings.push_back({Verdict::trouble, "library", libraries.error().message, {}});
    return findings;
  }
  look_at_libraries(findings, *libraries);
  look_at_verbs(findings, program, *libraries);
  look_at_calls(findings, *elf);
  return findings;
}

}  // namespace fairlead::tools
